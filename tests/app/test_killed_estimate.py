"""A replay that is killed with -9 leaves nothing in the run, and begun again it gives the same numbers."""

import shutil
from pathlib import Path
from threading import Event

from experiments.bench.faults.command import Running
from skg_bench.runfolder.run import Run
from tests.app import test_replayed_arms
from tests.app.test_cli import call
from tests.processes import await_end, await_workers, needs_proc
from tests.runs import changed

run = test_replayed_arms.run
WORDS = ["estimate", "run", "--arm", "rule", "--reward-model", "constant", "--target", "strict=[policy.threshold=0.6]"]


def ended() -> str:
    """What the same command prints, which needs no process of its own: it has only the folder."""
    code, out, err = call(*WORDS)
    assert code == 0, err
    return out


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@needs_proc
def test_a_replay_that_is_killed_leaves_nothing_and_gives_the_same_numbers_when_begun_again(
    run: Run, elsewhere: Path
) -> None:
    copied = Run(shutil.copytree(run.path, elsewhere / "run"))
    changed(copied, config={**copied.config, "workers": 2, "cohort": 20})
    before = contents(elsewhere / "run")
    process = Running(WORDS, elsewhere, 60.0, Event())
    try:
        working = await_workers(process.pid)
        process.kill()
        await_end(working)
    finally:
        process.close()
    again = ended()
    assert contents(elsewhere / "run") == before
    changed(Run(elsewhere / "run"), config={**copied.config, "workers": 1})
    assert ended() == again
    assert "strict" in again
