"""Embeds the messages that the users of a small run say, in place of all that a corpus holds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from skg_bench.assistant.pipeline import Pipeline
from skg_bench.core.arms import Arm
from skg_bench.core.embedding_grid import check
from skg_bench.core.grid import I16, I32, SCALE
from skg_bench.core.record import replay_of
from skg_bench.core.texts import is_pure
from skg_bench.core.types import Embedder
from skg_bench.engine.plan import Plan


@dataclass(frozen=True)
class NeededMessages:
    """`embedder`, which leaves out the messages `unsaid` where it is given all messages of the world.

    Nothing reads their rows, which hold any one vector of the grid: no user says these messages, and a component that
    writes such a text gets a text of its own (`core/texts.py`).
    """

    embedder: Embedder
    messages: int  # how many the world has
    unsaid: frozenset[str] = field(repr=False)

    @property
    def pure(self) -> bool:
        return self.embedder.pure

    @property
    def digest(self) -> str:
        return self.embedder.digest

    def embed(self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None) -> I16:
        if len(texts) != self.messages or not self.unsaid.issubset(texts):
            return self.embedder.embed(texts, progress)
        rows = [row for row, text in enumerate(texts) if text not in self.unsaid]
        embedded = self.embedder.embed([texts[row] for row in rows], progress)
        check(embedded, len(rows))
        vectors = np.zeros((len(texts), embedded.shape[1]), np.int16)
        vectors[:, 0] = SCALE
        vectors[rows] = embedded
        return vectors


def needed_only(plan: Plan, turns: int) -> Plan:
    """The plan, which embeds no message that none of its users says, where that is cheaper to find out.

    `turns`: of one arm, estimated. All messages are embedded if there are fewer of them, if users say other things
    after other answers, if people beside the users are simulated, and if a vector depends on the other texts.
    """
    world, messages = plan.simulator, plan.simulator.messages
    if (
        turns >= len(messages)
        or world.stream == "reactive"
        or replay_of(world) is not None
        or not is_pure(plan.embedder)
        or any(_needs_others(arm.at(cut)) for arm in plan.arms for cut in arm.cuts)
    ):
        return plan
    users: I32 = np.arange(plan.users, dtype=np.int32)
    counts, memory = world.count(plan.salted, users, plan.weeks), world.begin(plan.salted, users, plan.weeks)
    used = {
        messages[text]
        for turn in range(int(counts.max(initial=0)))
        for text in world.events(memory, turn).text[counts > turn].tolist()
    }
    return replace(plan, embedder=NeededMessages(plan.embedder, len(messages), frozenset(messages) - used))


def _needs_others(arm: Arm) -> bool:
    """Does the arm learn from people of a pool, or serve the skillbook of a donor?"""
    assistant = arm.assistant
    pooled = isinstance(assistant, Pipeline) and assistant.components.scope != "user"
    return pooled or arm.book == "donor"
