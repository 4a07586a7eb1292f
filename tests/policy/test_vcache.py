"""vCache: its bound on errors per request in worlds where its assumptions hold, and what it does before it knows."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.compared import Compared
from skg_bench.core.errors import UsageError
from skg_bench.core.types import Candidates
from skg_bench.engine.comparisons import Comparisons
from skg_bench.policy.vcache import VCache, lower_bound
from tests.core import samples

seeds = st.integers(0, 2**32)


def compared(seed: int, b: int = 40, turns: int = 60, made: float = 0.5) -> Compared:
    """Comparisons whose outcome follows a threshold at 0.6."""
    rng = np.random.default_rng(seed)
    earlier = rng.random((b, turns))
    same = rng.random((b, turns)) < 1 / (1 + np.exp(-20 * (earlier - 0.6)))
    return Compared(rng.random(b), earlier, same, rng.random((b, turns)) < made)


def candidates(seen: Compared) -> Candidates:
    b = len(seen.similarity)
    zero = np.zeros((b, 3), np.int32)
    skill = np.tile(np.array([4, 2, -1], np.int32), (b, 1))
    return Candidates(skill, np.full((b, 3), 0.5), zero, np.zeros((b, 3)), zero, np.zeros(b, np.int32), seen)


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
    policy, seen = VCache(delta, 6), Comparisons(users, turns)
    nearest = np.zeros(users, np.int32)
    wrong, hits = np.zeros((users, turns), np.bool_), np.zeros((users, turns), np.bool_)
    for t in range(turns):
        asked = candidates(seen.of(nearest, similarity[:, t], t))
        draws = replace(samples.draws(rng, users), policy=rng.random(users))
        hit = policy.choose(asked, draws).place == 0
        rows = np.flatnonzero(~hit)
        seen.add(t, rows, nearest[rows], similarity[rows, t], right[rows, t])
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
    seen = compared(seed, 12)
    found = lower_bound(seen)
    t, g = np.meshgrid(np.arange(129) / 128, [4, 8, 16, 32, 64, 128, 256], indexing="ij")
    for u in range(12):
        made = seen.made[u]
        s = np.rint(seen.earlier[u][made] * 128) / 128
        z = g * (s[:, None, None] - t)
        log = np.where(seen.same[u][made][:, None, None], -np.logaddexp(0, -z), -np.logaddexp(0, z)).sum(axis=0)
        weight = np.exp(log - log.max())
        weight /= weight.sum()
        now = 1 / (1 + np.exp(-g * (np.rint(seen.similarity[u] * 128) / 128 - t)))
        best = max(x * weight[now >= x].sum() for x in np.unique(now))
        assert found[u] == pytest.approx(best, abs=2e-3)
        assert found[u] <= (weight * now).sum() + 2e-3
        assert found[u] * 65536 == round(found[u] * 65536)


@settings(deadline=None, max_examples=15)
@given(seed=seeds, delta=st.sampled_from([0.01, 0.05, 0.3]))
def test_propensities_are_exact_and_users_do_not_know_of_one_another(seed: int, delta: float) -> None:
    seen, n = compared(seed, 4), 200
    policy = VCache(delta, 6)
    whole = policy.choose(candidates(seen), samples.draws(np.random.default_rng(seed), 4))
    for u in range(4):
        own = candidates(seen).rows(np.array([u]))
        draws = samples.draws(np.random.default_rng(seed), 4)
        alone = policy.choose(own, samples.some_draws(draws, [u]))
        assert (alone.place[0], alone.propensity[0]) == (whole.place[u], whole.propensity[u])
        many = candidates(seen).rows(np.full(n, u))
        made = policy.choose(many, replace(samples.draws(np.random.default_rng(0), n), policy=(np.arange(n) + 0.5) / n))
        for place in (0, -1):
            chosen = made.place == place
            if chosen.any():
                assert np.ptp(made.propensity[chosen]) == 0
                assert chosen.mean() == pytest.approx(made.propensity[chosen][0], abs=1 / n)
                assert (made.explored == ((chosen.mean() > 0) & (chosen.mean() < 1))).all()


def test_before_enough_comparisons_the_llm_answers_with_certainty() -> None:
    for least, made in ((6, 5), (1, 0), (20, 19)):
        seen = compared(0, turns=30)
        seen = replace(seen, made=np.arange(30) < made, same=np.ones((40, 30), np.bool_))
        seen = replace(seen, made=np.tile(seen.made, (40, 1)))
        decision = VCache(0.3, least).choose(candidates(seen), samples.draws(np.random.default_rng(0), 40))
        assert (decision.place == -1).all()
        assert (decision.propensity == 1).all()
        assert not decision.explored.any()


def test_what_always_agreed_is_answered_and_what_never_did_hardly_ever() -> None:
    seen = compared(0, 400, 200, made=1.0)
    draws = samples.draws(np.random.default_rng(0), 400)
    near = replace(seen, similarity=np.full(400, 0.95), earlier=0.5 + seen.earlier / 2)
    always = VCache(0.05, 6).choose(candidates(replace(near, same=np.ones_like(seen.same))), draws)
    never = VCache(0.05, 6).choose(candidates(replace(near, same=np.zeros_like(seen.same))), draws)
    assert (always.place == 0).all()
    assert (never.place == 0).mean() < 0.1


def test_a_replaced_answer_begins_anew_and_only_the_nearest_skills_comparisons_count() -> None:
    kept = Comparisons(2, 10)
    rows = np.arange(2)
    for t in range(6):
        skill = np.array([t % 2, 1], np.int32)
        kept.add(t, rows, skill, np.full(2, 0.5 + t / 16), np.array([True, False]))
    asked = kept.of(np.array([1, -1], np.int32), np.array([0.5, 0.0]), 5)
    assert asked.made.tolist() == [[False, True, False, True, False], [False] * 5]
    assert asked.earlier[0, 3] == 0.5 + 3 / 16
    kept.forget(np.array([0]), np.array([1]))
    assert not kept.of(np.array([1, 1], np.int32), np.zeros(2), 6).made[0].any()
    assert kept.of(np.array([0, 1], np.int32), np.zeros(2), 6).made.sum(axis=1).tolist() == [3, 6]
    kept.forget(rows)
    assert not kept.of(np.array([0, 1], np.int32), np.zeros(2), 6).made.any()


@pytest.mark.parametrize(("parameters", "says"), [((0.0, 6), "delta=0"), ((1.0, 6), "delta=1"), ((0.1, 0), "least=0"),
                                                 ((float("nan"), 6), "delta=nan")])  # fmt: skip
def test_parameters_that_bound_nothing_are_refused(parameters: tuple[float, int], says: str) -> None:
    with pytest.raises(UsageError, match=rf"policy\.{says}"):
        VCache(*parameters)


def test_it_does_not_run_without_comparisons() -> None:
    with pytest.raises(ValueError, match="needs comparisons"):
        VCache(0.1, 6).choose(
            replace(candidates(compared(0)), compared=None), samples.draws(np.random.default_rng(0), 40)
        )
