"""The lives of a draw: the same users under all arms of an experiment, in memory, with the parameters of the draw."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from hashlib import sha256
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from skg_bench.app.building import build
from skg_bench.app.compose import compose
from skg_bench.app.composed_arms import arms
from skg_bench.app.hydra_trees import hydra_trees
from skg_bench.app.overrides import parse
from skg_bench.app.run_identity import described
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.assistant.pipeline.components import components, with_components
from skg_bench.assistant.pipeline.pipeline import Pipeline
from skg_bench.assistant.pipeline.skillbook_table import SkillbookTable
from skg_bench.core.arms import Arm, Fork
from skg_bench.core.assistant import Applied
from skg_bench.core.batch import Batch
from skg_bench.core.embedding_grid import check
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import Feedback
from skg_bench.core.foreign import bytes_of
from skg_bench.core.grid import I32, I64
from skg_bench.core.launching import Launcher
from skg_bench.core.learning_jobs import Course, Jobs
from skg_bench.core.texts import Embedding
from skg_bench.core.types import Embedder, Similarity
from skg_bench.curator.reflective import Reflective
from skg_bench.engine.cohort import Cohort, Rollout, Setting, cohort_of
from skg_bench.engine.ensembles import stacks
from skg_bench.engine.plan import Plan
from skg_bench.engine.relabel import Relabelled
from skg_bench.engine.vectors import SimilarityTable
from skg_bench.policy.chooser import Chooser
from skg_bench.simulator.advice.guardian import Guardian
from skg_bench.simulator.advice.levels import SATISFACTION
from skg_bench.study import prior
from skg_bench.study.guardian.lives import DRAW_TRIGGERS, DRAW_USERS, Draw, Life, Lives
from skg_bench.study.kept_draws import DrawSetup

PRIOR = Path(__file__).with_name("prior.yaml")
_DRAWN: Mapping[str, type[Any]] = {
    "curator": Reflective,
    "policy": Chooser,
}  # whose parameters a name with this prefix means
_NAMES = {"curator": "reflective", "policy": "chooser"}  # in conf/
_ROOM = 1.5  # the median user has so many times the triggers that are looked at; slower users have fewer
_COLUMNS: Mapping[str, type[np.generic]] = {
    "time": np.int64, "request_type": np.int32, "tier": np.int32, "outcome": np.int32, "wanted": np.bool_,
    "satisfaction": np.int32, "strategy": np.int32, "skill": np.int32, "worth": np.float64,
    "worth_expected": np.float64, "worth_fresh": np.float64, "worth_best": np.float64, "cost_usd": np.float64,
    "learning_cost_usd": np.float64, "latency_ms": np.float64, "offer": np.int32, "book_size": np.int32,
}  # fmt: skip


@dataclass(frozen=True)
class DrawStudy:
    """Configuration, world and arms that all draws of an experiment share."""

    name: str
    root: Mapping[str, Any]  # resolved configuration
    users: int  # of each draw
    triggers: int  # of each user at most
    world: Guardian  # parameters that are not drawn
    embedder: Embedder
    launcher: Launcher
    arms: tuple[Arm, ...]
    parameters: tuple[prior.Parameter, ...]  # that are drawn
    given: Mapping[str, float]  # parameters of the prior that an override has set, for all draws
    kept: Mapping[str, frozenset[str]]  # by arm, parameters that the arm sets itself
    setup: DrawSetup  # what its draws are made from; the code that measures them is added (drawing.py)

    @property
    def seed(self) -> int:
        """Seed of all draws."""
        return int(self.root["seed"])

    def draw(self, number: int) -> Draw:
        """The draw of this number."""
        at = np.array([number])
        values = {parameter.name: float(parameter.drawn(self.seed, at)[0]) for parameter in self.parameters}
        return Draw(number, {**values, **self.given})

    @cached_property
    def similarity(self) -> Similarity:
        """Similarities of the world's messages, all pairs: no parameter changes them."""
        vectors = self._vectors.astype(np.float32)
        return SimilarityTable(vectors @ vectors.T)

    @cached_property
    def _vectors(self) -> Any:
        vectors = self.embedder.embed(Relabelled(self.world, self.seed).messages)
        check(vectors, len(self.world.messages))
        return vectors

    def setting(self, draw: Draw) -> Setting:
        """The world of a draw, for as many weeks as its users need."""
        values: dict[str, Any] = {name: value for name, value in draw.values.items() if "." not in name}
        world = Relabelled(replace(self.world, **values), self.seed)
        weeks = ceil(_ROOM * self.triggers / world.triggers_per_week)
        embedding = Embedding(lambda: self._vectors, self.embedder)
        return Setting(self.seed, world, lambda: self.similarity, weeks, embedding)

    def arms_of(self, draw: Draw) -> list[Arm]:
        """The arms, whose curators and policies have the parameters of the draw, unless the arm sets them itself."""
        by_name = {arm.name: arm for arm in self.arms}
        made: dict[str, Arm] = {}

        def changed(arm: Arm) -> Arm:
            if arm.name not in made:
                fork = None if arm.fork is None else Fork(changed(by_name[arm.fork.arm.name]), arm.fork.turn)
                own_phase = with_components(arm, **self._changed(arm, draw))
                made[arm.name] = replace(own_phase, fork=fork)
            return made[arm.name]

        return [changed(arm) for arm in self.arms]

    def _changed(self, arm: Arm, draw: Draw) -> dict[str, Any]:
        names = [name for name in draw.values if name not in self.kept[arm.name]]
        changed = {}
        for seam, kind in _DRAWN.items():
            values = {n.partition(".")[2]: draw.values[n] for n in names if n.startswith(f"{seam}.")}
            changed[seam] = _with(getattr(components(arm), seam), seam, kind, values)
        return changed


def _with(component: Any, seam: str, kind: type[Any], values: Mapping[str, float]) -> Any:
    """Component with these parameters, if it is of this kind; else the component inside of it, if there is one."""
    if type(component) is kind:
        return replace(component, **values)
    inner = getattr(component, seam, None)
    return component if inner is None else replace(component, **{seam: _with(inner, seam, kind, values)})


def study(name: str, overrides: Sequence[str] = (), *, triggers: int = DRAW_TRIGGERS, file: Path = PRIOR) -> DrawStudy:
    """Study of `experiment=NAME` under these overrides. A parameter of the prior that is overridden is not drawn.

    Raises UsageError for bad overrides, another world, an empty panel, and a prior that leaves a parameter's range.
    """
    known = parse(list(overrides))
    words = [f"experiment={name}", f"users={DRAW_USERS}", *overrides]
    composed = compose(words)
    root = composed.root
    world, embedder = (build(seam, root[seam], COMMAND_LINE) for seam in ("simulator", "embedder"))
    if not isinstance(world, Guardian):
        raise UsageError(
            f"{name} draws parameters of simulator=guardian, and {type(world).__name__} has none of them; leave "
            "out simulator="
        )
    if root["users"] is None or root["users"] < 1 or triggers < 1:
        raise UsageError(
            f"users={root['users']} with triggers={triggers} each is an empty panel; give at least 1 of both"
        )
    if "weeks" in {override.path for override in known}:
        raise UsageError(f"weeks: {name} takes as many weeks as its users need for {triggers} triggers; leave it out")
    parameters = prior.read(file).parameters
    given = {override.path.removeprefix("simulator."): override.value for override in known if not override.choice}
    fixed = {p.name: float(given[p.name]) for p in parameters if p.name in given}
    kept = {
        arm: frozenset(f"{o.head}.{o.path.rpartition('.')[2]}" for o in parse(texts) if not o.choice)
        for arm, texts in root["arms"].items()
    }
    made = arms(composed.arms, COMMAND_LINE)
    if alone := [arm.name for arm in made if not isinstance(arm.assistant, Pipeline)]:
        raise UsageError(f"arm {alone[0]!r} has no skillbook and no components to draw; take assistant=pipeline")
    Plan(root["seed"], root["users"], 1, world, embedder, made)
    data = {
        "simulator": world.digest, "embedder": embedder.digest, "prior": sha256(bytes_of(file)).hexdigest(),
        "triggers": str(triggers),
    }  # fmt: skip
    counted = {key: value for key, value in root.items() if key != "profile"}  # a number of draws
    sizes = {"experiment": name, "seed": root["seed"], "users": root["users"], "triggers": triggers}
    setup = DrawSetup(tuple(words), described(counted, composed.arms, data), data, sizes, ())
    whole = DrawStudy(
        name, root, root["users"], triggers, world, embedder,
        build("launcher", root["launcher"], COMMAND_LINE), made,
        tuple(p for p in parameters if p.name not in fixed), fixed, kept, setup,
    )  # fmt: skip
    check_prior(whole, file)
    return whole


def check_prior(whole: DrawStudy, file: Path) -> None:
    """Raises UsageError where the world, a curator or a policy refuses a limit of the prior in `file`."""
    nodes = {seam: hydra_trees().options(seam, [name])[0] for seam, name in _NAMES.items()}
    configured = {seam: build(seam, node, COMMAND_LINE) for seam, node in nodes.items()}
    for parameter in prior.read(file).parameters:
        seam, _, key = parameter.name.rpartition(".")
        component = configured.get(seam) if seam else whole.world
        if component is None or key not in {f.name for f in fields(component) if f.init}:
            raise UsageError(
                f"{file}: {parameter.name} is no parameter of simulator=guardian, nor `curator.` one of "
                "curator=reflective, nor `policy.` one of policy=chooser"
            )
        for limit in (parameter.low, parameter.high):
            try:
                replace(component, **{key: limit})
            except UsageError as error:
                raise UsageError(
                    f"{file}: {parameter.name} from {parameter.low:g} to {parameter.high:g} leaves its range: {error}"
                ) from error


# ------------------------------------------------------------------------------------------------------------ lives


def lives(whole: DrawStudy, draw: Draw) -> Lives:
    """The users of a draw under each arm. Two draws have no user in common."""
    setting, made = whole.setting(draw), whole.arms_of(draw)
    cohort = _cohort(whole, setting, draw)
    by_name: dict[str, Life] = {}
    for stack in stacks(made):
        together = [made[i] for i in stack]
        parts = _stepped(whole, setting, together, cohort)
        by_name |= {arm.name: life for arm, life in zip(together, parts, strict=True)}
    return {arm.name: by_name[arm.name] for arm in made}


def opened(whole: DrawStudy, draw: Draw) -> Setting:
    """The world of a draw, in which all texts of the library and of seeds are known."""
    setting = whole.setting(draw)
    seeds = [
        skill.content for arm in whole.arms if (book := components(arm).seeds) is not None for skill in book.skills
    ]
    for content in [*whole.world.texts, *(content for content in seeds if content is not None)]:
        setting.texts.contents.add(content)
    return setting


def served(
    whole: DrawStudy, draw: Draw, arm: str, books: Mapping[str, SkillbookTable], setting: Setting | None = None
) -> Lives:
    """The users of a draw, who have given books from their first trigger on, by the name of a kind of book: rows in
    order of users, texts of the world's library or of seeds. The other components are those of `arm`. `setting`: the
    world in which the books were made, if it was not that of `lives`.

    Raises UsageError for an arm that learns.
    """
    setting = opened(whole, draw) if setting is None else setting
    made = {made.name: made for made in whole.arms_of(draw)}[arm]
    if components(made).curator.reasons:
        raise UsageError(f"arm {arm} learns, and would change the books that it is given; take one with curator=none")
    together = [replace(with_components(made, seeds=None), name=name) for name in books]
    parts = _stepped(whole, setting, together, _cohort(whole, setting, draw), list(books.values()))
    return dict(zip(books, parts, strict=True))


def _cohort(whole: DrawStudy, setting: Setting, draw: Draw) -> Cohort:
    """The users of a draw before their first trigger."""
    users = (draw.number * whole.users + np.arange(whole.users)).astype(np.int32)
    cohort = cohort_of(setting, users)
    return cohort.until(np.minimum(cohort.n, np.int32(whole.triggers)))


def _stepped(
    whole: DrawStudy,
    setting: Setting,
    together: Sequence[Arm],
    cohort: Cohort,
    books: Sequence[SkillbookTable] = (),
) -> list[Life]:
    """Arms that are stepped together; `books` `[A]`, where they begin with given ones."""
    n = len(together)
    rows = cohort.side_by_side(n)
    place = np.searchsorted(cohort.user, rows.user[::n])  # of a user in the draw, by place in the lock-step
    at = np.empty(len(place), np.int64)
    at[place] = np.arange(len(place)) * n
    rollout, log = Rollout(setting, together, rows), TurnColumns(len(rows.n), int(rows.n.max()))
    for j, given in enumerate(books):
        rollout.state.memory.table.adopt(at + j, given, np.arange(len(at)))
    rollout.to_the_end(log, lambda _: None)
    return [_life(whole, setting, log, rollout.state.memory.table, at + j, n=cohort.n) for j in range(n)]


def _life(whole: DrawStudy, setting: Setting, log: "TurnColumns", table: SkillbookTable, rows: I64, *, n: I32) -> Life:
    """Life of the users `rows`."""
    turns = {name: column[:, rows].T for name, column in log.columns.items()}
    books = SkillbookTable(len(rows))
    books.adopt(np.arange(len(rows)), table, rows)
    prices = whole.root["utility"]
    paid = prices["usd"] * (turns["cost_usd"] + turns["learning_cost_usd"])
    paid = paid + prices["second"] / 1000.0 * turns["latency_ms"] + prices["offer"] * (turns["offer"] >= 0)
    about = setting.reading.about(books.content)[0] if setting.reading is not None else books.name
    return Life(
        there=np.arange(len(log.columns["time"]))[None] < n[:, None], time=turns["time"],
        context=turns["request_type"], tier=turns["tier"], wanted=turns["wanted"], outcome=turns["outcome"],
        satisfaction=turns["satisfaction"], kind=turns["strategy"], skill=turns["skill"],
        utility=turns["worth"] - paid, expected=turns["worth_expected"],
        fresh=turns["worth_fresh"], best=turns["worth_best"], book_size=turns["book_size"], books=books,
        book_kinds=np.where(books.active, about, -1).astype(np.int32),
    )  # fmt: skip


class TurnColumns:
    """A log that keeps some columns, `[T, B]` each; a turn that a user does not have has -1, False or NaN."""

    def __init__(self, n_rows: int, turns: int) -> None:
        self.columns = {name: np.full((turns, n_rows), _none(kind), kind) for name, kind in _COLUMNS.items()}

    def turn(self, t: int, **values: np.ndarray) -> None:
        """Columns of a turn of the rows that are still there."""
        for name, value in values.items():
            if name in self.columns:
                self.columns[name][t, : len(value)] = value

    def update(self, t: int, batch: Batch, applied: Applied) -> None:
        """The books are read in the end."""

    def feedback(self, t: int, feedback: Feedback, time: I64, skill: I32) -> None:
        """Feedback that users will give on the turn."""
        later = feedback.rows(feedback.kind == SATISFACTION)
        self.columns["satisfaction"][t, later.row] = later.value

    def learning(self, t: int, jobs: Jobs, time: I64, course: Course | None) -> None:
        """Not kept; what learning costs is a column."""


def _none(kind: type[np.generic]) -> float | int | bool:
    return False if kind is np.bool_ else np.nan if kind is np.float64 else -1
