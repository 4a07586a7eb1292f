"""The hash of a skill's row: each word counts, and no two words can stand in for each other."""

import numpy as np

from skg_bench.core.text import text_hash
from skg_bench.skillbook.statehash import row_hash


def columns(n: int) -> list[np.ndarray]:
    """Zeros for each argument of `row_hash`."""
    kinds = (np.int32, np.uint64, np.int32, np.bool_, *(np.int32,) * 4, *(np.int64,) * 3, np.uint64)
    last = (np.int32, np.int32, np.uint64)
    return [*(np.zeros(n, k) for k in kinds), np.zeros((n, 8), np.int16), *(np.zeros(n, k) for k in last)]


def test_every_single_bit_of_a_row_changes_both_halves_of_its_hash() -> None:
    zero = row_hash(*columns(1))[0]
    hashes = [zero]
    for i, column in enumerate(columns(1)):
        for bit in range(1 if column.dtype == np.bool_ else 16 if column.ndim == 2 else 8 * column.itemsize):
            changed = columns(1)
            flat = changed[i].reshape(-1)
            flat[-1:].view(f"u{column.itemsize}")[0] = 1 << bit
            h = row_hash(*changed)[0]
            assert (h != zero).all()
            hashes.append(h)
    assert len({tuple(h) for h in hashes}) == len(hashes)
    flips = np.mean([bin(int(h[0]) ^ int(zero[0])).count("1") for h in hashes[1:]])
    assert 30 < flips < 34


def test_rows_hash_alone_as_they_hash_together() -> None:
    rng = np.random.default_rng(0)
    many = [rng.integers(0, 2, c.shape).astype(c.dtype) for c in columns(300)]
    together = row_hash(*many)
    assert together.dtype == np.uint64
    for i in (0, 7, 299):
        assert np.array_equal(row_hash(*(c[i : i + 1] for c in many))[0], together[i])


def test_text_hashes_are_those_of_blake2b() -> None:
    assert text_hash("") == 13020603013274838756  # b2sum --length 64 of nothing
    assert text_hash("hé") == 0x4D48C01D11E37EBE
    assert len({text_hash(f"message {i}") for i in range(20_000)}) == 20_000
