"""Feedback that begins a job of learning, and what curators remember of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skg_bench.core.domain import Domain
from skg_bench.core.feedback import FEEDBACK_KINDS, RATING, KnownFeedback
from skg_bench.core.grid import I32, I64, Bool
from skg_bench.core.growing import wider


@dataclass(frozen=True, slots=True)
class Acts:
    """Acts of B users after something was said to them."""

    outcome: I32  # [B, T] at each turn, -1: nothing is known


def begins(known: KnownFeedback, asks: Bool, domain: Domain) -> I64:
    """The rows that begin a job, of users who are asked about: what the user did or said about it, and ratings where
    there is no such row of the same turn to make them from. Where nothing was said there is nothing to learn.
    """
    acts = (known.kind == domain.later) | ((known.kind == domain.acted) & ~_among(known.value, domain.idle))
    ratings = known.kind == RATING
    if acts.any():
        about = np.zeros((len(asks), int(known.turn.max()) + 1), np.bool_)
        about[known.row[acts], known.turn[acts]] = True
        ratings &= ~about[known.row, known.turn]
    return np.flatnonzero((acts | ratings) & asks[known.row])


def refusal_mask(kind: I32, value: I32, domain: Domain) -> Bool:
    """Feedback `[n]` that says: something else should have been said."""
    refused: Bool = (kind == domain.acted) & _among(value, domain.refused)
    return refused


def _among(value: I32, codes: Sequence[int]) -> Bool:
    """Values `[n]` that are one of a few codes."""
    mask = value < 0
    for code in codes:
        mask |= value == code
    return mask


def outcomes(memory: I32, known: KnownFeedback, turn: int, domain: Domain) -> I32:
    """`memory` `[B, T]` of what users did, -1: nothing, with what became known up to this turn."""
    memory = wider(memory, turn + 1, -1)
    acts = known.rows(known.kind == domain.acted)
    memory[acts.row, acts.turn] = acts.value
    return memory


def signal(domain: Domain, kind: int, value: int, outcome: int) -> str:
    """Feedback in words; `outcome`: what the user did at that turn, -1: nobody remembers."""
    if kind < len(FEEDBACK_KINDS):
        return FEEDBACK_KINDS["rating"][value]
    return domain.signal(kind, value, outcome)
