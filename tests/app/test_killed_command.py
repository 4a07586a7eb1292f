"""The command line is killed with -9 in each phase: the same command then ends with the bytes of an undisturbed run."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from experiments.bench.faults.command import Running
from experiments.bench.faults.lab import digests, turn_shards
from tests.app.test_cli import call
from tests.processes import needs_proc
from tests.tracker.server import Server, lines

WORDS = (
    "run", "profile=smoke", "users=300", "weeks=1", "simulator.messages_per_day=1", "simulator.corpus=builtin_120",
    "cohort=160", "contrasts=[]", "arms={learns: [], never: [policy=never]}",
)  # fmt: skip
SHARDS = 4  # at least: two arms, 300 users
ALONE = "workers=1"  # of a command whose death is none of workers: each takes a second to start
Reached = Callable[[Path], bool]
PHASES: dict[str, Reached] = {
    "the manifest is written": lambda out: out.exists(),
    "users are simulated": lambda out: (out / "turns").exists(),
    "shards are written": lambda out: turn_shards(out) > 0,
    "tables are written": lambda out: turn_shards(out) >= SHARDS,
    "the page is written": lambda out: (out / "summary.json").exists(),
    "all is written": lambda out: (out / "report.html").exists(),
}
AT_WORK = ("shards are written",)  # by two workers, who see the death of their parent


@dataclass(frozen=True)
class Undisturbed:
    """What a run must become, and the seconds that it takes."""

    files: dict[str, str]
    seconds: float


@contextmanager
def running(folder: Path, *more: str) -> Iterator[Running]:
    folder.mkdir(exist_ok=True)
    process = Running([*WORDS, "out=run", *more], folder, 60.0, Event())
    try:
        yield process
    finally:
        process.close()


def killed(folder: Path, reached: Reached, seconds: float, more: Sequence[str] = ()) -> bool:
    """Kill a run so many seconds after it has reached something; False: it had ended before."""
    with running(folder, *more) as process:
        alive = process.until(lambda: reached(folder / "run"), 60.0) and process.until(lambda: False, seconds)
        if alive:
            process.kill()
        return alive


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    out = tmp_path_factory.mktemp("undisturbed") / "run"
    assert call(*WORDS, f"out={out}")[0] == 0
    seconds = (out / "report.html").stat().st_mtime - (out / "turns").stat().st_ctime
    assert turn_shards(out) >= SHARDS
    return Undisturbed(digests(out), seconds)


def goes_on(folder: Path, undisturbed: Undisturbed, *more: str) -> None:
    """What goes on needs no process of its own: it has only the folder."""
    code, _, err = call(*WORDS, f"out={folder / 'run'}", *more)
    assert code == 0, err
    assert digests(folder / "run") == undisturbed.files
    assert (folder / "run" / "report.html").exists()
    left = [file.name for file in (folder / "run").rglob("*") if "tmp" in file.name.split(".") or ".lock" in file.name]
    assert left == []


@needs_proc
@pytest.mark.parametrize("first", [0, 1])
def test_the_same_command_goes_on_wherever_it_was_killed(first: int, undisturbed: Undisturbed, tmp_path: Path) -> None:
    """Each second phase, one after the other in one folder; the soak kills a command anew in any of them."""
    for phase in list(PHASES)[first::2]:
        assert killed(tmp_path, PHASES[phase], 0.0, () if phase in AT_WORK else [ALONE]), phase
    goes_on(tmp_path, undisturbed)


@needs_proc
def test_a_command_that_is_killed_while_its_tracker_takes_no_answer_delivers_all_of_it_once(
    undisturbed: Undisturbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPIK_URL_OVERRIDE", raising=False)
    server = Server()
    try:
        server.fail("hang")
        tracker = ("tracker=opik", f"tracker.url={server.url}", "tracker.users=2", ALONE)
        assert killed(tmp_path, PHASES["all is written"], 0.3, tracker)
        server.fail(None)
        goes_on(tmp_path, undisturbed, *tracker)
    finally:
        server.stop()
    assert server.complaints == []
    assert len(server.traces) == len(lines(tmp_path / "run" / "events.jsonl")) > 0


@pytest.mark.soak
@needs_proc
@pytest.mark.parametrize("seed", range(15))
def test_the_same_command_goes_on_after_several_kills_at_moments_by_chance(
    seed: int, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(1 + seed % 3):
        phase = str(rng.choice(list(PHASES)))
        killed(tmp_path, PHASES[phase], float(rng.uniform(0, undisturbed.seconds / 2)), [f"workers={1 + seed % 2}"])
    goes_on(tmp_path, undisturbed)
