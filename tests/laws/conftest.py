"""The run that others are held against, made once for all test processes."""

import fcntl
import os
from pathlib import Path

import pytest

from skg_bench.runfolder.run import Run
from tests.laws import world

USERS = 360


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Hundreds of users under every arm, in cohorts of 1,000 rows, by one process.

    Test processes that run side by side share it: who comes second waits, finds it finished, and goes on.
    """
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    with (folder / "base.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return world.run(folder / "base", USERS, 1000)


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return Path(__file__).resolve().parents[2]
