"""The run that others are held against, made once for all test processes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from skg_bench.runfolder.run import Run
from tests.laws import world

USERS = 60
SOME = 15  # users who show a difference, where a second run is made; the next one has two thirds more turns than these


@pytest.fixture(scope="session")
def base(once: Callable[..., Path]) -> Run:
    """All users under every arm, in cohorts of 1,000 rows, by one process."""
    return Run(once("dense", lambda folder: world.run(folder, USERS, 1000)))


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return Path(__file__).resolve().parents[2]
