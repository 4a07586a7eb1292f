"""The word for a paired difference: its sign, and what counts as better in the metric."""

from dataclasses import replace

import pytest

from skg_bench.analysis.counts.measure import _verdict, differences
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
    assert _verdict(metric, estimate, shown=True, twin=True) == "identical"
    assert _verdict(metric, replace(estimate, mean=float("nan")), shown=True, twin=True) == "not measured"


def test_a_difference_holds_the_p_values_and_detectable_effects_of_both_kinds_of_requests() -> None:
    metric = Metric("hit_rate", "hit rate", "share", "higher", "turn", {"hit": 1}, "Share of requests.")
    estimate = Estimate(0.02, 0.005, 30.0, 0.012, 20.0, 31, 0)
    (told,) = differences(metric, [estimate])
    assert (told.p, told.p_new) == (estimate.p(new=False), estimate.p(new=True))
    assert (told.mde, told.mde_new) == (estimate.detectable(new=False), estimate.detectable(new=True))
    assert told.p < told.p_new
