"""What policies state: a distribution over the fallback and the shortlist, and what each of them takes."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.batch import RenewedSkills
from skg_bench.core.deciding import Candidates, Policy
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import FEEDBACK_KINDS
from skg_bench.core.grid import F64, I32
from skg_bench.core.state import check_state
from skg_bench.core.state import rows as rows_of
from skg_bench.policy.always import Always
from skg_bench.policy.beta_mean import BetaMean
from skg_bench.policy.chooser import Chooser
from skg_bench.policy.epsilon_threshold import EpsilonThreshold
from skg_bench.policy.exp4 import Exp4
from skg_bench.policy.least_used import LeastUsed
from skg_bench.policy.matched_random import MatchedRandom
from skg_bench.policy.never import Never
from skg_bench.policy.proportional import Proportional
from skg_bench.policy.softmax import Softmax
from skg_bench.policy.thompson import Thompson
from skg_bench.policy.threshold import Threshold
from skg_bench.policy.uniform import Uniform
from skg_bench.policy.uniform_oldest import UniformOldest
from skg_bench.policy.vcache import VCache
from tests.policy.played import HEARD_NOTHING, Living, decided, keys, renewing, same_state, served, turned
from tests.policy.played import candidates as candidates

B, K = 40, 5
GRID = ((0.6, 0.2, 0.2), (1.0, 0.0, 0.0), (0.5, 0.5, 0.0), (0.2, 0.4, 0.4))
DETERMINISTIC: list[Policy[Any]] = [
    Always(),
    Never(),
    Threshold(0.5),
    EpsilonThreshold(0.5, 0.0),
    BetaMean(0.5, 0.4, 1.0, 1.0),
]
RANDOM: list[Policy[Any]] = [Uniform(), EpsilonThreshold(0.5, 0.3), EpsilonThreshold(0.4, 1.0), MatchedRandom(0.3)]
WEIGHED: list[Policy[Any]] = [Proportional(), Softmax(0.5, 0.1), Thompson(0.25, 1.0, 1.0, 4.0, 1.0)]
LEARNING: list[Policy[Any]] = [Exp4(0.5, GRID, 0.2, 0.1, 0.6), VCache(0.3, 2), Chooser(4.0, 2.0, 0.0, 1.5, 0.3)]
COUNTING: list[Policy[Any]] = [LeastUsed()]
ALL = [*DETERMINISTIC, *RANDOM, *WEIGHED, *LEARNING, *COUNTING]
each = pytest.mark.parametrize("policy", ALL, ids=repr)
seeds = st.integers(0, 2**32)


def places(policy: Policy[Any], c: Candidates) -> I32:
    """What a policy without memory takes where it is certain; it must be."""
    share = policy.propensities(c, None)
    assert np.isin(share, [0.0, 1.0]).all()
    taken: I32 = (share.argmax(axis=1) - 1).astype(np.int32)
    return taken


# --------------------------------------------------------------------------------------- what all policies keep


@each
@settings(deadline=None, max_examples=6)
@given(seed=seeds)
def test_each_row_is_a_distribution_over_the_fallback_and_the_skills_that_are_listed(
    policy: Policy[Any], seed: int
) -> None:
    living = Living(policy, B, seed % 100)
    for state in (living.state, living.live(12)):
        for scored in (True, False):
            c = candidates(seed, B, K, skills=5)
            c = c if scored else replace(c, score=None)
            share = policy.propensities(c, state)
            assert share.dtype == np.float64
            assert share.shape == (B, 1 + K)
            assert ((share >= 0) & (share <= 1)).all()
            assert share.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
            assert not share[:, 1:][c.skill < 0].any()


@each
@settings(deadline=None, max_examples=6)
@given(seed=seeds)
def test_users_do_not_know_of_one_another(policy: Policy[Any], seed: int) -> None:
    living = Living(policy, B, seed % 100)
    living.live(10)
    decision, known, batch = living.step()
    share = policy.propensities(decision.candidates, living.state)
    for which in (np.random.default_rng(seed).permutation(B), np.array([3])):
        own = rows_of(living.state, which)
        assert np.array_equal(policy.propensities(decision.candidates.rows(which), own), share[which])
    which = np.sort(np.random.default_rng(seed).permutation(B)[:7])
    at = np.full(B, -1, np.int32)
    at[which] = np.arange(len(which))
    heard, applied = (
        known.rows(at[known.row] >= 0),
        RenewedSkills(batch.row[at[batch.row] >= 0], batch.skill[at[batch.row] >= 0]),
    )
    heard, applied = replace(heard, row=at[heard.row]), replace(applied, row=at[applied.row])
    alone = policy.learn(rows_of(living.state, which), decision.rows(which), heard, applied)
    whole = policy.learn(living.state, decision, known, batch)
    assert same_state(alone, rows_of(whole, which))


@each
def test_a_memory_is_a_state_before_and_after_learning_and_what_is_read_is_a_kind_of_feedback(
    policy: Policy[Any],
) -> None:
    living = Living(policy, 6)
    check_state(living.state, 6, policy)
    check_state(living.live(20), 6, policy)  # beyond the first width of the arrays
    assert set(policy.reads) <= set(FEEDBACK_KINDS)
    assert (policy.start(6) is None) == (not policy.reads and policy not in COUNTING)


@pytest.mark.parametrize("policy", LEARNING, ids=repr)
def test_a_policy_learns_only_from_the_feedback_that_it_reads(policy: Policy[Any]) -> None:
    every, own = Living(policy, B), Living(policy, B)
    changed = False
    for _ in range(12):
        decision, known, batch = every.step()
        own.step()
        read = np.isin(known.kind, [list(FEEDBACK_KINDS).index(kind) for kind in policy.reads])
        changed |= bool((~read).any() and read.any())
        every.learn(decision, known, batch)
        own.learn(decision, known.rows(read), batch)
        assert same_state(every.state, own.state)
    assert changed


@pytest.mark.parametrize("policy", LEARNING, ids=repr)
def test_what_was_learned_changes_what_is_taken(policy: Policy[Any]) -> None:
    c = candidates(1, B, K, skills=5)
    before = policy.propensities(c, policy.start(B))
    after = policy.propensities(c, Living(policy, B).live(40))
    assert (np.abs(after - before).sum(axis=1) > 0.05).mean() > 0.4


@each
def test_an_empty_shortlist_leaves_the_fallback_with_certainty(policy: Policy[Any]) -> None:
    none = candidates(0, 9, K).rows(np.zeros(9, np.int64))
    none = replace(
        none, skill=np.full((9, K), -1, np.int32), similarity=np.zeros((9, K)), preference=np.zeros((9, K)),
        score=np.zeros((9, K)), combined=np.full((9, K), -1.0), llm_turns=np.zeros(9, np.int32),
    )  # fmt: skip
    for state in (policy.start(9), Living(policy, 9).live(20)):
        share = policy.propensities(none, state)
        assert (share[:, 0] == 1).all()
        assert not share[:, 1:].any()


@each
def test_what_a_skill_is_given_does_not_depend_on_its_place(policy: Policy[Any]) -> None:
    c, state = candidates(3, 200, K, skills=5), Living(policy, 200).live(20)
    if isinstance(policy, VCache):  # the first place is that of the nearest skill, so only the others are turned
        order = np.array([0, 4, 2, 1, 3])
        found = {f.name: getattr(c, f.name) for f in fields(Candidates)}
        other = Candidates(**{name: x[:, order] if np.ndim(x) == 2 else x for name, x in found.items()})
    else:
        order, other = np.arange(K)[::-1], turned(c)
    one, mixed = policy.propensities(c, state), policy.propensities(other, state)
    assert mixed[:, 0] == pytest.approx(one[:, 0], abs=1e-12)
    assert mixed[:, 1:] == pytest.approx(one[:, 1:][:, order], abs=1e-12)


@pytest.mark.parametrize("policy", [p for p in ALL if not isinstance(p, VCache | Chooser | LeastUsed)], ids=repr)
def test_ids_matter_by_their_order_alone(policy: Policy[Any]) -> None:
    c, state = candidates(4, 200, K, skills=5), Living(policy, 200).live(20)
    renamed = replace(c, skill=np.where(c.skill >= 0, 1000 + 17 * c.skill, -1).astype(np.int32))
    assert np.array_equal(policy.propensities(renamed, state), policy.propensities(c, state))


@pytest.mark.parametrize("policy", [*DETERMINISTIC, *RANDOM, *WEIGHED], ids=repr)
def test_a_policy_without_memory_learns_nothing(policy: Policy[Any]) -> None:
    living = Living(policy, B)
    assert living.live(3) is None
    assert policy.learn(None, *living.step()[:2], renewing([0], [1])) is None


# ------------------------------------------------------------------------------------------- what each of them takes


@settings(deadline=None)
@given(seed=seeds)
@pytest.mark.req("K11")
def test_the_highest_combined_score_wins_and_the_llm_answers_if_none_reaches_the_threshold(seed: int) -> None:
    c = candidates(seed)
    taken = places(Threshold(0.5), c)
    for u in range(B):
        reach = [(-c.combined[u, i], int(c.skill[u, i]), i) for i in range(K) if c.combined[u, i] >= 0.5]
        assert taken[u] == (min(reach)[2] if reach else -1)


@pytest.mark.req("K11")
def test_a_score_right_at_the_threshold_reaches_it_and_of_equal_scores_the_lower_id_wins() -> None:
    below = 0.5 - 2.0**-16
    c = replace(
        candidates(0, 3, 3), skill=np.array([[7, 3, 5], [7, 3, 5], [7, -1, -1]], np.int32),
        combined=np.array([[0.5, 0.5, 0.5], [below, below, 0.5], [below, -1, -1]]),
    )  # fmt: skip
    assert places(Threshold(0.5), c).tolist() == [1, 2, -1]


@pytest.mark.req("K11")
def test_a_threshold_of_zero_still_needs_a_skill() -> None:
    c = candidates(0)
    assert np.array_equal(places(Threshold(0.0), c), places(Always(), c))


@settings(deadline=None)
@given(seed=seeds)
def test_always_takes_the_best_skill_and_never_takes_none(seed: int) -> None:
    c = candidates(seed)
    for u, place in enumerate(places(Always(), c)):
        options = [(-c.combined[u, i], int(c.skill[u, i]), i) for i in range(K) if c.skill[u, i] >= 0]
        assert place == (min(options)[2] if options else -1)
    assert (places(Never(), c) == -1).all()


@settings(deadline=None, max_examples=30)
@given(seed=seeds, threshold=st.integers(0, 16))
def test_without_exploration_epsilon_threshold_is_the_threshold_rule(seed: int, threshold: int) -> None:
    c, t = candidates(seed), threshold / 16
    assert np.array_equal(EpsilonThreshold(t, 0.0).propensities(c, None), Threshold(t).propensities(c, None))


def weighed(c: Candidates, weight: F64) -> F64:
    """Weights `[B, 1 + K]` of those that are listed, over their sum."""
    listed = np.concatenate([np.ones((len(c.skill), 1), np.bool_), c.skill >= 0], axis=1)
    return np.array([np.where(there, w, 0.0) / w[there].sum() for there, w in zip(listed, weight, strict=True)])


@pytest.mark.req("P31")
def test_the_least_used_skill_is_taken_until_all_were_taken_as_often() -> None:
    policy, c = LeastUsed(), candidates(0, 1, 3)
    c = replace(c, skill=np.array([[4, 9, 2]], np.int32))
    state, chosen = policy.start(1), list[int]()
    for turn in range(9):
        decision = decided(policy, c, state, turn, keys(turn, 1))
        chosen.append(int(served(decision)[0]))
        state = policy.learn(state, decision, HEARD_NOTHING, renewing([], []))
    assert chosen == [2, 4, 9] * 3
    c = replace(c, skill=np.array([[4, 9, 11]], np.int32))
    assert policy.propensities(c, state).tolist() == [[0, 0, 0, 1]]  # never taken


def test_uniform_gives_each_skill_and_the_llm_the_same() -> None:
    c = candidates(1)
    assert Uniform().propensities(c, None) == pytest.approx(weighed(c, np.ones((B, 1 + K))), abs=1e-15)


def test_the_oldest_skills_are_chosen_from_whatever_else_a_book_has_learned() -> None:
    c = replace(candidates(1), skill=np.array([[9, 1, 4, 0, -1]] * B, np.int32))
    assert UniformOldest(4).propensities(c, None).tolist() == [[1 / 3, 0, 1 / 3, 0, 1 / 3, 0]] * B
    assert UniformOldest(10).propensities(c, None) == pytest.approx(Uniform().propensities(c, None))
    with pytest.raises(UsageError, match=r"policy\.skills=0 must be at least 1"):
        UniformOldest(0)


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0])
def test_epsilon_threshold_explores_in_its_share_of_turns_and_follows_the_rule_in_the_others(epsilon: float) -> None:
    c = candidates(1)
    mixed = epsilon * Uniform().propensities(c, None) + (1 - epsilon) * Threshold(0.5).propensities(c, None)
    assert EpsilonThreshold(0.5, epsilon).propensities(c, None) == pytest.approx(mixed, abs=1e-15)


def test_matched_random_hits_are_the_best_skill_at_the_rate_that_was_asked_for() -> None:
    c = candidates(1)
    first, share = places(Always(), c), MatchedRandom(0.3).propensities(c, None)
    some = first >= 0
    assert share[some, 1 + first[some]] == pytest.approx(0.3)
    assert share[some, 0] == pytest.approx(0.7)
    assert (share[~some, 0] == 1).all()
    for rate, policy in ((0.0, Never()), (1.0, Always())):
        assert np.array_equal(MatchedRandom(rate).propensities(c, None), policy.propensities(c, None))


def test_the_proportional_policy_chooses_in_proportion_to_uses() -> None:
    c = candidates(2)
    weight = np.concatenate([c.llm_turns[:, None] + 1.0, c.uses + 1.0], axis=1)
    assert Proportional().propensities(c, None) == pytest.approx(weighed(c, weight), abs=1e-15)


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
