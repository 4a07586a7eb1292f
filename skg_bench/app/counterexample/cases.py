"""Small sessions as files: the events of a user, two arms, and what each did. Replayed in milliseconds, they are
regression tests. A parameter that came later than a file has the value that its yaml gives.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache, partial
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

from skg_bench.app.arm_keys import PARTS_OF_PIPELINE, PIPELINE, SEAMS_OF_ARMS
from skg_bench.app.building import build
from skg_bench.app.composed_arms import arms
from skg_bench.app.packages import packages
from skg_bench.app.root_checks import SCALARS
from skg_bench.app.run_identity import write_json
from skg_bench.app.targets import Node
from skg_bench.app.trust import FromFile, Origin, admitted
from skg_bench.asking.asking import Kept, mapped
from skg_bench.core.arms import Arm
from skg_bench.core.calendar import WEEK
from skg_bench.core.draws import SALT_BITS
from skg_bench.core.errors import UsageError, nearest
from skg_bench.core.foreign import FAULTS, json_file
from skg_bench.core.grid import I32, Bool
from skg_bench.core.reach import Confinable
from skg_bench.core.shapes import shaped
from skg_bench.core.texts import Embedding
from skg_bench.core.types import CAUSES, RATINGS, Embedder
from skg_bench.core.world import OFFERS, Events, Truth, World, hit_mask
from skg_bench.engine.cohort import Setting
from skg_bench.engine.excerpt import Excerpts, excerpted, run_excerpts
from skg_bench.engine.logbook import Logbook
from skg_bench.engine.vectors import Rows
from skg_bench.runfolder.manifest import salted_seed
from skg_bench.runfolder.run import Run
from skg_bench.simulator.yaml_files import yaml_of

CASE_SCHEMA = 1
_SCALARS = {key: check for key, check in SCALARS.items() if key not in ("fork", "book")}  # which a case's arms may have
_WEEKS = 1_000  # of a run
_KEYS = {"scenario": "place", "specs": "sides"}  # fields of a case -> keys of its file
_OF_BOOKS = (
    "max_sim",
    "matched_skill",
    "skill_score",
    "skill_learned",
    "book_size",
)  # columns; some have no skillbooks
CaseRow = dict[str, Any]


@dataclass(frozen=True)
class Scenario:
    """The user, and the components that make the user's events and their vectors."""

    seed: int  # with its salt (core/draws.py)
    weeks: int
    user: int
    simulator: Node  # as in the configuration
    embedder: Node


@dataclass(frozen=True)
class ArmSpec:
    """An arm by name, among the compositions that it is made of: its own, and those that it forks from."""

    name: str
    compositions: Mapping[str, Node]

    def arm(self, role: str, origin: FromFile) -> Arm:
        """The arm, under the name of its role; `origin`: whose words it is made from."""
        return replace(_made(json.dumps(self.compositions), origin)[self.name], name=role)


def scenario_of(run: Run, user: int) -> Scenario:
    """A user of a run, and the components that make the user's events.

    Raises UsageError for a user whom it does not have, and where its salt is not known.
    """
    config = run.config
    if not 0 <= user < int(config["users"]):
        raise UsageError(f"user={user}: {run.path} has users 0 to {int(config['users']) - 1}")
    nodes = (whole_node(config[seam]) for seam in ("simulator", "embedder"))
    return Scenario(salted_seed(run.manifest, run.path), config["weeks"], user, *nodes)


def spec_of(run: Run, arm: str) -> ArmSpec:
    """An arm of a run, and those that it forks from.

    Raises UsageError for one that it does not have.
    """
    compositions: dict[str, Any] = run.manifest["compositions"]
    if arm not in compositions:
        raise UsageError(f"{run.path} has no arm {arm!r}; {nearest(arm, compositions)}")
    needed = {arm: with_defaults(compositions[arm])}
    while (fork := needed[next(reversed(needed))].get("fork")) is not None:
        trunk = str(fork).rpartition("@")[0]
        needed[trunk] = with_defaults(compositions[trunk])
    return ArmSpec(arm, needed)


@lru_cache(maxsize=64)
def _made(compositions: str, origin: FromFile) -> dict[str, Arm]:
    made = arms(json.loads(compositions), origin)
    return {arm.name: mapped(arm, partial(_with_recording, origin)) for arm in made}


def _with_recording(origin: FromFile, part: Any) -> Any:
    """A component with the recording that lies beside its file, or in its run."""
    kept = isinstance(part, Kept) and (origin.trusted or isinstance(part, Confinable))
    return part.kept_in(origin.folder) if kept else part


@dataclass(frozen=True)
class Case:
    """A session, and what two arms do with it."""

    says: str  # what it shows, for people
    scenario: Scenario
    specs: Mapping[str, ArmSpec]  # by role: arm, reference
    events: Sequence[CaseRow]  # number, time [s since the first Monday], message, request_type, intent, used_up
    expected: Mapping[str, Sequence[CaseRow]]  # by role
    origin: FromFile  # whose words its components are


class Replayer:
    """Runs arms on events of a scenario; texts are embedded when they are needed first."""

    def __init__(self, simulator: World[Any], embedder: Embedder, seed: int, weeks: int) -> None:
        self.simulator, self._embedder = simulator, embedder
        embedding = Embedding(lambda: self._vectors, embedder)
        self.setting = Setting(seed, excerpted(simulator), lambda: Rows(self._vectors), weeks, embedding)
        self._known: Bool = np.zeros(len(simulator.messages), np.bool_)
        self._vectors = np.zeros((len(simulator.messages), 0), np.int16)

    def know(self, texts: I32) -> None:
        """Have the vectors of these texts."""
        new = np.unique(texts)
        new = new[~self._known[new]]
        if not len(new):
            return
        vectors = self._embedder.embed([self.simulator.messages[i] for i in new.tolist()])
        if not self._vectors.shape[1]:
            self._vectors = np.zeros((len(self._known), vectors.shape[1]), np.int16)
        self._vectors[new], self._known[new] = vectors, True


def replayer_of(scenario: Scenario, origin: Origin) -> Replayer:
    """The replayer of a scenario, made once for all of its users."""
    return _replayer(json.dumps([scenario.simulator, scenario.embedder]), origin, scenario.seed, scenario.weeks)


@lru_cache(maxsize=4)
def _replayer(nodes: str, origin: Origin, seed: int, weeks: int) -> Replayer:
    simulator, embedder = json.loads(nodes)
    return Replayer(build("simulator", simulator, origin), build("embedder", embedder, origin), seed, weeks)


def replayed_logs(
    replayer: Replayer, arms: Mapping[str, Arm], excerpts: Excerpts, events: Events
) -> dict[str, Logbook]:
    """Logs of each arm for the events, rows of the excerpts in order of falling length."""
    replayer.know(events.text)
    top_k = max(arm.top_k for arm in arms.values())
    return dict(
        zip(arms, run_excerpts(replayer.setting, list(arms.values()), excerpts.cohort(events), top_k), strict=True)
    )


def action_rows(log: Logbook, replayer: Replayer) -> list[CaseRow]:
    """Actions of an arm in the only row of a log, in words."""
    words = {"rating": ("user_satisfaction", RATINGS), "offer": ("offer", OFFERS), "cause": ("cause", CAUSES)}
    rows = []
    for t in range(len(log.start) - 1):
        at = {name: column[log.start[t]] for name, column in log.columns.items()}
        known = {name: at[name].item() if name in log.filled else None for name in _OF_BOOKS}
        if isnan(at["skill_score"]):
            known["skill_score"] = None  # no earlier message was near
        row: CaseRow = {
            "hit": bool(hit_mask(at["serving"])),
            "right": bool(at["answer_correct"] > 0) if at["answer_correct"] >= 0 else None,
            "learned": bool(known["skill_learned"]),
        }
        named = row["hit"] and known["matched_skill"] is not None
        row["skill"] = replayer.setting.texts.read(at["matched_skill"][None])[0] if named else None
        row |= {name: labels[at[code]] if at[code] >= 0 else None for name, (code, labels) in words.items()}
        row |= {"max_sim": known["max_sim"], "score": known["skill_score"], "book": known["book_size"]}
        rows.append(row | {"source": int(at["source_turn"])})
    return rows


def answer_in_words(row: CaseRow) -> str:
    """Answer of an arm to an event, in words."""
    skill = "earlier answer" if row["skill"] is None else f"{row['skill']} ({row['score']:.2f})"
    right = "not known whether right" if row["right"] is None else "right" if row["right"] else "wrong"
    return ", ".join([skill if row["hit"] else "LLM", right, *(["captured"] if row["learned"] else [])])


def event_rows(events: Events, simulator: World[Any]) -> list[CaseRow]:
    """The events of the only row, in words."""
    truth, n = events.truth, int(events.n[0])

    def word(words: Sequence[str], code: int) -> str | None:
        return words[code] if code >= 0 else None

    return [
        {"number": int(events.number[0, t]), "time": int(events.time[0, t]),
         "message": simulator.messages[int(events.text[0, t])],
         "request_type": word(simulator.types, int(truth.type[0, t])),
         "intent": word(simulator.intents, int(truth.intent[0, t])), "used_up": bool(truth.used_up[0, t])}
        for t in range(n)
    ]  # fmt: skip


def events_of(case: Case, simulator: World[Any]) -> Events:
    """The events of a case, as arrays.

    Raises UsageError for words that the simulator does not know.
    """

    def codes(words: Sequence[str], column: str) -> I32:
        index = {word: i for i, word in enumerate(words)} | {None: -1}
        unknown = [event[column] for event in case.events if event[column] not in index]
        if unknown:
            raise UsageError(f"the simulator knows no {column} {unknown[0]!r}; find the counterexample again")
        return np.array([[index[event[column]] for event in case.events]], np.int32)

    def column(name: str, kind: type[np.generic]) -> Any:
        return np.array([[event[name] for event in case.events]], kind)

    n, type_ = len(case.events), codes(simulator.types, "request_type")
    truth = Truth(type_, codes(simulator.intents, "intent"), np.zeros_like(type_), column("used_up", np.bool_))
    user, length = np.array([case.scenario.user], np.int32), np.array([n], np.int32)
    times = column("time", np.int64)
    return Events(user, length, column("number", np.int32), times, codes(simulator.messages, "message"), truth)


def deviations(case: Case) -> list[str]:
    """Deviations from what is expected, a line each; none: it still shows what it showed."""
    replayer = replayer_of(case.scenario, case.origin)
    excerpts = Excerpts(replayer.setting, events_of(case, replayer.simulator))
    events = excerpts.rows([np.arange(len(case.events))])  # which counts what can be answered
    logs = replayed_logs(
        replayer, {role: spec.arm(role, case.origin) for role, spec in case.specs.items()}, excerpts, events
    )
    wrong = []
    for role, log in logs.items():
        for event, was, now in zip(case.events, case.expected[role], action_rows(log, replayer), strict=True):
            changed = [f"{key} {was.get(key)!r}, now {now[key]!r}" for key in now if was.get(key) != now[key]]
            if changed:
                wrong.append(f"{role} ({case.specs[role].name}) at {event['message']!r}: {'; '.join(changed)}")
    return wrong


def save_case(case: Case, path: Path) -> None:
    """Write a case.

    Raises OSError.
    """
    content = {_KEYS.get(key, key): value for key, value in asdict(case).items() if key != "origin"}
    write_json(path, {"schema": CASE_SCHEMA, **content})


def load_case(path: Path, *, trust: bool = False) -> Case:
    """Read a case.

    Raises UsageError for what is none, and for one whose components reach something, unless that is trusted.
    """
    try:
        read = json_file(path)
        version = read.pop("schema")
        specs = {
            role: ArmSpec(side["name"], {name: with_defaults(arm) for name, arm in side["compositions"].items()})
            for role, side in read.pop("sides").items()
        }
        place = {key: whole_node(value) for key, value in read.pop("place").items()}
        scenario = shaped(Scenario, place, "place")
        events = [asdict(shaped(_Said, event, f"events[{i}]")) for i, event in enumerate(read.pop("events"))]
        expected = shaped(Mapping[str, Sequence[Mapping[str, Any]]], read.pop("expected"), "expected")
        says = shaped(str, read.pop("says"), "says")
        case = Case(
            says, scenario, specs=specs, events=events, expected=expected, origin=FromFile(str(path), trust), **read
        )
        _check(case)
    except (UsageError, *FAULTS) as error:
        reason = str(error).removeprefix(f"{path} ") if isinstance(error, UsageError) else repr(error)
        raise UsageError(
            f"{path} is no counterexample of this version ({reason}); make one with `skg-bench counterexample find`"
        ) from error
    if version != CASE_SCHEMA:
        raise UsageError(f"{path} is of another version; find the counterexample again")
    admit(case.origin, scenario, specs.values())
    return case


def admit(origin: Origin, scenario: Scenario | None, specs: Iterable[ArmSpec]) -> None:
    """Decide on all components of a session at once, before any is made.

    Raises UsageError for those of a file that reach something and are not trusted.
    """
    place = {} if scenario is None else {"simulator": scenario.simulator, "embedder": scenario.embedder}
    nodes = [(seam, seam, node) for seam, node in place.items()]
    for spec in specs:
        for name, composition in spec.compositions.items():
            nodes += [(f"arm {name!r}: {key}", key, value) for key, value in composition.items()]
    admitted(origin, nodes)


@dataclass(frozen=True)
class _Said:
    """An event of a case's file."""

    number: int
    time: int
    message: str
    request_type: str | None
    intent: str | None
    used_up: bool


def _check(case: Case) -> None:
    """Raises UsageError for a case that cannot be replayed, whatever its components do."""
    place, n = case.scenario, len(case.events)
    if set(case.specs) != set(case.expected) or not case.specs:
        raise UsageError("it says what each of its sides is expected to do")
    if not (n and all(len(rows) == n for rows in case.expected.values())):
        raise UsageError(f"it has {n} events, and as many rows are expected of each side")
    for role, spec in case.specs.items():
        if spec.name not in spec.compositions:
            raise UsageError(f"side {role} is the arm {spec.name!r}, and has compositions of {list(spec.compositions)}")
        for arm, composition in spec.compositions.items():
            for key, value in composition.items():
                why = _SCALARS[key](value) if key in _SCALARS else None
                if why is None and key not in SCALARS and not isinstance(value, Mapping | None):
                    why = "must be a component"
                if why is not None:
                    raise UsageError(f"arm {arm!r}: {key}={value!r} {why}")
    limits = {
        "seed": (place.seed, 2 ** (64 + SALT_BITS) - 1),
        "weeks": (place.weeks, _WEEKS),
        "user": (place.user, 2**31 - 1),
    }
    for event in case.events:
        limits |= {f"number of {event['message']!r}": (event["number"], 2**31 - 1)}
        limits |= {f"time of {event['message']!r}": (event["time"], _WEEKS * WEEK)}
    for name, (value, most) in limits.items():
        if not 0 <= value <= most:
            raise UsageError(f"{name} is {value}, valid is 0 to {most}")


def with_defaults(composition: Node) -> Node:
    """The composition of an arm, with what later versions added as they have it by default."""
    root = _yaml(packages()[0].conf / "config.yaml")
    composition = {"assistant": {"_target_": PIPELINE}, **composition}
    unused = () if composition["assistant"].get("_target_") == PIPELINE else PARTS_OF_PIPELINE
    later = {k: root[k] for k in SEAMS_OF_ARMS if k not in composition and k not in unused and k in root}
    return {key: whole_node(value) for key, value in composition.items()} | later


def whole_node(node: Any) -> Any:
    """A component in the same way; all else as it is."""
    if not isinstance(node, Mapping):
        return node
    known = _by_target().get(str(node["_target_"]), {}) if "_target_" in node else {}
    later = {k: v for k, v in known.items() if k not in ("_with_", "defaults")}  # these are no parameters
    return later | {key: whole_node(value) for key, value in node.items()}


@cache
def _by_target() -> dict[str, Node]:
    """The first yaml of each class."""
    files = [file for package in packages() for file in sorted(package.conf.glob("*/*.yaml"))]
    return {node.get("_target_", ""): node for node in map(_yaml, reversed(files))}


@cache
def _yaml(path: Path) -> Node:
    read: Node = yaml_of(path)
    return read
