"""The users of many draws side by side in one cohort of the closed loop, each with the parameters of their draw.

Rows of a cohort do not know one another, so a draw comes out the same bits whichever others lie beside it, and the same
as an ordinary run with its parameters. There is no second loop: `engine.cohort.Rollout` makes the turns.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from skg_bench.assistant.pipeline.signals import Signals
from skg_bench.core.assistant import Applied
from skg_bench.core.batch import ADD, Batch
from skg_bench.core.deciding import combine
from skg_bench.core.feedback import RATING, Feedback
from skg_bench.core.grid import F64, I32, I64, Bool
from skg_bench.core.learning_jobs import Course, Jobs
from skg_bench.core.types import LLM, RATINGS, Completions, Prompts
from skg_bench.core.world import Draws, Event, Reaction, Response, Served, Supposing
from skg_bench.simulator.answers.habits import Habits
from skg_bench.simulator.answers.judging import Judging, Users
from skg_bench.simulator.answers.procedures import Procedures
from skg_bench.simulator.answers.reactions import Reactions
from skg_bench.simulator.answers.world import AssistantUsers

WEEK = 7 * 86_400
Either = TypeVar("Either", Reactions, Habits, Procedures)
_OK = RATINGS.index("ok")


@dataclass(frozen=True)
class Crowd:
    """A world of users who react each in their own way, with procedures of their own; `one` knows the corpus, which all
    share.
    """

    one: AssistantUsers
    reactions: Reactions  # of each row
    judging: Judging  # of each row

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.__dict__["one"], name)

    def respond(self, state: Users, event: Event, served: Served, draws: Draws) -> tuple[Users, Response]:
        """As the one, with the reactions and procedures of each row."""
        return self.one.responded(self.reactions, self.judging, state, event, served, draws)

    def offer(self, state: Users, event: Event, offers: Bool, draws: Draws) -> tuple[Users, Reaction]:
        """As the one, with the reactions of each row."""
        return self.one.offered(self.reactions, state, event, offers, draws)

    def merge(self, state: Users, event: Event, row: I64, earlier: I32, draws: Draws) -> Users:
        """As the one, with the procedures of each row."""
        self.judging.merge(state.ledger, event, row, earlier, draws)
        return state

    def judge(self, state: Users, event: Event, row: I64, answer: I32, supposing: Supposing = "as given") -> I32:
        """As the one, with the procedures of each row."""
        return self.judging.judge(state.ledger, event, row, answer, supposing)


@dataclass(frozen=True, eq=False)
class Answering:
    """A language model that is right with probabilities of each row's own, `[B]`."""

    llm: LLM
    right: F64
    right_with_skill: F64
    misled: F64

    def complete(self, prompts: Prompts) -> Completions:
        """Completions at the same cost."""
        return self.llm.complete(prompts)

    def ability(self, with_skill: Bool, *, fitting: bool) -> F64:
        """Ability of each row, as of the simulated model."""
        n = len(with_skill)
        right = self.right[:n]
        return np.where(with_skill, self.right_with_skill[:n] if fitting else right * (1.0 - self.misled[:n]), right)


@dataclass(frozen=True, eq=False)
class OwnWeights(Signals):
    """Signals that each row weighs in its own way."""

    weights: F64  # [3, B]: similarity, preference, score

    @classmethod
    def of(cls, signals: Signals, weights: F64) -> "OwnWeights":
        """Signals as these, under other weights."""
        return cls(**{f.name: getattr(signals, f.name) for f in fields(Signals)}, weights=weights)

    def combine(self, similarity: F64, preference: F64, score: F64 | None) -> F64:
        """As the one, with the weights of each row."""
        return combine(self.weights[:, : len(similarity), None], similarity, preference, score)


def side_by_side(ways: Sequence[Either], index: I64) -> Either:
    """Reactions, habits, or procedures, of rows `index` `[B]`, by index into `ways`."""
    made: Either = type(ways[0])(*(np.stack([getattr(w, f.name) for w in ways])[index] for f in fields(ways[0])))
    return made


class Weekly:
    """A log that keeps counts by row and week, `[B, W]`."""

    def __init__(self, n_rows: int, weeks: int) -> None:
        size = (n_rows, weeks)
        self.turns, self.hits, self.wrong, self.wrong_hits, self.added = (np.zeros(size, np.int32) for _ in range(5))
        self.answerable = np.zeros(size, np.int32)  # an earlier answer of the user still holds
        self.rated_hits, self.ok_hits, self.rated, self.ok = (np.zeros(size, np.int32) for _ in range(4))
        self.hit_ms = np.zeros(size)  # waiting time of hits
        self.book = np.full(size, -1, np.int32)  # active skills after the last turn of the week, -1: no turn

    def turn(self, t: int, **values: np.ndarray) -> None:
        """Counts of one turn of the rows that are still there."""
        hit, wrong = values["skill"] >= 0, values["answer_correct"] <= 0
        at = np.arange(len(hit)), values["time"] // WEEK
        for column, value in (
            (self.turns, 1), (self.hits, hit), (self.wrong, wrong), (self.wrong_hits, wrong & hit),
            (self.answerable, values["answerable"] > 0), (self.hit_ms, np.where(hit, values["latency_ms"], 0.0)),
        ):  # fmt: skip
            column[at] += value
        self.book[at] = values["book_size"]

    def update(self, t: int, batch: Batch, applied: Applied) -> None:
        """Skills added."""
        row = batch.row[batch.op == ADD]
        np.add.at(self.added, (row, applied.time[row] // WEEK), 1)

    def learning(self, t: int, jobs: Jobs, time: I64, course: Course | None) -> None:
        """No arm asks a model."""

    def feedback(self, t: int, feedback: Feedback, time: I64, skill: I32) -> None:
        """Ratings, by the week of the turn that was rated."""
        rated = feedback.rows(feedback.kind == RATING)
        row = rated.row
        at, hit, ok = (row, time[row] // WEEK), skill[row] >= 0, rated.value == _OK
        for column, value in ((self.rated, 1), (self.ok, ok), (self.rated_hits, hit), (self.ok_hits, hit & ok)):
            column[at] += value
