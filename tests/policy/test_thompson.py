"""Thompson sampling chooses as often as it says, and as the integral over Beta posteriors says."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64
from skg_bench.core.types import Candidates
from skg_bench.policy.thompson import Thompson
from tests.core import samples
from tests.policy.test_policies import candidates, rows

POLICY = Thompson(0.25, 1.0, 1.0, 3.0, 2.0)
N = 40_000


def posteriors(policy: Thompson, c: Candidates, u: int) -> dict[int, tuple[float, float]]:
    found = {-1: (policy.llm_ok, policy.llm_miss)}
    for k in range(5):
        if c.skill[u, k] >= 0 and c.combined[u, k] >= policy.threshold:
            ok, rated = c.ok[u, k], c.rated[u, k]
            found[k] = (policy.prior_ok + ok, policy.prior_miss + rated - ok)
    return found


def integral(of: dict[int, tuple[float, float]], action: int) -> float:
    """That the rate of `action` is the largest, by quadrature."""
    others = [stats.beta(*ab) for a, ab in of.items() if a != action]
    own = stats.beta(*of[action])
    return float(integrate.quad(lambda x: own.pdf(x) * np.prod([o.cdf(x) for o in others]), 0, 1, limit=200)[0])


def test_it_chooses_as_often_as_it_says_and_as_the_posteriors_say() -> None:
    c, several = candidates(5, b=8), 0
    for u in range(8):
        made = POLICY.choose(rows(c, np.full(N, u)), samples.draws(np.random.default_rng(u), N))
        of = posteriors(POLICY, c, u)
        assert set(made.place.tolist()) <= set(of)
        total = 0.0
        for action in of:
            chosen = made.place == action
            assert np.ptp(made.propensity[chosen]) == 0
            p = float(made.propensity[chosen][0])
            assert abs(chosen.mean() - p) < 5 * (p * (1 - p) / N) ** 0.5 + 1e-12
            assert p == pytest.approx(integral(of, action), abs=0.01)
            total += p
        assert total == pytest.approx(1.0, abs=1e-12)
        several += len(of) > 2
    assert several >= 3


def test_it_says_what_a_count_over_all_pairs_of_levels_says() -> None:
    """Two skills with the same posterior and the LLM with another: each triple of levels, counted."""
    c = candidates(0, b=1, k=2)
    c = replace(
        c, skill=np.array([[9, 4]], np.int32), combined=np.array([[0.5, 0.9]]), ok=np.array([[2.5, 2.5]]),
        rated=np.array([[4, 4]], np.int32),
    )  # fmt: skip
    x = (np.arange(128) + 0.5) / 128

    def part(ok: float, miss: float) -> F64:
        w: F64 = x ** (ok - 1) * (1 - x) ** (miss - 1)
        w /= w.sum()
        return w

    llm, skill = part(3.0, 2.0), part(3.5, 2.5)
    g = np.arange(128)
    joint = llm[:, None, None] * skill[None, :, None] * skill[None, None, :]  # LLM, skill 9, skill 4
    by_llm, nine, four = g[:, None, None], g[None, :, None], g[None, None, :]
    wins = {
        -1: (by_llm >= nine) & (by_llm >= four),
        0: (nine > by_llm) & (nine > four),
        1: (four > by_llm) & (four >= nine),
    }
    made = POLICY.choose(rows(c, np.zeros(200, np.int64)), samples.draws(np.random.default_rng(0), 200))
    assert set(made.place.tolist()) == set(wins)
    for action, won in wins.items():
        assert made.propensity[made.place == action] == pytest.approx(float(joint[won].sum()), abs=1e-8)


def test_below_the_threshold_nothing_is_drawn_and_a_skill_that_failed_often_is_hardly_tried() -> None:
    c = candidates(6, b=40)
    draws = samples.draws(np.random.default_rng(0), 40)
    low = POLICY.choose(replace(c, combined=np.minimum(c.combined, 0.2)), draws)
    assert (low.place == -1).all()
    assert (low.propensity == 1).all()
    assert not low.explored.any()
    rated = np.full((40, 5), 50, np.int32)
    bad = POLICY.choose(replace(c, ok=np.zeros((40, 5)), rated=rated), draws)
    good = POLICY.choose(replace(c, ok=rated.astype(np.float64), rated=rated), draws)
    reached = (c.combined >= 0.25).any(axis=1)
    assert np.mean(bad.place[reached] >= 0) < 0.1
    assert np.mean(good.place[reached] >= 0) > 0.9


def test_a_posterior_of_a_million_ratings_has_a_propensity_still() -> None:
    c, draws = candidates(7, b=40), samples.draws(np.random.default_rng(0), 40)
    for ok in (0.0, 1e6):
        many = replace(c, ok=np.full((40, 5), ok), rated=np.full((40, 5), 10**6, np.int32))
        made = Thompson(0.25, 1e-3, 1e-3, 1e6, 1e6).choose(many, draws)
        assert ((made.propensity > 0) & (made.propensity <= 1)).all()


@pytest.mark.parametrize("name", ["prior_ok", "prior_miss", "llm_ok", "llm_miss"])
@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_a_posterior_that_is_none_is_refused_by_name(name: str, bad: float) -> None:
    with pytest.raises(UsageError, match=f"policy.{name}={bad} must be above 0"):
        replace(POLICY, **{name: bad})
    with pytest.raises(UsageError, match=r"policy\.threshold=-0\.1 must lie in"):
        replace(POLICY, threshold=-0.1)
