"""Thompson sampling: whole rows, exact on levels, and near the integral over Beta posteriors."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats

from skg_bench.core.deciding import Candidates
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64
from skg_bench.policy.thompson import RATE_LEVELS, Thompson
from tests.policy.played import candidates, decided, keys

POLICY = Thompson(0.25, 1.0, 1.0, 3.0, 2.0)
RATE = (np.arange(RATE_LEVELS) + 0.5) / RATE_LEVELS


def posteriors(policy: Thompson, c: Candidates, u: int) -> dict[int, tuple[float, float]]:
    """Of the LLM (-1) and the places that reach the threshold."""
    parameters = {-1: (policy.llm_ok, policy.llm_miss)}
    for k in range(c.skill.shape[1]):
        if c.skill[u, k] >= 0 and c.combined[u, k] >= policy.threshold:
            ok, rated = c.ok[u, k], c.rated[u, k]
            parameters[k] = (policy.prior_ok + ok, policy.prior_miss + rated - ok)
    return parameters


def levels(ok: float, miss: float) -> F64:
    """A Beta posterior on the levels."""
    log = (ok - 1) * np.log(RATE) + (miss - 1) * np.log1p(-RATE)
    weight: F64 = np.exp(log - log.max())
    weight /= weight.sum()
    return weight


def integral(parameters: dict[int, tuple[float, float]], action: int) -> float:
    """That the rate of `action` is the largest, by quadrature."""
    others = [stats.beta(*ab) for a, ab in parameters.items() if a != action]
    winner = stats.beta(*parameters[action])
    return float(integrate.quad(lambda x: winner.pdf(x) * np.prod([o.cdf(x) for o in others]), 0, 1, limit=200)[0])


def counted(of: dict[int, tuple[float, float]], skill: dict[int, int]) -> dict[int, float]:
    """What each action wins, counted over all tuples of levels; of equal levels the LLM wins, then the lower id."""
    order = sorted(of, key=lambda action: skill.get(action, -1))
    grids = np.meshgrid(*[np.arange(RATE_LEVELS)] * len(order), indexing="ij")
    joint = np.ones([1] * len(order))
    for axis, action in enumerate(order):
        shape = [RATE_LEVELS if axis == other else 1 for other in range(len(order))]
        joint = joint * levels(*of[action]).reshape(shape)
    winner = np.argmax(grids, axis=0)  # of equal levels the first in order
    return {action: float(joint[winner == axis].sum()) for axis, action in enumerate(order)}


def row(won: dict[int, float], k: int) -> list[float]:
    return [won.get(action, 0.0) for action in range(-1, k)]


def test_whole_rows_are_those_of_a_count_over_all_triples_of_levels() -> None:
    c, sizes = candidates(0, b=40, k=2), set[int]()
    share = POLICY.propensities(c, None)
    for u in range(40):
        of = posteriors(POLICY, c, u)
        won = counted(of, {k: int(c.skill[u, k]) for k in of if k >= 0})
        assert share[u] == pytest.approx(row(won, 2), abs=1e-8)
        sizes.add(len(of))
    assert sizes == {1, 2, 3}


@pytest.mark.parametrize("skill", [[9, 4], [4, 9]])
def test_of_equal_levels_the_llm_wins_and_then_the_lower_id(skill: list[int]) -> None:
    """Three equal posteriors that nobody can tell apart: what differs is ties alone."""
    policy = Thompson(0.25, 1.0, 1.0, 3.5, 2.5)
    c = replace(
        candidates(0, b=1, k=2), skill=np.array([skill], np.int32), combined=np.array([[0.5, 0.9]]),
        ok=np.array([[2.5, 2.5]]), rated=np.array([[4, 4]], np.int32),
    )  # fmt: skip
    share = policy.propensities(c, None)[0]
    won = counted(posteriors(policy, c, 0), dict(enumerate(skill)))
    assert share == pytest.approx(row(won, 2), abs=1e-8)
    lower, higher = np.argsort(skill) + 1
    assert share[0] - share[lower] > 1e-3
    assert share[lower] - share[higher] > 1e-3


def test_rows_of_five_skills_are_those_of_a_sum_over_levels_action_by_action() -> None:
    c = candidates(5, b=60)
    share = POLICY.propensities(c, None)
    for u in range(60):
        of = posteriors(POLICY, c, u)
        item = {k: -1 if k < 0 else int(c.skill[u, k]) for k in of}
        part = {k: levels(*of[k]) for k in of}
        won = {}
        for action in of:
            won[action] = 0.0
            for level in range(RATE_LEVELS):
                chance = part[action][level]
                for other in of:
                    if other != action:
                        chance *= part[other][: level + (item[other] > item[action])].sum()
                won[action] += chance
        assert share[u] == pytest.approx(row(won, 5), abs=1e-8)


def test_rows_are_near_what_the_posteriors_say() -> None:
    c, several = candidates(5, b=12), 0
    share = POLICY.propensities(c, None)
    for u in range(12):
        of = posteriors(POLICY, c, u)
        won = {action: integral(of, action) if len(of) > 1 else 1.0 for action in of}
        assert share[u] == pytest.approx(row(won, 5), abs=0.01)
        several += len(of) > 2
    assert several >= 3


def test_below_the_threshold_nothing_is_drawn_and_a_skill_that_failed_often_is_hardly_tried() -> None:
    c = candidates(6, b=40)
    low = POLICY.propensities(replace(c, combined=np.minimum(c.combined, 0.2)), None)
    assert (low[:, 0] == 1).all()
    assert not low[:, 1:].any()
    rated = np.full((40, 5), 50, np.int32)
    bad = decided(POLICY, replace(c, ok=np.zeros((40, 5)), rated=rated), None, 0, keys(0, 40))
    good = decided(POLICY, replace(c, ok=rated.astype(np.float64), rated=rated), None, 0, keys(0, 40))
    reached = (c.combined >= 0.25).any(axis=1)
    assert np.mean(bad.place[reached] >= 0) < 0.1
    assert np.mean(good.place[reached] >= 0) > 0.9


def test_a_posterior_of_a_million_ratings_has_propensities_still() -> None:
    c = candidates(7, b=40)
    for ok in (0.0, 1e6):
        many = replace(c, ok=np.full((40, 5), ok), rated=np.full((40, 5), 10**6, np.int32))
        share = Thompson(0.25, 1e-3, 1e-3, 1e6, 1e6).propensities(many, None)
        assert ((share >= 0) & (share <= 1)).all()
        assert share.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
        reached = (c.combined >= 0.25).any(axis=1)
        assert share[reached, 0] == pytest.approx(0.0 if ok else 1.0, abs=1e-9)


@pytest.mark.parametrize("name", ["prior_ok", "prior_miss", "llm_ok", "llm_miss"])
@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_a_posterior_that_is_none_is_refused_by_name(name: str, bad: float) -> None:
    with pytest.raises(UsageError, match=f"policy.{name}={bad} must be above 0"):
        replace(POLICY, **{name: bad})
    with pytest.raises(UsageError, match=r"policy\.threshold=-0\.1 must lie in"):
        replace(POLICY, threshold=-0.1)
