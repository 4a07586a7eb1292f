"""What a stack of arms remembers of a cohort: across turns and forks, and when a run starts over at turn 0."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skg_bench.core.grid import I32, I64, Bool
from skg_bench.core.state import first
from skg_bench.core.types import Scorer
from skg_bench.core.world import brought, ledger_of
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

    def __init__(self, stack: Stack, table: SkillbookTable, users: Any, n_turns: int) -> None:
        shared, n_rows = stack.shared, len(table.n_skills)
        self.stack, self.table = stack, table
        self.users = users  # what the users themselves remember: the world's
        self.ledger = ledger_of(users)  # of all rows, also of those who have left; not of donors' answers
        self.past = np.full((n_rows, n_turns), -1, np.int32)  # messages that the LLM answered
        self.time = np.zeros((n_rows, n_turns), np.int64)
        self.answer = np.full((n_rows, n_turns), -1, np.int32)  # handles of the answers given
        self.scorer = shared.reranker.start(n_rows, shared.signals.names)
        self.policies, self.curators = stack.start(n_rows)
        self.pending = Pending(n_rows)
        self.ratings = Ratings(n_rows, shared.reranker.window)
        self.wants_refit = np.zeros(n_rows, np.bool_)
        self.refitted = np.full(n_rows, -(2**40))  # turn of the last refit; before the first, long ago
        self.last_skill = np.full(n_rows, -1, np.int32)
        self.llm_turns = np.zeros(n_rows, np.int32)
        self._there = n_rows

    def trim(self, n_rows: int) -> None:
        """The rows from `n_rows` on have had their last turn."""
        if n_rows < self._there:
            n_arms, self._there = len(self.stack.arms), n_rows
            users = n_rows // n_arms
            parts = zip(self.stack.policies, self.policies, strict=True)
            self.policies = tuple(first(memory, users * len(part.arms)) for part, memory in parts)
            self.curators, self.users = first(self.curators, n_rows), first(self.users, n_rows)

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

    def rewind(self, users: Any) -> None:
        """Goes back to turn 0: users and components start over, but the skillbook and the scorer stay as they are.

        The stored answers are those of the first pass, whose ledger is appended to the users'.
        """
        self._there = n_rows = len(self.last_skill)
        self.policies, self.curators = self.stack.start(n_rows)
        self.table.hindsight()
        rows = np.arange(n_rows)
        self.users, shift = brought(users, rows, self.ledger, rows)
        self.table.answer[self.table.answer >= 0] += shift
        self.pending = Pending(n_rows)
        for column, empty in ((self.past, -1), (self.answer, -1), (self.last_skill, -1), (self.llm_turns, 0)):
            column[...] = empty


def refit(arm: Arm, scorer: Scorer, ratings: Ratings, due: Bool) -> tuple[Scorer, I64]:
    """The scorer in which those who are due have learned, and who of them had something to learn from."""
    rows, training = ratings.take(np.flatnonzero(due))
    return arm.reranker.fit(scorer, rows, training) if len(rows) else scorer, rows
