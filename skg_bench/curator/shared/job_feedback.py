"""Feedback that begins a job of learning, and what curators remember of it."""

from dataclasses import dataclass

import numpy as np

from skg_bench.core.advice import AUTO_APPROVED, OUTCOMES, SATISFACTIONS
from skg_bench.core.feedback import FEEDBACK_KINDS, OUTCOME, RATING, SATISFACTION, KnownFeedback
from skg_bench.core.feedback_signals import feedback_signal, satisfaction_signal
from skg_bench.core.grid import I32, I64, Bool
from skg_bench.core.state import wider


@dataclass(frozen=True, slots=True)
class Acts:
    """Acts of B users after advice."""

    outcome: I32  # [B, T] at each turn, -1: nothing is known


def begins(known: KnownFeedback, asks: Bool) -> I64:
    """The rows that begin a job, of users who are asked about: what the user decided or said of advice, and ratings
    where there is no such row of the same turn to make them from. Where nothing was said there is nothing to learn.
    """
    decided = (known.kind == OUTCOME) & (known.value != AUTO_APPROVED)
    acts = decided | (known.kind == SATISFACTION)
    ratings = known.kind == RATING
    if acts.any():
        about = np.zeros((len(asks), int(known.turn.max()) + 1), np.bool_)
        about[known.row[acts], known.turn[acts]] = True
        ratings &= ~about[known.row, known.turn]
    begun: I64 = ((acts | ratings) & asks[known.row]).nonzero()[0]
    return begun


def outcomes(memory: I32, known: KnownFeedback, turn: int) -> I32:
    """`memory` `[B, T]` of what users did about advice, -1: nothing, with what became known up to this turn."""
    memory = wider(memory, turn + 1, -1)
    acts = known.rows(known.kind == OUTCOME)
    memory[acts.row, acts.turn] = acts.value
    return memory


def signal(kind: int, value: int, outcome: int) -> str:
    """Feedback in words; `outcome`: what the user did at that turn, -1: nobody remembers."""
    if kind == OUTCOME:
        return feedback_signal(OUTCOMES[value])
    if kind == SATISFACTION:
        return satisfaction_signal(SATISFACTIONS[value], OUTCOMES[outcome] if outcome >= 0 else None)
    return FEEDBACK_KINDS["rating"][value]
