"""The corrected mean on known truth: unbiased, and its interval holds the truth as often as it says."""

from functools import cache

import numpy as np
import pytest

from skg_bench.analysis.lift.corrected import MeanLift, PlayedSkills, agreement, corrected, look
from tests.analysis.lift.known import known

SAMPLES = 2_000


@cache
def means(n: int) -> list[MeanLift]:
    """Corrected means of the known skills, by samples of SAMPLES seeds."""
    lifts, exact = known()
    return [corrected(lifts.total, exact, look(lifts, n, seed)) for seed in range(SAMPLES)]


@pytest.mark.parametrize("n", [20, 40, 80])
def test_the_interval_holds_the_true_mean_in_93_to_97_percent_of_samples(n: int) -> None:
    _, exact = known()
    held = [mean.low <= exact.mean() <= mean.high for mean in means(n)]
    assert 0.93 <= np.mean(held) <= 0.97


def test_the_mean_is_unbiased_where_first_orders_are_not() -> None:
    lifts, exact = known()
    found = np.array([mean.mean for mean in means(40)])
    noise = found.std() / SAMPLES**0.5
    assert abs(found.mean() - exact.mean()) < 3 * noise
    assert abs(lifts.total.mean() - exact.mean()) > 10 * noise


def test_a_larger_sample_gives_a_shorter_interval_and_all_skills_give_none() -> None:
    widths = [np.mean([mean.high - mean.low for mean in means(n)]) for n in (20, 40, 80)]
    assert widths[0] > 1.3 * widths[1] > 1.3 * 1.3 * widths[2]
    lifts, exact = known()
    whole = corrected(lifts.total, exact, look(lifts, None, 0))
    assert whole.mean == pytest.approx(exact.mean())
    assert whole.low == whole.mean == whole.high


def test_exact_lifts_are_read_only_where_they_were_computed() -> None:
    lifts, exact = known()
    choice = look(lifts, 10, 7)
    unknown = np.full(len(exact), np.nan)
    unknown[choice.rows] = exact[choice.rows]
    assert corrected(lifts.total, unknown, choice) == corrected(lifts.total, exact, choice)
    lone = PlayedSkills(np.zeros(3, np.bool_), np.array([True, False, False]))
    mean = corrected(np.ones(3), np.array([3.0, np.nan, np.nan]), lone)
    assert mean.mean == 3.0
    assert np.isnan(mean.low)


def test_every_other_skill_is_drawn_equally_often_and_the_extreme_ones_always() -> None:
    lifts, _ = known()
    choices = [look(lifts, 40, seed) for seed in range(SAMPLES)]
    certain = choices[0].certain
    assert all(np.array_equal(choice.certain, certain) for choice in choices)
    order = np.argsort(lifts.total, kind="stable")
    assert certain[order[:40]].all()
    assert certain[np.argsort(-lifts.total, kind="stable")[:40]].all()
    assert not (certain & choices[0].drawn).any()
    often = np.mean([choice.drawn for choice in choices], axis=0)[~certain]
    share = 160 / (~certain).sum()
    assert often.mean() == pytest.approx(share)
    assert often.std() == pytest.approx((share * (1 - share) / SAMPLES) ** 0.5, rel=0.1)


def test_agreement_counts_equal_ones_signs_and_ranks() -> None:
    first, exact = np.array([-2.0, -1.0, 0.0, 3.0]), np.array([-2.0, 1.0, 1e-12, 2.0])
    alike = agreement(first, exact)
    assert (alike.skills, alike.equal, alike.sign) == (4, 0.5, 0.75)
    assert alike.rank == pytest.approx(0.8)
    assert np.isnan(agreement(first[:2], exact[:2]).rank)
    assert agreement(first[:0], exact[:0]).skills == 0
