"""Sentences on a terminal of 80 columns, and elsewhere."""

import fcntl
import os
import pty
import struct
import subprocess
import termios
from io import StringIO

import pytest

from skg_bench.app.progress import console
from tests.app.test_cli import COMMAND, ENVIRONMENT


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("terminal", [True, False])
def test_an_error_is_broken_between_words_on_a_terminal_and_is_one_line_elsewhere(terminal: bool) -> None:
    path = "/nowhere/" + "a-folder-of-a-long-name/" * 4
    reading, writing = pty.openpty() if terminal else os.pipe()
    if terminal:
        fcntl.ioctl(writing, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {key: value for key, value in ENVIRONMENT.items() if key != "COLUMNS"}
    words = ["run", f"policy.treshold={path}"]
    done = subprocess.run([*COMMAND, *words], stdout=writing, stderr=writing, env=environment, check=False)
    os.close(writing)
    lines = os.read(reading, 100_000).decode().splitlines()
    os.close(reading)
    assert done.returncode == 2
    assert path in " ".join(lines)
    if terminal:
        assert len(lines) > 1
        assert all(len(line) <= 80 or (path in line and len(line.split()) == 1) for line in lines)
    else:
        assert len(lines) == 1


@pytest.mark.parametrize("file", [Terminal(), StringIO()])
def test_a_told_flip_is_broken_between_words_on_a_terminal_and_is_one_line_elsewhere(
    file: StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = f"    user 1, turn 2: {'what about the weather ' * 6}(no skill)"
    monkeypatch.setenv("COLUMNS", "80")
    console(file).print(line, soft_wrap=True)
    shown = file.getvalue().splitlines()
    assert " ".join(shown).split() == line.split()
    if file.isatty():
        assert len(shown) > 1
        assert all(len(part) <= 80 and part.startswith("    ") for part in shown)
    else:
        assert len(shown) == 1
