"""The walk over a memory: trimmed, copied, and refused by name where it is no state."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pytest

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I32, Bool
from skg_bench.core.state import check_state, first, rows


@dataclass(frozen=True, slots=True)
class Counts:
    count: I32
    past: F64


@dataclass(frozen=True)
class Wrapper:
    own: Bool
    inner: Counts
    several: tuple[Counts, ...]
    nobody: None


@dataclass
class Loose:
    count: I32


@dataclass(frozen=True)
class Holder:
    held: Any


class Remembering:
    """A component."""


def counts(n: int, add: int = 0) -> Counts:
    return Counts(np.arange(n, dtype=np.int32) + add, np.arange(3.0 * n).reshape(n, 3) + add)


def wrapper(n: int) -> Wrapper:
    return Wrapper(np.arange(n) % 2 == 0, counts(n), (counts(n, 100), counts(n, 200)), None)


def arrays(state: Any) -> list[np.ndarray]:
    """All arrays of a memory, in order of its fields."""
    if isinstance(state, np.ndarray):
        return [state]
    if isinstance(state, tuple):
        return [array for part in state for array in arrays(part)]
    return [] if state is None else [a for f in fields(state) for a in arrays(getattr(state, f.name))]


@pytest.mark.parametrize("n", [0, 1, 4])
def test_the_first_rows_are_views_at_any_depth(n: int) -> None:
    whole = wrapper(4)
    trimmed = first(whole, n)
    check_state(trimmed, n, Remembering())
    assert isinstance(trimmed, Wrapper)
    assert isinstance(trimmed.several[1], Counts)
    assert len(arrays(trimmed)) == len(arrays(whole)) == 7
    for one, all_ in zip(arrays(trimmed), arrays(whole), strict=True):
        assert np.array_equal(one, all_[:n])
        assert one.dtype == all_.dtype
        assert n == 0 or np.shares_memory(one, all_)


@pytest.mark.parametrize("index", [[], [3], [2, 2, 0], [0, 1, 2, 3]])
def test_rows_are_copies_in_the_order_of_the_index(index: list[int]) -> None:
    whole, at = wrapper(4), np.array(index, np.int64)
    copied = rows(whole, at)
    check_state(copied, len(index), Remembering())
    for one, all_ in zip(arrays(copied), arrays(whole), strict=True):
        assert np.array_equal(one, all_[at])
        assert one.dtype == all_.dtype
        assert not np.shares_memory(one, all_)
        one[...] = 0
    for now, before in zip(arrays(whole), arrays(wrapper(4)), strict=True):
        assert np.array_equal(now, before)


@pytest.mark.parametrize("state", [None, (), (None, None)])
def test_no_memory_stays_none(state: Any) -> None:
    assert first(state, 3) == state
    assert rows(state, np.array([1, 1])) == state
    check_state(state, 3, Remembering())


def test_arrays_and_tuples_of_them_are_states_as_well() -> None:
    pair = (np.arange(4), np.arange(8).reshape(4, 2))
    check_state(pair, 4, Remembering())
    assert [part.tolist() for part in first(pair, 2)] == [[0, 1], [[0, 1], [2, 3]]]
    assert [part.tolist() for part in rows(pair, np.array([3]))] == [[3], [[6, 7]]]


REFUSED = [
    ([1, 2, 3], "its state is a list"),
    ({"count": np.zeros(3)}, "its state is a dict"),
    (3, "its state is a int"),
    (Loose(np.zeros(3, np.int32)), "its state is a Loose"),
    (Counts, "its state is a type"),
    (np.zeros(()), "its state has shape ()"),
    (np.zeros(2), "its state has shape (2,)"),
    (np.array([None, None, None]), "its state is an array of Python objects"),
    (Counts(np.zeros(3, np.int32), np.zeros((4, 3))), "its state.past has shape (4, 3)"),
    (Counts(np.zeros(3, np.int32), np.zeros((1, 3))), "its state.past has shape (1, 3)"),  # no row for all users
    (Holder(7.5), "its state.held is a float"),
    (Holder({1, 2}), "its state.held is a set"),
    (Holder(np.array(["a", "b", object()])), "its state.held is an array of Python objects"),
    (Holder(Loose(np.zeros(3, np.int32))), "its state.held is a Loose"),
    (Holder(Holder(np.zeros(5))), "its state.held.held has shape (5,)"),
    (Holder((np.zeros(3), counts(2))), "its state.held[1].count has shape (2,)"),
    (Holder((None, [np.zeros(3)])), "its state.held[1] is a list"),
]


@pytest.mark.parametrize(("state", "says"), REFUSED, ids=[says for _, says in REFUSED])
def test_what_is_no_state_is_refused_with_the_component_the_field_and_what_to_do(state: Any, says: str) -> None:
    with pytest.raises(UsageError) as error:
        check_state(state, 3, Remembering())
    said = str(error.value)
    assert said.startswith(f"{__name__}.Remembering.start(3): {says}; ")
    assert "return None (no memory) or a frozen dataclass of arrays with 3 rows" in said


def test_a_state_of_the_right_rows_passes_and_the_same_of_other_rows_does_not() -> None:
    for n in (0, 1, 7):
        check_state(wrapper(n), n, Remembering())
        with pytest.raises(UsageError, match=r"its state\.own has shape"):
            check_state(wrapper(n), n + 1, Remembering())
