"""Counterfactual: learning stops at a turn, and everything else goes on."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import ClassVar, Literal, get_args

import numpy as np

from skg_bench.core.batch import NOTHING, TAG, Batch
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I32, Bool
from skg_bench.core.types import Curator, KnownFeedback, Observation, Skillbooks

Freeze = Literal["book", "book+scorer", "all"]


@dataclass(frozen=True)
class Frozen:
    """`curator` until the user's turn `at_turn`; from then on, by `freeze`:

    `book`: no skill is added, renewed or archived, but ratings still count and the scorer is refitted; `book+scorer`:
    the scorer stays too; `all`: ratings do not count either.
    """

    curator: Curator
    at_turn: int
    freeze: Freeze
    sees_truth: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.at_turn < 0:
            raise UsageError(f"curator.at_turn={self.at_turn} must not be negative")
        if self.freeze not in get_args(Freeze):
            raise UsageError(f"curator.freeze={self.freeze!r}, valid are {', '.join(get_args(Freeze))}")
        if self.curator.sees_truth:
            raise UsageError("curator=frozen cannot wrap a curator that sees the truth")

    @property
    def reasons(self) -> Sequence[str]:
        """Those of the curator inside."""
        return self.curator.reasons

    def offers(self, seen: Observation) -> Bool:
        """Nobody after the freeze."""
        return self.curator.offers(seen) if seen.turn < self.at_turn else np.zeros(len(seen.text), np.bool_)

    def curate(self, seen: Observation, offer: I32, name: I32, feedback: KnownFeedback, books: Skillbooks) -> Batch:
        """The operations that the freeze lets through."""
        if seen.turn >= self.at_turn and self.freeze == "all":
            return NOTHING
        batch = self.curator.curate(seen, offer, name, feedback, books)
        if seen.turn < self.at_turn:
            return batch
        kept = batch.op == TAG
        return replace(batch, **{f.name: getattr(batch, f.name)[kept] for f in fields(batch)})

    def learns(self, turn: int) -> bool | Bool:
        """Whether the scorer is still refitted."""
        return self.curator.learns(turn) if turn < self.at_turn or self.freeze == "book" else False
