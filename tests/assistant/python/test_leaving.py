"""Classes of somebody else that would end the process, or take it elsewhere, in place of giving an answer."""

from pathlib import Path

import pytest

from tests.app.test_cli import refused
from tests.assistant.plugin import WORLD

CLASSES = """
import asyncio, os, sys, tempfile

class Cache:
    def __init__(self): self.memory = {}
    def answer(self, user, time, message, model):
        return self.memory.setdefault(message, model(message))

class Made(Cache):
    def __init__(self): sys.exit(0)

class Awaited:
    async def answer(self, user, time, message, model): sys.exit(0)

class Cancelled:
    async def answer(self, user, time, message, model): raise asyncio.CancelledError("no time")

class Hearing(Cache):
    def feedback(self, user, about, kind, value): sys.exit(0)

class Saving(Cache):
    def save(self): sys.exit(0)
    def load(self, user, data): pass

class Loading(Cache):
    def save(self): return b""
    def load(self, user, data): sys.exit("no memory")

class MovesMade(Cache):
    def __init__(self):
        super().__init__()
        os.chdir(tempfile.gettempdir())

class MovesAnswering(Cache):
    def answer(self, user, time, message, model):
        os.chdir(tempfile.gettempdir())
        return super().answer(user, time, message, model)
"""


def played(folder: Path, name: str) -> list[str]:
    (folder / "mine.py").write_text(CLASSES)
    arms = f"arms={{it: [assistant=python, assistant.file={folder / 'mine.py'}:{name}], never: [policy=never]}}"
    return ["run", *WORLD, arms, "reference=never", f"out={folder / 'run'}"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Made", "mine.py:Made cannot be made: SystemExit: 0"),
        ("Awaited", "mine.py:Awaited.answer of arm 'it', user "),
        ("Cancelled", "mine.py:Cancelled.answer of arm 'it', user 2, turn 0: it raised CancelledError: no time"),
        ("Hearing", "mine.py:Hearing.feedback of arm 'it', user "),
        ("Saving", "mine.py:Saving.save of arm 'it', user "),
        ("Loading", "it raised SystemExit: no memory"),
    ],
)
def test_a_class_that_would_end_the_run_without_a_result_is_named(tmp_path: Path, name: str, reason: str) -> None:
    assert reason in " ".join(refused(*played(tmp_path, name)).split())


def test_a_file_that_ends_the_process_while_it_is_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("import sys\nsys.exit(0)\n")
    err = refused("run", *WORLD, f"+arms.it=[assistant=python,assistant.file={tmp_path / 'main.py'}:Mine]")
    assert "main.py:Mine fails: SystemExit: 0" in " ".join(err.split())


@pytest.mark.parametrize("name", ["MovesMade", "MovesAnswering"])
def test_a_class_that_changes_the_working_directory_is_named_and_the_directory_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    err = " ".join(refused(*played(tmp_path, name)).split())
    assert f"mine.py:{name} changes the working directory, from {tmp_path} to " in err
    assert Path.cwd() == tmp_path


def test_a_file_that_changes_the_working_directory_while_it_is_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "away").mkdir()
    (tmp_path / "moving.py").write_text(f"import os\nos.chdir('away')\n{CLASSES}")
    err = refused("run", *WORLD, "+arms.it=[assistant=python,assistant.file=moving.py:Cache]")
    assert "assistant.file=moving.py:Cache changes the working directory, from " in " ".join(err.split())
    assert Path.cwd() == tmp_path
