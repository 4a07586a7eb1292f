"""The capture loop of the SKG paper (section 3), with archiving of skills that harm or fade (sections 6 and 7)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from skg_bench.core.batch import ADD, REMOVE, TAG, UPDATE, Batch, blank
from skg_bench.core.calendar import DAY
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import I32, I64, Bool
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.types import RATINGS, Observation, Skillbooks
from skg_bench.core.world import OFFERS, Reaction
from skg_bench.skillbook.tagging import later_tags

Capture = Literal["any", "band"]
OfferAfter = Literal["ok", "answer"]
_OK, _DECLINED = RATINGS.index("ok"), OFFERS.index("declined")


@dataclass(frozen=True)
class SKG:
    """Miss detection, confirmation, capture and registration; counters from ratings; archiving.

    `capture` reads the paper's rule in two ways. `any`: every fallback is a miss that may become a skill (section 1).
    `band`: only if some skill was near, MaxSim above `band_low` (section 3, step 1); this cannot start from nothing.
    A capture whose name the user gave before renews that skill's answer and adds the message to its examples.
    """

    capture: Capture
    band_low: float
    offer_after: OfferAfter
    harmful_misses: int | None
    unused_days: float | None
    sees_truth: ClassVar[bool] = False
    reasons: ClassVar[Sequence[str]] = ("used", "rated later", "captured", "captured again", "harmful", "unused")
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        if self.capture not in get_args(Capture):
            raise UsageError(f"curator.capture={self.capture!r}, valid are {', '.join(get_args(Capture))}")
        if self.offer_after not in get_args(OfferAfter):
            raise UsageError(f"curator.offer_after={self.offer_after!r}, valid are {', '.join(get_args(OfferAfter))}")
        if not 0 <= self.band_low <= 1:
            raise UsageError(f"curator.band_low={self.band_low} must lie in [0, 1]")
        if self.harmful_misses is not None and self.harmful_misses < 1:
            raise UsageError(f"curator.harmful_misses={self.harmful_misses} must be at least 1, or null for never")
        if self.unused_days is not None and not self.unused_days > 0:
            raise UsageError(f"curator.unused_days={self.unused_days} must be above 0, or null for never")

    def start(self, n: int) -> None:
        """No memory."""

    def offers(self, seen: Observation, state: None) -> Bool:
        """Whose answer of the LLM is a capture candidate that the user has confirmed."""
        candidate = ~seen.hit
        if self.capture == "band":
            candidate = candidate & (seen.best_similarity > self.band_low)
        confirmed = seen.rating == _OK if self.offer_after == "ok" else seen.rating <= _OK
        return candidate & confirmed

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: None
    ) -> tuple[None, Batch]:
        """TAGs for uses and ratings, ADD or UPDATE for captures, REMOVE for what harms or fades."""
        later = later_tags(known, seen.turn, books)
        hit = seen.hit.nonzero()[0]
        name = reaction.name
        captured = ((reaction.code >= 0) & (reaction.code != _DECLINED)).nonzero()[0]
        named = (books.name[captured] == name[captured, None]) & (
            np.arange(books.name.shape[1]) < books.n_skills[captured, None]
        )
        again = np.logical_or.reduce(named, axis=1)
        old = np.where(again, named.argmax(axis=1), -1)
        gone_row, gone_skill, gone_reason = self._fading(seen, books, hit, captured, old)
        first, second = len(hit), len(hit) + len(later.row)
        third = second + len(captured)
        batch = blank(third + len(gone_row))
        used, rated, new, gone = slice(first), slice(first, second), slice(second, third), slice(third, None)
        batch.row[used], batch.row[rated], batch.row[new], batch.row[gone] = hit, later.row, captured, gone_row
        batch.op[used], batch.op[rated], batch.op[new], batch.op[gone] = TAG, TAG, np.where(again, UPDATE, ADD), REMOVE
        batch.skill[used], batch.skill[rated], batch.skill[new] = seen.skill[hit], later.skill, old
        batch.skill[gone] = gone_skill
        batch.rating[used], batch.rating[rated] = seen.rating[hit], later.value
        batch.name[new] = np.where(again, -1, name[captured])
        batch.text[new], batch.source[new] = seen.text[captured], seen.turn
        batch.about[used], batch.about[rated], batch.about[new] = seen.turn, later.turn, seen.turn
        batch.uses[used] = 1
        batch.reason[used], batch.reason[rated], batch.reason[new] = 0, 1, np.where(again, 3, 2)
        batch.reason[gone] = gone_reason
        return None, batch

    def _fading(self, seen: Observation, books: Skillbooks, hit: I64, captured: I64, old: I32) -> tuple[I64, I64, I64]:
        """Rows, skills and reasons of active skills to archive; not those used or captured in this very turn."""
        harmful = np.zeros(books.active.shape, np.bool_)
        gone = harmful
        if self.harmful_misses is not None:
            harmful = books.active & (books.miss >= self.harmful_misses) & (books.miss > books.ok)
            gone = harmful
        if self.unused_days is not None:
            gone = gone | (books.active & (seen.time[:, None] - books.last_used > self.unused_days * DAY))
        gone[hit, seen.skill[hit]] = False
        renewed = old >= 0
        gone[captured[renewed], old[renewed]] = False
        row, skill = np.nonzero(gone)
        return row, skill, np.where(harmful[row, skill], 4, 5)
