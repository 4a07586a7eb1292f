"""The one error a user is meant to read: it names the value, what is valid, and what to do."""

import sys
from pathlib import Path


class UsageError(Exception):
    """Bad input: printed as one plain message without a traceback, exit code 2."""


class BudgetReached(UsageError):  # noqa: N818  nothing went wrong
    """What a run may spend is spent: it is incomplete, and goes on from what is kept with a larger budget."""


def install(extra: str) -> str:
    """How to install an optional part of skg_bench: from a checkout, if this is one."""
    root = Path(__file__).resolve().parents[2]
    if not (root / "pyproject.toml").is_file():
        return f"pip install 'skg-bench[{extra}]'"
    return f"in {root}: {sys.executable} -m pip install -c constraints.txt -e '.[{extra}]'"
