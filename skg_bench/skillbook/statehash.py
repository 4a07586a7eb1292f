"""State hash of a skillbook: the sum over its skills of a keyed 128-bit hash of the canonical row.

Addition makes it incremental (subtract the old row, add the new) and independent of history and order (Bellare and
Micciancio, EUROCRYPT 1997). The row hash mixes each word with two odd constants through SplitMix64's finaliser; it
detects mistakes, it does not resist an adversary.
"""

from hashlib import blake2b

import numpy as np

from skg_bench.core.draws import mix
from skg_bench.core.grid import I16, I32, I64, U64, Bool

WORDS_PER_SKILL = 13


def _constants() -> U64:
    parts = [blake2b(f"skg_bench word {i}".encode(), digest_size=8).digest() for i in range(WORDS_PER_SKILL * 2)]
    return np.frombuffer(b"".join(parts), "<u8").astype(np.uint64).reshape(WORDS_PER_SKILL, 2) | np.uint64(1)


_KEYS = _constants()


def row_hash(
    skill: I32,
    name: U64,
    source: I32,
    active: Bool,
    uses: I32,
    ok: I32,
    partial: I32,
    miss: I32,
    born: I64,
    last_used: I64,
    last_ok: I64,
    examples: U64,
    hours: I16,
    weekend: I32,
    after: I32,
    content: U64,
) -> U64:
    """Hash of n canonical rows, `[n, 2]`. `name` is the text hash of the name, `examples` the sum of the text hashes of
    the examples, `content` the key of what the skill says, 0: nothing; `hours` is `[n, 8]`, all others `[n]`.
    """
    words = np.empty((len(skill), WORDS_PER_SKILL), np.uint64)

    def pair(high: I32, low: I32) -> U64:
        return (high.astype(np.int64) << 32 | (low.astype(np.int64) & 0xFFFFFFFF)).view(np.uint64)

    words[:, 0] = pair(skill, after)
    words[:, 1] = name
    words[:, 2] = pair(source, active.astype(np.int32))
    words[:, 3] = pair(uses, ok)
    words[:, 4] = pair(partial, miss)
    words[:, 5] = born.view(np.uint64)
    words[:, 6] = last_used.view(np.uint64)
    words[:, 7] = last_ok.view(np.uint64)
    words[:, 8] = examples
    words[:, 9:11] = np.ascontiguousarray(hours.astype("<i2")).view("<u8")
    words[:, 11] = weekend.astype(np.int64).view(np.uint64)
    words[:, 12] = content
    with np.errstate(over="ignore"):
        mixed: U64 = mix(words[:, :, None] * _KEYS + np.arange(1, WORDS_PER_SKILL + 1, dtype=np.uint64)[:, None])
        return mix(mixed.sum(axis=1))
