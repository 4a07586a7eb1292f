"""The run that others are held against, made once for all test processes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from skg_bench.runfolder.run import Run
from tests.laws import world

USERS = 60
FORKED = 40  # users under forks
SOME = 6  # users who show a difference, where a second run is made


@pytest.fixture(scope="session")
def base(once: Callable[..., Path]) -> Run:
    """All users under every arm, in cohorts of 1,000 rows, by one process."""
    return Run(once("dense", lambda folder: world.run(folder, USERS, 1000)))


@pytest.fixture(scope="session")
def forks(once: Callable[..., Path]) -> Run:
    """A dense week of forks beside the arms that they fork from, and those whose shortlists are as long as the longest
    of their run.
    """
    return Run(once("forks", lambda folder: world.run(folder, FORKED, 1000, 1, world.FORKED)))


@pytest.fixture(scope="session")
def large(once: Callable[..., Path]) -> Run:
    """One arm over two shards, in cohorts that have users of both, by one process."""
    return Run(once("large", lambda folder: world.run(folder, world.TWO, 250, 1, world.LARGE)))


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return Path(__file__).resolve().parents[2]
