"""Terminals whose encoding lacks characters of a log, that have no width, or that are closed."""

import shlex
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


@pytest.mark.parametrize("width", ["0", "1", "-3", "abc"])
def test_a_terminal_that_does_not_say_how_wide_it_is_gets_all_words(width: str, tmp_path: Path) -> None:
    """With COLUMNS=0, as some programs set it, nothing was printed, and the exit code was 0."""
    log = tmp_path / "log.csv"
    log.write_text("user,time,message\nann,2026-03-01T10:00:00,hi\nann,2026-03-01T11:00:00,hi again\n", "utf-8")
    words, env = [*COMMAND, "data", "check", "log.csv"], {**ENVIRONMENT, "COLUMNS": width}
    done = subprocess.run(words, capture_output=True, check=False, env=env, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"2 turns of 1 user in 1 week" in done.stdout


@pytest.mark.parametrize(("words", "code"), [(["list"], 0), (["compare", "nothing"], 2)])
def test_streams_that_the_caller_closed_change_no_exit_code(words: list[str], code: int) -> None:
    """It was 1, with a traceback: how a gate says no."""
    shell = f"{shlex.join([*COMMAND, *words])} <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", shell], check=False, env=ENVIRONMENT).returncode == code
