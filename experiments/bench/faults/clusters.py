"""Faults by chance against runs on a Ray cluster of this machine."""

import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from experiments.bench.faults.cluster import has_ray
from experiments.bench.faults.lab import Lab
from experiments.bench.faults.ray_kills import by_command, by_head, by_node, refused
from experiments.bench.faults.trials import Row, chosen, report, trials
from skg_bench.app.experiment_report import Report
from skg_bench.app.experiments import Experiment
from skg_bench.app.progress import console
from skg_bench.core.errors import UsageError, install_hint

TITLE = "Does a cluster change a byte of a run?"
COMMAND = "skg-bench experiment faults/clusters"
ROWS: Mapping[str, Row] = {
    "node": Row(20, by_node), "command": Row(5, by_command), "head": Row(3, by_head), "refused": Row(3, refused),
}  # fmt: skip


def analyse(
    seed: Annotated[int, typer.Option(help="Of all moments.", min=0)] = 0,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="ROW[:TRIAL]", help=f"One of {', '.join(ROWS)}, or one trial of it; may be given again."),
    ] = None,
    limit: Annotated[float, typer.Option(help="Seconds that a command may take before it counts as hung.")] = 300.0,
    folder: Annotated[Path, typer.Option(help="Where temporary runs lie.")] = Path("runs"),
) -> Report:
    """Starts Ray clusters of this machine, one at a time, and kills nodes, commands and heads; then the same command
    has to end with the same bytes. Clusters without a token, the folder or the code must be refused.
    """
    if not has_ray():
        raise UsageError(f"faults/clusters needs the package ray: {install_hint('ray')}")
    wanted, began, screen = chosen(ROWS, only or [], 1.0), time.monotonic(), console(sys.stderr)
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="faults-", dir=folder.resolve(), ignore_cleanup_errors=True) as home:
        lab = Lab(Path(home), seed, limit)
        lab.prepare()
        outcomes = list(trials(ROWS, lab, wanted, 1, 240.0, lambda line: screen.print(line, soft_wrap=True)))
    words = [COMMAND, *[f"--seed {seed}"] * (seed > 0), *(f"--only {name}" for name in only or []), "--write reports"]
    left = [f"{len(wanted) - len(outcomes)} trials whose process ended before its kill"] * (len(wanted) > len(outcomes))
    return report(TITLE, list(ROWS), outcomes, left, seed, " ".join(words), time.monotonic() - began)


EXPERIMENT = Experiment(analyse, one_thread=True)
