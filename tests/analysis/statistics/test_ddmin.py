"""Delta debugging gives a part that shows it, of which nothing can be left out."""

from collections.abc import Callable, Sequence
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.analysis.statistics.ddmin import Subset, ddmin


def asking(needed: Sequence[set[int]]) -> tuple[list[Subset], Callable[[Sequence[Subset]], list[bool]]]:
    """Shows it wherever all of one of these sets are there; and what was asked."""
    trials: list[Subset] = []

    def shows(parts: Sequence[Subset]) -> list[bool]:
        trials.extend(parts)
        return [any(required <= set(part) for required in needed) for part in parts]

    return trials, shows


@settings(deadline=None, max_examples=80)
@given(n=st.integers(1, 400), data=st.data())
def test_what_is_found_shows_it_and_without_any_one_item_does_not(n: int, data: st.DataObject) -> None:
    places = st.sets(st.integers(0, n - 1), min_size=1, max_size=6)
    needed = data.draw(st.lists(places, min_size=1, max_size=3))
    _, shows = asking(needed)
    subset = ddmin(range(n), shows)
    assert shows([subset]) == [True]
    assert not any(shows(list(combinations(subset, len(subset) - 1))))
    assert list(subset) == sorted(subset)


def test_what_is_always_there_needs_nothing() -> None:
    assert ddmin(range(50), lambda parts: [True] * len(parts)) == ()
    assert ddmin([], lambda parts: [True] * len(parts)) == ()


def test_all_of_it_is_kept_where_all_is_needed() -> None:
    _, shows = asking([set(range(37))])
    assert ddmin(range(37), shows) == tuple(range(37))


@pytest.mark.parametrize("needed", [{399}, {0, 399}, {7, 8, 9, 200, 201, 398}])
def test_few_of_many_are_found_in_few_rounds(needed: set[int]) -> None:
    """Of 2^400 parts; a round is one call, whose parts are tried together."""
    trials, shows = asking([needed])
    rounds = 0

    def counted(parts: Sequence[Subset]) -> list[bool]:
        nonlocal rounds
        rounds += 1
        return shows(parts)

    assert set(ddmin(range(400), counted)) == needed
    assert rounds < 60
    assert len(trials) < 1500
