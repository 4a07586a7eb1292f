"""Candidates of a policy, their combined score, its decision, and the Protocol of policies. Arrays carry the user axis
first.

B users stepped together, K places of a shortlist.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar

import numpy as np

from skg_bench.core.batch import RenewedSkills
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import F64, I32, I64, U64, Bool, snap
from skg_bench.core.types import Completions, WrittenTexts

S = TypeVar("S")  # the memory of a component: see core/state.py


@dataclass(frozen=True, slots=True)
class Shown:
    """Words of messages and of shortlisted skills, for a policy that asks a model; and whom to tell what this cost."""

    row: I64  # [B] of the user in the turn, for `report`
    message: I32  # [B] text id
    content: U64  # [B, K] key of what the skill says, 0: nothing
    event: U64  # [B] key of the event, to fold purposes and items on
    texts: WrittenTexts
    report: Callable[[I64, Completions], None]  # what was spent for rows [n], `[n]` each

    def rows(self, which: I64 | Bool | slice) -> "Shown":
        """Rows of these users only."""
        return Shown(
            self.row[which], self.message[which], self.content[which], self.event[which], self.texts, self.report
        )


@dataclass(frozen=True, slots=True)
class Candidates:
    """A shortlist with its signals and combined score, what a policy decides on."""

    skill: I32  # [B, K] -1 beyond the end
    similarity: F64  # [B, K] signal 1
    preference: F64  # [B, K] signal 2
    score: F64 | None  # [B, K] signal 3; None: the reranker gives none
    combined: F64  # [B, K] weighted mean of the signals that are present; -1 beyond the end
    uses: I32  # [B, K]
    ok: F64  # [B, K] uses rated ok, partial ones count half
    rated: I32  # [B, K] rated uses
    llm_turns: I32  # [B] earlier turns answered by the LLM
    miss: I32  # [B, K] uses rated miss
    shown: Shown | None = None  # None: nothing can be read, or the decision was made

    def rows(self, which: I64 | Bool | slice) -> "Candidates":
        """Rows of these users only."""
        return Candidates(
            self.skill[which], self.similarity[which], self.preference[which],
            None if self.score is None else self.score[which], self.combined[which], self.uses[which], self.ok[which],
            self.rated[which], self.llm_turns[which], self.miss[which],
            None if self.shown is None else self.shown.rows(which),
        )  # fmt: skip


def combine(weights: tuple[float, float, float] | F64, similarity: F64, preference: F64, score: F64 | None) -> F64:
    """The combined score of the SKG paper: mean of the signals `[B, K]` under `weights` (similarity, preference,
    score), renormalised to sum to 1 over those that are present; `[B, K]` in [0, 1]. Weights may be arrays `[3, ...]`
    that broadcast with the signals.

    Raises UsageError if those that are present have no weight.
    """
    total = weights[0] * similarity + weights[1] * preference
    weight = weights[0] + weights[1]
    if score is not None:
        total += weights[2] * score
        weight += weights[2]
    if not np.all(weight > 0):
        raise UsageError("signals.score has all the weight, and this reranker gives no score; raise another weight")
    total /= weight
    return snap(total, out=total)


@dataclass(frozen=True, slots=True)
class Decision:
    """Draw of the engine from a policy's distribution at the users' turn number `turn`."""

    turn: int
    candidates: Candidates
    place: I32  # [B] index into the shortlist, -1: fallback to the LLM
    propensity: F64  # [B] probability of this choice

    def rows(self, which: I64 | Bool | slice) -> "Decision":
        """Rows of these users only."""
        return Decision(self.turn, self.candidates.rows(which), self.place[which], self.propensity[which])


class Policy(Protocol[S]):
    """Shortlist + scores -> the probability of each skill and of the fallback; it never draws."""

    @property
    def reads(self) -> Sequence[str]:
        """Kinds of feedback (core/feedback.py) that it learns from."""
        ...

    def start(self, n: int) -> S:
        """The memory of `n` users before their first turn."""
        ...

    def propensities(self, candidates: Candidates, state: S) -> F64:
        """`[B, 1 + K]`, rows sum to 1: the fallback, then the shortlist; 0 beyond its end."""
        ...

    def learn(self, state: S, decision: Decision, known: KnownFeedback, renewed: RenewedSkills) -> S:
        """The memory after a turn: its decision, the feedback that became known, and skills whose ratings count no
        longer. It may write into the arrays of `state`.
        """
        ...


class Memoryless(Protocol):
    """Inherited by a policy that learns nothing."""

    reads: ClassVar[Sequence[str]] = ()

    def start(self, n: int) -> None:
        """No memory."""
        return None  # noqa: RET501 - a body, or the method would be abstract

    def learn(self, state: None, decision: Decision, known: KnownFeedback, renewed: RenewedSkills) -> None:
        """Learns nothing."""
        return state
