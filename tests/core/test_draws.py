"""Law 2: a draw is a pure function of its key, uniform, and independent of its neighbours."""

import re
from collections import Counter
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import skg_bench.simulator
from skg_bench.core.draws import Purpose, draw, fold, gumbel, key, mix, salted, uniform, unsalted, word
from skg_bench.core.grid import F64

MILLION = 1_000_000
SIMULATOR = Path(skg_bench.simulator.__path__[0])


def _along(field: str) -> F64:
    """A million draws whose keys differ in one field only, by steps of one."""
    n = np.arange(MILLION)
    if field == "seed":
        return np.array([float(draw(key(s, np.array([3])), 5, Purpose.RATING)[0]) for s in range(4000)])
    if field == "user":
        return draw(key(0, n), 5, Purpose.RATING)
    at = {"event": 5, "item": 0, "n": 0} | {field: n}
    return draw(key(0, np.array([3]))[0:1], at["event"], Purpose.RATING, at["item"], at["n"])


@pytest.mark.parametrize("field", ["seed", "user", "event", "item", "n"])
def test_draws_along_any_field_of_the_key_are_uniform_and_uncorrelated(field: str) -> None:
    u = _along(field)
    counts = np.bincount((u * 1000).astype(np.int64), minlength=1000)
    assert stats.chisquare(counts).pvalue > 1e-4
    assert stats.kstest(u, "uniform").pvalue > 1e-4
    bound = 4.5 / np.sqrt(len(u))
    for lag in (1, 2, 3, 64, 1000):
        assert abs(np.corrcoef(u[:-lag], u[lag:])[0, 1]) < bound


def test_pairs_of_neighbouring_keys_fill_the_square() -> None:
    users, events = np.arange(1000)[:, None], np.arange(1000)[None, :]
    u = draw(key(1, users), events, Purpose.PICK)
    for a, b in ((u[:-1], u[1:]), (u[:, :-1], u[:, 1:])):
        cells = np.bincount(((a * 32).astype(int) * 32 + (b * 32).astype(int)).ravel(), minlength=1024)
        assert stats.chisquare(cells).pvalue > 1e-4


def test_purposes_have_numbers_of_their_own_and_draw_independently() -> None:
    assert len(Purpose) == len(Purpose.__members__)  # a number that two share makes the second an alias of the first
    keys = key(0, np.arange(50_000))
    correlation = np.corrcoef([draw(keys, 3, p) for p in Purpose]) - np.eye(len(Purpose))
    assert np.abs(correlation).max() < 5.5 / np.sqrt(50_000)


def test_each_purpose_of_the_world_of_answers_decides_one_thing() -> None:
    files = sorted([*SIMULATOR.glob("*.py"), *(SIMULATOR / "answers").glob("*.py")])
    uses = Counter(re.findall(r"Purpose\.\w+(?:, n=\d+)?", "".join(file.read_text("utf-8") for file in files)))
    assert len(uses) > 15
    assert set(uses.values()) == {1}, uses.most_common(3)


def test_fields_do_not_stand_in_for_one_another() -> None:
    small = np.arange(40)
    grid = np.meshgrid(small, small, small, indexing="ij")
    u = draw(key(0, grid[0]), grid[1], Purpose.RATING, grid[2])
    assert len(np.unique(u)) == u.size
    swapped = [[float(draw(key(s, np.array([user])), 0, Purpose.RATING)[0]) for user in range(40)] for s in range(40)]
    assert len(np.unique(swapped)) == 1600


@settings(deadline=None)
@given(st.integers(0, 2**63 - 1), st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=9), st.integers(0, 5000))
def test_a_draw_does_not_depend_on_what_is_drawn_with_it(seed: int, users: list[int], event: int) -> None:
    together = draw(key(seed, np.array(users)), event, Purpose.ACCEPT, n=1)
    alone = [draw(key(seed, np.array([u])), event, Purpose.ACCEPT, n=1)[0] for u in users]
    assert together.tolist() == alone
    assert ((together > 0) & (together < 1)).all()


def test_integers_of_any_width_and_sign_are_the_same_key() -> None:
    h = key(0, np.array([7]))
    drawn = {float(draw(h, np.array([-1], kind), Purpose.LAG)[0]) for kind in (np.int16, np.int32, np.int64)}
    assert drawn == {float(draw(h, -1, Purpose.LAG)[0])}


_MASK = 2**64 - 1


def _mixed(z: int) -> int:
    """SplitMix64's finaliser in whole numbers of any size."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _MASK
    return z ^ (z >> 31)


def _folded(*fields: int) -> int:
    h = 0
    for f in fields:
        h = _mixed((h * 0xD6E8FEB86659FD93 + (f & _MASK) + 0x9E3779B97F4A7C15) & _MASK)
    return h


@settings(deadline=None)
@given(st.integers(0, 2**63 - 1), st.tuples(*[st.integers(-1, 2**31)] * 4))
def test_the_bits_are_those_of_splitmix64_folded_in_plain_python(s: int, fields: tuple[int, int, int, int]) -> None:
    user, event, item, n = fields
    h = key(s, np.array([user]))
    assert int(h[0]) == _folded(s, user)
    expected = _folded(s, user, event, int(Purpose.RATING), item, n)
    assert int(fold(fold(fold(fold(h, event), int(Purpose.RATING)), item), n)[0]) == expected
    assert abs(draw(h, event, Purpose.RATING, item, n)[0] - expected / 2**64) <= 2.0**-52
    assert [int(x) for x in mix(np.array([1], np.uint64))] == [6238072747940578789]


@settings(deadline=None)
@given(st.integers(0, 2**63 - 1), st.integers(0, 2**128 - 1))
def test_the_default_salt_gives_the_keys_of_the_seed_alone_and_any_other_salt_gives_others(s: int, salt: int) -> None:
    users, seed = np.arange(3), salted(s, salt)
    assert unsalted(seed) == s
    assert salted(s, 0) == s
    assert (not salt) == np.array_equal(key(seed, users), key(s, users)) == (word(seed, b"arms") == word(s, b"arms"))


def test_each_bit_of_a_salt_changes_the_keys_of_worlds_and_of_arms() -> None:
    bits = [0, *(1 << i for i in range(128)), *((1 << i) | (1 << (i + 64)) for i in range(64)), 2**128 - 1]
    keys = {int(key(salted(0, salt), np.array([0]))[0]) for salt in bits}
    words = {word(salted(0, salt), whose) for salt in bits for whose in (b"arms", b"ids")}
    assert (len(keys), len(words)) == (len(bits), 2 * len(bits))


def test_the_word_of_arms_is_one_way_and_that_of_today() -> None:
    assert word(0, b"arms") == int.from_bytes(blake2b(b"arms" + bytes(8), digest_size=8).digest(), "little")
    assert word(1, b"arms") != word(1, b"ids")


@pytest.mark.parametrize(("seed", "salt"), [(-1, 0), (2**64, 0), (0, -1), (0, 2**128)])
def test_what_is_no_seed_or_no_salt_is_refused(seed: int, salt: int) -> None:
    with pytest.raises(ValueError, match="valid are"):
        salted(seed, salt)


def test_the_open_interval_holds_at_both_ends() -> None:
    ends = uniform(np.array([0, 2**64 - 1], np.uint64))
    assert 0 < ends[0] < ends[1] < 1
    assert np.isfinite(gumbel(ends)).all()


def test_the_largest_of_log_weight_plus_gumbel_is_a_draw_in_proportion() -> None:
    weight = np.array([1.0, 2.0, 5.0])
    base = fold(fold(key(0, np.arange(200_000)), 9), int(Purpose.POLICY_ITEM))
    noise = gumbel(uniform(fold(fold(base[:, None], np.arange(3)), 0)))
    counts = np.bincount(np.argmax(np.log(weight) + noise, axis=1), minlength=3)
    assert stats.chisquare(counts, weight / weight.sum() * counts.sum()).pvalue > 1e-4
