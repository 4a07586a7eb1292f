"""Conditions under which a claim holds are found on half of the draws, and told by the other half."""

import numpy as np
import pandas as pd
import pytest

from skg_bench.core.grid import Bool
from skg_bench.study.conditions import condition

NAMES = ["wanted", "liking", "rate"]


def draws(n: int = 300) -> pd.DataFrame:
    table = pd.DataFrame(np.random.default_rng(1).random((n, len(NAMES))), columns=NAMES)
    return table.assign(draw=np.arange(n), fixed=1.0)


def noisy(truth: Bool, share: float = 0.05) -> Bool:
    flip = np.random.default_rng(2).random(len(truth)) < share
    return truth ^ flip


def test_one_limit_is_found_where_one_parameter_tells() -> None:
    table = draws()
    found = condition(table, [*NAMES, "fixed"], noisy((table.wanted < 0.45).to_numpy()))
    assert found is not None
    (limit,) = found.limits
    assert (limit.name, limit.below) == ("wanted", True)
    assert limit.at == pytest.approx(0.45, abs=0.06)
    assert found.met.share > 0.8
    assert found.elsewhere.share < 0.2
    assert found.met.draws + found.elsewhere.draws == 150  # those that the limit was not chosen on
    assert str(found).startswith(
        f"where wanted is below {limit.at:.3g}: in {found.met.held} of {found.met.draws} draws"
    )


def test_two_limits_are_found_where_it_takes_two() -> None:
    table = draws()
    found = condition(table, NAMES, noisy(((table.wanted < 0.6) & (table.rate >= 0.4)).to_numpy()))
    assert found is not None
    assert {(limit.name, limit.below) for limit in found.limits} == {("wanted", True), ("rate", False)}
    assert found.met.share > 0.8


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_of_a_claim_that_no_parameter_moves_no_condition_is_told(share: float) -> None:
    table, told = draws(), 0
    for seed in range(40):
        told += condition(table, NAMES, np.random.default_rng(seed).random(len(table)) < share) is not None
    assert told <= 3


@pytest.mark.parametrize("always", [True, False])
def test_what_holds_in_all_draws_or_in_none_needs_no_condition(always: bool) -> None:
    table = draws(40)
    assert condition(table, NAMES, np.full(40, always)) is None
    assert condition(table, ["fixed"], noisy((table.wanted < 0.5).to_numpy())) is None


def test_draws_that_chose_the_condition_do_not_tell_how_often_it_holds() -> None:
    """Even draws obey a rule that odd ones do not: nothing is told."""
    table = draws()
    odd = (table.draw % 2 == 1).to_numpy()
    holds: Bool = np.where(odd, np.random.default_rng(3).random(300) < 0.5, (table.wanted < 0.5).to_numpy())
    assert condition(table, NAMES, holds) is None
