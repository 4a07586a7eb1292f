"""Simulated shoppers: what they are about to buy, what they really want, and what they remember of being stopped."""

from dataclasses import dataclass, fields

import numpy as np

from skg_bench.core.grid import F64, I32, I64, U64, Bool, snap
from skg_bench.core.world import Event, Events, Ledger

_HOUR = 3600
_TABLED = 24 * 366  # hours; what is older counts for nothing


@dataclass(frozen=True, slots=True)
class Purchases:
    """Truth about the events of a table, `[B, T]` each."""

    context: I32  # category and time of day, see skillbook/library/strategies.py
    tier: I32  # by the declared rule
    wanted: Bool

    def in_order(self, order: I64) -> "Purchases":
        """Truth with the event of number `order` `[B, T]` at each place."""
        return Purchases(*(np.take_along_axis(getattr(self, f.name), order, axis=1) for f in fields(Purchases)))


@dataclass(frozen=True, slots=True)
class Purchase(Event):
    """An event of this world."""

    context: I32
    tier: I32
    wanted: Bool
    turn: int
    logits: F64  # [B, K + 1] of listening to each kind and, in the last column, to the generic question


@dataclass(frozen=True, slots=True)
class Mood:
    """Memory of users of being stopped; K kinds of strategy and, as the last one, the generic question."""

    heard: F64  # [B, K + 1] how often they heard each kind, with a half-life
    heard_at: I64  # [B, K + 1] time of the last time
    annoyed: F64  # [B] how often they overrode, with a half-life
    annoyed_at: I64  # [B]

    @staticmethod
    def none(n: int, kinds: int) -> "Mood":
        """Before anything was said."""
        often, when = np.zeros((n, kinds + 1)), np.zeros((n, kinds + 1), np.int64)
        return Mood(often, when, np.zeros(n), np.zeros(n, np.int64))


@dataclass(frozen=True, slots=True)
class Shoppers:
    """The state of these users."""

    events: Events
    purchases: Purchases
    key: U64  # [B] of the world's draws
    liking: F64  # [B, K] of each kind, as a logit
    mood: Mood
    ledger: Ledger


@dataclass(frozen=True, eq=False)
class Fading:
    """Fading of memory, which halves in a half-life, hour by hour: a table, as powers differ by a bit between CPUs."""

    share: F64  # [hours]

    @staticmethod
    def of(half_life_days: float) -> "Fading":
        """Table of this half-life."""
        hours = np.array([0.5 ** (hour / 24 / half_life_days) for hour in range(_TABLED)])
        return Fading(np.append(snap(hours), 0.0))

    def left(self, amount: F64, since: I64, now: I64) -> F64:
        """Part of `amount` at `since` that is left now; all broadcast."""
        hours = np.clip((now - since) // _HOUR, 0, _TABLED)
        return snap(amount * self.share[hours])
