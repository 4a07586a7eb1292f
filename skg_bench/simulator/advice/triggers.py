"""Purchases that users are about to make, and when."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skg_bench.core.draws import Purpose, draw, gumbel, normal
from skg_bench.core.grid import F64, I32, I64, U64, Bool, sigmoid
from skg_bench.core.world import Events, Truth
from skg_bench.simulator.advice.levels import ANALYST, NEGOTIATOR, THERAPIST
from skg_bench.simulator.advice.people import Purchases
from skg_bench.skillbook.library.strategies import Strategies

_DAY, _HOUR = 86_400, 3600
_HOURS = ((6, 11), (11, 17), (17, 22), (22, 24))  # of the day: morning, midday, evening, late at night
_MOST = 16  # triggers a day at most
BANDS = 6


@dataclass(frozen=True, eq=False)
class Shopping:
    """How users shop; meaning and unit of the parameters stand in `conf/simulator/guardian.yaml`."""

    table: Strategies
    triggers_per_week: float
    volume_spread: float
    taste_spread: float
    times: Sequence[float]
    bands: Sequence[float]
    wanted_share: float
    wanted_spread: float
    wanted_late: float
    wanted_per_band: float
    approve_below: int
    friction_from: int

    def by_day(self, keys: U64, weeks: int) -> I64:
        """Triggers of each day, `[B, days]`: geometric, so that several carts come together; one on the first day."""
        rate = self.triggers_per_week / 7 * np.exp(self.volume_spread * normal(keys, 0, Purpose.VOLUME))
        more = np.round(rate / (1.0 + rate), 12)[:, None]  # probability of one more
        u = draw(keys[:, None], np.arange(weeks * 7, dtype=np.int64)[None], Purpose.DAY_COUNT)
        count, share = np.zeros(u.shape, np.int64), np.ones((len(keys), 1))
        for _ in range(_MOST):
            share = share * more
            count += u < share
        count[:, 0] = np.maximum(count[:, 0], 1)
        return count

    def purchases(self, user: I32, keys: U64, weeks: int) -> tuple[Events, Purchases]:
        """The events of users with these keys, in order of time, and what is true of them."""
        time, slot, n = self._times(keys, weeks)
        b, width = time.shape
        event = np.arange(width, dtype=np.int64)[None]
        category = self._category(keys, width)
        band = self._drawn(keys, event, np.array(self.bands), 1)
        text = self._text(category, slot, band, draw(keys[:, None], event, Purpose.TRIGGER, 2))
        late = slot == len(_HOURS) - 1
        context = (category * len(self.table.times) + slot).astype(np.int32)
        wanted = self._wanted(keys, event, late, band)
        truth = Truth(context, context, np.zeros((b, width), np.int32), np.zeros((b, width), np.bool_))
        number = np.tile(np.arange(width, dtype=np.int32), (b, 1))
        events = Events(user, n, number, time, np.where(event < n[:, None], text, 0).astype(np.int32), truth)
        return events, Purchases(context, self.tier(band, late), wanted)

    def tier(self, band: I64, late: Bool) -> I32:
        """The declared rule: a point a price band, two more late at night."""
        risk = band + 2 * late
        tier = np.where(risk >= self.friction_from, THERAPIST, NEGOTIATOR)
        return np.where(risk < self.approve_below, ANALYST, tier).astype(np.int32)

    # ---------------------------------------------------------------------------------------------------- parts

    def _times(self, keys: U64, weeks: int) -> tuple[I64, I64, I32]:
        """`[B, T]` seconds in order, padded with the largest int64, the time of day of each, and `[B]` counts."""
        per_day = self.by_day(keys, weeks)
        row, day = np.nonzero(per_day)
        per = per_day[row, day]
        flat_row, flat_day = np.repeat(row, per), np.repeat(day, per).astype(np.int64)
        j = np.arange(per.sum()) - np.repeat(np.cumsum(per) - per, per)
        item, key = flat_day * _MOST + j, keys[flat_row]
        slot = self._drawn(key, item, np.array(self.times), 0)
        first, last = (np.array(edge, np.int64)[slot] * _HOUR for edge in zip(*_HOURS, strict=True))
        second = first + (draw(key, item, Purpose.MINUTE) * (last - first)).astype(np.int64)
        order = np.lexsort((j, second, flat_day, flat_row))
        n = np.bincount(flat_row, minlength=len(keys)).astype(np.int32)
        shape = len(keys), int(n.max(initial=0))
        time, slots = np.full(shape, np.iinfo(np.int64).max), np.zeros(shape, np.int64)
        place = np.arange(len(order)) - np.repeat(np.cumsum(n) - n, n)
        at = flat_row[order], place
        time[at], slots[at] = (flat_day * _DAY + second)[order], slot[order]
        return time, slots, n

    def _drawn(self, keys: U64, event: I64, shares: F64, item: int) -> I64:
        """Indices in proportion to `shares`; `event` `[B, T]` or `[n]`, beside keys `[B]` or `[n]`."""
        edges = np.round(np.cumsum(shares / shares.sum()), 12)[:-1]
        u = draw(keys[:, None] if event.ndim == 2 else keys, event, Purpose.TRIGGER, item)
        index: I64 = np.searchsorted(edges, u, side="right").astype(np.int64)
        return index

    def _category(self, keys: U64, width: int) -> I64:
        """Category that users buy: each has favourites."""
        every = np.arange(len(self.table.categories), dtype=np.int64)
        taste = self.taste_spread * normal(keys[:, None], every[None], Purpose.TASTE)
        category = np.empty((len(keys), width), np.int64)
        for t in range(width):
            category[:, t] = (taste + gumbel(draw(keys[:, None], t, Purpose.PICK, every[None]))).argmax(axis=1)
        return category

    def _text(self, category: I64, slot: I64, band: I64, u: F64) -> I32:
        """A trigger of the cell."""
        start, order = self._cells
        cell = (category * len(self.table.times) + slot) * BANDS + band
        n = start[cell + 1] - start[cell]
        text: I32 = order[start[cell] + np.minimum((u * n).astype(np.int64), n - 1)]
        return text

    @cached_property
    def _cells(self) -> tuple[I64, I32]:
        """Starts of the triggers of each cell (category, time of day, price band) in an order by cells."""
        t = self.table.triggers
        cell = (t.category.astype(np.int64) * len(self.table.times) + t.time) * BANDS + t.band
        order = np.argsort(cell, kind="stable").astype(np.int32)
        cells = len(self.table.categories) * len(self.table.times) * BANDS
        return np.searchsorted(cell[order], np.arange(cells + 1)), order

    def _wanted(self, keys: U64, event: I64, late: Bool, band: I64) -> Bool:
        """Does the user really want it? Less often late at night, and the more it costs."""
        share = np.clip(self.wanted_share, 1e-5, 1 - 1e-5)
        logit = np.log(share / (1 - share)) + self.wanted_spread * normal(keys, 0, Purpose.WANTED)[:, None]
        logit = logit - self.wanted_late * late - self.wanted_per_band * (band - (BANDS - 1) / 2)
        wanted: Bool = draw(keys[:, None], event, Purpose.WANTED, 1) < sigmoid(logit)
        return wanted
