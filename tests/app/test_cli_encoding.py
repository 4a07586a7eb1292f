"""Terminals whose encoding lacks characters of a log."""

import subprocess
from pathlib import Path

import pytest

from tests.app.test_cli import COMMAND, ENVIRONMENT


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_names_that_the_terminal_cannot_show_end_no_command(encoding: str, tmp_path: Path) -> None:
    """The exit code was 1, which is how a gate says no."""
    log = tmp_path / "log.csv"
    log.write_text("user,time,message\nĐức,2026-03-01T10:00:00,hi\nĐức,2026-03-01T11:00:00,hi again\n", "utf-8")
    done = subprocess.run(
        [*COMMAND, "data", "check", str(log)], capture_output=True, check=False,
        env={**ENVIRONMENT, "PYTHONIOENCODING": encoding},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"\u0110" in done.stdout
