"""The change that turns a verdict, and the study that tells a number so closely."""

from math import sqrt

import numpy as np
import pytest

from skg_bench.study.turning import JudgedDifference, study_size, turn

BETTER, WORSE, OPEN = (
    JudgedDifference(0.2, 0.1, 0.3),
    JudgedDifference(-0.2, -0.3, -0.1),
    JudgedDifference(0, -0.1, 0.1),
)


def test_the_smallest_change_that_turns_a_verdict_lies_where_the_interval_passes_0() -> None:
    smallest = turn({0.0: WORSE, 0.4: BETTER, 0.6: OPEN}, 0.4)
    assert smallest is not None
    assert smallest.word == "open"
    assert [smallest.value, smallest.change] == pytest.approx([0.5, 0.1])
    assert turn({0.0: BETTER, 1.0: BETTER}, 0.0) is None
    across = turn({0.0: WORSE, 0.4: BETTER}, 0.0)
    assert across is not None
    assert across.word == "open"  # where the upper end passes 0, and not yet the lower one
    assert across.value == pytest.approx(0.1)


def test_a_study_of_the_printed_size_tells_the_number_as_closely_as_was_asked() -> None:
    """2,000 simulated studies: the half-width of a 95 % interval is what 1.96 standard errors of their means are."""
    study = study_size(within=0.5, between=0.2, precision=0.05, per_day=2.0, labelled=True)
    rng = np.random.default_rng(3)
    per_user = rng.normal(0.0, 0.2, (2000, study.users)) + rng.normal(
        0.0, 0.5 / sqrt(2.0 * study.days), (2000, study.users)
    )
    assert 1.96 * per_user.mean(axis=1).std() == pytest.approx(0.05, rel=0.06)
    assert study.labels == study.users * study.days * 2
    assert study_size(within=0.5, between=0.2, precision=0.05, per_day=2.0, labelled=False).labels == 0
    few = study_size(within=0.4, between=0.05, precision=0.19, per_day=1.0, labelled=True)
    assert few.users == 3  # by the normal quantile 2, whose own interval is three times as wide
