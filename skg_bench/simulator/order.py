"""The order in which a user's requests come, and what can be answered in that order."""

from dataclasses import fields
from typing import Literal

import numpy as np

from skg_bench.core.draws import Purpose, draw
from skg_bench.core.grid import I32, I64, U64
from skg_bench.core.world import Events, Truth

EventOrder = Literal["time", "permuted"]
_SPAN = np.int64(2**40)  # more than any run's seconds: makes (group, time) one sortable number


def permuted(keys: U64, events: Events) -> Events:
    """Each user's requests in a keyed random order over the user's own times; number and text move with the request.

    What is learned from a request can still be used for a later one, but no structure in time is left: a trend that
    remains does not come from the order of requests. `Truth.answerable` is that of the old order.
    """
    order = random_order(keys, events)

    def moved(column: np.ndarray) -> np.ndarray:
        return np.take_along_axis(column, order, axis=1)

    truth = Truth(*(moved(getattr(events.truth, f.name)) for f in fields(Truth)))
    return Events(events.user, events.n, moved(events.number), events.time, moved(events.text), truth)


def random_order(keys: U64, events: Events) -> I64:
    """The number of the event that comes to each place of a user's events, `[B, T]`; padding stays at the end."""
    uniform = draw(keys[:, None], events.number, Purpose.ORDER)
    uniform[np.arange(events.time.shape[1]) >= events.n[:, None]] = 2.0
    order: I64 = np.argsort(uniform, axis=1, kind="stable")
    return order


def answerable(type_: I32, time: I64, ttl: I64) -> I32:
    """Earlier answers of the user that still hold at each event, `[B, T]`.

    `type_` and `time` `[B, T]` (-1: a one-off), `ttl` `[types]` seconds for which an answer holds.
    """
    counts = np.zeros(type_.shape, np.int32)
    row, col = np.nonzero(type_ >= 0)
    pair = row * np.int64(len(ttl)) + type_[row, col]
    order = np.lexsort((col, pair))
    row, col, pair = row[order], col[order], pair[order]
    first = np.ones(len(pair), np.bool_)
    first[1:] = pair[1:] != pair[:-1]
    group = np.cumsum(first) - 1
    when = time[row, col]
    since = np.searchsorted(
        group * _SPAN + when, group * _SPAN + np.maximum(when - ttl[type_[row, col]], -1), side="right"
    )
    counts[row, col] = np.maximum(np.arange(len(order)) - np.maximum(since, np.flatnonzero(first)[group]), 0)
    return counts
