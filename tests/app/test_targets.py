"""What may stand at each seam, and inside of what: of all that can be called, the classes that its yamls name there."""

import importlib
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from skg_bench.app import targets
from skg_bench.app.building import build
from skg_bench.app.packages import INSIDE as NESTED_GROUPS
from skg_bench.app.packages import groups
from skg_bench.app.targets import Chain, named_by_yaml
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.core.errors import UsageError
from skg_bench.core.package import CONF
from tests.app.lab import declare, forget, write

SEAMS = (
    "simulator",
    "assistant",
    "embedder",
    "router",
    "reranker",
    "policy",
    "curator",
    "llm",
    "signals",
    "signs",
    "jobs",
    "store",
    "tracker",
    "launcher",
)
_SKG = {"skg_bench.curator.skg.SKG"}
# what stands inside a component, by the seam, and by the classes and keys on the way there
INSIDE: Mapping[tuple[str, ...], set[str]] = {
    ("simulator", "skg_bench.simulator.answers.world.AssistantUsers", "corpus"): {
        "skg_bench.simulator.logs.clinc150.Clinc150", "skg_bench.simulator.logs.labelled.Labelled",
    },
    ("curator", "skg_bench.simulator.facts.keeping.KeepsFacts", "corpus"): {
        "skg_bench.simulator.logs.clinc150.Clinc150"
    },
    ("router", "skg_bench.router.hybrid.Hybrid", "first"): {"skg_bench.router.maxsim.MaxSim"},
    ("router", "skg_bench.router.hybrid.Hybrid", "second"): {"skg_bench.router.bm25.BM25"},
    ("router", "skg_bench.router.masked.Masked", "router"): {"skg_bench.router.maxsim.MaxSim"},
    ("reranker", "skg_bench.reranker.permuted.Permuted", "reranker"): {"skg_bench.reranker.linear.Linear"},
    ("curator", "skg_bench.curator.budget.Budget", "curator"): _SKG,
    ("curator", "skg_bench.curator.sham.Sham", "curator"): _SKG,
    ("curator", "skg_bench.curator.without.Without", "curator"): _SKG,
    ("tracker", "skg_bench.tracker.both.Both", "mlflow"): {"skg_bench.tracker.mlflow.MLflow"},
    ("tracker", "skg_bench.tracker.both.Both", "opik"): {"skg_bench.tracker.opik.Opik"},
    # of the two packages below
    ("reranker", "first_parts.things.Around", "inner"): {"first_parts.things.Inner"},
    ("reranker", "first_parts.things.Around", "inner", "first_parts.things.Inner", "many"): {"first_parts.things.Leaf"},
    ("policy", "second_parts.Chooser", "options.scorer"): {"first_parts.things.Around"},
    ("policy", "second_parts.Chooser", "options.scorer", "first_parts.things.Around", "inner"): {
        "first_parts.things.Inner"
    },
    (
        "policy", "second_parts.Chooser", "options.scorer", "first_parts.things.Around", "inner",
        "first_parts.things.Inner", "many",
    ): {"first_parts.things.Leaf"},
}  # fmt: skip

THINGS = '''
    """Things that can be called."""
    import functools
    import subprocess
    from dataclasses import dataclass
    from pathlib import Path
    from typing import Any

    @dataclass
    class Leaf:
        size: int = 0

    @dataclass
    class Inner:
        many: list[Any]

    @dataclass
    class Around:
        inner: Any
        label: Any = None

    class _Private:
        def run(self) -> None: ...

        @classmethod
        def make(cls) -> "_Private": ...

    def function(text: str) -> None: ...

    def _private(text: str) -> None: ...

    anonymous = lambda: None
    partial = functools.partial(function, "x")
    Alias = Leaf
'''
AROUND = """
    _target_: first_parts.things.Around
    inner:
      _target_: first_parts.things.Inner
      many:
        - _target_: first_parts.things.Leaf
          size: 1
    label: null
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Two packages that add components: one nests them in its yaml, the other by a defaults list, of another group."""
    site = tmp_path_factory.mktemp("site")
    write(site / "first_parts" / "__init__.py", "")
    write(site / "first_parts" / "things.py", THINGS)
    write(site / "first_parts" / "conf" / "reranker" / "around.yaml", AROUND)
    write(site / "first_parts" / "conf" / "llm" / "method.yaml", "_target_: first_parts.things._private\ntext: x\n")
    write(site / "first_parts" / "conf" / "signals" / "shell.yaml", "_target_: subprocess.Popen\nargs: [touch, ran]\n")
    write(site / "first_parts" / "conf" / "router" / "shell.yaml", "_target_: first_parts.things.subprocess.Popen\n")
    write(site / "second_parts.py", THINGS + "\n    @dataclass\n    class Chooser:\n        options: Any\n")
    chooser = "defaults: [{/reranker@options.scorer: around}, _self_]\n_target_: second_parts.Chooser\n"
    write(site / "conf" / "policy" / "picker.yaml", chooser)
    declare(site, "first_parts")
    declare(site, "second_parts")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        forget()
        yield
        for name in [name for name in sys.modules if name.split(".")[0] in ("first_parts", "second_parts")]:
            del sys.modules[name]
    forget()


def modules() -> Iterator[ModuleType]:
    """Every module of this package and of the two, those that need something that is not installed aside."""
    for name in ("skg_bench", "first_parts", "second_parts"):
        top = importlib.import_module(name)
        yield top
        for found in pkgutil.walk_packages(getattr(top, "__path__", []), f"{name}."):
            try:
                yield importlib.import_module(found.name)
            except ImportError:
                continue


def callables() -> set[str]:
    """Every name under which something can be called: private ones, imported ones, methods."""
    found = set()
    for module in modules():
        for name, value in vars(module).items():
            if callable(value):
                found.add(f"{module.__name__}.{name}")
            if isinstance(value, type) and value.__module__ == module.__name__:
                methods = [inner for inner in vars(value) if callable(getattr(value, inner, None))]
                found.update(f"{module.__name__}.{name}.{method}" for method in methods)
    return found


def at_the_seam(seam: str) -> set[str]:
    """What the yamls of a seam name, without what stands inside."""
    own = {yaml.safe_load(file.read_text("utf-8"))["_target_"] for file in (CONF / seam).glob("*.yaml")}
    added = {
        "reranker": {"first_parts.things.Around"},
        "policy": {"second_parts.Chooser"},
        "llm": {"first_parts.things._private"},
        "signals": {"subprocess.Popen"},
        "router": {"first_parts.things.subprocess.Popen"},
    }
    return own | added.get(seam, set())


def places(seam: str) -> dict[tuple[str, ...], set[str]]:
    """Where a component may be tried, as the classes and keys on the way there, and what is accepted there: at the seam
    itself, and inside all that is accepted, at each key that some yaml nests at and at one of another component.
    """
    found: dict[tuple[str, ...], set[str]] = {}
    new: dict[tuple[str, ...], set[str]] = {(): at_the_seam(seam)}
    while new:
        found |= new
        ways = [(*path, target) for path, accepted in new.items() for target in sorted(accepted)]
        keys = {way: {path[-1] for path in INSIDE if path[1:-1] == way} | {"corpus"} for way in ways}
        new = {(*way, key): INSIDE.get((seam, *way, key), set()) for way in ways for key in sorted(keys[way])}
    return found


@pytest.mark.usefixtures("packages")
def test_of_all_callables_a_seam_takes_the_classes_that_its_yamls_name_at_each_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read, known = targets._yamls, dict[str, Any]()

    def yamls(seam: str, *given: Any) -> Any:  # of the same packages, whose hash is the dearest of 2.6 million look-ups
        if seam not in known:
            known[seam] = read(seam, *given)
        return known[seam]

    monkeypatch.setattr(targets, "_yamls", yamls)
    offered = callables() | {"os.system", "builtins.eval", "first_parts.things.subprocess.run", "", "skg_bench"}
    assert len(offered) > 3000
    assert {"skg_bench.core.package._find", "skg_bench.analysis.summary.replace_text"} <= offered
    assert {"first_parts.things._Private.make", "second_parts.partial", "first_parts.things.Path"} <= offered
    tried = {(seam, *path): accepted for seam in SEAMS for path, accepted in places(seam).items()}
    assert all(tried[path] == inside for path, inside in INSIDE.items())
    for (seam, *path), accepted in tried.items():
        around: Chain = tuple(zip(("", *path[1::2]), path[::2], strict=False))
        key = path[-1] if path else ""
        if path and key in NESTED_GROUPS:  # a curator inside of another, or its model: whatever its group offers
            accepted = accepted | places(key)[()]
        assert {one for one in offered | accepted if named_by_yaml(seam, (*around, (key, one)))} == accepted, (
            seam,
            *path,
        )


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("seam", ["experiment", "profile", "serving", "", "..", "../conf/router", "router/../router"])
def test_what_is_no_seam_takes_nothing(seam: str) -> None:
    with pytest.raises(UsageError, match="is refused"):
        build(seam, {"_target_": "skg_bench.router.maxsim.MaxSim", "top_k": 5}, COMMAND_LINE)


@pytest.mark.usefixtures("packages")
def test_components_nested_as_yamls_nest_them_are_made() -> None:
    leaf = {"_target_": "first_parts.things.Leaf", "size": 2}
    around = {
        "_target_": "first_parts.things.Around",
        "inner": {"_target_": "first_parts.things.Inner", "many": [leaf, leaf]},
    }
    assert [one.size for one in build("reranker", around, COMMAND_LINE).inner.many] == [2, 2]
    chosen = build("policy", {"_target_": "second_parts.Chooser", "options": {"scorer": around}}, COMMAND_LINE)
    assert [one.size for one in chosen.options["scorer"].inner.many] == [2, 2]


LEAF = {"_target_": "first_parts.things.Leaf"}
INNER = {"_target_": "first_parts.things.Inner", "many": [LEAF]}


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize(
    ("seam", "node", "where"),
    [
        ("policy", {"_target_": "skg_bench.router.maxsim.MaxSim", "top_k": 5}, "policy."),  # of another seam
        ("reranker", INNER, "reranker."),  # which stands inside only
        ("reranker", {"_target_": "first_parts.things.Around", "inner": LEAF}, "reranker.inner."),
        ("reranker", {"_target_": "first_parts.things.Around", "inner": [LEAF]}, "reranker.inner.0."),
        ("reranker", {"_target_": "first_parts.things.Around", "inner": {"deep": [INNER]}}, "reranker.inner.deep.0."),
        ("reranker", {"_target_": "first_parts.things.Around", "inner": INNER, "label": INNER}, "reranker.label."),
        ("reranker", {"_target_": {"_target_": "first_parts.things.Around"}}, "reranker."),
        ("reranker", {"_target_": ["first_parts.things.Around"]}, "reranker."),
        ("reranker", {"_target_": "first_parts.things:Around", "inner": INNER}, "reranker."),
        ("reranker", {"_target_": "${oc.decode:first_parts.things.Around}", "inner": INNER}, "reranker."),
        (
            "llm",
            {"_target_": "first_parts.things._private", "text": "x"},
            "llm.",
        ),  # a yaml names it; no class
        ("signals", {"_target_": "subprocess.Popen", "args": ["touch", "ran"]}, "signals."),  # of no declared package
        ("router", {"_target_": "first_parts.things.subprocess.Popen", "args": ["touch", "ran"]}, "router."),
    ],
)
def test_all_else_is_refused_by_its_place_and_nothing_is_called(
    seam: str, node: Mapping[str, Any], where: str, elsewhere: Path
) -> None:
    with pytest.raises(UsageError) as error:
        build(seam, node, COMMAND_LINE)
    assert str(error.value).startswith(f"{where}_target_=")
    assert "is refused" in str(error.value)
    assert not list(elsewhere.iterdir())


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("key", ["_args_", "_partial_", "_recursive_", "_convert_"])
def test_hydras_own_keys_mean_nothing(key: str) -> None:
    around = {"_target_": "first_parts.things.Around", "inner": INNER}
    with pytest.raises(UsageError, match=f"reranker.{key}: first_parts.things.Around takes no such parameter"):
        build("reranker", {**around, key: True}, COMMAND_LINE)
    assert build("reranker", {**around, "label": {key: False}}, COMMAND_LINE).label == {key: False}


@pytest.mark.usefixtures("packages")
def test_an_interpolation_in_a_node_is_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPIK_API_KEY", "hidden-key")
    texts = ["${oc.env:OPIK_API_KEY}", "${oc.create:{_target_: first_parts.things.Leaf}}", "${inner}", "\\${x}"]
    around = {"_target_": "first_parts.things.Around", "inner": INNER, "label": texts}
    assert build("reranker", around, COMMAND_LINE).label == texts


def test_every_seam_that_has_components_is_tried() -> None:
    assert set(SEAMS) == set(groups()) - {"experiment", "profile"}
