"""What curators and the arena share: parts of a batch, and its operations counted user by user."""

from dataclasses import fields

import numpy as np

from skg_bench.core.grid import I32, I64, Bool
from skg_bench.core.types import Batch


def part(batch: Batch, which: Bool | I64) -> Batch:
    """These operations only, in this order."""
    return Batch(*(getattr(batch, f.name)[which] for f in fields(Batch)))


def joined(first: Batch, second: Batch) -> Batch:
    """The operations of one and then those of the other."""
    return Batch(*(np.concatenate([getattr(first, f.name), getattr(second, f.name)]) for f in fields(Batch)))


def nth(rows: I32) -> I64:
    """How many earlier entries each entry of `rows` has that are equal to it."""
    order = np.argsort(rows, kind="stable")
    found = np.empty(len(rows), np.int64)
    found[order] = np.arange(len(rows)) - np.searchsorted(rows[order], rows[order])
    return found
