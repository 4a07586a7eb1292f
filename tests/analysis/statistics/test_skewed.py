"""The score interval: two functions that undo one another, and its limits."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skg_bench.analysis.statistics.skewed import detectable_at, error_at, student_at

quantiles, tails = st.floats(-8.0, 8.0), st.floats(-1.0, 1.0)
numbers = st.one_of(st.floats(1.0, 1000.0), st.just(inf))


@given(quantiles, tails, numbers)
def test_an_error_and_its_quantile_undo_one_another(q: float, skewness: float, effects: float) -> None:
    assert student_at(error_at(q, skewness, effects), skewness, effects) == pytest.approx(q, abs=1e-6, rel=1e-6)


@given(quantiles, quantiles, tails, numbers)
def test_a_larger_quantile_is_a_larger_error_and_the_sign_is_nobodys(
    a: float, b: float, skewness: float, effects: float
) -> None:
    low, high = sorted((a, b))
    assert error_at(low, skewness, effects) <= error_at(high, skewness, effects)
    assert error_at(-low, -skewness, effects) == pytest.approx(-error_at(low, skewness, effects))


@given(st.floats(0.5, 4.0), st.floats(0.0, 1.0), numbers)
def test_the_end_in_the_tail_is_out_further_than_students_and_the_other_nearer(
    q: float, skewness: float, effects: float
) -> None:
    assert -error_at(-q, skewness, effects) >= q >= error_at(q, skewness, effects)


def test_the_fewer_effects_the_further_out_the_tail_and_the_nearer_to_student_the_other_end() -> None:
    ends = [(-error_at(-2.0, 0.4, m), error_at(2.0, 0.4, m)) for m in (2.0, 10.0, 1000.0, inf)]
    assert ends == sorted(ends, reverse=True)


def test_without_skewness_and_with_effects_without_number_it_is_student() -> None:
    assert error_at(2.0, 0.0, inf) == 2.0
    assert detectable_at(2.0, 0.85, 0.0, inf) == pytest.approx(2.85)


def test_against_a_tail_more_is_needed_and_among_few_uneven_effects_too() -> None:
    with_tail, against = detectable_at(2.0, 0.85, 0.4, 8.0), detectable_at(2.0, 0.85, -0.4, 8.0)
    assert against > with_tail
    assert detectable_at(2.0, 0.85, 0.0, 3.0) > detectable_at(2.0, 0.85, 0.0, 30.0) > 2.85
