"""A replay that is killed with -9 leaves nothing in the run, and begun again it gives the same numbers."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from threading import Event

from experiments.bench.faults.command import Done, Running
from skg_bench.runfolder.run import Run
from tests.app import test_replayed_arms
from tests.processes import await_end, await_workers, needs_proc
from tests.runs import changed

run = test_replayed_arms.run
WORDS = ["estimate", "run", "--arm", "rule", "--reward-model", "constant", "--target", "strict=[policy.threshold=0.6]"]


def ended(folder: Path, words: Sequence[str] = WORDS) -> Done:
    process = Running(words, folder, 60.0, Event())
    try:
        return process.wait()
    finally:
        process.close()


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@needs_proc
def test_a_replay_that_is_killed_leaves_nothing_and_gives_the_same_numbers_when_begun_again(
    run: Run, tmp_path: Path
) -> None:
    copied = Run(shutil.copytree(run.path, tmp_path / "run"))
    changed(copied, config={**copied.config, "workers": 2, "cohort": 20})
    before = contents(tmp_path / "run")
    process = Running(WORDS, tmp_path, 60.0, Event())
    try:
        working = await_workers(process.pid)
        process.kill()
        await_end(working)
    finally:
        process.close()
    again = ended(tmp_path)
    assert again.code == 0, again.message
    assert contents(tmp_path / "run") == before
    changed(Run(tmp_path / "run"), config={**copied.config, "workers": 1})
    assert ended(tmp_path).out == again.out
    assert "strict" in again.out
