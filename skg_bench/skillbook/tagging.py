"""Ratings that become known later, as operations have them."""

import numpy as np

from skg_bench.core.batch import TAKEN_BACK, nth
from skg_bench.core.feedback import RATING, RETRACTED, KnownFeedback
from skg_bench.core.grid import Bool
from skg_bench.core.types import Skillbooks


def later_tags(known: KnownFeedback, before: int, books: Skillbooks) -> KnownFeedback:
    """TAGs for turns earlier than `before`, with `value` as `Batch.rating`: ratings of skills, and those
    that no longer count. What a skill does not have is not taken back: its counters began anew with another answer.
    """
    if not len(known.row):
        return known
    back = (known.kind == RETRACTED) & (known.skill >= 0) & (known.turn < before)
    if not back.any():
        return known.ratings(before)
    later = known.rows(back | ((known.kind == RATING) & (known.skill >= 0) & (known.turn < before)))
    back = later.kind == RETRACTED
    kept = ~back | _had(later, back, books)
    later.value[back] += TAKEN_BACK
    return later.rows(kept)


def _had(later: KnownFeedback, back: Bool, books: Skillbooks) -> Bool:
    """Does the skill's counter have a rating of this value for each earlier row that takes one back, and for this?"""
    width = books.active.shape[1]
    counter = np.stack([books.ok, books.partial, books.miss], axis=2)
    place = (later.row.astype(np.int64) * width + later.skill) * counter.shape[2] + later.value
    has = counter.reshape(-1)[place] + (~back & (place[:, None] == place).T).sum(axis=1)
    had: Bool = has > nth(np.where(back, place, -1 - np.arange(len(place))))
    return had
