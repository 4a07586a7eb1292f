"""EXP4 over weightings of the signals: it chooses as often as it says, its estimates are unbiased, and it learns."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I32, snap
from skg_bench.core.trials import Trials
from skg_bench.core.types import Candidates
from skg_bench.engine.signals import GROUPS, Signals
from skg_bench.engine.weighings import Weighings
from skg_bench.policy.exp4 import Exp4
from skg_bench.policy.threshold import Threshold
from tests.core import samples

GRID = ((0.6, 0.2, 0.2), (1.0, 0.0, 0.0), (0.5, 0.5, 0.0), (0.2, 0.4, 0.4))
SIGNALS = Signals(0.6, 0.2, 0.2, 1.0, 1.0, 30, tuple(GROUPS))
POLICY = Exp4(0.5, GRID, 0.05, 0.1, 0.85)
seeds = st.integers(0, 2**32)


def shown(trials: Trials, k: int = 5) -> Candidates:
    """Shortlists of five skills, of which the policy is shown what weightings would take."""
    b = len(trials.place)
    zero = np.zeros((b, k), np.int32)
    skill = np.tile(np.arange(k, dtype=np.int32), (b, 1))
    return Candidates(skill, np.full((b, k), 0.5), zero, np.zeros((b, k)), zero, np.zeros(b, np.int32), None, trials)


def trials(seed: int, b: int, m: int = 4) -> Trials:
    rng = np.random.default_rng(seed)
    return Trials(rng.integers(-1, 3, (b, m)).astype(np.int32), 20 * rng.random((b, m)), 30 * rng.random((b, m)))


def test_it_chooses_as_often_as_it_says() -> None:
    n, given_ = 6000, trials(1, 12)
    fine = (np.arange(n) + 0.5) / n
    policy = replace(POLICY, rate=0.2)
    for u in range(12):
        c = shown(given_.rows(np.full(n, u)))
        made = policy.choose(c, replace(samples.draws(np.random.default_rng(u), n), policy=fine))
        total = 0.0
        for place in np.unique(made.place):
            chosen = made.place == place
            assert np.ptp(made.propensity[chosen]) == 0
            assert chosen.mean() == pytest.approx(made.propensity[chosen][0], abs=5 / n)
            total += made.propensity[chosen][0]
        assert total == pytest.approx(1.0, abs=1e-12)
        assert set(made.place.tolist()) == set(given_.place[u].tolist())
        assert made.explored.all() == (len(set(given_.place[u].tolist())) > 1)


@settings(deadline=None, max_examples=20)
@given(seed=seeds)
def test_each_weighting_takes_what_the_threshold_rule_takes_with_these_weights(seed: int) -> None:
    rng = np.random.default_rng(seed)
    b, k = 40, 5
    n = rng.integers(0, k + 1, b)
    skill = np.stack([np.where(np.arange(k) < m, rng.permutation(50)[:k], -1) for m in n]).astype(np.int32)
    similarity, preference, score = (snap(rng.integers(0, 5, (b, k)) / 4) * (skill >= 0) for _ in range(3))
    kept = Weighings(POLICY, SIGNALS, b, 3)
    zero = np.zeros((b, k), np.int32)
    for learned in (score, None):
        found = kept.of(skill, similarity, preference, learned)
        for m, (s, p, r) in enumerate(GRID):
            combined = replace(SIGNALS, similarity=s, preference=p, score=r).combine(similarity, preference, learned)
            combined[skill < 0] = -1.0
            c = Candidates(skill, combined, zero, np.zeros((b, k)), zero, np.zeros(b, np.int32))
            expected = Threshold(0.5).choose(c, samples.draws(rng, b)).place
            assert np.array_equal(found.place[:, m], expected)


def so_far(kept: Weighings, b: int) -> Trials:
    """What is known now, for a shortlist of one skill that nothing speaks for."""
    nothing = np.zeros((b, 1))
    return kept.of(np.zeros((b, 1), np.int32), nothing, nothing, None)


def rated_turns(policy: Exp4, places: I32, right: F64, draws_seed: int = 0) -> tuple[Weighings, F64]:
    """Turns with `places` `[B, T, M]` of the weightings; place i is right with probability `right[i]`, always rated.

    Returns what was learned, and how much each weighting would have gained by itself, on average a user.
    """
    b, t, m = places.shape
    kept, rng = Weighings(policy, SIGNALS, b, t), np.random.default_rng(draws_seed)
    would = np.zeros(m)
    for now in range(t):
        state = so_far(kept, b)
        asked = replace(state, place=places[:, now])
        made = policy.choose(shown(asked), samples.draws(rng, b))
        kept.chosen(now, asked, made.place, made.propensity)
        ok = rng.random((b, len(right))) < right
        hit = np.flatnonzero(made.place >= 0)
        rating = np.where(ok[hit, made.place[hit]], 0, 2).astype(np.int32)
        kept.learn(hit, np.full(len(hit), now), rating)
        taken = np.take_along_axis(ok, np.maximum(places[:, now], 0), axis=1)
        would += (taken & (places[:, now] >= 0)).mean(axis=0)
    return kept, would


def test_what_a_weighting_is_told_is_on_average_what_it_would_have_gained_by_itself() -> None:
    rng = np.random.default_rng(0)
    places = rng.integers(-1, 3, (4000, 30, 4)).astype(np.int32)
    kept, would = rated_turns(POLICY, places, np.array([0.9, 0.5, 0.2]))
    state = so_far(kept, 4000)
    for m in range(4):
        error = state.gained[:, m].std() / 4000**0.5
        assert state.gained[:, m].mean() == pytest.approx(would[m], abs=4 * error)
        assert error < 0.2
        assert state.tried[:, m].mean() == pytest.approx((places[:, :, m] >= 0).sum(axis=1).mean(), abs=0.5)


@pytest.mark.req("K31")
def test_it_comes_to_follow_the_weighting_that_is_right_more_often_and_the_llm_where_none_is() -> None:
    rng = np.random.default_rng(1)
    order = rng.permuted(np.tile(np.arange(3, dtype=np.int32), (60, 300, 1)), axis=2)
    places = np.concatenate([order, np.full((60, 300, 1), -1, np.int32)], axis=2)
    places[:, :, :3] = np.arange(3)  # weighting i always takes place i, the last one the LLM
    for right, best in ((np.array([0.3, 1.0, 0.5]), 1), (np.array([0.3, 0.5, 0.2]), -1)):
        kept, _ = rated_turns(POLICY, places, right)
        state = so_far(kept, 60)
        made = POLICY.choose(shown(replace(state, place=places[:, 0])), samples.draws(rng, 60))
        assert (made.place == best).mean() > 0.7
        assert made.propensity[made.place == best].mean() > 0.8
        deaf, _ = rated_turns(replace(POLICY, rate=0.0), places, right)
        state = so_far(deaf, 60)
        made = replace(POLICY, rate=0.0).choose(shown(replace(state, place=places[:, 0])), samples.draws(rng, 60))
        assert made.propensity == pytest.approx(0.25)


def test_without_trials_it_does_not_run_and_settings_without_a_meaning_are_refused_by_name() -> None:
    c = shown(trials(0, 3))
    with pytest.raises(ValueError, match="needs trials"):
        POLICY.choose(replace(c, trials=None), samples.draws(np.random.default_rng(0), 3))
    for change, says in (
        ({"threshold": -0.1}, "threshold=-0.1"),
        ({"llm_ok": 1.5}, "llm_ok=1.5"),
        ({"explore": 0.0}, "explore=0.0"),
        ({"rate": float("nan")}, "rate=nan"),
        ({"weights": ()}, "weights"),
        ({"weights": ((0.0, 0.0, 1.0),)}, "one of the first two above 0"),
        ({"weights": ((1.0, 0.0),)}, "similarity, preference, score"),
    ):
        with pytest.raises(UsageError, match=says):
            replace(POLICY, **change)
