"""The one error a user is meant to read: it names the value, what is valid, and what to do."""

import sys
from pathlib import Path


class UsageError(Exception):
    """Bad input: printed as one plain message without a traceback, exit code 2."""


class BudgetReached(UsageError):  # noqa: N818  nothing went wrong
    """Budget of a run is spent: the run is incomplete, and continues from what is kept with a larger budget."""


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


class naming:  # noqa: N801  read as a word: with naming(component)
    """Names this component for what goes wrong for a row in the block."""

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
        if isinstance(error, IndexError):
            made = type(self._component)
            raise IndexError(f"{made.__module__}.{made.__qualname__}, which is given its own rows: {error}") from error


def install_hint(extra: str) -> str:
    """How to install an optional part of skg_bench: from a checkout, if this is one."""
    root = Path(__file__).resolve().parents[2]
    if not (root / "pyproject.toml").is_file():
        return f"pip install 'skg-bench[{extra}]'"
    return f"in {root}: {sys.executable} -m pip install -c constraints.txt -e '.[{extra}]'"
