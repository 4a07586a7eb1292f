"""Draws of the simulated users that their streams are made of: the clock, and blocks of choices."""

from dataclasses import dataclass

import numpy as np

from skg_bench.core.draws import Purpose, fold, gumbel, uniform
from skg_bench.core.grid import F64, I64, U64

CANDIDATES = 6  # repeats, or new types, among which fit to the moment decides


@dataclass(frozen=True, slots=True)
class Block:
    """Draws of a block of steps, `[steps, B]` and `[steps, B, candidates]`."""

    single: F64
    novel: F64
    lag: F64
    pick: F64


def draw_block(keys: U64, first: int, steps: int) -> Block:
    """Draws of the `steps` steps from step `first` on, for users with these keys `[B]`."""
    event = fold(keys[None, :], np.arange(first, first + steps, dtype=np.int64)[:, None])
    item = np.arange(CANDIDATES)[None, None]

    def at(purpose: Purpose) -> F64:
        return uniform(fold(fold(fold(event, int(purpose)), 0), 0))

    def items(purpose: Purpose) -> F64:
        return uniform(fold(fold(fold(event, int(purpose))[:, :, None], item), 0))

    return Block(at(Purpose.ONE_OFF), at(Purpose.NOVEL), items(Purpose.LAG), gumbel(items(Purpose.PICK)))


_HOURS = np.array([2, 1, 1, 1, 1, 3, 8, 16, 18, 14, 12, 12, 14, 12, 11, 12, 14, 18, 20, 20, 19, 16, 10, 5], np.float64)


def clock(u: F64) -> I64:
    """Seconds of the day by the daily rhythm (inverse of a piecewise linear distribution function)."""
    edges = np.concatenate([[0.0], np.cumsum(_HOURS) / _HOURS.sum()])
    seconds: I64 = np.rint(np.interp(u, edges, np.arange(25) * 3600.0)).astype(np.int64)
    return seconds
