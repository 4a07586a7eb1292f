"""Memory of a system that is copied: a stopped run goes on with it, and an arm freezes without a word to the system."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import skg_bench
from skg_bench.assistant.endpoint import BlackBox
from skg_bench.assistant.endpoint.system_state import StateByFolder, system_state
from skg_bench.assistant.python.outside import Objects
from skg_bench.core.errors import UsageError
from skg_bench.engine import checkpoint, execute
from skg_bench.runfolder.run import Run
from tests.assistant.endpoint.test_black_box import FREEZE, WORLD, frozen, rows, run, system, table

__all__ = ["frozen"]  # a fixture

BY_REQUESTS = system("exact", "assistant.state={save: /memory, load: /memory}", "assistant.controls=false")
BY_FOLDER = system("exact", "assistant.state={folder: memory}", "assistant.controls=false", kept="{folder}/memory")


@pytest.mark.parametrize("arm", [BY_REQUESTS, BY_FOLDER], ids=["requests", "folder"])
def test_a_run_that_is_stopped_goes_on_with_the_memory_that_was_copied(
    frozen: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arm: list[str]
) -> None:
    written, loaded = list[Path](), list[int]()
    write, load = checkpoint._write, BlackBox.loaded

    def stopping(path: Path, *more: Any) -> None:
        write(path, *more)
        written.append(path)
        if len(written) == 30:
            raise KeyboardInterrupt

    def loading(self: BlackBox, data: Mapping[str, Any], n: int) -> Objects:
        loaded.append(sum(len(content) for content in data["memory"].values()))
        return load(self, data, n)

    words = [*WORLD, table(dict=arm), "reference=dict", "workers=1", f"out={tmp_path / 'run'}"]
    with monkeypatch.context() as patch:
        patch.setattr(execute, "CHECKPOINT", 0.0)
        patch.setattr(checkpoint, "_PATIENCE", 0)
        patch.setattr(checkpoint, "_write", stopping)
        with pytest.raises(KeyboardInterrupt):
            skg_bench.run(words)
    monkeypatch.setattr(BlackBox, "loaded", loading)
    assert rows(skg_bench.run(words), "dict") == rows(frozen, "dict")
    assert loaded[0] > 1_000


def test_an_arm_freezes_as_its_memory_is_given_back_after_each_turn(frozen: Run, tmp_path: Path) -> None:
    again = run(tmp_path / "frozen", frozen=[*BY_REQUESTS, *FREEZE])
    assert rows(again, "frozen") == rows(frozen, "frozen")
    with pytest.raises(UsageError, match=r"frozen is empty; .*assistant.state=\{save: /memory, load: /memory\}"):
        run(tmp_path / "refused", frozen=[*BY_FOLDER, *FREEZE])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("assistant.state={folder: ../elsewhere}", r"must be \{folder: memory\}"),
        ("assistant.state={save: /memory}", r"must be \{folder: memory\}"),
        ("assistant.state={save: memory, load: /memory}", r"must be \{folder: memory\}"),
    ],
)
def test_what_is_no_state_is_refused(tmp_path: Path, change: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        run(tmp_path / "refused", bad=system("exact", change))


def test_a_system_that_gives_no_memory_is_named(tmp_path: Path) -> None:
    nowhere = system("pass_on", "assistant.state={save: /memory, load: /memory}", *FREEZE)
    with pytest.raises(UsageError, match=r"answered POST /memory with HTTP 500; assistant.state.load must be a path"):
        run(tmp_path / "refused", bad=[*nowhere, "assistant.controls=false"])


def test_files_of_a_memory_stay_in_their_folder(tmp_path: Path) -> None:
    state = system_state({"folder": "memory"})
    assert isinstance(state, StateByFolder)
    state.load_into(tmp_path, {"deep/a.json": b"[]"})
    assert state.saved(tmp_path) == {"deep/a.json": b"[]"}
    with pytest.raises(UsageError, match="leads out of its folder"):
        state.load_into(tmp_path, {"../../b.json": b"[]"})
