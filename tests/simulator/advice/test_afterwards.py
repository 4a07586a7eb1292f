"""What shoppers say later of what they did."""

from typing import Any

import numpy as np
import pytest

from skg_bench.core.draws import fold, key
from skg_bench.core.feedback import Feedback
from skg_bench.core.grid import I32, Bool
from skg_bench.simulator.advice.afterwards import Afterwards
from skg_bench.simulator.advice.levels import (
    ABANDONED,
    ACCEPTED,
    AUTO_APPROVED,
    NOT_SURE,
    OVERRIDDEN,
    REGRET_IT,
    WAIT,
    WORTH_IT,
)

N = 20_000
HOUR, DAY = 3600, 86_400
KEYS = key(0, np.arange(N, dtype=np.int32))


def said(code: int | I32, content: bool | Bool, now: int = 5 * DAY, turn: int = 0, **changes: Any) -> Feedback:
    """What N users say, each asked once."""
    usual = {"answered": 1.0, "asked_after_hours": 24, "sitting_days": 3.5, "not_sure": 0.0, "mistaken": 0.0}
    codes, pleased = (np.broadcast_to(np.asarray(value), N) for value in (code, content))
    return Afterwards(**{**usual, **changes}).said(codes, pleased, np.full(N, now), turn, KEYS, fold(KEYS, turn))


@pytest.mark.req("P30")
@pytest.mark.parametrize("code", [ACCEPTED, WAIT, OVERRIDDEN])
def test_users_say_whether_it_ended_as_they_want(code: int) -> None:
    assert set(said(code, True).value) == {WORTH_IT}
    assert set(said(code, False).value) == {REGRET_IT}


@pytest.mark.parametrize("code", [ABANDONED, AUTO_APPROVED])
def test_nobody_is_asked_where_nothing_was_decided(code: int) -> None:
    assert not len(said(code, True).row)


@pytest.mark.parametrize(
    ("parameter", "value", "share"), [("answered", 0.3, 0.3), ("not_sure", 0.2, 0.2), ("mistaken", 0.1, 0.1)]
)
def test_answers_are_missing_unsure_and_mistaken_as_often_as_stated(parameter: str, value: float, share: float) -> None:
    change: dict[str, Any] = {parameter: value}
    given = said(ACCEPTED, True, **change)
    counted = {"answered": len(given.row), "not_sure": (given.value == NOT_SURE).sum()}
    counted["mistaken"] = (given.value == REGRET_IT).sum()
    assert counted[parameter] / N == pytest.approx(share, abs=0.015)


@pytest.mark.req("P27")
def test_answers_come_in_sittings_a_day_or_more_after_the_decision() -> None:
    first, second = said(ACCEPTED, True), said(ACCEPTED, True, now=5 * DAY + HOUR, turn=1)
    assert (first.delay >= DAY).all()
    assert (first.delay < DAY + 3.5 * DAY + 64 * 6).all()
    together = np.abs((first.delay - second.delay) - HOUR) < 60
    assert together.mean() > 0.97  # an hour apart, they are answered in one sitting
    assert first.delay.mean() == pytest.approx((1 + 3.5 / 2) * DAY, rel=0.03)


def test_without_sittings_each_question_is_answered_when_it_is_asked() -> None:
    assert set(said(ACCEPTED, True, sitting_days=0.0).delay) == {DAY}
    assert set(said(ACCEPTED, True, sitting_days=0.0, asked_after_hours=0).delay) == {1}
