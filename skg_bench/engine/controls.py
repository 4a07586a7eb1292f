"""Controls of an assistant whose memory nobody can look into: is all of it in its state?

A few users are played before the run: all together, once more, each of them (or each instance of those who share a
memory) alone in another order, and once with their memory saved and loaded on the way. Memory that lies elsewhere (a
class, a module, a file, a server) then makes other rows, and so does a clock or a random number. When all turns of the
run are there, its last users are played alone, since memory elsewhere may show only once it is full.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skg_bench.asking.asking import Streaming, components_within
from skg_bench.core.arms import Arm
from skg_bench.core.assistant import Experience, InWords, Keeping, Message, Reply
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.foreign import table_of
from skg_bench.core.grid import I32
from skg_bench.core.types import FREE
from skg_bench.core.world import FALLBACK
from skg_bench.engine.cohort import Cohort, Setting, cohort_of, run_cohort
from skg_bench.engine.instances import run_instances
from skg_bench.engine.plan import Plan
from skg_bench.engine.rehearsal import REHEARSED_AT, Rehearsable, Rehearsed
from skg_bench.engine.sharing_arms import users_of_instance
from skg_bench.runfolder import shards

_USERS, _TURNS = 3, 200  # who are played, and how many turns each at most
_PLAYS = 3  # of each of them
_ALL = np.iinfo(np.int32).max  # turns
_INSTANCES = 2  # of at most so many users, where users share a memory

Ticks = Callable[[int], None]


@dataclass(slots=True)
class _Stage:
    """The world in which arms are played, with users who are made once."""

    setting: Setting
    progress: Ticks
    cohorts: dict[bytes, Cohort] = field(default_factory=dict)

    def turns(self, arm: Arm, users: I32, most: int = _TURNS) -> pa.Table:
        """The first turns of instances `[n, size]`, `most` of each user."""
        size, ids = users.shape[1], users.ravel()
        if ids.tobytes() not in self.cohorts:
            self.cohorts[ids.tobytes()] = cohort_of(self.setting, ids)
        cohort = self.cohorts[ids.tobytes()]
        cohort = cohort.until(np.minimum(cohort.n, most).astype(np.int32))
        if size > 1:
            (log,) = run_instances(self.setting, arm, cohort, 1, self.progress, size=size)
        else:
            (log,) = run_cohort(self.setting, [arm], cohort, 1, self.progress)
        return log.table("turns")


def check_controls(setting: Callable[[], Setting], arms: Sequence[Arm], people: int, progress: Ticks) -> None:
    """Play a few of the `people` of a run under each arm whose assistant wants controls. `setting` is made only where
    there is such an arm.

    Raises UsageError where rows differ, with the first that does.
    """
    if wanting := [arm for arm in arms if wants_controls(arm)]:
        stage, models = _Stage(setting(), progress), list[Arm]()
        for arm in wanting:
            silent = replace(_plain(arm), assistant=_Silent())
            if all(replace(silent, name=each.name) != each for each in models):
                models.append(silent)
                _check_passed_on(stage, silent, np.arange(min(people, _USERS), dtype=np.int32))
            users = _played(arm, people)
            played = _check_memory(stage, arm, users)
            if rehearsals := _rehearsals(arms, arm, people):
                _check_rehearsed(stage, arm, users, played if rehearsals == 1 else None)


def check_last_users(
    setting: Callable[[], Setting], arms: Sequence[Arm], people: int, out: Path, progress: Ticks
) -> None:
    """Play the last users of a run of `people`, whose shards are all in the folder `out`, alone under each arm whose
    assistant wants controls. Users who all share one memory are left out: nobody else is there.

    Raises UsageError where rows differ from those of the run, with the first that does.
    """
    wanting = [(arm, last) for arm in arms if wants_controls(arm) for last in _last(arm, people)]
    if wanting:
        stage = _Stage(setting(), progress)
        for arm, instance in wanting:
            with _telling(f"In the run it had no such fault, with the same users. {_remedy(arm)}"):
                alone = stage.turns(arm, instance[None, :], most=_ALL)
            if difference := _difference(_logged(out, arm.name, instance), alone):
                raise UsageError(
                    f"arm {arm.name!r}: what {_name(arm)} answered in the run depends on who else was there, or on a "
                    f"clock: in the run, then alone: {difference}. {_remedy(arm)}"
                )


def control_turns(plan: Plan, arm: Arm) -> int:
    """Messages that the controls of an arm send to its assistant."""
    if not wants_controls(arm):
        return 0
    turns = plan.simulator.count(plan.salted, _played(arm, plan.users).ravel(), plan.weeks).clip(max=_TURNS)
    before = _PLAYS * int(turns.sum())
    match arm.assistant:
        case Keeping() as assistant if rehearsals := _rehearsals(plan.arms, arm, plan.users):
            frozen = 0 if assistant.unfrozen() else sum(int((turns > turn).sum()) for turn in REHEARSED_AT)
            before += rehearsals * int(turns.sum()) + frozen
    last = np.concatenate([np.empty(0, np.int32), *_last(arm, plan.users)])
    return before + int(plan.simulator.count(plan.salted, last, plan.weeks).sum())


def _played(arm: Arm, people: int) -> I32:
    """Users who are played, by instance, `[n, size]`."""
    size = min(users_of_instance(arm, people), _USERS)
    return np.arange(min(people // size * size, _INSTANCES * size if size > 1 else _USERS), dtype=np.int32).reshape(
        -1, size
    )


def _last(arm: Arm, people: int) -> I32:
    """Users who are played after the run, by instance, `[n, size]`; none where all share one memory."""
    size = users_of_instance(arm, people)
    instances = np.arange(people, dtype=np.int32).reshape(-1, size)
    return instances[: 0 if len(instances) == 1 < size else None][-max(_USERS // size, 1) :]


def wants_controls(arm: Arm) -> bool:
    """Does an assistant of the arm, or of those that it forks from, want controls?"""
    return any(isinstance(phase.assistant, Keeping) and phase.assistant.controls for phase in arm.phases)


def _plain(arm: Arm) -> Arm:
    """The arm without a fork, and never frozen."""
    return replace(arm, fork=None, freeze=None, freeze_at=None)


def _rehearsals(arms: Sequence[Arm], arm: Arm, people: int) -> int:
    """Plays of an arm, beside those of `_check_memory`, to see whether its memory can be saved, loaded and frozen: one,
    or two where it forks or freezes. None where an arm before it has the same memory, and where users share one: who
    shares a memory begins anew after a stop, and is never frozen.
    """
    before = [_plain(each) for each in arms[: list(arms).index(arm)]]
    if users_of_instance(arm, people) > 1 or any(replace(_plain(arm), name=each.name) == each for each in before):
        return 0
    return 1 if _plain(arm) == arm else 2


def _check_memory(stage: _Stage, arm: Arm, users: I32) -> pa.Table:
    """Turns of instances `users` `[n, size]` under the arm.

    Raises UsageError where what they are answered depends on an earlier play, or on who else is there.
    """
    together = stage.turns(arm, users)
    with _telling(f"It was played before, without this fault, with the same users. {_remedy(arm)}"):
        again = stage.turns(arm, users)
        alone = pa.concat_tables([stage.turns(arm, users[[i]]) for i in reversed(range(len(users)))])
    if difference := _difference(together, again):
        raise UsageError(
            f"arm {arm.name!r}: {_name(arm)} was played twice with the same users, and answered otherwise the second "
            f"time: {difference}. Its answers depend on something beside its messages, such as a clock or a random "
            f"number without a seed, or on memory of the play before. {_remedy(arm)}"
        )
    if difference := _difference(together, alone):
        raise UsageError(
            f"arm {arm.name!r}: what {_name(arm)} answers depends on who else is there: {difference}. {_remedy(arm)}"
        )
    return together


def _check_rehearsed(stage: _Stage, arm: Arm, users: I32, played: pa.Table | None) -> None:
    """Raises UsageError where a memory that was saved and loaded is another one, or a frozen one remembers. `played`:
    turns of the arm without its fork, never frozen; None: they are not known.
    """
    match arm.assistant:
        case Keeping() as assistant:
            rehearsed = replace(_plain(arm), assistant=Rehearsed(cast("Rehearsable", assistant)))
            if played is None:
                played = stage.turns(_plain(arm), users)
            with _telling(f"{_name(arm)} was played without this fault before. {_REHEARSED}"):
                again = stage.turns(rehearsed, users)
            if difference := _difference(played, again):
                raise UsageError(f"arm {arm.name!r}: {_name(arm)} answered otherwise then: {difference}. {_REHEARSED}")


_REHEARSED = (
    f"At turns {', '.join(map(str, REHEARSED_AT))} its memory was frozen for one message more, then saved and loaded. "
    "A frozen one (a copy of the object, or what it saved) must stay as it is, and what it saves must be all that it "
    "remembers: else forks and frozen arms are not what they say, and a run gives other figures after a stop. "
    "assistant.controls=false leaves this check out, and the page says so"
)


@contextmanager
def _telling(more: str) -> Iterator[None]:
    """Add a sentence to a UsageError."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{error}. {more}") from error


def _remedy(arm: Arm) -> str:
    remedies = [phase.assistant.remedy for phase in arm.phases if isinstance(phase.assistant, Keeping)]
    return (
        f"{remedies[0]}: else a run gives other figures with other cohorts, and after a stop. assistant.controls=false "
        "leaves this check out, and the page says so"
    )


def _name(arm: Arm) -> str:
    return str(getattr(arm.assistant, "name", type(arm.assistant).__qualname__))


def _logged(out: Path, arm: str, users: I32) -> pa.Table:
    """Turns of a run's arm and users."""
    numbers, chosen = np.unique(users // shards.SHARD_USERS).tolist(), pc.field("user").isin(users.tolist())
    return pa.concat_tables([table_of(shards.path(out, "turns", arm, number), None, chosen) for number in numbers])


_SHOWN = ("serving", "source_turn", "answer_correct", "cost_usd", "user_satisfaction")


def _difference(first: pa.Table, other: pa.Table) -> str | None:
    """First row that differs, in words; None: none does."""
    order = [("user", "ascending"), ("turn", "ascending")]
    first, other = first.sort_by(order).select(_COLUMNS), other.sort_by(order).select(_COLUMNS)
    for mine, theirs in zip(first.to_pylist(), other.to_pylist(), strict=True):
        if mine != theirs:
            pairs = [f"{key} {mine[key]}, then {theirs[key]}" for key in _SHOWN if mine[key] != theirs[key]]
            return f"user {mine['user']}, turn {mine['turn']}, {mine['message']!r}: {'; '.join(pairs)}"
    return None


_COLUMNS = ("user", "turn", "message", *_SHOWN)


@dataclass(frozen=True)
class _Silent:
    """An assistant for which the engine asks the model, at every message."""

    sees_truth: ClassVar[bool] = False

    def start(self, n: int) -> None:
        return None

    def answer(self, query: Message, state: None) -> tuple[None, Reply]:
        n = len(query.text)
        return None, Reply(np.full(n, FALLBACK, np.int32), np.full(n, -1, np.int32))

    def learn(self, seen: Experience, feedback: KnownFeedback, state: None) -> None:
        return None


@dataclass(frozen=True)
class _PassingOn(_Silent):
    """An assistant that asks the model at every message, and says what it said."""

    def answer(self, query: Message, state: None) -> tuple[None, Reply]:
        messages = query.texts.read(query.text)
        words = [query.ask(row, message) for row, message in enumerate(messages)]
        _, reply = super().answer(query, state)
        return None, replace(reply, case=InWords(words, FREE, [[message] for message in messages]))


def _check_passed_on(stage: _Stage, silent: Arm, users: I32) -> None:
    """Raises UsageError where an assistant that only passes messages on differs from one that is not there."""
    passing = replace(silent, assistant=_PassingOn())
    tables = (stage.turns(arm, users[:, None]) for arm in (passing, silent))
    apart = ["cause"]  # of words it is known, of no assistant not
    if any(isinstance(part, Streaming) for part in components_within(silent.llm)):
        apart.append("latency_ms")  # of a server, which is never the same twice
    passed, never = (table.drop_columns(apart) for table in tables)
    if not passed.equals(never):
        raise UsageError(
            f"arm {silent.name!r}: an assistant in words that only passes messages on is not the same as none, bit by "
            f"bit: {_difference(never, passed) or 'a column differs'}. This is a fault of skg_bench, or a "
            "model whose price depends on more than the prompt; assistant.controls=false goes on without this check"
        )
