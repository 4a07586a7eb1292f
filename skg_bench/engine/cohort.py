"""Users under the arms of a stack, from the first turn to the shards."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, cast

import numpy as np
import pyarrow as pa

from skg_bench.core import state
from skg_bench.core.arms import Arm, Fork
from skg_bench.core.assistant import BookEnsemble
from skg_bench.core.draws import key, unsalted, word
from skg_bench.core.grid import I32, I64
from skg_bench.core.record import replay_of
from skg_bench.core.texts import Embedding, Texts
from skg_bench.core.types import Similarity
from skg_bench.core.world import ReadingWorld, World, brought, ledger_of, timetable
from skg_bench.engine.agreement_judge import JUDGE, AgreementJudge
from skg_bench.engine.checkpoint import Keeper, Position
from skg_bench.engine.ensembles import ensemble, loaded_memory, saved_memory
from skg_bench.engine.labels import Labels
from skg_bench.engine.logbook import Logbook, NullWriter, TurnWriter
from skg_bench.engine.pending import Pending
from skg_bench.engine.reading import Reading
from skg_bench.engine.relabel import type_names
from skg_bench.engine.scene import CohortState, Keys, Scene
from skg_bench.engine.step import step
from skg_bench.engine.text_view import Heard
from skg_bench.engine.vectors import WithWritten
from skg_bench.runfolder.saving import Surroundings, UnsavableError

_BLOCK = 64  # turns between two calls of `progress`
_DONORS = np.int32(2**30)  # users of a run have smaller ids; donors have ids from here on
_CANDIDATES = 8  # candidates for a donor, for each user; ranked by number of turns
_SIMULATED = 3  # of these, how many are simulated; the one nearest in size of its skillbook is the donor


@dataclass(frozen=True)
class Setting:
    """Setting that all arms and cohorts of a run share."""

    seed: int  # with its salt (core/draws.py)
    world: World[Any]
    similarity: Callable[[], Similarity]  # of the world's messages; a new one for each cohort, as it may keep examples
    weeks: int
    embedding: Embedding | None = None  # None: no written text can become an example
    comparison: AgreementJudge = JUDGE

    @cached_property
    def type_names(self) -> I32:
        """Text id of the name of each request type; -1 at the end, for one-offs."""
        return np.append(type_names(self.world) + np.int32(self.texts.names.start), np.int32(-1))

    @cached_property
    def texts(self) -> Texts:
        """Texts of the world, and all that is written in this process."""
        log = replay_of(self.world)
        shows = log.show if log is not None and log.record.redacted else None
        return Texts(self.world.messages, self.world.names, self.embedding, shows, self.world.domain.recorded)

    @cached_property
    def reading(self) -> Reading | None:
        """Reading of what skills are really about; None: they keep answers."""
        if self.world.domain.answers:
            return None
        return Reading(cast("ReadingWorld[Any]", self.world), self.texts.contents)

    @cached_property
    def _words(self) -> list[pa.Array]:
        s = self.world
        words = (self.texts.shown_messages, s.names, s.intents, s.types)
        return [pa.array(list(x), pa.string()).dictionary_encode() for x in words]  # once, not for each shard

    def labels(self, reasons: Sequence[str]) -> Labels:
        """Dictionaries for the logs of arms whose curators have these reasons."""
        messages, names, intents, types = self._words
        given = pa.array(list(reasons), pa.string())
        return Labels(self.texts, messages, names, intents, types, given, self.world.domain, replay_of(self.world))


@dataclass(frozen=True, slots=True)
class Cohort:
    """Users who are stepped together."""

    user: I32  # [B] ids
    n: I32  # [B] how many turns each has
    memory: Any  # what they remember before the first turn: the world's

    def rows(self, rows: I64) -> "Cohort":
        """A copy of these users."""
        return Cohort(self.user[rows], self.n[rows], state.rows(self.memory, rows))

    def until(self, n: I32) -> "Cohort":
        """Cohort with this number of turns each."""
        return replace(self, n=n)

    def side_by_side(self, n_arms: int) -> "Cohort":
        """A copy with a row for each user and arm. Who has most turns comes first, so that those still here are a
        prefix.
        """
        return self.rows(np.repeat(np.argsort(-self.n, kind="stable"), n_arms))


def cohort_of(setting: Setting, users: I32) -> Cohort:
    """Cohort of these users before their first turn."""
    n = setting.world.count(setting.seed, users, setting.weeks)
    return Cohort(users, n, setting.world.begin(setting.seed, users, setting.weeks))


def run_cohort(
    setting: Setting,
    arms: Sequence[Arm],
    cohort: Cohort,
    top_k: int,
    progress: Callable[[int], None],
    *,
    keeper: Keeper | None = None,
) -> list[Logbook]:
    """All turns of these users under each arm of a stack, in lock-step.

    Each user is at their own next turn, and leaves when done. `progress` is called with the number of turns made so
    far, those of all arms counted. Where `keeper` has a checkpoint of these users under these arms, its turns are not
    made again; while it runs, the rollout leaves checkpoints with it.
    """

    def begun(setting: Setting) -> tuple[Rollout, Logbook]:
        rows = cohort.side_by_side(len(arms))
        rollout = Rollout(setting, arms, rows)
        labels = setting.labels(rollout.assistant.reasons)
        return rollout, Logbook.empty(
            arms[0].name, unsalted(setting.seed), rows.user, rows.n, top_k=top_k, labels=labels
        )

    names, resumed = [arm.name for arm in arms], None
    if keeper is not None:  # texts of a checkpoint have the ids of its process: a setting without texts of this one
        resumed = keeper.resumed(names, cohort.user, lambda: begun(replace(setting)))
    rollout, log = resumed or begun(setting)
    if keeper is not None:
        rollout.between_turns = keeper.watch(log, names, cohort.user)
    rollout.to_the_end(log, progress)
    del rollout, resumed  # before the logs are copied: room for both is not needed
    return log.split(names)


def _with_given(given: I32, rows: I64, theirs: I32) -> I32:
    """Turns of given answers, with those that donors of rows `rows` were given behind them."""
    more = np.full((len(given), theirs.shape[1]), -1, np.int32)
    more[rows] = theirs
    return np.concatenate([given, more], axis=1)


def _nothing(_rollout: "Rollout") -> None:
    """Does nothing between two turns, where no checkpoints are kept."""


class Rollout:
    """Rows `u * A + j` in lock-step: user u, in order of falling number of events, under arm j of A."""

    def __init__(self, setting: Setting, arms: Sequence[Arm], cohort: Cohort, *, memory: Any = None) -> None:
        """`memory`: what the assistant remembers; None: it starts."""
        self._setting, self._arms, self._user, self._n = setting, arms, cohort.user, cohort.n
        self.assistant = assistant = ensemble(arms)
        rows, keys = len(cohort.n), key(word(setting.seed, b"arms"), cohort.user)
        self._scene = Scene(
            setting.world, WithWritten(setting.similarity(), setting.texts), Keys(key(setting.seed, cohort.user), keys),
            setting.texts, setting.type_names, assistant, setting.reading, cohort.user, [arm.name for arm in arms],
            setting.comparison,
        )  # fmt: skip
        self.ledger = ledger_of(cohort.memory)  # of all rows, also of those who have left; not of donors' answers
        start, before = assistant.start(rows) if memory is None else memory, np.zeros(rows, np.int64)
        intents = np.zeros((rows, len(setting.world.intents) + 1), np.bool_)
        self.state = CohortState(
            arms[0].at(0), cohort.memory, start, before, Pending(rows), intents, Heard(rows),
            np.full(self.ledger.type.shape, -1, np.int32),
        )  # fmt: skip
        self.position = Position()
        self.between_turns: Callable[[Rollout], None] = _nothing
        twice = arms[0].book == "hindsight"
        self._as_before = state.rows(cohort.memory, np.arange(rows)) if twice else None

    @property
    def _books(self) -> BookEnsemble[Any]:
        """The assistant, where an arm asks for other books: only one with skillbooks may (core/arms.py)."""
        return cast("BookEnsemble[Any]", self.assistant)

    def to_the_end(self, log: TurnWriter, progress: Callable[[int], None]) -> None:
        """All turns; of arms with `book=hindsight` once up to the forks, and once more from the first turn."""
        turns = int(self._n.max(initial=0))
        if self._arms[0].book == "hindsight":
            if not self.position.again:
                forks = max(arm.cuts[-1] for arm in self._arms)
                self.run(min(forks, turns), NullWriter(), lambda _: progress(0))
                self.rewind(self._as_before)
                self.position = Position(again=True)
            self._as_before = None
            progress(self.position.made)
            self.turns(range(self.position.turn, turns), log, progress, self.position.made)
        else:
            progress(self.position.made)
            self.run(turns, log, progress)

    def run(self, last: int, log: TurnWriter, progress: Callable[[int], None]) -> None:
        """Turns 0 to `last` - 1, through all forks; of a rollout that was resumed, those that it has not made."""
        arms, made, since = self._arms, self.position.made, self.position.turn
        cuts = sorted({cut for arm in arms for cut in arm.cuts})
        for first, end in pairwise([*(cut for cut in cuts if cut < last), last]):
            if end <= since:
                continue
            if first >= since:
                self.state.arm = arms[0].at(first)
                for j, arm in enumerate(arms):
                    if arm.book == "donor" and arm.fork is not None and arm.fork.turn == first:
                        self._adopt(arm.fork, np.arange(j, len(self._n), len(arms)), partial(progress, made))
            made = self.turns(range(max(first, since), end), log, progress, made)

    def rewind(self, users: Any) -> None:
        """Back to turn 0 of `users`, with the books that were learned up to now: answers of the first pass lie behind
        those of the second in the ledger.
        """
        rows = np.arange(len(self._n))
        self.state.arm = self._arms[0].at(max(cut for arm in self._arms for cut in arm.cuts))
        self.state.users, shift = brought(users, rows, self.ledger, rows)
        self.state.given = np.concatenate([np.full_like(self.state.given, -1), self.state.given], axis=1)
        self.state.memory = self._books.rewind(self.state.memory, shift)
        self.state.pending = Pending(len(rows))
        self.state.asked[:] = False

    def turns(self, turns: range, log: TurnWriter, progress: Callable[[int], None], made: int = 0) -> int:
        """Steps through `turns` with the components in force; returns `made` plus the user turns stepped."""
        here = np.searchsorted(-self._n, -np.arange(turns.stop + 1), side="left")
        for t in turns:
            step(self._scene, self.state, t, int(here[t]), log)
            if here[t + 1] < here[t] and (left := self.assistant.left(self.state.memory, int(here[t + 1]))) is not None:
                log.learning(t, left[0], self.state.time, left[1])
            made += int(here[t])
            if t % _BLOCK == 0:
                progress(made)
            self.position = replace(self.position, turn=t + 1, made=made)
            self.between_turns(self)
        progress(made)
        return made

    def kept(self) -> dict[str, Any]:
        """All that its turns have changed; what else it holds, `surroundings` or another rollout has too.

        Raises UnsavableError for an assistant that cannot save its memory, and for texts of a log whose texts no file
        may hold.
        """
        memory = saved_memory(self.assistant, self.state.memory, self.position.turn)
        if memory is None and self.state.memory is not None:
            raise UnsavableError("its assistant has a memory that it cannot save")
        texts = self._scene.texts
        words = memory is not self.state.memory or len(texts) > texts.names.stop  # of an assistant, or of components
        if texts.redacts and words:
            raise UnsavableError("the log is redacted, and its texts would stand in the checkpoint")
        return {
            "seed": self._setting.seed, "n": self._n, "position": self.position,
            "state": replace(self.state, memory=memory),
            "ledger": self.ledger, "texts": texts.written(),
        }  # fmt: skip

    def take_up(self, kept: dict[str, Any]) -> None:
        """Go on from where another rollout of these users under these arms was; its texts are those of no other.

        Raises ValueError for a rollout of other users, and where texts were written here before.
        """
        if kept["seed"] != self._setting.seed or not np.array_equal(kept["n"], self._n):
            raise ValueError("these users have other events now")
        self._scene.texts.take_up(kept["texts"])
        self.position, self.state, self.ledger = kept["position"], kept["state"], kept["ledger"]
        self.state.memory = loaded_memory(self.assistant, self.state.memory, self.position.turn, len(self._n))

    def surroundings(self) -> Surroundings:
        """Surroundings that a rollout of these arms in another process has too."""
        scene, texts = self._scene, self._scene.texts
        objects = {
            "texts": texts, "contents": texts.contents, "vocabulary": texts.vocabulary, "similarity": scene.similarity,
            "reading": scene.reading, "embedding": self._setting.embedding,
        }  # fmt: skip
        assistants = [phase.assistant for arm in self._arms for phase in arm.phases]
        components = {"arms": tuple(self._arms), "ensemble": scene.assistant, "world": scene.world}
        return Surroundings.of(objects, {f"assistants.{i}": a for i, a in enumerate(assistants)} | components)

    def _adopt(self, fork: Fork, rows: I64, tick: Callable[[], None]) -> None:
        """Replaces the skillbooks of the users `rows` by donors' books. A donor is a person outside the run, simulated
        under `fork.arm` up to the user's time at the fork. Of 8 candidates for each user, the 3 whose number of turns
        is nearest to `fork.turn` are simulated; the one whose book is nearest in size is taken.
        """
        rows = rows[self._n[rows] > fork.turn]
        if not len(rows):
            return
        setting, assistant = self._setting, self._books
        user, now = self._user[rows], setting.world.events(self.state.users, fork.turn).time[rows]

        def until_now(candidate: I64 | int) -> Cohort:
            tick()
            donors = cohort_of(setting, (_DONORS + user * _CANDIDATES + candidate).astype(np.int32))
            time = timetable(setting.world, donors.memory, int(donors.n.max(initial=0)))
            return donors.until((time < now[:, None]).sum(axis=1, dtype=np.int32))

        turns = np.stack([until_now(k).n for k in range(_CANDIDATES)])
        nearest, best = np.argsort(np.abs(turns - fork.turn), axis=0, kind="stable"), np.full(len(rows), np.inf)
        size = assistant.sizes(self.state.memory)[rows].copy()
        for candidate in nearest[:_SIMULATED]:
            theirs = until_now(candidate)
            order = np.argsort(-theirs.n, kind="stable")
            donors = Rollout(setting, [fork.arm], theirs.rows(order))
            donors.run(int(theirs.n.max(initial=0)), NullWriter(), lambda _: None)
            apart = np.abs(assistant.sizes(donors.state.memory) - size[order])
            nearer = np.flatnonzero(apart < best[order])
            best[order[nearer]] = apart[nearer]
            adopted = rows[order[nearer]]
            self.state.users, shift = brought(self.state.users, adopted, donors.ledger, nearer)
            self.state.given = _with_given(self.state.given, adopted, donors.state.given[nearer])
            self.state.memory = assistant.adopt(self.state.memory, adopted, donors.state.memory, nearer, shift)
