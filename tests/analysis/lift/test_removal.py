"""Removing skills: chosen on some weeks, and scored on the others."""

from dataclasses import replace

import numpy as np
import pytest

from skg_bench.analysis.lift.first_order import Lifts, removal


def made(early: list[float], late: list[float], ok: list[int], user: list[int]) -> Lifts:
    """Skills with these lifts in both halves, of two users with 10 turns in each half."""
    n = len(early)
    return Lifts(
        noun="skills", users=np.arange(2, dtype=np.int32), turns=np.full((2, 2), 10), user=np.array(user, np.int32),
        skill=np.arange(n, dtype=np.int32), born=np.arange(n), name=["x"] * n, served=np.ones((n, 2), np.int64),
        right=np.zeros(n, np.int64), lift=np.array([early, late]).T, rest=0.0,
        squares=np.ones(n), decisive=np.zeros(n, np.int64),
        ratings=np.stack([np.array(ok), np.full(n, 2)], axis=1),
    )  # fmt: skip


def test_removing_is_scored_on_weeks_that_chose_nothing() -> None:
    lifts = made([-3, 1, -2, 4], [-5, 2, 6, -1], [2, 0, 0, 2], [0, 0, 1, 1])
    gone = removal(lifts)
    assert gone.skills == 2
    assert gone.by_lift.mean == pytest.approx((5 / 10 - 6 / 10) / 2)  # of user 1 the good one went, as it had hurt
    assert gone.by_ratings.mean == pytest.approx((-2 / 10 - 6 / 10) / 2)
    assert gone.by_coin.mean == pytest.approx(((5 - 2) / 2 / 10 + (-6 + 1) / 2 / 10) / 2)
    never_served = replace(lifts, served=np.array([[0, 1]] * 4))
    assert removal(never_served).skills == 0
    assert lifts.share_that_hurts().mean == pytest.approx(0.25)
