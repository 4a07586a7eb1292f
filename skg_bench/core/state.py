"""The memory of a component, as the engine handles it: trimmed, copied and checked by one walk over its fields.

A state is None (no memory), an array `[B, ...]`, a frozen dataclass whose fields are states, or a tuple of states.
"""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I64

S = TypeVar("S")


def first(state: S, n: int) -> S:
    """The first `n` rows, as views: the others are gone for good."""
    trimmed: S = _mapped(state, lambda array: array[:n])
    return trimmed


def rows(state: S, index: I64) -> S:
    """A copy of the rows `index` `[n]`."""
    copied: S = _mapped(state, lambda array: array[index])
    return copied


def check_state(state: Any, n: int, component: object) -> None:
    """Raises UsageError, which names the component, unless `state` is a state of `n` rows."""
    if wrong := _wrong(state, n, "its state"):
        raise UsageError(
            f"{type(component).__module__}.{type(component).__qualname__}.start({n}): {wrong}; return None (no memory) "
            f"or a frozen dataclass of arrays with {n} rows: the engine trims, copies and saves a state by its fields"
        )


def _mapped(state: Any, change: Callable[[np.ndarray], np.ndarray]) -> Any:
    if isinstance(state, np.ndarray):
        return change(state)
    if isinstance(state, tuple):
        return tuple(_mapped(part, change) for part in state)
    if is_dataclass(state) and not isinstance(state, type):
        return type(state)(**{f.name: _mapped(getattr(state, f.name), change) for f in fields(state)})
    return state


def _wrong(state: Any, n: int, name: str) -> str | None:
    """Reason why `state` is no state of `n` rows; None: it is one."""
    if state is None:
        return None
    if isinstance(state, np.ndarray):
        if state.dtype == object:
            return f"{name} is an array of Python objects"
        return None if state.ndim and len(state) == n else f"{name} has shape {state.shape}"
    if isinstance(state, tuple):
        parts = [(f"{name}[{i}]", part) for i, part in enumerate(state)]
    elif is_dataclass(state) and not isinstance(state, type) and type(state).__dataclass_params__.frozen:  # type: ignore[attr-defined]
        parts = [(f"{name}.{f.name}", getattr(state, f.name)) for f in fields(state)]
    else:
        return f"{name} is a {type(state).__qualname__}"
    return next((wrong for label, part in parts if (wrong := _wrong(part, n, label))), None)
