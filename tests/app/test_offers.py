"""Every parameter of every component is offered through every door by which nodes of a file come in, with a canary."""

import ast
import copy
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from inspect import signature
from multiprocessing import get_context
from pathlib import Path
from pkgutil import resolve_name
from types import SimpleNamespace
from typing import Any, get_args

import pytest
import typer
import yaml

from skg_bench.app import gate, run_trackers, targets, trust
from skg_bench.app.arm_keys import SEAMS_OF_ARMS
from skg_bench.app.building import build
from skg_bench.app.cli import app
from skg_bench.app.counterexample import cases, shrink
from skg_bench.app.packages import packages
from skg_bench.app.skillbook import agentropy_folders
from skg_bench.app.targets import described_components, parameters
from skg_bench.app.trust import FromFile, is_plain
from skg_bench.core.errors import UsageError
from skg_bench.core.reach import Reach, ReachKind
from skg_bench.runfolder.run import Run
from tests.app.test_cli import call
from tests.app.test_files_of_others import CASE
from tests.imports import parsed, syntax_nodes
from tests.llm.server import Server
from tests.runs import changed

ROOT = Path(__file__).resolve().parents[2]
VARIABLE, SECRET = "SKG_CANARY", "canary-of-the-environment"
Node = dict[str, Any]
Offer = tuple[str, Node, str, Any]  # seam, node, parameter, value


class AdmittedError(Exception):
    """A door let an offer in: what follows is the same for all doors, and is done once."""


@dataclass
class Canary:
    """A folder, a listener and a variable that nobody may touch."""

    folder: Path
    server: Server
    touched: list[str] = field(default_factory=list)

    @property
    def values(self) -> tuple[Any, ...]:
        return (str(self.folder / "file"), self.server.address, VARIABLE, True)

    def hear(self, event: str, given: tuple[Any, ...]) -> None:
        if event in ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system"):
            self.touched.append(f"{event} {given[:2]}")
        elif event in ("open", "os.mkdir", "os.listdir", "os.scandir", "os.rename", "os.remove", "sqlite3.connect"):
            self.touched += [f"{event} {one}" for one in given[:1] if str(self.folder) in str(one)]

    def watch(self, part: Callable[[], None]) -> None:
        """A part of a test, in a fork: with an audit hook, which stays, a deep copy takes four times as long."""
        process = get_context("fork").Process(target=self._heard, args=(part,))
        process.start()
        process.join()
        assert (process.exitcode, self.server.requests) == (0, 0)  # its traceback was captured
        assert sorted(file.name for file in self.folder.rglob("*")) == ["file"]

    def _heard(self, part: Callable[[], None]) -> None:
        sys.addaudithook(self.hear)
        part()
        assert self.touched == []


@pytest.fixture
def canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Canary]:
    folder = tmp_path / "canary"
    folder.mkdir()
    (folder / "file").write_text(json.dumps({"canary": "of-the-file"}), "utf-8")
    monkeypatch.setenv(VARIABLE, SECRET)
    monkeypatch.delenv("OFFLINE", raising=False)
    with Server() as server:
        yield Canary(folder, server)


@cache
def nodes() -> Sequence[tuple[str, Node, tuple[str | int, ...], type]]:
    """Each class of the yamls, once: its seam, the whole node, where the class stands in it, and the class."""
    return list(_nodes())


def _nodes() -> Iterator[tuple[str, Node, tuple[str | int, ...], type]]:
    seen = set()
    for package in packages():
        for file in sorted(package.conf.glob("*/*.yaml")):
            node = yaml.load(file.read_text("utf-8"), yaml.CSafeLoader) or {}
            whole = cases.whole_node({k: v for k, v in node.items() if k not in ("defaults", "_with_")})
            for path, chain, _ in described_components("", whole):
                if (file.parent.name, chain[-1]) not in seen:
                    seen.add((file.parent.name, chain[-1]))
                    place = tuple(int(key) if key.isdigit() else key for key in path.split(".")[1:])
                    yield file.parent.name, whole, place, resolve_name(chain[-1][1])


def offers(canary: Canary) -> Iterator[Offer]:
    """A node with a canary at one parameter."""
    for seam, whole, place, made in nodes():
        for name, hint in ((name, parameters(made)[name]) for name in signature(made).parameters):
            for value in _values(canary, hint):
                node = copy.deepcopy(whole)
                inner: Any = node
                for key in place:
                    inner = inner[key]
                inner[name] = value
                yield seam, node, f"{made.__name__}.{name}", value


def _values(canary: Canary, hint: Any) -> tuple[Any, ...]:
    """All of them for a text, fewer for numbers and choices, which no text fits."""
    return canary.values[:: 3 if hint is bool else 4] if is_plain(hint) else canary.values


# ---------------------------------------------------------------------------------------------- what classes declare

REACHLESS = {  # texts that reach nothing, each looked at by a person
    "Signals.features", "Signs.outcome", "Signs.satisfaction", "SentenceTransformer.revision",
    "SentenceTransformer.task", "Endpoint.model", "Labelled.subset", "Labelled.split", "Labelled.text",
    "Labelled.label", "Labelled.one_offs", "Recorded.subset", "Recorded.split", "Recorded.columns",
    "Recorded.encoding", "Recorded.separator", "Recorded.decimal", "Recorded.latency_unit", "Recorded.zone",
    "Recorded.rated_ok", "Recorded.rated_partial", "Recorded.rated_miss", "Python.scrambled", "Python.shares",
    "BlackBox.shares", "BlackBox.ready", "BlackBox.body", "BlackBox.frozen", "BlackBox.time", "BlackBox.state",
    "Gym.families", "Peer.name", "Peer.makes",
}  # fmt: skip
REACHLESS |= {name.replace("Recorded.", "Tasks.") for name in REACHLESS if name.startswith("Recorded.")}
LIKE = re.compile(
    r"path|file|folder|dir(_|$)|address|ur[il]$|host|port$|(^|_)key|variable|environment|prompts|table|corpus|trust|"
    r"code$|command|module|script|strategies|check$"
)
UNLIKE = {"Scripted.script", "Hashing.key", "KeepsFacts.key"}  # a choice of two words, a number, a choice


def undeclared(made: type) -> list[str]:
    """Parameters of a class that could reach something, and of which it does not say so."""
    reaches: Mapping[str, Reach] | None = vars(made).get("reaches")
    if reaches is None:
        return [made.__name__]
    hints, wrong = parameters(made), []
    for name in signature(made).parameters:
        hint, full = hints[name], f"{made.__name__}.{name}"
        if name in reaches:
            said = bool(reaches[name].kinds) or full in REACHLESS
            assert set(reaches[name].kinds) <= set(get_args(ReachKind))
        else:
            said = full in UNLIKE or (not LIKE.search(name) if is_plain(hint) else _is_component(hint))
        wrong += [] if said else [full]
    return wrong + [f"{made.__name__}.{name}" for name in reaches if name not in signature(made).parameters]


def _is_component(hint: Any) -> bool:
    """A component, or a list of some: `build` looks at each of them by itself."""
    inner = [part for part in get_args(hint) if part is not type(None)]
    return all(map(_is_component, inner)) if inner else isinstance(hint, type) and hint not in (str, object, dict)


def test_every_component_declares_what_its_parameters_reach() -> None:
    classes = {made for _, _, _, made in nodes()}
    assert len(classes) > 60
    assert [wrong for made in classes for wrong in undeclared(made)] == []


def test_a_class_that_forgets_is_found() -> None:
    class Silent:
        def __init__(self, rate: float) -> None: ...

    class Forgets:
        reaches: Mapping[str, Reach] = {}

        def __init__(self, rate: float, folder: str | None, words: list[str], trust_code: bool) -> None: ...

    class Inherits(Forgets): ...

    assert undeclared(Silent) == ["Silent"]
    assert undeclared(Forgets) == ["Forgets.folder", "Forgets.words", "Forgets.trust_code"]
    assert undeclared(Inherits) == ["Inherits"]


# ---------------------------------------------------------------------------------------------------- in this process


class Doors:
    """Ways in, each with the seams that it takes from a file."""

    def __init__(self, run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.run, self.file = run, folder / "case.json"
        self.case = json.loads(CASE.read_text("utf-8"))
        self.manifest = copy.deepcopy(dict(run.manifest))
        self.seen = copy.copy(run)
        monkeypatch.setattr(agentropy_folders, "Run", lambda path: self.seen)
        monkeypatch.setattr(gate, "worst", lambda held: held)
        monkeypatch.setattr(gate, "of_turn", _admitted)
        monkeypatch.setattr(shrink, "_flip", _admitted)
        arms = set(SEAMS_OF_ARMS) | {"simulator", "embedder"}
        self.all: dict[str, tuple[Callable[[str, Any], Any], set[str] | None]] = {
            "replay": (self.replay, arms), "find": (self.find, arms), "gate": (self.gate, arms),
            "convert": (self.convert, {"simulator", "embedder"}), "build": (self.build, None),
        }  # fmt: skip

    def build(self, seam: str, node: Any) -> Any:
        if isinstance(node, Mapping):
            return build(seam, dict(node), FromFile("file", trusted=False))
        raise UsageError("no component")

    def replay(self, seam: str, node: Any) -> Any:
        read = copy.deepcopy(self.case)
        if seam in read["place"]:
            read["place"][seam] = node
        else:
            read["sides"]["arm"]["compositions"]["low"][seam] = node
        self.file.write_text(json.dumps(read), "utf-8")
        case = cases.load_case(self.file)
        cases.replayer_of(case.scenario, case.origin)
        return [spec.arm(role, case.origin) for role, spec in case.specs.items()]

    def _changed(self, seam: str, node: Any) -> dict[str, Any]:
        manifest = {**self.manifest, "config": dict(self.manifest["config"])}
        if seam in SEAMS_OF_ARMS:
            own = {**manifest["compositions"]["skg"], seam: node}
            manifest["compositions"] = {**manifest["compositions"], "skg": own}
        else:
            manifest["config"][seam] = node
        self.seen.manifest = manifest
        return manifest

    def find(self, seam: str, node: Any) -> Any:
        self._changed(seam, node)
        return shrink.smallest_case(self.seen, "skg")

    def convert(self, seam: str, node: Any) -> Any:
        self._changed(seam, node)
        return agentropy_folders.convert_to_agentropy(self.run.path, "skg", [0], self.file.parent / "books")

    def gate(self, seam: str, node: Any) -> Any:
        new = self._changed(seam, node)
        old = {**new, "compositions": {"skg": {**self.manifest["compositions"]["skg"], "hit_latency_ms": 51}}}
        panels = [SimpleNamespace(made=made, users=[0], imported=()) for made in (old, new)]
        turn = SimpleNamespace(turn=1, lost=True, reason="x")
        flips = SimpleNamespace(users=[SimpleNamespace(user=0, turns=[turn])])
        held: Any = SimpleNamespace(base=panels[0], new=panels[1], state="fail", which="baseline")
        outcome: Any = SimpleNamespace(held=held, flips=flips, arm="skg", run="run")
        return gate.smallest(outcome)


def _admitted(*_: Any, **__: Any) -> None:
    raise AdmittedError


def test_no_offer_reaches_anything(
    canary: Canary, tiny_run: Run, tmp_path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (targets, trust):  # which look the same sixty classes up 80,000 times
        monkeypatch.setattr(module, "resolve_name", cache(resolve_name))
    canary.watch(partial(_offer_all, canary, Doors(tiny_run, tmp_path, monkeypatch)))


def _offer_all(canary: Canary, doors: Doors) -> None:
    made, errors, let_in = 0, list[str](), set[str]()
    every = [*offers(canary), *((key, canary.values[0], key, "") for key in ("pool", "seeds"))]
    for door, seams in doors.all.values():
        for seam, node, parameter, value in every:
            if seams is not None and seam not in seams:
                continue
            made += 1
            try:
                door(seam, node)
            except UsageError as error:
                errors.append(str(error))
                continue
            except AdmittedError:
                pass
            if isinstance(value, str):  # `build` refuses true and false by the type
                let_in.add(parameter)
    assert made >= 2_000
    assert not [error for error in errors if SECRET in error or "of-the-file" in error]
    hints = {f"{c.__name__}.{name}": hint for _, _, _, c in nodes() for name, hint in parameters(c).items()}
    assert {name for name in let_in - REACHLESS if name not in hints or not is_plain(hints[name])} == set()
    assert sum("Read it first" in error for error in errors) > 300


def test_an_export_takes_no_place_from_a_manifest(canary: Canary, tiny_run: Run, elsewhere: Path) -> None:
    canary.watch(partial(_export_all, canary, tiny_run))


def _export_all(canary: Canary, tiny_run: Run) -> None:
    run = copy.copy(tiny_run)
    for seam, whole, place, made in nodes():
        if seam == "tracker" and not place:
            node = {**whole, **dict.fromkeys(getattr(made, "reaches", {}), canary.values[1])}
            run.manifest = {**tiny_run.manifest, "config": {**tiny_run.config, "tracker": node}}
            name = {"NoTracking": "opik", "Both": "both"}.get(made.__name__, made.__name__.lower())
            with suppress(UsageError):
                assert canary.values[1] not in repr(run_trackers.chosen_sinks(name, run, []))


# ------------------------------------------------------------------------------------------------------- from outside

FILES = ("runs", "run", "book", "files", "file", "baseline", "batch", "log")  # parameters of commands that name files


def commands(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All commands that are given a file of somebody else."""
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*words, name))
    if not hasattr(group, "commands") and any(one.name in FILES and one.required for one in group.params):
        yield words, group


DOORS = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("door", DOORS, ids=" ".join)
def test_a_command_reaches_nothing_that_its_file_names(
    door: tuple[str, ...], canary: Canary, tiny_run: Run, tmp_path: Path, elsewhere: Path
) -> None:
    path, address, variable, _ = canary.values
    model = {"_target_": "skg_bench.llm.endpoint.Endpoint", "address": address, "key_from": variable}
    taught = {"_target_": "skg_bench.curator.reflecting.Reflecting", "llm": model, "prompts": path}
    evil = {"curator": taught, "pool": path, "scope": "pool", "seeds": path}
    case = json.loads(CASE.read_text("utf-8"))
    case["sides"]["arm"]["compositions"]["low"] |= evil
    file, out = tmp_path / "case.json", tmp_path / "out"
    file.write_text(json.dumps(case), "utf-8")
    shutil.copytree(tiny_run.path, tmp_path / "run")
    config = {
        **tiny_run.config, **evil, "out": path,
        "simulator": {**tiny_run.config["simulator"], "corpus": str(canary.folder)},
        "embedder": {"_target_": "skg_bench.embedder.precomputed.Precomputed", "path": path},
        "tracker": {"_target_": "skg_bench.tracker.opik.Opik", "url": address, "users": 1, "texts": None},
        "launcher": {"_target_": "skg_bench.launcher.local.Local", "variables": [variable]},
    }  # fmt: skip
    compositions = {name: {**arm, **evil} for name, arm in tiny_run.manifest["compositions"].items()}
    run = str(changed(Run(tmp_path / "run"), config=config, compositions=compositions).path)
    given = {
        "runs": [run], "run": [run], "log": [run], "book": [run], "files": [str(file)], "file": [str(file)],
        "baseline": ["--baseline", str(ROOT / "data" / "gate" / "baseline.json")], "arm": ["--arm", "skg"],
        "batch": [str(file)],
        "out": ["--out", str(out)], "tracker": ["opik"], "store": [str(tmp_path / "books.db")], "user": ["--user", "0"],
    }  # fmt: skip
    given |= {"target": ["--target", "never=[policy=never]"], "reward": ["--reward", "answer_correct"]}
    more = {"skillbook": ("arm", "user"), "estimate": ("arm", "target", "reward")}.get(door[0], ())
    words = list(door)
    for one in DOORS[door].params:
        if one.required or one.name in more:
            words += given[one.name]  # a command that takes something new says here what
    canary.watch(partial(_call, canary, door, words))


def _call(canary: Canary, door: tuple[str, ...], words: Sequence[str]) -> None:
    code, shown, error = call(*words)
    if door == ("export",):  # its children are processes of ours
        canary.touched = [one for one in canary.touched if not one.startswith(("subprocess", "socket"))]
    assert code in (0, 1, 2)
    assert "Traceback" not in error
    assert not [secret for secret in (SECRET, "of-the-file") if secret in shown + error]
    if door in (("counterexample", "replay"), ("counterexample", "find"), ("skillbook", "convert")):
        assert code == 2
        assert "Read it first, then add --trust" in error


# --------------------------------------------------------------------------------------------------- the one place

TRUSTING = {
    "answer_judges.py", "claim_inputs.py", "commands.py", "corpus_check.py", "launch.py", "log_check.py",
    "probing_outside.py", "run_trackers.py", "stored.py", "study.py", "trust.py",
}  # fmt: skip
RESOLVING = {  # source: of a class that `target` names
    "checks.py", "building.py", "parameters.py", "source.py", "targets.py", "trust.py",
}  # fmt: skip


def names(file: Path) -> set[str]:
    every = [node for node in syntax_nodes(parsed(file)) if isinstance(node, ast.Name | ast.Attribute)]
    return {node.id if isinstance(node, ast.Name) else node.attr for node in every}


def test_one_place_makes_components_and_few_trust_their_words() -> None:
    used = {file: names(file) for file in (ROOT / "skg_bench").rglob("*.py")}
    assert {file.name for file, found in used.items() if {"COMMAND_LINE", "CommandLine"} & found} == TRUSTING
    assert {file.name for file, found in used.items() if "resolve_name" in found} == RESOLVING
    importing = {"__init__.py", "answer_judges.py", "experiments.py"}  # a judge's module is named on the command line
    assert {file.name for file, found in used.items() if "import_module" in found} == importing
    assert not [file for file, found in used.items() if {"instantiate", "__import__"} & found]
