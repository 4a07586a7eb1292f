"""Memory of a stack of pipelines: across turns and forks, and when a run starts over at turn 0."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skg_bench.assistant.pipeline.components import Components
from skg_bench.assistant.pipeline.decision import Memory, ServingChoice
from skg_bench.assistant.pipeline.part_calls import fitted_by
from skg_bench.assistant.pipeline.ratings import Ratings
from skg_bench.assistant.pipeline.signs import HeardOutcomes
from skg_bench.assistant.pipeline.skillbook_table import SkillbookTable
from skg_bench.assistant.pipeline.stack import Stack
from skg_bench.assistant.pipeline.under_way import TurnJobs, UnderWay
from skg_bench.core.assistant import Applied
from skg_bench.core.batch import Batch
from skg_bench.core.grid import I32, I64, Bool
from skg_bench.core.growing import wider
from skg_bench.core.learning_jobs import Course, Jobs
from skg_bench.core.types import Query, Scorer, Skillbooks, TurnTruth


@dataclass(frozen=True, slots=True)
class Decided:
    """The turn between answer and learning, `[B]` each."""

    query: Query
    books: Skillbooks  # before anything is learned
    choice: ServingChoice
    truth: TurnTruth | None  # for oracles; None: there are none


@dataclass(frozen=True, slots=True)
class Learned:
    """Changes of a turn, `[B]` each."""

    satisfaction: I32  # rating as it is logged
    captured: Bool  # a skill was added or renewed
    updates: Sequence[tuple[int, Batch, Applied]]  # turn, operations, and what came of them
    jobs: Jobs | None  # that began; None: nobody asked a model
    ended: Sequence[tuple[Jobs, Course | None]]  # that ended; None: they took no time


class PipelineState:
    """All that the arms of a stack remember of a cohort."""

    OF_ONE_TURN = ("decided", "learned", "turn_jobs", "seeded")  # no checkpoint has these (runfolder/saving.py)

    def __init__(self, stack: Stack, n_rows: int, keep: bool) -> None:
        shared = stack.shared
        self.stack = stack
        self.table = SkillbookTable(n_rows)
        self.past = np.full((n_rows, 64), -1, np.int32)  # messages that the LLM answered
        self.message = np.full((n_rows, 64), -1, np.int32)  # all messages
        self.time = np.zeros((n_rows, 64), np.int64)
        self.answer = np.full((n_rows, 64), -1, np.int32)  # ids of the answers given
        self.scorer = shared.reranker.start(n_rows, shared.signals.names)
        self.policies, self.curators = stack.start(n_rows)
        self.ratings = Ratings(n_rows, shared.reranker.window, keep)
        self.heard = HeardOutcomes(n_rows)
        self.wants_refit = np.zeros(n_rows, np.bool_)
        self.refitted = np.full(n_rows, -(2**40))  # turn of the last refit; before the first, long ago
        self.last_skill = np.full(n_rows, -1, np.int32)
        self.llm_turns = np.zeros(n_rows, np.int32)
        self.over = False  # have all forks been taken, and turn 0 comes again?
        self.turn_jobs: TurnJobs | None = None  # of this turn; None: learning takes no time
        self.seeded: Sequence[tuple[int, Batch, Applied]] = ()  # at turn 0: what the books started with
        self.under_way = UnderWay(n_rows)  # learning jobs
        self.decided: Decided  # by `answer`
        self.learned: Learned  # by `learn`
        self._there = n_rows

    def reach(self, turn: int, n_rows: int) -> None:
        """Room for turn `turn`; the rows from `n_rows` on have had their last one."""
        self.past, self.message = wider(self.past, turn + 1, -1), wider(self.message, turn + 1, -1)
        self.time, self.answer = wider(self.time, turn + 1, 0), wider(self.answer, turn + 1, -1)
        if n_rows < self._there:
            stack, self._there = self.stack, n_rows
            self.policies = stack.first(stack.policies, self.policies, n_rows)
            self.curators = stack.first(stack.curators, self.curators, n_rows)

    def memory(self) -> Memory:
        """Part that `decide` needs."""
        return Memory(self.scorer, self.policies, self.llm_turns[: self._there])

    def switch_arm(self, stack: Stack, later: Sequence[Stack], n_rows: int) -> None:
        """Puts `stack` in force from the next turn of the first `n_rows` rows on, and then the stacks of `later`.

        A recipe for reranking other than the one before learns from all ratings known so far.
        """
        n_users, parts, before = len(self.last_skill), stack.shared, self.stack.shared
        self.reach(0, n_rows)
        self.policies, self.curators = stack.carried(self.stack, self.policies, self.curators, n_rows)
        self.stack = stack
        if parts.reranker != before.reranker:
            self.scorer = parts.reranker.start(n_users, parts.signals.names)
            self.ratings.restart(parts.reranker.window)
            if self.scorer is not None:
                self.scorer, _ = refit(parts, self.scorer, self.ratings, np.ones(n_users, np.bool_))
        elif not self.ratings.keep and relearns(stack, later):
            self.ratings = Ratings(n_users, parts.reranker.window, keep=True)

    def rewind(self, shift: int) -> None:
        """Goes back to turn 0: policies and curators start over, but the skillbook and the scorer stay as they are.

        The stored answers are those of the first pass, whose ids grow by `shift`.
        """
        self.over, self._there = True, len(self.last_skill)
        self.policies, self.curators = self.stack.start(self._there)
        self.heard, self.under_way = HeardOutcomes(self._there), UnderWay(self._there)
        self.table.hindsight()
        self.table.answer[self.table.answer >= 0] += np.int32(shift)
        for column in (self.past, self.message, self.answer, self.last_skill):
            column[...] = -1
        self.llm_turns[...] = 0


def relearns(stack: Stack, later: Sequence[Stack]) -> bool:
    """Will another recipe for reranking learn from the ratings of this stack's time?"""
    return any(other.shared.reranker != stack.shared.reranker for other in later)


def refit(parts: Components, scorer: Scorer, ratings: Ratings, due: Bool) -> tuple[Scorer, I64]:
    """The scorer in which those who are due have learned, and who of them had something to learn from."""
    rows = due.nonzero()[0]
    if len(rows):
        rows, training = ratings.take(rows)
    return fitted_by(parts.reranker, scorer, rows, training) if len(rows) else scorer, rows
