"""A log whose truth is known, replayed once."""

from collections.abc import Callable
from pathlib import Path

import pytest

from skg_bench.runfolder.run import Run
from tests.analysis.labels.planted_log import play_log
from tests.analysis.report.conftest import browser, chromium, visit  # noqa: F401  fixtures


@pytest.fixture(scope="session")
def log_run(once: Callable[..., Path]) -> Run:
    """Three arms on a log of 12 users and 6 weeks; tests copy it before they write into it."""
    return Run(once("labels", play_log) / "run")
