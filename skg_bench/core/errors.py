"""The one error a user is meant to read: it names the value, what is valid, and what to do.

`nearest` and `install_hint` write the end of its message.
"""

import sys
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

_LISTED = 24  # more options than this are not listed
_FIRST = 12  # of these, where nothing is like what was given


P = ParamSpec("P")
R = TypeVar("R")


class UsageError(Exception):
    """Bad input: printed as one plain message without a traceback, exit code 2."""


class BudgetReached(UsageError):  # noqa: N818  nothing went wrong
    """Budget of a run is spent: the run is incomplete, and continues from what is kept with a larger budget."""


class TwiceError(UsageError):
    """Fault of an object of JSON in which a key stands twice: which of its values is meant, nobody knows."""


class RowError(UsageError):
    """Fault of a component for one row; the engine completes it with component, arm, user and turn."""

    def __init__(self, row: int, what: str, component: str = "") -> None:
        super().__init__(what)
        self.row, self.what, self.component = row, what, component

    def by(self, component: object) -> "RowError":
        """The same, and who did it (a component, or its name), unless that is known."""
        made = type(component)
        name = component if isinstance(component, str) else f"{made.__module__}.{made.__qualname__}"
        return self if self.component else RowError(self.row, self.what, name)


def brief(function: Callable[P, R]) -> Callable[P, R]:
    """The function, whose UsageErrors end a script with few lines: the message says what is wrong, and where in this
    package it was seen says nothing. Of code of somebody else the message names file and line.
    """

    @wraps(function)
    def called(*values: P.args, **named: P.kwargs) -> R:
        try:
            return function(*values, **named)
        except UsageError as error:
            raise error.with_traceback(None) from None

    return called


class naming:  # noqa: N801  read as a word: with naming(component)
    """Names this component for what goes wrong for a row in the block, and for what it may not write into."""

    __slots__ = ("_component",)

    def __init__(self, component: object) -> None:
        self._component = component

    def __enter__(self) -> None:
        """No preparation."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """The fault, if it is one of a row, with the component's name; so that of reading rows that are not there."""
        if error is None:
            return
        if isinstance(error, RowError):
            raise error.by(self._component) from error
        name = self._component if isinstance(self._component, str) else dotted_name(self._component)
        if isinstance(error, IndexError):
            raise IndexError(f"{name}, which is given its own rows: {error}") from error
        if isinstance(error, ValueError) and str(error).endswith("is read-only"):  # as numpy says it
            raise UsageError(
                f"{name} writes into a read-only array ({error}). All arrays that a component is given are read-only, "
                "as others read them too; write into a copy, as in `time = query.time.copy()`"
            ) from error


def dotted_name(component: object) -> str:
    """Module and name of a component's class."""
    return f"{type(component).__module__}.{type(component).__qualname__}"


def nearest(given: str, valid: Iterable[str]) -> str:
    """`did you mean X? valid: A, B, C`, for the end of an error message; empty without options. Of many options the
    first ones are named where none is like what was given.
    """
    options = sorted(set(valid))
    close = get_close_matches(given, options, n=1, cutoff=0.6)
    if not close:  # the right word at the wrong depth: `threshold` for `policy.threshold`
        by_end = {option.rsplit(".", 1)[-1]: option for option in reversed(options)}
        close = [by_end[end] for end in get_close_matches(given.rsplit(".", 1)[-1], by_end, n=1, cutoff=0.75)]
    listed = f"valid: {', '.join(options)}" if 0 < len(options) <= _LISTED else ""
    if not close and len(options) > _LISTED:
        listed = f"valid: {', '.join(options[:_FIRST])} and {len(options) - _FIRST} more"
    return " ".join(part for part in (f"did you mean {close[0]!r}?" if close else "", listed) if part)


def install_hint(extra: str) -> str:
    """How to install an optional part of skg_bench: from a checkout, if this is one."""
    root = Path(__file__).resolve().parents[2]
    if not (root / "pyproject.toml").is_file():
        return f"pip install 'skg-bench[{extra}]'"
    return f"in {root}: {sys.executable} -m pip install -c constraints.txt -e '.[{extra}]'"
