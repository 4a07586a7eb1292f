"""Closed-loop benchmark of assistants that learn: growing skillbooks, paired comparisons, honest intervals.

>>> import skg_bench
>>> run = skg_bench.run(["experiment=assistant_growth", "profile=smoke"])
>>> run.turns("skg").to_pandas()
>>> skg_bench.explain(run)
>>> skg_bench.compare(run, reference="never")
>>> skg_bench.plot(run, "hit_rate")
>>> skg_bench.evaluate(MyAssistant)
>>> skg_bench.estimate("clicks.csv", {"random": "1/34"})
>>> skg_bench.gate("runs/gate", "data/gate/baseline.json").state
>>> skg_bench.open_store(path="skillbooks.db").prompt("anna")
"""

import sys

if sys.argv[:1] == ["-m"] and not sys.flags.safe_path:  # so it is while Python looks for what `python -m` runs
    del sys.path[0]  # the current folder, whose files would be imported instead of Python's own

from importlib import import_module
from typing import TYPE_CHECKING, Any

from skg_bench.core.package import VERSION

if TYPE_CHECKING:
    from skg_bench.analysis.comparison.compare import Comparison as Comparison
    from skg_bench.app.api import compare as compare
    from skg_bench.app.api import explain as explain
    from skg_bench.app.api import plot as plot
    from skg_bench.app.api import run as run
    from skg_bench.app.estimating import estimate as estimate
    from skg_bench.app.evaluating import Evaluation as Evaluation
    from skg_bench.app.evaluating import evaluate as evaluate
    from skg_bench.app.gate import gate as gate
    from skg_bench.app.planning import plan_contrast as plan_contrast
    from skg_bench.app.stored import open_store as open_store
    from skg_bench.core.errors import UsageError as UsageError
    from skg_bench.runfolder.run import Run as Run

__version__ = VERSION
__all__ = [
    "Comparison", "Evaluation", "Run", "UsageError", "compare", "estimate", "evaluate", "explain", "gate", "open_store",
    "plan_contrast", "plot", "run",
]  # fmt: skip

_HOMES = {
    "Comparison": "skg_bench.analysis.comparison.compare",
    "Evaluation": "skg_bench.app.evaluating",
    "Run": "skg_bench.runfolder.run",
    "UsageError": "skg_bench.core.errors",
    "compare": "skg_bench.app.api",
    "estimate": "skg_bench.app.estimating",
    "evaluate": "skg_bench.app.evaluating",
    "explain": "skg_bench.app.api",
    "gate": "skg_bench.app.gate",
    "open_store": "skg_bench.app.stored",
    "plan_contrast": "skg_bench.app.planning",
    "plot": "skg_bench.app.api",
    "run": "skg_bench.app.api",
}


def __getattr__(name: str) -> Any:
    """The Python API, imported on first use: `skg-bench --help` needs neither numpy nor Hydra."""
    if name not in _HOMES:
        raise AttributeError(f"module 'skg_bench' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """Public names: the rest is imported from where it is defined."""
    return sorted([*__all__, "__version__"])
