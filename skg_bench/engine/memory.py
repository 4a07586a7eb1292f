"""What the arms of a stack remember of a cohort, from turn to turn, across forks and back at the first turn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skg_bench.core.grid import I32, I64, U64, Bool
from skg_bench.core.state import first
from skg_bench.core.types import (
    Scorer,
    Similarity,
)
from skg_bench.engine.pending import Pending, Ratings
from skg_bench.engine.plan import Arm
from skg_bench.engine.skillbook_table import SkillbookTable
from skg_bench.engine.stack import Stack


@dataclass(frozen=True, slots=True)
class Memory:
    """What a stack of arms has learned beside its skillbooks, of the users who are still there."""

    scorer: Scorer | None
    policies: tuple[Any, ...]  # a state for each policy of the stack
    llm_turns: I32  # [B]


class State:
    """All that the arms of a stack remember of a cohort."""

    def __init__(
        self, stack: Stack, n_rows: int, n_turns: int, name_hash: U64, text_hash: U64, similarity: Similarity
    ) -> None:
        shared = stack.shared
        self.stack = stack
        self.table = SkillbookTable(n_rows, name_hash, text_hash, similarity)
        self.past = np.full((n_rows, n_turns), -1, np.int32)  # messages that the LLM answered
        self.right = np.zeros((n_rows, n_turns), np.bool_)  # was the answer? (truth)
        self.scorer = shared.reranker.start(n_rows, shared.signals.names)
        self.policies, self.curators = stack.start(n_rows)
        self.pending = Pending(n_rows)
        self.ratings = Ratings(n_rows, shared.reranker.window)
        self.wants_refit = np.zeros(n_rows, np.bool_)
        self.refitted = np.full(n_rows, -(2**40))  # turn of the last refit; before the first, long ago
        self.last_skill = np.full(n_rows, -1, np.int32)
        self.llm_turns = np.zeros(n_rows, np.int32)
        self.fatigue = np.zeros(n_rows)
        self.last_offer = np.zeros(n_rows, np.int64)
        self._there = n_rows

    def trim(self, n_rows: int) -> None:
        """The rows from `n_rows` on have had their last turn."""
        if n_rows < self._there:
            n_arms, self._there = len(self.stack.arms), n_rows
            users = n_rows // n_arms
            parts = zip(self.stack.policies, self.policies, strict=True)
            self.policies = tuple(first(memory, users * len(part.arms)) for part, memory in parts)
            self.curators = first(self.curators, n_rows)

    def memory(self) -> Memory:
        """What `decide` needs of it."""
        return Memory(self.scorer, self.policies, self.llm_turns[: self._there])

    def switch_arm(self, stack: Stack, later: Sequence[Stack], n_rows: int) -> None:
        """From the next turn of the first `n_rows` rows on `stack` is in force, and then the stacks of `later`.

        A recipe for reranking other than the one before learns from all ratings known so far.
        """
        n_users, arm, before = len(self.last_skill), stack.shared, self.stack.shared
        self.trim(n_rows)
        self.policies, self.curators = stack.carried(self.stack, self.policies, self.curators, n_rows)
        self.stack = stack
        if arm.reranker != before.reranker:
            self.scorer = arm.reranker.start(n_users, arm.signals.names)
            self.ratings.restart(arm.reranker.window)
            if self.scorer is not None:
                self.scorer, _ = refit(arm, self.scorer, self.ratings, np.ones(n_users, np.bool_))
        elif not self.ratings.keep and any(other.shared.reranker != arm.reranker for other in later):
            self.ratings = Ratings(n_users, arm.reranker.window, keep=True)

    def rewind(self) -> None:
        """Back to the first turn, with the skillbook and the scorer from later on."""
        self._there = n_rows = len(self.last_skill)
        self.policies, self.curators = self.stack.start(n_rows)
        self.table.hindsight()
        self.pending = Pending(n_rows)
        for column, empty in ((self.past, -1), (self.right, False), (self.last_skill, -1), (self.llm_turns, 0),
                              (self.fatigue, 0.0), (self.last_offer, 0)):  # fmt: skip
            column[...] = empty


def refit(arm: Arm, scorer: Scorer, ratings: Ratings, due: Bool) -> tuple[Scorer, I64]:
    """The scorer in which those who are due have learned, and who of them had something to learn from."""
    rows, training = ratings.take(np.flatnonzero(due))
    return arm.reranker.fit(scorer, rows, training) if len(rows) else scorer, rows
