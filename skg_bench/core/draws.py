"""Keyed draws: a random number is a pure function of (salt, seed, user, event, purpose, item, n).

The arm is not in the key, so two arms that meet the same situation get the same draws (common random numbers).
A key is folded one field at a time through the SplitMix64 finaliser (Steele, Lea
and Flood, OOPSLA 2014): ``h <- mix(h + field * odd constant)``. Each step can be undone by whoever knows the field, so
a key tells the word that it was folded from. Words therefore come from BLAKE2b of seed and salt, and a salt that nobody
can guess keeps the seed, and with it all other words, from whoever has one of them.
"""

from enum import IntEnum
from functools import cache
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from skg_bench.core.grid import F64, I64, U64


class Purpose(IntEnum):
    """Decisions that are drawn; one number each, never reused for another purpose."""

    VOLUME = 1
    ACTIVE_SHARE = 2
    TASTE = 3
    RHYTHM = 4
    DAY_ACTIVE = 10
    DAY_COUNT = 11
    SESSION = 12
    MINUTE = 13
    ONE_OFF = 20
    NOVEL = 21
    LAG = 22
    PICK = 23
    TYPE_ORDER = 24
    WORDING = 25
    ONE_OFF_ORDER = 26
    ORDER = 27
    HABIT = 28
    LLM_RIGHT = 40
    SKILL_RIGHT = 41
    LATENCY = 42
    LENGTH = 43
    RATING = 50
    RATED = 51
    LATE = 52
    DELAY = 53
    ACCEPT = 54
    NAME = 55
    POLICY = 60
    POLICY_ITEM = 61
    WEIGHT = 62
    SAMPLE = 70
    RESAMPLE = 71
    GENERAL_AGAIN = 74
    GENERAL = 75
    SLOTS = 76
    SILENT = 77
    TOOL = 78
    PROCEDURES = 79
    SHAM = 80
    PERMUTED = 81
    RELABEL = 82
    REFLECT = 84
    MANAGE = 85
    CHOOSE = 86
    WRITE = 87
    PRIOR = 90
    WANTED = 100
    TRIGGER = 101
    LIKING = 102
    LIKING_HERE = 103
    LISTEN = 104
    REACT = 105
    SITTING = 106
    SATISFIED = 107
    BELIEF = 108
    REFLECTOR = 109
    REFLECTED = 110
    STRATEGY = 111
    CALL_SECONDS = 112
    COMPARED = 113
    TOLD = 120
    MANNER = 121
    CORRECTED = 122
    PERSISTS = 123
    PERSISTENT = 124
    REPAIRED = 125
    KEPT = 126
    UNREAD = 127
    JUDGED = 130
    ANSWERED = 131
    PUZZLE = 132
    IMPUTED = 133
    ERRS = 134


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_UNDO1, _UNDO2 = (np.uint64(pow(int(factor), -1, 2**64)) for factor in (_M1, _M2))
_S27, _S30, _S31 = np.uint64(27), np.uint64(30), np.uint64(31)
_MASK = 0xFFFFFFFFFFFFFFFF
_FIELD = np.uint64(0xD6E8FEB86659FD93)
_TWO52 = 2.0**-52
SALT_BITS = 128
_SALT_BYTES = SALT_BITS // 8

Ints = npt.NDArray[np.integer[Any]] | int


def _u64(x: Ints) -> U64:
    if isinstance(x, int):
        return np.uint64(x & _MASK)  # type: ignore[return-value]
    same: U64 = (x if x.dtype == np.uint64 else x.astype(np.int64)).view(np.uint64)
    return same


def mix(h: U64) -> U64:
    """SplitMix64's finaliser, elementwise."""
    mixed = h >> _S30
    mixed ^= h
    mixed *= _M1
    mixed ^= mixed >> _S27
    mixed *= _M2
    mixed ^= mixed >> _S31
    return mixed


def fold(h: U64, field: Ints) -> U64:
    """`h` extended by one more field of the key (broadcasts)."""
    if not h.ndim:  # a single number, unlike an array, would warn that it wraps around
        with np.errstate(over="ignore"):
            return mix(h * _FIELD + _u64(field) + _GOLDEN)
    folded = h * _FIELD
    if isinstance(field, int):
        folded += np.uint64((field + int(_GOLDEN)) & _MASK)
        return mix(folded)
    return mix(folded + _u64(field) + _GOLDEN)


def unfolded(h: U64, folded: U64) -> I64:
    """The field `[n]` with which `fold(h, field)` gives `folded`, for keys `[n]`: any 64 bits have one."""
    return (_unmixed(folded) - _GOLDEN - h * _FIELD).view(np.int64)


def _unmixed(mixed: U64) -> U64:
    """The number that `mix` makes `mixed` of."""
    h = mixed ^ (mixed >> _S31) ^ (mixed >> np.uint64(62))
    h = h * _UNDO2
    h = h ^ (h >> _S27) ^ (h >> np.uint64(54))
    h = h * _UNDO1
    h ^= (h >> _S30) ^ (h >> np.uint64(60))
    whole: U64 = h
    return whole


def salted(seed: int, salt: int) -> int:
    """A seed and its salt as one number, which `key` and `word` take for the seed: 64 bits, and 128 above them."""
    if not (0 <= seed <= _MASK and 0 <= salt < 2**SALT_BITS):
        raise ValueError(f"seed {seed}, salt {salt}; valid are 0 to 2**64 - 1, and 0 to 2**{SALT_BITS} - 1")
    return seed | salt << 64


def unsalted(seed: int) -> int:
    """The seed of a salted one, for logs."""
    return seed & _MASK


@cache
def word(seed: int, whose: bytes) -> int:
    """The seed of keys for one use, 64 bits: from it, neither the seed nor the word of another use can be computed."""
    salt, low = (seed >> 64).to_bytes(_SALT_BYTES, "little"), unsalted(seed).to_bytes(8, "little")
    return int.from_bytes(blake2b(whose + low, digest_size=8, salt=salt).digest(), "little")


@cache
def _root(salt: int) -> int:
    """Root of the keys under a salt: 0 for salt 0, so that its keys are those of the seed alone."""
    return _digest(salt) ^ _digest(0)


def _digest(salt: int) -> int:
    made = blake2b(b"world", digest_size=8, salt=salt.to_bytes(_SALT_BYTES, "little"))
    return int.from_bytes(made.digest(), "little")


def key(seed: int, user: Ints) -> U64:
    """The key of a user under a seed (`salted`, or a seed alone), from which all draws of that user fold on."""
    with np.errstate(over="ignore"):  # seeds of components are no salted ones, and may be negative
        return fold(fold(np.full(np.shape(user), _root(max(int(seed), 0) >> 64), np.uint64), seed), user)


def uniform(h: U64) -> F64:
    """A folded key as a uniform on the open interval (0, 1), 52 bits: with one more, the largest would round to 1."""
    return ((h >> np.uint64(12)).astype(np.float64) + 0.5) * _TWO52


def draw(h: U64, event: Ints, purpose: Purpose, item: Ints = 0, n: Ints = 0) -> F64:
    """A uniform on (0, 1) for the user key `h` at (event, purpose, item, n); arguments broadcast."""
    return uniform(fold(fold(fold(fold(h, event), int(purpose)), item), n))


def normal(h: U64, event: Ints, purpose: Purpose) -> F64:
    """Standard normals of the user key `h` at (event, purpose), by Box and Muller (1958)."""
    radius = np.sqrt(-2.0 * np.log(draw(h, event, purpose)))
    return radius * np.cos(2.0 * np.pi * draw(h, event, purpose, n=1))


def gumbel(u: F64) -> F64:
    """Standard Gumbel distribution from a uniform; the largest of `log w + gumbel` is a draw in proportion to w."""
    return -np.log(-np.log(u))
