"""vCache: its bound on errors per request in worlds where its assumptions hold, and what it does before it knows."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.batch import ADD, NONE_RENEWED, REMOVE, TAG, UPDATE, RenewedSkills
from skg_bench.core.deciding import Candidates
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import AGREES, KnownFeedback, feedback
from skg_bench.core.grid import F64, I32, Bool
from skg_bench.policy.vcache import ShadowLabels, VCache, lower_bound
from tests.policy.played import HEARD_NOTHING, decided, keys, renewing
from tests.policy.played import candidates as any_candidates

seeds = st.integers(0, 2**32)
NEAREST = 4


def labels(seed: int, b: int = 40, turns: int = 60, made: float = 0.5) -> tuple[F64, ShadowLabels]:
    """A similarity now, and comparisons of skill 4 whose outcome follows a threshold at 0.6; others are of skill 2."""
    rng = np.random.default_rng(seed)
    earlier = rng.random((b, turns))
    same = rng.random((b, turns)) < 1 / (1 + np.exp(-20 * (earlier - 0.6)))
    skill = np.where(rng.random((b, turns)) < made, NEAREST, 2).astype(np.int32)
    return rng.random(b), ShadowLabels(skill, earlier, same)


def candidates(similarity: F64, nearest: I32 | int = NEAREST) -> Candidates:
    """Shortlists of two skills with this similarity of the nearest."""
    b = len(similarity)
    skill = np.tile(np.array([NEAREST, 2, -1], np.int32), (b, 1))
    skill[:, 0] = nearest
    whole = replace(any_candidates(0, b, 3), skill=skill, similarity=np.zeros((b, 3)))
    whole.similarity[:, 0] = similarity
    return whole


def agreement(rows: np.ndarray, turn: int, same: Bool) -> KnownFeedback:
    return feedback(rows, turn, AGREES, same.astype(np.int32), np.full(len(rows), -1, np.int32))


@pytest.mark.parametrize(
    ("threshold", "steepness", "delta"), [(0.5, 10, 0.1), (0.7, 40, 0.02), (0.3, 200, 0.05), (1.5, 10, 0.1)]
)
def test_errors_per_request_stay_below_delta_at_every_stage_where_the_assumptions_hold(
    threshold: float, steepness: float, delta: float
) -> None:
    """80 skills that nobody knows anything about, 150 messages each; a threshold beyond 1: hardly ever right."""
    rng, users, turns = np.random.default_rng(0), 80, 150
    similarity = rng.random((users, turns))
    chance = 1 / (1 + np.exp(-steepness * (similarity - threshold)))
    right = rng.random((users, turns)) < chance
    policy = VCache(delta, 6)
    state = policy.start(users)
    wrong, hits = np.zeros((users, turns), np.bool_), np.zeros((users, turns), np.bool_)
    for t in range(turns):
        decision = decided(policy, candidates(similarity[:, t], 0), state, t, keys(t, users))
        hit = decision.place == 0
        offered = np.flatnonzero(~hit)
        state = policy.learn(state, decision, agreement(offered, t, right[offered, t]), NONE_RENEWED)
        hits[:, t], wrong[:, t] = hit, hit & ~right[:, t]
    for stage in np.split(wrong, 3, axis=1):
        rate = stage.mean()
        error = stage.mean(axis=1).std(ddof=1) / users**0.5
        assert rate <= delta + 3 * error
    best = np.minimum(1.0, delta / np.maximum(1.0 - chance, 1e-9)).mean()  # hits of one who knows the chances
    assert hits[:, -50:].mean() > 0.4 * best
    assert not hits[:, :6].any()


@settings(deadline=None, max_examples=15)
@given(seed=seeds)
def test_the_bound_is_below_the_chance_that_the_posterior_gives(seed: int) -> None:
    """Against a posterior in floating point, cell by cell."""
    similarity, seen = labels(seed, 12)
    compared = seen.skill == NEAREST
    bound = lower_bound(similarity, seen.similarity, seen.same, compared)
    t, g = np.meshgrid(np.arange(129) / 128, [4, 8, 16, 32, 64, 128, 256], indexing="ij")
    for u in range(12):
        made = compared[u]
        s = np.rint(seen.similarity[u][made] * 128) / 128
        z = g * (s[:, None, None] - t)
        log = np.where(seen.same[u][made][:, None, None], -np.logaddexp(0, -z), -np.logaddexp(0, z)).sum(axis=0)
        weight = np.exp(log - log.max())
        weight /= weight.sum()
        now = 1 / (1 + np.exp(-g * (np.rint(similarity[u] * 128) / 128 - t)))
        best = max(x * weight[now >= x].sum() for x in np.unique(now))
        assert bound[u] == pytest.approx(best, abs=2e-3)
        assert bound[u] <= (weight * now).sum() + 2e-3
        assert bound[u] * 65536 == round(bound[u] * 65536)


@settings(deadline=None, max_examples=15)
@given(seed=seeds, delta=st.sampled_from([0.01, 0.05, 0.3]))
def test_the_nearest_skill_has_what_the_bound_leaves_it_and_the_llm_the_rest(seed: int, delta: float) -> None:
    similarity, seen = labels(seed)
    share = VCache(delta, 6).propensities(candidates(similarity), seen)
    bound = lower_bound(similarity, seen.similarity, seen.same, seen.skill == NEAREST)
    answers = np.where((seen.skill == NEAREST).sum(axis=1) >= 6, np.minimum(1.0, delta / (1.0 - bound)), 0.0)
    assert share[:, 1] == pytest.approx(answers, abs=1e-12)
    assert share[:, 0] == pytest.approx(1 - answers, abs=1e-12)
    assert (share[:, 1] * (1 - bound) <= delta + 1e-12).all()
    assert not share[:, 2:].any()


@pytest.mark.parametrize(("least", "made"), [(6, 5), (1, 0), (20, 19)])
def test_before_enough_comparisons_of_the_nearest_skill_the_llm_answers_with_certainty(least: int, made: int) -> None:
    similarity, seen = labels(0, turns=30)
    for skill, some in ((NEAREST, True), (2, False)):  # comparisons of the other skill do not count
        more = np.where(np.arange(30) < made + 1, skill, -1).astype(np.int32)
        less = np.where(np.arange(30) < made, skill, -1).astype(np.int32)
        agreed = np.ones((40, 30), np.bool_)
        for single, enough in ((less, False), (more, some)):
            known = replace(seen, skill=np.tile(single, (40, 1)), same=agreed)
            share = VCache(0.3, least).propensities(candidates(similarity), known)
            assert ((share[:, 0] == 1) != enough).all()
            assert (share[:, 1] > 0).all() == enough


def test_what_always_agreed_is_answered_and_what_never_did_hardly_ever() -> None:
    _, seen = labels(0, 400, 200, made=1.0)
    near, c = replace(seen, similarity=0.5 + seen.similarity / 2), candidates(np.full(400, 0.95))
    always = VCache(0.05, 6).propensities(c, replace(near, same=np.ones_like(seen.same)))
    never = VCache(0.05, 6).propensities(c, replace(near, same=np.zeros_like(seen.same)))
    assert (always[:, 1] == 1).all()
    assert (never[:, 1] < 0.1).all()


def compare(
    policy: VCache, state: ShadowLabels, t: int, skill: list[int], batch: RenewedSkills = NONE_RENEWED
) -> ShadowLabels:
    """Turn `t`, at which the LLM said the same as the nearest skill of each user, of similarity 1/2 + t/64."""
    n = len(skill)
    c = candidates(np.full(n, 0.5 + t / 64), np.array(skill, np.int32))
    decision = decided(policy, c, policy.start(n), t, keys(t, n))
    assert (decision.place == -1).all()
    return policy.learn(state, decision, agreement(np.arange(n), t, np.ones(n, np.bool_)), batch)


@pytest.mark.parametrize("op", [ADD, UPDATE])
def test_a_replaced_answer_begins_anew_and_only_its_own_comparisons_are_forgotten(op: int) -> None:
    policy = VCache(0.3, 3)
    state = policy.start(2)
    for t in range(6):
        state = compare(policy, state, t, [t % 2, 1])
    similarity = np.full(2, 0.9)

    def answers(nearest: list[int]) -> list[bool]:
        share = policy.propensities(candidates(similarity, np.array(nearest, np.int32)), state)
        return [bool(answering > 0) for answering in share[:, 1]]

    assert (answers([0, 1]), answers([1, 0])) == ([True, True], [True, False])
    assert state.similarity[0, 3] == 0.5 + 3 / 64
    for other in (TAG, REMOVE):
        state = policy.learn(state, decided(policy, candidates(similarity), state, 6, keys(0, 2)), HEARD_NOTHING,
                             renewing([0, 1], [1, 1], other))  # fmt: skip
    assert (answers([0, 1]), answers([1, 0])) == ([True, True], [True, False])
    state = compare(policy, state, 6, [1, 1], renewing([0, 0], [1, 7], op))  # compared with the answer that goes
    assert (answers([0, 1]), answers([1, 0])) == ([True, True], [False, False])
    assert (state.skill[0, :7] == 1).sum() == 0
    assert (state.skill[0, :7] == 0).sum() == 3
    assert (state.skill[1, :7] == 1).sum() == 7
    for t in range(7, 10):
        assert answers([1, 1]) == [False, True]
        state = compare(policy, state, t, [1, 1])
    assert answers([1, 1]) == [True, True]


def test_where_nothing_was_compared_nothing_is_learned() -> None:
    policy = VCache(0.3, 1)
    state = compare(policy, policy.start(3), 0, [0, 0, 0])
    decision = decided(policy, candidates(np.full(3, 0.9), 0), policy.start(3), 1, keys(0, 3))
    state = policy.learn(state, decision, agreement(np.array([1]), 1, np.array([False])), NONE_RENEWED)
    assert state.skill[:, :3].tolist() == [[0, -1, -1], [0, 0, -1], [0, -1, -1]]
    assert state.same[1, :2].tolist() == [True, False]


def test_memories_of_any_width_learn_the_same() -> None:
    """The arrays begin with room for eight turns and grow; here they have room for all from the start."""
    policy, users = VCache(0.3, 3), 4
    small = policy.start(users)
    wide = ShadowLabels(np.full((users, 64), -1, np.int32), np.zeros((users, 64)), np.zeros((users, 64), np.bool_))
    first = small.skill.shape[1]
    for t in range(20):
        nearest, batch = [t % 3, 0, 1, t % 2], renewing([0, 2], [1, 0]) if t == 12 else NONE_RENEWED
        small, wide = (compare(policy, state, t, nearest, batch) for state in (small, wide))
        c = candidates(np.full(users, 0.8), np.array(nearest, np.int32))
        assert np.array_equal(policy.propensities(c, small), policy.propensities(c, wide))
    assert first < 20 <= small.skill.shape[1]
    for column in ("skill", "similarity", "same"):
        assert np.array_equal(getattr(small, column)[:, :20], getattr(wide, column)[:, :20])
    assert (small.skill[:, 20:] == -1).all()


@pytest.mark.parametrize(("parameters", "says"), [((0.0, 6), "delta=0"), ((1.0, 6), "delta=1"), ((0.1, 0), "least=0"),
                                                 ((float("nan"), 6), "delta=nan")])  # fmt: skip
def test_parameters_that_bound_nothing_are_refused(parameters: tuple[float, int], says: str) -> None:
    with pytest.raises(UsageError, match=rf"policy\.{says}"):
        VCache(*parameters)
