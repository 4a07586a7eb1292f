"""Harm to few: what is chosen in one half of the turns is measured in the other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.analysis.gate import tail
from skg_bench.core.grid import F64
from tests.analysis.gate.panels import made, rule

WORST, HARMED = rule("worst_users"), rule("harmed_users")


def test_halves_are_the_even_and_the_odd_turns_of_each_user() -> None:
    hit, before = np.zeros((2, 5), np.bool_), np.zeros((2, 5), np.bool_)
    after = before.copy()
    after[0, [0, 1, 4]], before[1, 3] = True, True
    rise, turns = tail.halves(made(hit, before, "a"), made(hit, after, "b"))
    assert turns.tolist() == [[3, 2], [3, 2]]
    assert rise.tolist() == pytest.approx(np.array([[2 / 3, 1 / 2], [0, -1 / 2]]))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 300))
def test_the_mean_of_contributions_is_the_harm_of_the_chosen_in_the_other_half(seed: int, n: int) -> None:
    rise = np.random.default_rng(seed).normal(0.01, 0.02, (n, 2))
    k = -(-n // 20)
    expected = [rise[np.argsort(-rise[:, half], kind="stable")[:k], 1 - half].mean() for half in (0, 1)]
    assert tail.user_contributions(rise, WORST).mean() == pytest.approx(np.mean(expected), abs=1e-12)
    assert tail.user_contributions(rise + 0.5, WORST) == pytest.approx(tail.user_contributions(rise, WORST) + 0.5)


def test_harmed_is_who_is_so_in_both_halves() -> None:
    rise = np.array([[0.03, 0.03], [0.03, 0.01], [0.01, 0.03], [-0.03, 0.5], [0.021, 0.9]])
    assert tail.user_contributions(rise, HARMED).tolist() == [1, 0, 0, 0, 1]


@pytest.mark.parametrize("harmed", [0.0, 0.04])
def test_the_error_of_the_worst_users_is_that_of_their_contributions(harmed: float) -> None:
    """Over many panels: the estimate scatters no more than its standard error says, and is right on average."""
    rng = np.random.default_rng(0)

    def panel() -> F64:
        true = np.where(np.arange(400) < 40, harmed, 0.0)
        return true[:, None] + rng.normal(0.0, 0.005, (400, 2))

    each = [tail.user_contributions(panel(), WORST) for _ in range(400)]
    means = np.array([values.mean() for values in each])
    said = np.mean([values.std(ddof=1) / 20 for values in each])
    assert means.mean() == pytest.approx(harmed, abs=3e-4)
    assert 0.8 * said < means.std() < 1.1 * said


def test_few_who_bring_twice_the_margin_scatter_as_a_bernoulli_variable_does() -> None:
    """Planned for, where nobody of them was met: a share p of users has all of the harm."""
    for each, p, size in ((WORST, 0.05, 2 * WORST.margin / 0.05), (HARMED, 2 * HARMED.margin, 1.0)):
        harms = np.repeat([size, 0.0], [round(p * 10_000), 10_000 - round(p * 10_000)])
        deviation, skewness = each.scatter
        assert deviation == pytest.approx(harms.std())
        assert skewness == pytest.approx(((harms - harms.mean()) ** 3).mean() / harms.std() ** 3)
        assert harms.mean() == pytest.approx(2 * each.margin)
