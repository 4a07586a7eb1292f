"""One cohort of users under the arms of a stack, from the first turn to the shards."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from skg_bench.core.draws import arms_word, fold, key
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I32, I64, U64
from skg_bench.core.record import replay
from skg_bench.core.statehash import text_hash
from skg_bench.core.types import Events, Similarity, Simulator
from skg_bench.core.vocabulary import Vocabulary, vocabulary_of
from skg_bench.engine.logbook import Labels, Logbook, NullWriter, TurnWriter
from skg_bench.engine.memory import State
from skg_bench.engine.plan import Arm, Fork
from skg_bench.engine.relabel import type_names
from skg_bench.engine.stack import repeated, stacked
from skg_bench.engine.step import Scene, draws_by_turn, step, trim

_BLOCK = 64  # turns whose draws are made at once
_DONORS = np.int32(2**30)  # ids from here on are nobody's users
_CANDIDATES = 8  # donors among whom the number of turns decides
_SIMULATED = 3  # of these, how many are simulated; the size of the skillbook decides


@dataclass(frozen=True)
class Setting:
    """What all arms and cohorts of a run share."""

    seed: int
    simulator: Simulator
    similarity: Callable[[], Similarity]  # a new one for each cohort, as it may keep examples
    weeks: int

    @cached_property
    def type_names(self) -> I32:
        """Id of the name of each request type; -1 at the end, for one-offs."""
        return np.append(type_names(self.simulator), np.int32(-1))

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Words of each message."""
        return vocabulary_of(self.simulator.messages)

    @property
    def _shown(self) -> Sequence[str]:
        """The messages as logs have them."""
        log = replay(self.simulator)
        return self.simulator.messages if log is None else log.shown

    @cached_property
    def text_hash(self) -> U64:
        """Hash of each message."""
        return np.array([text_hash(m) for m in self._shown], np.uint64)

    @cached_property
    def name_hash(self) -> U64:
        """Hash of each name of a skill."""
        return np.array([text_hash(n) for n in self.simulator.names], np.uint64)

    @cached_property
    def _words(self) -> list[pa.Array]:
        s = self.simulator
        words = (self._shown, s.names, s.intents, s.types)
        return [pa.array(list(x), pa.string()).dictionary_encode() for x in words]  # once, not for each shard

    def labels(self, reasons: Sequence[str]) -> Labels:
        """Dictionaries for the logs of arms whose curators have these reasons."""
        messages, names, intents, types = self._words
        return Labels(messages, names, intents, types, pa.array(list(reasons), pa.string()))


def run_cohort(
    setting: Setting, arms: Sequence[Arm], events: Events, top_k: int, progress: Callable[[int], None]
) -> list[Logbook]:
    """All turns of these users under each arm of a stack, in lock-step.

    Each user is at their own next turn, and leaves when done. `progress` is called with the number of turns made so
    far, those of all arms counted.
    """
    order = np.argsort(-events.n, kind="stable")  # who has most turns comes first, so those still here are a prefix
    events = repeated(events.rows(order), len(arms))
    rollout, turns = Rollout(setting, arms, events), events.time.shape[1]
    log = Logbook.empty(arms[0].name, setting.seed, events, top_k, setting.labels(stacked(arms).reasons))
    if arms[0].book == "hindsight":  # once up to the forks, and once more from the first turn
        final = stacked(arms, max(arm.cuts[-1] for arm in arms))
        rollout.run(min(max(arm.cuts[-1] for arm in arms), turns), NullWriter(), lambda _: progress(0))
        rollout.state.switch_arm(final, [], 0)
        rollout.state.rewind()
        rollout.turns(range(turns), log, progress)
    else:
        rollout.run(turns, log, progress)
    return log.split([arm.name for arm in arms])


class Rollout:
    """Rows `u * A + j` in lock-step: user u, in order of falling number of events, under arm j of A."""

    def __init__(self, setting: Setting, arms: Sequence[Arm], events: Events) -> None:
        if pooled := [arm.name for arm in arms if arm.scope != "user"]:
            raise UsageError(f"arm {pooled[0]!r} shares a pool's scorer, which is not fitted here; run it as a whole")
        self._setting, self._arms, self._events = setting, arms, events
        self._keys, self._similarity = key(setting.seed, events.user), setting.similarity()
        rows, turns = events.text.shape
        self.state = State(stacked(arms), rows, turns, setting.name_hash, setting.text_hash, self._similarity)
        self._scene = Scene(setting.simulator, self._similarity, events, setting.vocabulary, setting.type_names)
        self._arm_keys = key(arms_word(setting.seed), events.user)

    def run(self, last: int, log: TurnWriter, progress: Callable[[int], None]) -> None:
        """Turns 0 to `last`, through all forks."""
        arms, made = self._arms, 0
        cuts = sorted({cut for arm in arms for cut in arm.cuts})
        for first, end in pairwise([*(cut for cut in cuts if cut < last), last]):
            n_rows = int(np.searchsorted(-self._events.n, -first, side="left"))
            self.state.switch_arm(stacked(arms, first), [stacked(arms, cut) for cut in cuts if cut > first], n_rows)
            for j, arm in enumerate(arms):
                if arm.book == "donor" and arm.fork is not None and arm.fork.turn == first:
                    self._adopt(arm.fork, np.arange(j, len(self._keys), len(arms)), partial(progress, made))
            made = self.turns(range(first, end), log, progress, made)

    def turns(self, turns: range, log: TurnWriter, progress: Callable[[int], None], made: int = 0) -> int:
        """Some turns under the components in force; returns `made`, a number of turns, with these."""
        events = self._events
        here = np.searchsorted(-events.n, -np.arange(turns.stop), side="left")
        for first in turns[::_BLOCK]:
            block = range(first, min(first + _BLOCK, turns.stop))
            a = int(here[first])
            number = events.number[:a, first : block.stop]
            keys = fold(self._arm_keys[None, :a], number.T)
            for t, draws, event in zip(block, draws_by_turn(self._keys[:a], number), keys, strict=True):
                b = int(here[t])
                step(self._scene, self.state, t, draws if b == a else trim(draws, b), event[:b], log)
                made += b
            progress(made)
        return made

    def _adopt(self, fork: Fork, rows: I64, tick: Callable[[], None]) -> None:
        """In place of their own, the users of `rows` get the skillbook of another person, simulated under the same arm
        until the same moment: of some people who are in no run, drawn for this user, those who have had about as
        many turns by then, and of these the one whose book is nearest in size.
        """
        rows = rows[self._events.n[rows] > fork.turn]
        if not len(rows):
            return
        setting, table = self._setting, self.state.table
        user, now = self._events.user[rows], self._events.time[rows, fork.turn]

        def until_now(candidate: I64 | int) -> Events:
            tick()
            population = setting.simulator.population(
                setting.seed, (_DONORS + user * _CANDIDATES + candidate).astype(np.int32), setting.weeks
            )
            return replace(population, n=(population.time < now[:, None]).sum(axis=1, dtype=np.int32))

        turns = np.stack([until_now(k).n for k in range(_CANDIDATES)])
        nearest, best = np.argsort(np.abs(turns - fork.turn), axis=0, kind="stable"), np.full(len(rows), np.inf)
        size = table.n_active[rows].copy()
        for candidate in nearest[:_SIMULATED]:
            theirs = until_now(candidate)
            order = np.argsort(-theirs.n, kind="stable")
            donors = Rollout(setting, [fork.arm], theirs.rows(order))
            donors.run(int(theirs.n.max(initial=0)), NullWriter(), lambda _: None)
            apart = np.abs(donors.state.table.n_active - size[order])
            nearer = np.flatnonzero(apart < best[order])
            best[order[nearer]] = apart[nearer]
            table.adopt(rows[order[nearer]], donors.state.table, nearer)


def write_cohort(logs: Sequence[Logbook], events: Events, out: Path) -> None:
    """Shards named by their first user, who is in no other shard of the arm, and the number of users."""
    for log in logs:
        log.write(out, f"{int(events.user.min()):07d}-{len(events.user)}")
