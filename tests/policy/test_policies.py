"""What policies choose, and that the propensity they report is the probability with which they choose it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.errors import UsageError
from skg_bench.core.types import Candidates, Decision, Policy
from skg_bench.policy.always import Always
from skg_bench.policy.epsilon_threshold import EpsilonThreshold
from skg_bench.policy.matched_random import MatchedRandom
from skg_bench.policy.never import Never
from skg_bench.policy.proportional import Proportional
from skg_bench.policy.softmax import Softmax
from skg_bench.policy.thompson import Thompson
from skg_bench.policy.threshold import Threshold
from skg_bench.policy.uniform import Uniform
from tests.core import samples

DETERMINISTIC: list[Policy] = [Always(), Never(), Threshold(0.5), EpsilonThreshold(0.5, 0.0)]
RANDOM: list[Policy] = [Uniform(), EpsilonThreshold(0.5, 0.3), EpsilonThreshold(0.4, 1.0), MatchedRandom(0.3)]
ALL: list[Policy] = [*DETERMINISTIC, *RANDOM, Proportional(), Softmax(0.5, 0.1), Thompson(0.5, 1.0, 1.0, 4.0, 1.0)]
seeds = st.integers(0, 2**32)


def candidates(seed: int, b: int = 40, k: int = 5) -> Candidates:
    """Shortlists of 0 to k skills, with many equal scores and some right at 0.5."""
    rng = np.random.default_rng(seed)
    n = rng.integers(0, k + 1, b)
    skill = np.stack([np.where(np.arange(k) < m, rng.permutation(50)[:k], -1) for m in n]).astype(np.int32)
    there = skill >= 0
    combined = np.where(there, rng.integers(0, 9, (b, k)) / 8, -1.0)
    uses = np.where(there, rng.integers(0, 9, (b, k)), 0).astype(np.int32)
    llm_turns = rng.integers(0, 9, b).astype(np.int32)
    rated = np.minimum(uses, rng.integers(0, 9, (b, k))).astype(np.int32)
    return Candidates(skill, combined, uses, rng.integers(0, 2 * rated + 1) / 2, rated, llm_turns)


def rows(c: Candidates, which: np.ndarray) -> Candidates:
    return c.rows(which)


def same(one: Decision, other: Decision) -> bool:
    return (
        np.array_equal(one.place, other.place)
        and np.array_equal(one.propensity, other.propensity)
        and np.array_equal(one.explored, other.explored)
    )


@pytest.mark.parametrize("policy", ALL, ids=repr)
@settings(deadline=None, max_examples=15)
@given(seed=seeds)
def test_a_decision_is_a_place_that_holds_a_skill_or_the_fallback(policy: Policy, seed: int) -> None:
    c = candidates(seed)
    made = policy.choose(c, samples.draws(np.random.default_rng(seed), 40))
    assert made.place.dtype == np.int32
    assert made.propensity.dtype == np.float64
    assert made.explored.dtype == np.bool_
    assert made.place.shape == made.propensity.shape == made.explored.shape == (40,)
    hit = made.place >= 0
    assert (made.place >= -1).all()
    assert (c.skill[hit, made.place[hit]] >= 0).all()
    assert ((made.propensity > 0) & (made.propensity <= 1)).all()


@pytest.mark.parametrize("policy", ALL, ids=repr)
@settings(deadline=None, max_examples=15)
@given(seed=seeds)
def test_users_do_not_know_of_one_another(policy: Policy, seed: int) -> None:
    c, draws = candidates(seed), samples.draws(np.random.default_rng(seed), 40)
    whole = policy.choose(c, draws)
    for which in (np.random.default_rng(seed).permutation(40), np.array([3])):
        part = policy.choose(rows(c, which), samples.some_draws(draws, which))
        assert same(part, Decision(whole.place[which], whole.propensity[which], whole.explored[which]))


@pytest.mark.parametrize("policy", ALL, ids=repr)
def test_an_empty_shortlist_leaves_the_fallback_with_certainty(policy: Policy) -> None:
    zero = np.zeros((9, 5), np.int32)
    none = Candidates(zero - 1, np.full((9, 5), -1.0), zero, np.zeros((9, 5)), zero, np.zeros(9, np.int32))
    made = policy.choose(none, samples.draws(np.random.default_rng(0), 9))
    assert (made.place == -1).all()
    assert made.propensity == pytest.approx(1.0)


@settings(deadline=None)
@given(seed=seeds)
@pytest.mark.req("K11")
def test_the_highest_combined_score_wins_and_the_llm_answers_if_none_reaches_the_threshold(seed: int) -> None:
    c = candidates(seed)
    made = Threshold(0.5).choose(c, samples.draws(np.random.default_rng(seed), 40))
    for u in range(40):
        reach = [(-c.combined[u, i], int(c.skill[u, i]), i) for i in range(5) if c.combined[u, i] >= 0.5]
        assert made.place[u] == (min(reach)[2] if reach else -1)
    assert (made.propensity == 1).all()
    assert not made.explored.any()


@pytest.mark.req("K11")
def test_a_score_right_at_the_threshold_reaches_it_and_of_equal_scores_the_lower_id_wins() -> None:
    below = 0.5 - 2.0**-16
    c = Candidates(
        np.array([[7, 3, 5], [7, 3, 5], [7, -1, -1]], np.int32),
        np.array([[0.5, 0.5, 0.5], [below, below, 0.5], [below, -1, -1]]),
        np.zeros((3, 3), np.int32),
        np.zeros((3, 3)),
        np.zeros((3, 3), np.int32),
        np.zeros(3, np.int32),
    )
    assert Threshold(0.5).choose(c, samples.draws(np.random.default_rng(0), 3)).place.tolist() == [1, 2, -1]


@pytest.mark.req("K11")
def test_a_threshold_of_zero_still_needs_a_skill() -> None:
    c = candidates(0)
    draws = samples.draws(np.random.default_rng(0), 40)
    assert same(Threshold(0.0).choose(c, draws), Always().choose(c, draws))


@settings(deadline=None)
@given(seed=seeds)
def test_always_takes_the_best_skill_and_never_takes_none(seed: int) -> None:
    c, draws = candidates(seed), samples.draws(np.random.default_rng(seed), 40)
    for u, place in enumerate(Always().choose(c, draws).place):
        there = [(-c.combined[u, i], int(c.skill[u, i]), i) for i in range(5) if c.skill[u, i] >= 0]
        assert place == (min(there)[2] if there else -1)
    assert (Never().choose(c, draws).place == -1).all()


@settings(deadline=None, max_examples=30)
@given(seed=seeds, threshold=st.integers(0, 16))
def test_without_exploration_epsilon_threshold_is_the_threshold_rule(seed: int, threshold: int) -> None:
    c, draws = candidates(seed), samples.draws(np.random.default_rng(seed), 40)
    t = threshold / 16
    assert same(EpsilonThreshold(t, 0.0).choose(c, draws), Threshold(t).choose(c, draws))


@pytest.mark.parametrize("policy", [*RANDOM, *DETERMINISTIC], ids=repr)
def test_propensities_are_the_share_of_uniforms_that_make_the_choice(policy: Policy) -> None:
    n, c = 6000, candidates(1, b=12)  # 6000 parts: each of 2 to 6 actions gets a whole number of them
    fine = (np.arange(n) + 0.5) / n
    for u in range(12):
        draws = replace(samples.draws(np.random.default_rng(u), n), policy=fine)
        made = policy.choose(rows(c, np.full(n, u)), draws)
        actions = np.unique(made.place)
        reported = 0.0
        for action in actions:
            chosen = made.place == action
            assert np.ptp(made.propensity[chosen]) == 0
            assert chosen.mean() == pytest.approx(made.propensity[chosen][0], abs=6 / n)
            reported += made.propensity[chosen][0]
        assert reported == pytest.approx(1.0)
        if policy == Uniform():
            assert len(actions) == (c.skill[u] >= 0).sum() + 1


def test_exploration_is_marked_for_its_share_of_turns() -> None:
    n = 6000
    draws = replace(samples.draws(np.random.default_rng(0), n), policy=(np.arange(n) + 0.5) / n)
    made = EpsilonThreshold(0.5, 0.3).choose(rows(candidates(1), np.zeros(n, np.int64)), draws)
    assert made.explored.mean() == pytest.approx(0.3)


def test_matched_random_hits_are_the_best_skill_at_the_rate_that_was_asked_for() -> None:
    n, c = 6000, candidates(1, b=12)
    fine = replace(samples.draws(np.random.default_rng(0), n), policy=(np.arange(n) + 0.5) / n)
    for u in range(12):
        each = rows(c, np.full(n, u))
        made, first = MatchedRandom(0.3).choose(each, fine), Always().choose(each, fine).place
        assert np.mean(made.place >= 0) == pytest.approx(0.3 if first[0] >= 0 else 0.0)
        assert np.array_equal(made.place[made.place >= 0], first[made.place >= 0])
    for certain, policy in ((0.0, Never()), (1.0, Always())):
        assert np.array_equal(MatchedRandom(certain).choose(each, fine).place, policy.choose(each, fine).place)


def test_the_proportional_policy_chooses_as_often_as_it_says_and_in_proportion_to_uses() -> None:
    n, c = 40_000, candidates(2, b=6)
    for u in range(6):
        made = Proportional().choose(rows(c, np.full(n, u)), samples.draws(np.random.default_rng(u), n))
        weight = {-1: c.llm_turns[u] + 1.0} | {k: c.uses[u, k] + 1.0 for k in range(5) if c.skill[u, k] >= 0}
        for action, w in weight.items():
            chosen, p = made.place == action, w / sum(weight.values())
            assert made.propensity[chosen] == pytest.approx(p)
            assert abs(chosen.mean() - p) < 5 * (p * (1 - p) / n) ** 0.5 + 1e-12
        assert set(made.place.tolist()) <= set(weight)


def test_the_proportional_choice_of_a_skill_does_not_depend_on_its_place() -> None:
    c, draws = candidates(3), samples.draws(np.random.default_rng(3), 40)
    turned = replace(c, skill=c.skill[:, ::-1], combined=c.combined[:, ::-1], uses=c.uses[:, ::-1])
    one, other = Proportional().choose(c, draws), Proportional().choose(turned, draws)
    assert np.array_equal(np.where(one.place < 0, -1, 4 - one.place), other.place)
    assert one.propensity == pytest.approx(other.propensity)


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan")])
def test_shares_outside_of_the_unit_interval_are_refused_by_name(bad: float) -> None:
    for build, key in (
        (lambda: Threshold(bad), "threshold"),
        (lambda: EpsilonThreshold(bad, 0.1), "threshold"),
        (lambda: EpsilonThreshold(0.5, bad), "epsilon"),
        (lambda: MatchedRandom(bad), "rate"),
    ):
        with pytest.raises(UsageError, match=rf"policy.{key}={bad} must lie in \[0, 1\]"):
            build()
