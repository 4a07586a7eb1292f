"""One cohort of users under the arms of a stack, from the first turn to the shards."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from skg_bench.core.draws import key
from skg_bench.core.grid import I32, U64
from skg_bench.core.statehash import text_hash
from skg_bench.core.terms import Terms, terms
from skg_bench.core.types import Events, Similarity, Simulator
from skg_bench.engine.logbook import Labels, Logbook
from skg_bench.engine.plan import Arm
from skg_bench.engine.stack import repeated, stacked
from skg_bench.engine.step import State, lucky, step, trim

_BLOCK = 64  # turns whose draws are made at once


@dataclass(frozen=True)
class World:
    """What all arms and cohorts of a run share."""

    seed: int
    simulator: Simulator
    similarity: Callable[[], Similarity]  # a new one for each cohort, as it may keep examples

    @cached_property
    def terms(self) -> Terms:
        """Words of each message."""
        return terms(self.simulator.messages)

    @cached_property
    def text_hash(self) -> U64:
        """Hash of each message."""
        return np.array([text_hash(m) for m in self.simulator.messages], np.uint64)

    @cached_property
    def name_hash(self) -> U64:
        """Hash of each name of a skill."""
        return np.array([text_hash(n) for n in self.simulator.names], np.uint64)

    @cached_property
    def _words(self) -> list[pa.Array]:
        s = self.simulator
        return [pa.array(list(x), pa.string()) for x in (s.messages, s.names, s.intents, s.types)]

    def labels(self, arm: Arm) -> Labels:
        """Dictionaries for the logs of an arm."""
        messages, names, intents, types = self._words
        return Labels(messages, names, intents, types, pa.array(list(arm.curator.reasons), pa.string()))


def run_cohort(
    world: World, arms: Sequence[Arm], events: Events, top_k: int, progress: Callable[[int], None]
) -> list[Logbook]:
    """All turns of these users under each arm of a stack, in lock-step.

    Each user is at their own next turn, and leaves when done. `progress` is called with the number of turns made so
    far, those of all arms counted.
    """
    arm = stacked(arms)
    order = np.argsort(-events.n, kind="stable")  # who has most turns comes first, so those still here are a prefix
    events = repeated(events.rows(order), len(arms))
    keys = key(world.seed, events.user)
    similarity = world.similarity()
    state = State(arm, *events.text.shape, world.name_hash, world.text_hash, similarity)
    log = Logbook.empty(arm.name, world.seed, events, top_k, world.labels(arm))
    t_max = events.time.shape[1]
    here = np.searchsorted(-events.n, -np.arange(t_max), side="left")
    made = 0
    for first in range(0, t_max, _BLOCK):
        steps = min(_BLOCK, t_max - first)
        a = int(here[first])
        for t, luck in enumerate(lucky(keys[:a], events.number[:a, first : first + steps]), first):
            b = int(here[t])
            step(arm, world.simulator, similarity, events, world.terms, state, t, b, luck if b == a else trim(luck, b), log)
            made += b
        progress(made)
    return log.split([one.name for one in arms])


def write_cohort(logs: Sequence[Logbook], events: Events, out: Path) -> None:
    """Shards named by their first user, who is in no other shard of the arm, and the number of users."""
    for log in logs:
        log.write(out, f"{int(events.user.min()):07d}-{len(events.user)}")
