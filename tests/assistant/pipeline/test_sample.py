"""The draw of an arm's decision: as often as the policy states, by lineage, and none where one action is certain."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.assistant.pipeline import sample as module
from skg_bench.assistant.pipeline.sample import sample
from skg_bench.core.deciding import Policy
from skg_bench.core.draws import Purpose, draw, fold, gumbel, key
from skg_bench.core.grid import F64, I64
from tests.policy.played import Living, candidates, keys, lineages
from tests.policy.test_policies import ALL, COUNTING, DETERMINISTIC, LEARNING

N = 100_000
seeds = st.integers(0, 2**32)


def shares(seed: int, b: int = 200, k: int = 5) -> tuple[F64, I64]:
    """Distributions, of which some actions have no share and some rows are certain; and lineages."""
    rng = np.random.default_rng(seed)
    weight = rng.random((b, 1 + k)) * (rng.random((b, 1 + k)) < 0.6)
    weight[weight.sum(axis=1) == 0, 0] = 1.0
    return weight / weight.sum(axis=1, keepdims=True), rng.integers(0, 2**40, (b, k))


# -------------------------------------------------------------------------------- it draws what policies state


@pytest.mark.parametrize("policy", ALL, ids=repr)
def test_frequencies_of_100_000_draws_are_the_propensities_that_a_policy_states(policy: Policy[Any]) -> None:
    """Of policies that learn, with memories of users who have had turns."""
    users, several = 8, 0
    state, c = Living(policy, users).live(40), candidates(1, users, skills=5)
    stated = policy.propensities(c, state)
    assert stated.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    if policy in LEARNING:
        assert not np.allclose(stated, policy.propensities(c, policy.start(users)), atol=0.02)
    lineage = lineages(c.skill)
    for u in range(users):
        share = np.broadcast_to(stated[u], (N, stated.shape[1]))
        place, propensity = sample(share, np.broadcast_to(lineage[u], (N, lineage.shape[1])), keys(u, N))
        assert place.dtype == np.int32
        assert propensity.dtype == np.float64
        assert np.array_equal(propensity, stated[u][1 + place].astype(np.float32))
        often = np.bincount(1 + place, minlength=stated.shape[1]) / N
        assert (np.abs(often - stated[u]) <= 5 * np.sqrt(stated[u] * (1 - stated[u]) / N)).all()
        several += (stated[u] > 0).sum() > 1
    assert several == 0 if policy in (*DETERMINISTIC, *COUNTING) else several >= 4


def test_the_draw_is_the_largest_of_log_share_plus_gumbel_keyed_by_event_and_lineage() -> None:
    share, lineage = shares(0)
    users, number = np.arange(200), 31
    place, _ = sample(share, lineage, fold(key(5, users), number))
    for u in range(200):
        height = {}
        for a, p in enumerate(share[u]):
            if p > 0:
                item = -1 if a == 0 else int(lineage[u, a - 1])
                noise = gumbel(draw(key(5, users[u : u + 1]), number, Purpose.POLICY_ITEM, item))[0]
                height[a - 1] = np.log(p) + noise
        assert place[u] == max(height, key=height.__getitem__)


# -------------------------------------------------------------------------------------------------- by lineage


@settings(deadline=None, max_examples=20)
@given(seed=seeds)
def test_a_skill_is_drawn_for_its_lineage_wherever_it_stands_in_the_shortlist(seed: int) -> None:
    share, lineage = shares(seed)
    order = np.random.default_rng(seed).permuted(np.tile(np.arange(5), (200, 1)), axis=1)
    event = keys(seed, 200)
    place, propensity = sample(share, lineage, event)
    mixed = np.concatenate([share[:, :1], np.take_along_axis(share[:, 1:], order, axis=1)], axis=1)
    other, stated = sample(mixed, np.take_along_axis(lineage, order, axis=1), event)
    back = np.where(other < 0, -1, np.take_along_axis(order, np.maximum(other, 0)[:, None], axis=1)[:, 0])
    assert np.array_equal(back, place)
    assert np.array_equal(stated, propensity)
    assert len(set(place.tolist())) > 3


@pytest.mark.parametrize("policy", [p for p in ALL if p not in (*LEARNING, *COUNTING)], ids=repr)
def test_books_with_other_ids_for_the_same_skills_are_decided_alike(policy: Policy[Any]) -> None:
    """Ids in another book: as the skills were added in another order. Of equal scores the lower id is better, so that
    these and the ratings are set apart here.
    """
    c, event = candidates(2, 300), keys(2, 300)
    c.combined[:] = np.where(c.skill >= 0, c.combined + np.arange(5) / 64, -1.0)
    c.miss[:], c.ok[:] = 0, np.random.default_rng(2).permuted(np.tile(np.arange(1, 6), (300, 1)), axis=1)
    c.rated[:] = c.ok
    lineage, renamed = lineages(c.skill), candidates(2, 300)
    for column in ("combined", "ok", "miss", "rated"):
        getattr(renamed, column)[:] = getattr(c, column)
    renamed.skill[:] = np.where(c.skill >= 0, 60 - c.skill, -1)
    place, propensity = sample(policy.propensities(c, None), lineage, event)
    other, stated = sample(policy.propensities(renamed, None), lineage, event)
    if type(policy).__name__ == "Thompson":  # equal levels go to the lower id: there the distribution differs a little
        assert (place != other).mean() < 0.05
        assert stated[place == other] == pytest.approx(propensity[place == other], abs=0.05)
    else:
        assert np.array_equal(place, other)
        assert np.array_equal(stated, propensity)


def test_another_lineage_is_another_draw_and_so_is_another_event() -> None:
    share = np.full((N, 3), 1 / 3)
    lineage, event = np.tile(np.array([5, 9]), (N, 1)), keys(0, N)
    place = sample(share, lineage, event)[0]
    for other in (sample(share, lineage + 2**20, event)[0], sample(share, lineage, keys(1, N))[0]):
        # independent: but for the fallback's draw, which is the same under the same event, they agree in a third
        assert 0.3 < (place == other).mean() < 0.5
        assert not np.array_equal(place, other)
    assert np.array_equal(place, sample(share, lineage, event)[0])
    again = sample(share, lineage + 2**20, keys(1, N))[0]
    counts = np.array([[((place == a) & (again == b)).mean() for a in (-1, 0, 1)] for b in (-1, 0, 1)])
    assert counts == pytest.approx(1 / 9, abs=5 * (1 / 9 * 8 / 9 / N) ** 0.5)


@settings(deadline=None, max_examples=20)
@given(seed=seeds)
def test_one_more_skill_takes_choices_from_others_and_moves_none_among_them(seed: int) -> None:
    """Arms that share their draws part only where the new skill answers."""
    rng = np.random.default_rng(seed)
    share, lineage = shares(seed, k=4)
    place, _ = sample(share, lineage, keys(seed, 200))
    new = 0.3 * rng.random((200, 1))
    more = np.concatenate([share * (1 - new), new], axis=1)
    fifth = np.concatenate([lineage, np.full((200, 1), 2**40)], axis=1)
    other, _ = sample(more, fifth, keys(seed, 200))
    assert ((other == place) | (other == 4)).all()
    assert (other == 4).any()


@settings(deadline=None, max_examples=20)
@given(seed=seeds)
def test_what_stands_beyond_the_end_and_who_else_is_there_make_no_difference(seed: int) -> None:
    share, lineage = shares(seed)
    event = keys(seed, 200)
    place, propensity = sample(share, lineage, event)
    anything = np.where(share[:, 1:] > 0, lineage, lineage[:, :1])
    assert np.array_equal(sample(share, anything, event)[0], place)
    for which in (np.random.default_rng(seed).permutation(200), np.array([17])):
        own, stated = sample(share[which], lineage[which], event[which])
        assert np.array_equal(own, place[which])
        assert np.array_equal(stated, propensity[which])
    none, stated = sample(share[:0], lineage[:0], event[:0])
    assert (none.shape, stated.shape) == ((0,), (0,))


# --------------------------------------------------------------------------------------- certainty and rounding


def test_where_one_action_is_certain_nothing_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[int, ...]] = []

    def counting(u: F64) -> F64:
        drawn.append(u.shape)
        return gumbel(u)

    monkeypatch.setattr(module, "gumbel", counting)
    certain = np.eye(4)[[0, 1, 2, 3, 1]]
    for seed in range(3):
        place, propensity = sample(certain, np.zeros((5, 3), np.int64), keys(seed, 5))
        assert place.tolist() == [-1, 0, 1, 2, 0]
        assert (propensity == 1).all()
    assert drawn == []
    some = certain.copy()
    some[[1, 3]] = [0.5, 0.25, 0.25, 0.0]
    place, propensity = sample(some, np.tile(np.arange(3), (5, 1)), keys(0, 5))
    assert drawn == [(2, 4)]
    assert (propensity == 1).tolist() == [True, False, True, False, True]
    assert place[[0, 2, 4]].tolist() == [-1, 1, 0]
    assert np.array_equal(propensity, some[np.arange(5), 1 + place])


def test_propensities_are_those_that_were_drawn_from_in_float32() -> None:
    share = np.tile(np.array([1 / 3, 0.1, 1 - 1 / 3 - 0.1]), (500, 1))
    lineage, event = np.tile(np.arange(2), (500, 1)), keys(0, 500)
    place, propensity = sample(share, lineage, event)
    assert set(propensity.tolist()) == set(share[0].astype(np.float32).astype(np.float64).tolist())
    for near in (np.nextafter(share, 0), np.nextafter(share, 1)):  # as another CPU type may compute them
        other, stated = sample(near, lineage, event)
        assert np.array_equal(other, place)
        assert np.array_equal(stated, propensity)
    assert share[0, 0] == 1 / 3  # what was handed in is left alone


@pytest.mark.parametrize("rest", [2.0**-26, 1e-12, 1e-300, 5e-324])
def test_what_float32_cannot_tell_from_certainty_is_certain(rest: float) -> None:
    share = np.tile(np.array([rest, 1 - rest, 0.0]), (N, 1))
    place, propensity = sample(share, np.tile(np.arange(2), (N, 1)), keys(0, N))
    assert (place == 0).all()
    assert (propensity == 1.0).all()


def test_a_share_that_float32_can_tell_is_drawn_and_one_of_zero_never() -> None:
    share = np.tile(np.array([0.0, 1 - 2.0**-10, 2.0**-10, 0.0]), (N, 1))
    place, propensity = sample(share, np.tile(np.arange(3), (N, 1)), keys(0, N))
    assert set(place.tolist()) == {0, 1}
    assert propensity[place == 1] == pytest.approx(2.0**-10, abs=0)
    assert (place == 1).sum() == pytest.approx(N / 1024, abs=5 * (N / 1024) ** 0.5)
