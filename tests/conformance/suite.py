"""What every component has to keep to, whoever wrote it: found through `conf/`, run in small, held against itself."""

import pickle
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import cache, lru_cache
from inspect import Parameter, getmembers, signature
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from skg_bench.app.arm_keys import SEAMS_OF_ARMS
from skg_bench.app.building import build
from skg_bench.app.compose import Composed, compose
from skg_bench.app.composed_arms import arms
from skg_bench.app.hydra_trees import hydra_trees
from skg_bench.app.launch import prepare
from skg_bench.app.needed_messages import needed_only
from skg_bench.app.packages import packages
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.asking import asking
from skg_bench.core import assistant, deciding, state, types
from skg_bench.core import world as world_types
from skg_bench.core.errors import UsageError
from skg_bench.core.spoken import SpeakingLLM
from skg_bench.core.world import World
from skg_bench.engine import execute as engine
from skg_bench.engine.plan import Plan
from skg_bench.launcher.local import Local
from skg_bench.runfolder import schema
from skg_bench.runfolder.run import Run
from skg_bench.runfolder.saving import Surroundings, UnsavableError, flattened, restored
from tests.conformance import worlds
from tests.laws import world
from tests.laws.worlds_apart import Contrary, Lying, Remembering
from tests.runs import save

NO_COMPONENTS = ("experiment", "profile")  # groups of values
APART = {
    "tracker": "takes no part in a turn: tests/tracker",
    "launcher": "starts other processes: tests/launcher",
    "store": "is no part of a run: tests/store",
    "jobs": "waits for curators that ask a model, which others beside them do not: tests/laws/test_shoppers.py",
}
OUTSIDE = dict.fromkeys(
    (f"assistant={name}" for name in ("python", "endpoint", "litellm", "litellm_semantic", "gptcache", "mem0")),
    "plays what a command names, or what is installed apart: tests/assistant",
)
SKIPPED = {"embedder=jina": "needs a download of 1.1 GB, whose code is to be read first", **OUTSIDE}
SERVED = {  # they need a server: tests/llm
    "curator=peer": "starts what a command names: tests/curator/test_peer.py",
    "curator=ace_framework": "starts what is installed apart: tests/peers",
    "llm=endpoint": "asks a server",
    **OUTSIDE,
    "llm=budgeted": "asks a server",
    "llm=recorded": "asks a server",
}
ABSENT = re.compile("pip install|skg-bench data get|hf download")  # in errors: something optional is not here
FORK = 15
OTHER = ("policy=always", "curator=everything")
LARGE, SMALL = 512, 3
TRUTH = {f.name for f in schema.turns(1) if f.metadata[b"truth"] == b"yes"}


@dataclass(frozen=True)
class Case:
    """A yaml of a seam."""

    seam: str
    option: str
    package: str

    def __str__(self) -> str:
        return f"{self.seam}={self.option}"

    @property
    def of_texts(self) -> bool:
        """Is it a model that reads and writes texts, and so a curator's?"""
        if self.seam != "llm":
            return False
        return asking.writes_texts(resolve_name(hydra_trees().options("llm", [self.option])[0]["_target_"]))

    @property
    def of_arms(self) -> bool:
        """Do arms choose it, in the world of answers?"""
        return self.seam in SEAMS_OF_ARMS and not self.in_words

    @property
    def in_words(self) -> bool:
        """Is it a model that answers users in words, in a world that judges them?"""
        return str(self) == "llm=in_words"

    @property
    def overrides(self) -> list[str]:
        """What chooses the component, at an arm or at the root."""
        if self.of_texts:
            return ["curator=reflecting", f"curator.llm={self.option}", "serving=prompted"]
        return [str(self), *worlds.DENSER.get((self.seam, self.option), ())]


def cases() -> list[Case]:
    """Every yaml of a component, of this package and of those that joined by an entry point, nested ones too."""
    return [
        Case(folder.name, file.relative_to(folder).with_suffix("").as_posix(), package.name)
        for package in packages()
        for folder in sorted(path for path in package.conf.iterdir() if path.is_dir())
        for file in sorted(folder.rglob("*.yaml"))
        if folder.name not in (*NO_COMPONENTS, *APART)
    ]


def absent(error: UsageError) -> bool:
    """Does the error say that an optional library or a dataset is not here?"""
    return ABSENT.search(str(error)) is not None


def failures(case: Case, folder: Path, workers: int = 2, *, truth: bool = True, keeps: bool = False) -> list[str]:
    """What the component does not keep to, each line with its name; runs are written below `folder`.

    `truth`: play it where the truth is another one, too; `keeps`: that its rows are the same is known.

    Raises UsageError for a component that cannot run here.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = wrong_value(case, folder)
    if not lines and str(case) not in SERVED:
        lines = [] if keeps else changed_rows(case, folder, workers)
        blind = truth and case.of_arms and not oracle(case, folder)
        if blind and (columns := changed_by_truth(case, folder)):
            lines.append(f"sees_truth is False, and with another truth differ {', '.join(columns)}")
    return [f"{case} of {case.package}: {line}" for line in lines]


# ------------------------------------------------------------------------------------------------ what it is


def protocol(seam: str) -> type | None:
    """The Protocol of a seam; None: it has one implementation and no Protocol."""
    names = ("World",) if seam == "simulator" else (seam.capitalize(), seam.upper())
    classes = (getattr(module, name, None) for module in (assistant, deciding, types, world_types) for name in names)
    return next((made for made in classes if getattr(made, "_is_protocol", False)), None)


def members(seam_protocol: type) -> list[str]:
    """Public attributes of a Protocol."""
    return [name for name, _ in getmembers(seam_protocol) if not name.startswith("_")]


def wrong_value(case: Case, folder: Path) -> list[str]:
    """What is wrong with the component before anything runs."""
    config = composed(case, folder)
    made, same = _made(case, config), _made(case, config)
    lines = []
    if not (is_dataclass(made) and vars(type(made))["__dataclass_params__"].frozen):
        lines.append("is no frozen dataclass, so that a fork or another process may change it")
    if made != same or pickle.loads(pickle.dumps(made)) != made:  # noqa: S301
        lines.append("is not equal to a copy of itself, so that a fork would begin its memory anew")
    seam_protocol = asking.TextModel if case.of_texts else SpeakingLLM if case.in_words else protocol(case.seam)
    if isinstance(made, assistant.Stackable):
        seam_protocol = assistant.Stackable
    if seam_protocol is not None:
        lines += [line for name in members(seam_protocol) if (line := _wrong_member(made, seam_protocol, name))]
    if not isinstance(getattr(made, "sees_truth", False), bool):
        lines.append(f"sees_truth={made.sees_truth!r} must be True or False")
    if case.seam in ("policy", "curator") and not lines:
        lines += _wrong_state(made)
    return lines


def _made(case: Case, config: Composed) -> Any:
    """The component, made anew."""
    if case.seam == "assistant":  # a pipeline is made of components of the arm
        return arms(config.arms, COMMAND_LINE)[0].assistant
    if case.of_texts:
        return build("llm", config.arms["itself"]["curator"]["llm"], COMMAND_LINE)
    node = config.arms["itself"][case.seam] if case.seam in SEAMS_OF_ARMS else config.root[case.seam]
    return build(case.seam, node, COMMAND_LINE)


def _wrong_member(made: Any, seam_protocol: type, name: str) -> str | None:
    if not hasattr(made, name):
        return f"lacks {name}, which {seam_protocol.__name__} has"
    declared = getattr(seam_protocol, name)
    if isinstance(declared, property):
        return None
    given = [p for p in list(signature(declared).parameters.values())[1:] if p.default is Parameter.empty]
    by_name = {p.name: p for p in given if p.kind is Parameter.KEYWORD_ONLY}
    try:
        signature(getattr(made, name)).bind(*(p for p in given if p.name not in by_name), **by_name)
    except TypeError as error:
        return f"{name} does not take what {seam_protocol.__name__}.{name} is given: {error}"
    return None


def _wrong_state(made: Any) -> list[str]:
    memory, known = made.start(5), Surroundings.of({}, {"component": made})
    try:
        state.check_state(memory, 5, made)
        flat = flattened(memory, known)
        loaded = restored(flat.root, flat.nodes, [block.data.copy() for block in flat.blocks], known)
        state.check_state(loaded, 5, made)
    except (UsageError, UnsavableError) as error:
        return [str(error)]
    return [] if type(loaded) is type(memory) else [f"a checkpoint makes a {type(loaded).__qualname__} of its state"]


# ----------------------------------------------------------------------------------------------- what it does


@lru_cache(maxsize=4)
def composed(case: Case, folder: Path) -> Composed:
    """The component in an arm, in a fork from it, and beside an arm that differs in policy and curator only."""
    root = {"reference": "itself", "contrasts": []}
    if case.of_arms:
        every = of_arms(tuple(each for each in cases() if each.package == case.package))
        itself, other = every.arms[f"{case.seam}-{case.option}"], every.arms["other"]
        beside = other if case.seam == "assistant" else itself  # that of a pipeline
        configs = {
            "itself": itself,
            "fork": {**itself, "fork": f"itself@{FORK}"},
            "other": {**beside, "policy": other["policy"], "curator": other["curator"]},
        }
        return replace(every, root={**every.root, **root, "arms": dict.fromkeys(configs)}, arms=configs)
    return compose([*_root(case, folder), f"arms={{{_table(_beside(case))}}}", "reference=itself", "contrasts=[]"])


@cache
def of_arms(every: Sequence[Case]) -> Composed:
    """An arm of each component that arms choose, and another one, composed at once: by itself, each takes a third of
    a second.
    """
    table = {f"{case.seam}-{case.option}": case.overrides for case in every if case.of_arms} | {"other": OTHER}
    return compose([*worlds.SIMULATED, f"arms={{{_table(table)}}}", "reference=other", "contrasts=[]"])


def _beside(case: Case) -> dict[str, Sequence[str]]:
    chosen = case.overrides if case.seam in SEAMS_OF_ARMS else []
    other = _without(_without(chosen, "policy"), "curator")
    return {"itself": chosen, "fork": [*chosen, f"fork=itself@{FORK}"], "other": [*other, *OTHER]}


def _table(arms_of: Mapping[str, Sequence[str]]) -> str:
    return ", ".join(f"{name}: [{', '.join(overrides)}]" for name, overrides in arms_of.items())


def _root(case: Case, folder: Path) -> Sequence[str]:
    if case.seam == "embedder" and case.option in worlds.EMBEDDED_ALONE:
        return [worlds.EMBEDDED_ALONE[case.option], *worlds.shoppers(folder), *case.overrides]
    if case.seam == "embedder":
        return [worlds.EMBEDDED, *worlds.recorded(folder)[1:], *case.overrides]
    if case.package != "skg_bench":  # a world of a package, with what its own yaml says
        return [*case.overrides, "embedder=hashing", *_without(worlds.SIMULATED, "simulator")]
    if case.in_words:
        return [*worlds.IN_WORDS, *case.overrides]
    make = worlds.SIMULATORS.get(case.option) if case.seam == "simulator" else None
    return [*case.overrides, *(make(folder) if make else worlds.SIMULATED)]


def _without(overrides: Sequence[str], seam: str) -> list[str]:
    return [text for text in overrides if not text.startswith((f"{seam}=", f"{seam}."))]


def plan(case: Case, folder: Path, *, alone: bool) -> Plan:
    """The case's arms, or its own one, of components that were made anew and remember nothing."""
    made = prepare(composed(case, folder)).plan
    return replace(made, arms=made.arms[:1]) if alone else made


def played(case: Case, folder: Path, *, alone: bool) -> Plan:
    """The plan as a command runs it, which embeds what users say: a world's other messages take most of the time."""
    made = plan(case, folder, alone=alone)
    return made if case.seam == "embedder" else needed_only(made, 0)


def run(made: Plan, out: Path, cohort: int, workers: int = 1, tick: Callable[[], None] = lambda: None) -> Run:
    """Simulate, or go on."""
    out.mkdir(parents=True, exist_ok=True)
    manifest = {
        "schema": schema.SCHEMA_VERSION,
        "arms": [arm.name for arm in made.arms],
        "config": {"users": made.users, "weeks": made.weeks},
        "users": made.users,
    }
    save(out, manifest)
    engine.execute(made, out, cohort=cohort, workers=workers, launcher=Local(), progress=lambda _done, _total: tick())
    return Run(out)


class KilledError(Exception):
    """Ends a run after its first cohort."""


def killed_and_resumed(case: Case, folder: Path, out: Path, workers: int) -> Run:
    """Small cohorts by one process, which ends after the first cohort; then components made anew go on."""

    def kill() -> None:
        if any((out / "pieces").iterdir()):
            raise KilledError

    try:
        run(played(case, folder, alone=True), out, SMALL, tick=kill)
    except KilledError:
        return run(played(case, folder, alone=True), out, SMALL, workers)
    raise AssertionError(f"{case}: the world is too small to be killed between cohorts")


def changed_rows(case: Case, folder: Path, workers: int) -> list[str]:
    """Where the component's rows depend on how the run is cut. One run has all differences at once; only if it shows
    any, are they told apart.
    """
    together = run(played(case, folder, alone=False), folder / "together", LARGE)
    users = range(int(together.config["users"]))
    turns, weeks = together.turns("itself").num_rows / len(users), together.config["weeks"]
    assert turns > FORK, f"{case}: {turns:.0f} turns a user in weeks={weeks}; let its yaml bring more than {FORK}"
    if not case.of_arms:
        assert pc.any(pc.invert(together.turns("itself")["fallback_to_llm"])).as_py(), f"{case}: no skill answers"
    lines = [f"a fork from itself at turn {FORK} differs: {where}" for where in forked(together, users)]
    apart = killed_and_resumed(case, folder, folder / "apart", workers)
    if set(world.differences(together, apart, users, ["itself"])) - set(_lists(case)):
        lines += _told_apart(case, folder, together, users) or ["a run that was killed and resumed differs"]
    return lines


def forked(together: Run, users: range, pair: Sequence[str] = ("itself", "fork")) -> Iterator[str]:
    for log in world.LOGS:
        itself, fork = (world.rows(together, log, arm, users).drop_columns("arm") for arm in pair)
        if itself.num_rows != fork.num_rows:
            yield f"{log}: {itself.num_rows} rows and {fork.num_rows}"
        else:
            yield from (f"{log} {column}" for column in world.unlike(itself, fork))


def _lists(case: Case) -> list[str]:
    """Columns that are as long as the longest shortlist of a run, and empty for an assistant that has none."""
    lists = [f.name for f in schema.turns(1) if pa.types.is_fixed_size_list(f.type)]
    return [f"itself turns {name}" for name in lists] if case.seam == "assistant" and case.option != "pipeline" else []


def _told_apart(case: Case, folder: Path, together: Run, users: range) -> list[str]:
    def alone(name: str, cohort: int, workers: int = 1) -> Run:
        return run(played(case, folder, alone=True), folder / name, cohort, workers)

    large, small = alone("large", LARGE), alone("small", SMALL)
    resumed = killed_and_resumed(case, folder, folder / "resumed", 1)
    pairs = {
        "alone and in a stack differ": (large, together),
        "two runs of one plan differ": (large, alone("again", LARGE)),
        f"cohort={LARGE} and cohort={SMALL} differ": (large, small),
        "workers=1 and workers=2 differ": (small, alone("spread", SMALL, 2)),
        "a run and one that was killed and resumed differ": (small, resumed),
    }
    differing = {
        what: [where for where in world.differences(*runs, users, ["itself"]) if where not in _lists(case)]
        for what, runs in pairs.items()
    }
    return [f"{what}: {where[0]} and {len(where) - 1} more" for what, where in differing.items() if where]


def changed_by_truth(case: Case, folder: Path) -> list[str]:
    """Columns that an arm decides otherwise where the truth is another and users say the same, under a drawn salt."""
    differing, salt = told_otherwise(lambda: plan(case, folder, alone=True), folder)
    columns = [where.removeprefix("itself ") for where in differing]
    return [*columns, f"with salt={salt:#x}"] if columns else []


def told_otherwise(make: Callable[[], Plan], folder: Path) -> tuple[list[str], int]:
    """Columns that arms of one stack decide otherwise where the truth is another and users say the same, and the salt,
    which is drawn. `make()`: their plan, of components that remember nothing.
    """
    salt = secrets.randbits(128)
    made = replace(make(), salt=salt)
    memory = Remembering(made.simulator)
    first = run(replace(made, simulator=cast("World[Any]", memory)), folder / "truth", LARGE)
    anew = replace(make(), salt=salt)
    contrary = tuple(replace(arm, llm=Contrary(arm.llm)) for arm in anew.arms)
    lying = cast("World[Any]", Lying(made.simulator, memory, 1))
    second = run(replace(anew, simulator=lying, arms=contrary), folder / "lies", LARGE)
    differing = world.differences(first, second, range(made.users))
    return [where for where in differing if where.split(" turns ")[-1] not in TRUTH], salt


def oracle(case: Case, folder: Path) -> bool:
    """Is it told the truth?"""
    return arms(composed(case, folder).arms, COMMAND_LINE)[0].assistant.sees_truth
