"""EXP4 over weightings of the signals: its rows are the shares of those that name a skill, its estimates are unbiased,
and it learns.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.assistant.pipeline.signals import GROUPS, Signals
from skg_bench.core.batch import NONE_RENEWED
from skg_bench.core.deciding import Candidates
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import AGREES, RATING, KnownFeedback, feedback, joined_rows
from skg_bench.core.grid import F64, I32
from skg_bench.policy.exp4 import Exp4, Experts
from skg_bench.policy.threshold import Threshold
from tests.policy.played import candidates, decided, keys, served

GRID = ((0.6, 0.2, 0.2), (1.0, 0.0, 0.0), (0.5, 0.5, 0.0), (0.2, 0.4, 0.4))
SIGNALS = Signals(0.6, 0.2, 0.2, 1.0, 1.0, 30, tuple(GROUPS))
POLICY = Exp4(0.5, GRID, 0.05, 0.1, 0.85)
World = Callable[[np.random.Generator, int], Candidates]
seeds = st.integers(0, 2**32)


def advice(seed: int, b: int, m: int = 4) -> Experts:
    """What so many weightings could have been credited with."""
    rng = np.random.default_rng(seed)
    tried = 30 * rng.random((b, m))
    return Experts(tried * rng.random((b, m)), tried, np.zeros((b, 8, m), np.bool_), np.ones((b, 8)))


def named(policy: Exp4, c: Candidates) -> I32:
    """What each weighting takes by itself, `[B, M]`; -1: the LLM."""
    alone = [replace(policy, weights=(w,)).propensities(c, advice(0, len(c.skill), 1)) for w in policy.weights]
    assert all(np.isin(share, [0.0, 1.0]).all() for share in alone)
    return np.stack([share.argmax(axis=1) - 1 for share in alone], axis=1).astype(np.int32)


@settings(deadline=None, max_examples=20)
@given(seed=seeds, threshold=st.sampled_from([0.0, 0.25, 0.5, 0.75]))
def test_each_weighting_takes_what_the_threshold_rule_takes_with_these_weights(seed: int, threshold: float) -> None:
    scored = candidates(seed)
    for c in (scored, replace(scored, score=None)):
        taken = named(replace(POLICY, threshold=threshold), c)
        for m, (s, p, r) in enumerate(GRID):
            weighting = replace(SIGNALS, similarity=s, preference=p, score=r)
            combined = weighting.combine(c.similarity, c.preference, c.score)
            combined[c.skill < 0] = -1.0
            rule = Threshold(threshold).propensities(replace(c, combined=combined), None)
            assert np.array_equal(taken[:, m], rule.argmax(axis=1) - 1)


@settings(deadline=None, max_examples=20)
@given(seed=seeds, rate=st.sampled_from([0.0, 0.05, 1.0]), explore=st.sampled_from([0.01, 0.3, 1.0]))
def test_a_row_is_the_sum_of_the_shares_of_those_that_name_each_and_exactly_one_where_all_agree(
    seed: int, rate: float, explore: float
) -> None:
    policy, c, known = replace(POLICY, rate=rate, explore=explore), candidates(seed), advice(seed, 40)
    share, places = policy.propensities(c, known), named(policy, c)
    for u in range(40):
        odds = np.exp(rate * (known.gained[u] - 0.85 * known.tried[u]))
        shares = (1 - explore) * odds / odds.sum() + explore / 4
        expected = np.zeros(6)
        for place, part in zip(places[u], shares, strict=True):
            expected[1 + place] += part
        assert share[u] == pytest.approx(expected, abs=1e-8)
        if len(set(places[u].tolist())) == 1:
            assert share[u].max() == 1.0


def world(rng: np.random.Generator, b: int) -> Candidates:
    """Three skills; signals of any height."""
    c = candidates(int(rng.integers(2**32)), b, 3)
    return replace(c, skill=np.tile(np.arange(3, dtype=np.int32), (b, 1)))


def apart(rng: np.random.Generator, b: int) -> Candidates:
    """Three skills; each signal speaks for one of them, no matter which comes first."""
    skill = rng.permuted(np.tile(np.arange(3, dtype=np.int32), (b, 1)), axis=1)
    similarity, preference, score = (np.where(skill == i, 1.0, 0.0) for i in range(3))
    return replace(world(rng, b), skill=skill, similarity=similarity, preference=preference, score=score)


def rated_turns(
    policy: Exp4, b: int, turns: int, right: F64, seed: int = 0, *, of: World = world, rated: float = 1.0
) -> tuple[Experts, F64, F64]:
    """Turns in which skill i is right with probability `right[i]`; its rating comes up to 5 turns later, or never.

    Returns what was learned, and how much each weighting would have gained by itself and how often it names a skill, on
    average a user, in turns that would have been rated.
    """
    rng, state, m = np.random.default_rng(seed), policy.start(b), len(policy.weights)
    would, names = np.zeros((b, m)), np.zeros((b, m))
    waiting: dict[int, list[KnownFeedback]] = {t: [] for t in range(turns)}
    for t in range(turns):
        c = of(rng, b)
        places = named(policy, c)
        decision = decided(policy, c, state, t, keys(seed + 1 + t, b))
        ok, tells = rng.random((b, len(right))) < right, rng.random(b) < rated
        skill, due = served(decision), np.minimum(t + rng.integers(0, 6, b), turns - 1)
        for when in range(t, min(t + 6, turns)):
            rows = np.flatnonzero((skill >= 0) & tells & (due == when))
            rating = np.where(ok[rows, skill[rows]], 0, 2).astype(np.int32)
            waiting[when].append(feedback(rows, t, RATING, rating, skill[rows]))
        state = policy.learn(state, decision, joined_rows(waiting.pop(t)), NONE_RENEWED)
        taken = np.take_along_axis(c.skill, np.maximum(places, 0), axis=1)
        hit = (places >= 0) & tells[:, None]
        would += np.take_along_axis(ok, taken, axis=1) & hit
        names += hit
    return state, would.mean(axis=0), names.mean(axis=0)


@pytest.mark.parametrize("rated", [1.0, 0.4])
def test_what_a_weighting_is_told_is_on_average_what_it_would_have_gained_by_itself(rated: float) -> None:
    """Ratings come late: the credit is over the propensity of the turn that was rated."""
    b = 4000
    state, would, names = rated_turns(replace(POLICY, rate=0.3), b, 30, np.array([0.9, 0.5, 0.2]), rated=rated)
    assert state.gained.shape == (b, 4)
    for credited, expected in ((state.gained, would), (state.tried, names)):
        for m in range(4):
            error = credited[:, m].std() / b**0.5
            assert credited[:, m].mean() == pytest.approx(expected[m], abs=4 * error)
            assert error < 0.3


def test_memories_of_any_width_learn_the_same() -> None:
    """The arrays begin with room for eight turns and grow; here they have room for all from the start."""
    small, wide = POLICY.start(20), POLICY.start(20)
    wide = replace(wide, backed=np.zeros((20, 64, 4), np.bool_), propensity=np.ones((20, 64)))
    first = small.backed.shape[1]
    for t in range(20):
        c = candidates(t, 20, skills=5)
        decision = decided(POLICY, c, small, t, keys(t, 20))
        skill = served(decision)
        told = np.flatnonzero(skill >= 0)
        known = feedback(told, t, RATING, (told % 3).astype(np.int32), skill[told])
        small, wide = (POLICY.learn(state, decision, known, NONE_RENEWED) for state in (small, wide))
    assert first < 20 <= small.backed.shape[1]
    assert np.array_equal(small.gained, wide.gained)
    assert np.array_equal(small.tried, wide.tried)
    assert np.array_equal(small.backed[:, :20], wide.backed[:, :20])
    assert small.tried.any()


def test_a_memory_that_began_later_ignores_ratings_of_turns_before() -> None:
    """A fork starts anew at a late turn; what is rated then was chosen by another policy."""
    c = candidates(0, 10)
    known = feedback(np.arange(10), 2, RATING, np.zeros(10, np.int32), np.zeros(10, np.int32))
    state = POLICY.learn(POLICY.start(10), decided(POLICY, c, POLICY.start(10), 40, keys(0, 10)), known, NONE_RENEWED)
    assert state.backed.shape[1] > 40
    assert not state.tried.any()


def test_nothing_is_learned_from_ratings_of_the_llm_nor_from_agreement() -> None:
    c = candidates(0, 200)
    decision = decided(POLICY, c, POLICY.start(200), 0, keys(0, 200))
    skill = served(decision)
    llm, hit = np.flatnonzero(skill < 0), np.flatnonzero(skill >= 0)
    said = [feedback(llm, 0, RATING, np.zeros(len(llm), np.int32), skill[llm])]
    said += [feedback(rows, 0, AGREES, np.ones(len(rows), np.int32), skill[rows]) for rows in (llm, hit)]
    state = POLICY.learn(POLICY.start(200), decision, joined_rows(said), NONE_RENEWED)
    assert len(llm) > 20 < len(hit)
    assert state.backed[llm, 0].any()  # some weightings named the LLM
    assert not state.tried.any()
    assert not state.gained.any()
    rated = feedback(hit, 0, RATING, np.ones(len(hit), np.int32), skill[hit])
    state = POLICY.learn(POLICY.start(200), decision, joined_rows([*said, rated]), NONE_RENEWED)
    assert np.array_equal(state.tried, np.where((skill >= 0)[:, None], state.backed[:, 0], 0) / state.propensity[:, :1])
    assert np.array_equal(state.gained, state.tried / 2)  # a partial counts half


@pytest.mark.req("K31")
@pytest.mark.parametrize(("right", "best"), [((0.3, 1.0, 0.5), 1), ((0.3, 0.5, 0.2), -1)])
def test_it_comes_to_follow_the_weighting_that_is_right_more_often_and_the_llm_where_none_is(
    right: tuple[float, float, float], best: int
) -> None:
    """Weighting i follows signal i alone, which speaks for skill i; the last one never finds enough for any."""
    policy = replace(POLICY, weights=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.01, 0.0, 0.99), (1.0, 1.0, 1.0)))
    b = 60
    c = apart(np.random.default_rng(1), b)
    where = c.skill.argsort(axis=1)  # the place of each skill
    assert np.array_equal(named(policy, c), np.concatenate([where, np.full((b, 1), -1)], axis=1))
    state, _, _ = rated_turns(policy, b, 300, np.array(right), of=apart)
    share = policy.propensities(c, state)
    followed = share[np.arange(b), 1 + where[:, best]] if best >= 0 else share[:, 0]
    assert followed.mean() > 0.75
    assert (followed > 0.5).mean() > 0.9
    deaf = replace(policy, rate=0.0)
    state, _, _ = rated_turns(deaf, b, 40, np.array(right), of=apart)
    assert deaf.propensities(c, state) == pytest.approx(0.25)


def test_settings_without_a_meaning_are_refused_by_name() -> None:
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
