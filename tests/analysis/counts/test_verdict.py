"""The word for a paired difference: its sign, and what counts as better in the metric."""

from dataclasses import replace

import numpy as np
import pytest

from skg_bench.analysis.counts.measure import PROVEN, Difference, _verdict, differences
from skg_bench.analysis.counts.metrics import Better, Metric
from skg_bench.analysis.statistics.intervals import Estimate


@pytest.mark.parametrize(
    ("better", "mean", "word"),
    [
        ("higher", 0.02, "better"), ("higher", -0.02, "worse"), ("lower", 0.02, "worse"), ("lower", -0.02, "better"),
        ("neither", 0.02, "higher"), ("neither", -0.02, "lower"),
    ],
)  # fmt: skip
def test_a_shown_difference_is_named_by_its_sign_however_small(better: Better, mean: float, word: str) -> None:
    metric = Metric("hit_rate", "hit rate", "share", better, "turn", {"hit": 1}, "Share of requests.")
    estimate = Estimate(mean, 0.001, 30.0, 0.002, 20.0, 31, 0)
    assert _verdict(metric, estimate, shown=True, twin=False) == word
    assert _verdict(metric, estimate, shown=False, twin=False) == "inconclusive"
    few = replace(estimate, se_new=float("nan"), design=3.9)
    assert _verdict(metric, few, shown=False, twin=False) == "withheld"
    assert _verdict(metric, replace(few, design=float("nan")), shown=False, twin=False) == "inconclusive"
    low, high = estimate.interval(new=True)
    for bootstrap, shown in (((low, high), word), ((min(low, -0.001), max(high, 0.001)), "depends on the interval")):
        assert _verdict(metric, replace(estimate, bootstrap=bootstrap), shown=True, twin=False) == shown
    assert _verdict(metric, estimate, shown=True, twin=True) == "identical"
    assert _verdict(metric, replace(estimate, mean=float("nan")), shown=True, twin=True) == "not measured"


CORRECT = Metric("correct", "right answers", "share", "higher", "turn", {"turn": 1}, "Share of requests.")


def _tested(means: list[float], correction: str = "holm") -> list[Difference]:
    return differences(CORRECT, [Estimate(mean, 0.01, 60.0, 0.01, 60.0, 61, 0) for mean in means], correction)


def test_significance_decides_and_a_small_verdict_comes_with_what_is_left_of_it() -> None:
    (small,), (large,), (none,) = _tested([0.022]), _tested([0.04]), _tested([0.01])
    assert small.significant
    assert 0.022 < small.mde_new < 0.04
    assert [d.verdict for d in (small, large, none)] == ["better", "better", "inconclusive"]
    assert 0 < small.shrunken < 0.022
    assert np.isnan([large.shrunken, none.shrunken]).all()
    (turned,) = _tested([-0.022])
    assert turned.shrunken == pytest.approx(-small.shrunken)


@pytest.mark.parametrize("correction", ["holm", "bh", "by"])
def test_a_verdict_among_several_arms_comes_in_four_of_five_runs_at_the_size_that_is_printed(correction: str) -> None:
    rng, arms, runs = np.random.default_rng(2), 6, 400
    size = _tested([0.0] * arms, correction)[0].mde_new
    drawn = 0.01 * rng.standard_t(60, (runs, arms)) + size * np.eye(arms)[0]
    tables = [_tested(list(means), correction) for means in drawn]
    assert size > _tested([0.0])[0].mde_new
    assert np.mean([table[0].verdict == "better" for table in tables]) == pytest.approx(0.8, abs=0.06)
    if correction == "holm":
        assert np.mean([any(d.verdict in PROVEN for d in table[1:]) for table in tables]) < 0.08


def test_a_difference_holds_the_p_values_and_detectable_effects_of_both_kinds_of_requests() -> None:
    metric = Metric("hit_rate", "hit rate", "share", "higher", "turn", {"hit": 1}, "Share of requests.")
    estimate = Estimate(0.02, 0.005, 30.0, 0.012, 20.0, 31, 0)
    (told,) = differences(metric, [estimate])
    assert (told.p, told.p_new) == (estimate.p(new=False), estimate.p(new=True))
    assert (told.mde, told.mde_new) == (estimate.detectable(new=False), estimate.detectable(new=True))
    assert told.mde_rise == told.mde_fall == told.mde_new  # no skewness
    skewed = replace(estimate, skewness=-0.4, effects=20.0)  # a tail of harm: to find a gain takes more
    (uneven,) = differences(metric, [skewed])
    assert uneven.mde_rise == uneven.mde_new > uneven.mde_fall > 0
    assert told.p < told.p_new
