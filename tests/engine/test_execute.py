"""Carrying out a plan: going on from whatever an earlier attempt left, and saying what stands in the way."""

import errno
import pickle
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow.parquet as pq
import pytest

from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare
from skg_bench.core import temporary as temporary_files
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I32
from skg_bench.core.world import World
from skg_bench.engine import execute as engine
from skg_bench.engine import vectors
from skg_bench.engine.plan import Plan
from skg_bench.engine.vectors import SimilarityTable
from skg_bench.launcher.local import Local
from skg_bench.runfolder import shards
from skg_bench.runfolder.run import Run
from skg_bench.runfolder.shards import LogName
from tests.conformance import worlds
from tests.laws import world

ARMS = ("skg", "frozen_all", "frequency")
USERS = 12
linux = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="processes reach the table by /proc")


def execute(
    plan: Plan, out: Path, cohort: int, workers: int = 1, progress: Callable[[int, int], None] | None = None
) -> None:
    """In processes of this machine."""
    watch = progress or (lambda _done, _total: None)
    engine.execute(plan, out, cohort=cohort, workers=workers, launcher=Local(), progress=watch)


def carry_out(out: Path, cohort: int = 24, workers: int = 1, progress: Callable[[int, int], None] | None = None) -> Run:
    """Three arms, in cohorts of so many rows."""
    world.manifest(out, USERS, ARMS)
    execute(world.plan(USERS, ARMS), out, cohort, workers, progress)
    return Run(out)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that nothing disturbed."""
    return carry_out(tmp_path_factory.mktemp("whole") / "run")


class Interrupted:
    """Carries out every other task of a run, and is interrupted; counts are made."""

    def carry_out(self, job: Any, tasks: Any, workers: int, folder: Path, progress: Any) -> Any:
        counting = isinstance(job, engine.Counting)
        results = Local().carry_out(job, tasks if counting else tasks[::2], workers, folder, progress)
        if not counting:
            raise KeyboardInterrupt
        return results


@pytest.fixture(scope="module")
def remains(tmp_path_factory: pytest.TempPathFactory, whole: Run) -> Path:
    """The same run as a kill leaves it: a whole shard, one without that of the turns, pieces of others, half a file."""
    out = tmp_path_factory.mktemp("killed") / "cut"
    world.manifest(out, USERS, ARMS)
    with pytest.raises(KeyboardInterrupt):
        engine.execute(
            world.plan(USERS, ARMS), out, cohort=3, workers=1, launcher=Interrupted(), progress=lambda *_: None
        )
    kept = sorted((out / "pieces").iterdir())
    assert len(kept) > 3
    kept[0].write_bytes(kept[0].read_bytes()[:-40])
    for log in shards.LOGS:
        shutil.copy(shards.path(whole.path, log, ARMS[0], 0), out / log)
    shutil.copy(shards.path(whole.path, "updates", ARMS[1], 0), out / "updates")
    subprocess.run([sys.executable, "-c", HALF_A_FILE, str(out / "turns" / "skg.parquet")], check=True)
    return out


@pytest.fixture
def cut(tmp_path: Path, remains: Path) -> Path:
    """What the kill left, to go on from."""
    return shutil.copytree(remains, tmp_path / "cut")


HALF_A_FILE = (
    "import sys; from pathlib import Path; from skg_bench.core.temporary import temporary; "
    "[temporary(Path(file)).write_bytes(b'PAR1') for file in sys.argv[1:]]"
)


def files(run: Path) -> dict[str, bytes]:
    """The bytes of all shards."""
    return {str(file.relative_to(run)): file.read_bytes() for file in run.rglob("*.parquet")}


@pytest.mark.parametrize(("cohort", "workers"), [(24, 2), (9, 1), (500, 1)])
def test_a_run_that_was_cut_off_goes_on_in_cohorts_of_any_size_to_the_same_bytes(
    whole: Run, cut: Path, cohort: int, workers: int
) -> None:
    before = (cut / "turns" / f"{ARMS[0]}.0000000.parquet").stat().st_mtime_ns
    run = carry_out(cut, cohort, workers)
    assert files(run.path) == files(whole.path)
    assert {file.name for file in cut.iterdir()} == {*world.LOGS, "pieces", "manifest.json"}
    assert {file.suffix for log in world.LOGS for file in (cut / log).iterdir()} == {".parquet"}
    assert (cut / "turns" / f"{ARMS[0]}.0000000.parquet").stat().st_mtime_ns == before  # nothing is done twice


def test_a_folder_that_is_made_for_a_run_is_open_to_its_owner_only(tmp_path: Path) -> None:
    execute(world.plan(2, ARMS), tmp_path / "new", 24)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


def test_a_finished_run_is_left_alone(whole: Run, tmp_path: Path) -> None:
    before = {f: f.stat().st_mtime_ns for f in whole.path.rglob("*.parquet")}
    reports: list[tuple[int, int]] = []
    carry_out(whole.path, 7, 2, lambda done, total: reports.append((done, total)))
    assert {f: f.stat().st_mtime_ns for f in whole.path.rglob("*.parquet")} == before
    assert reports == [(reports[0][1], reports[0][1])]


@pytest.mark.parametrize("workers", [1, 2])
def test_progress_counts_every_turn_of_every_arm_and_what_was_done_before(cut: Path, workers: int) -> None:
    reports: list[tuple[int, int]] = []
    run = carry_out(cut, 24, workers, lambda done, total: reports.append((done, total)))
    total = sum(run.turns(arm, ["turn"]).num_rows for arm in ARMS)
    assert reports[0][1] == total
    assert total // 3 < reports[0][0] < total  # an arm of three is there, and pieces
    assert reports[-1] == (total, total)
    assert all(a[0] <= b[0] for a, b in pairwise(reports))


def test_a_half_file_of_a_worker_that_is_killed_meanwhile_is_gone_at_the_end(cut: Path) -> None:
    halves = [cut / name / "half" for name in (*shards.LOGS, "pieces")]
    planted: list[Path] = []

    def killed(done: int, total: int) -> None:
        if not planted:
            subprocess.run([sys.executable, "-c", HALF_A_FILE, *map(str, halves)], check=True)
            planted.extend(cut.glob("*/.half.*.tmp"))

    carry_out(cut, progress=killed)
    assert len(planted) == len(halves)
    assert not [file for file in planted if file.exists()]


@pytest.mark.parametrize("contents", [b"", b"PAR1 torn"])
@pytest.mark.parametrize("log", world.LOGS)
def test_a_torn_shard_is_made_again(whole: Run, tmp_path: Path, log: LogName, contents: bytes) -> None:
    out = shutil.copytree(whole.path, tmp_path / "torn")
    shards.path(out, log, ARMS[1], 0).write_bytes(contents)
    assert files(carry_out(out).path) == files(whole.path)


def test_a_full_disk_stops_the_run_and_it_goes_on_later(
    whole: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files_with_room = [7]

    @contextmanager
    def full(path: Path) -> Iterator[BinaryIO]:
        with temporary_files.replacing(path) as file:
            if not files_with_room[0]:
                with Path("/dev/full").open("wb", buffering=0) as disk:
                    yield disk
            files_with_room[0] -= 1
            yield file

    monkeypatch.setattr("skg_bench.runfolder.shards.replacing", full)
    with pytest.raises(OSError, match="No space left") as raised:
        carry_out(tmp_path / "run")
    assert raised.value.errno == errno.ENOSPC
    assert raised.value.filename.endswith(".parquet")
    assert not list((tmp_path / "run").rglob("*.tmp"))
    monkeypatch.undo()
    assert files(carry_out(tmp_path / "run").path) == files(whole.path)


def test_a_disk_that_is_full_while_a_piece_is_written_leaves_no_half_of_it(
    whole: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    with pytest.raises(OSError, match="No space left"):
        carry_out(tmp_path / "run", 9)
    assert not list((tmp_path / "run" / "pieces").iterdir())
    monkeypatch.undo()
    assert files(carry_out(tmp_path / "run").path) == files(whole.path)


def test_a_cohort_that_was_cut_off_goes_on_from_its_checkpoint(
    whole: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    def interrupt(done: int, _total: int) -> None:
        made.append(done)
        if list((tmp_path / "run").glob("pieces/*.checkpoint")):
            raise KeyboardInterrupt

    monkeypatch.setattr(engine, "CHECKPOINT", 0.0)
    with pytest.raises(KeyboardInterrupt):
        carry_out(tmp_path / "run", 500, progress=interrupt)
    monkeypatch.undo()
    reports: list[int] = []
    run = carry_out(tmp_path / "run", 40, progress=lambda done, _total: reports.append(done))
    assert min(reports[1:]) >= made[-2] > 0  # made again is what came after the checkpoint
    assert files(run.path) == files(whole.path)
    assert not list((run.path / "pieces").iterdir())


def test_a_folder_that_was_moved_away_is_not_made_again(tmp_path: Path) -> None:
    def move(done: int, _total: int) -> None:
        if done and (tmp_path / "run").exists():
            (tmp_path / "run").rename(tmp_path / "moved")

    with pytest.raises(FileNotFoundError):
        carry_out(tmp_path / "run", progress=move)
    assert not (tmp_path / "run").exists()


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, empty."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_without_room_for_the_table_similarities_are_computed(
    whole: Run, tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def full(_vectors: Any, path: Path) -> None:
        path.write_bytes(b"half")
        tried.append(path)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(engine, "_PAIRS_A_TURN", 10**9)
    monkeypatch.setattr(engine, "write_table", full)
    run = carry_out(tmp_path / "run")
    assert len(tried) == 1
    assert not list(temporary.iterdir())
    assert world.differences(whole, run, range(USERS)) == []


@linux
def test_a_table_of_similarities_leaves_nothing_behind_even_if_the_run_is_killed(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no name while the run lasts, so that it ends with the process. A log of few messages has few pairs."""
    given = "arms={everything: [curator=everything, policy.threshold=0.3], never: [policy=never]}"
    plan = prepare(compose(["simulator=recorded", *worlds.recorded(tmp_path), given])).plan
    monkeypatch.setattr(engine, "_PAIRS_A_TURN", 0)
    execute(plan, tmp_path / "without", 24)
    opened, names = [], set[str]()

    def open_table(path: Path) -> SimilarityTable:
        opened.append(path)
        return vectors.open_table(path)

    def look(_done: int, _total: int) -> None:
        names.update(file.name for folder in (temporary, tmp_path / "run") for file in folder.iterdir())

    monkeypatch.setattr(engine, "_PAIRS_A_TURN", 10**9)
    monkeypatch.setattr(engine, "open_table", open_table)
    execute(plan, tmp_path / "run", 24, progress=look)
    assert len(opened) == 1
    assert names == {"feedback", "learning", "pieces", "turns", "updates"}
    assert files(tmp_path / "run") == files(tmp_path / "without") != {}


@linux
def test_another_process_of_the_machine_reaches_the_table_and_no_other_file_is_taken_for_it() -> None:
    two = np.array([[4000, 0], [0, 4000]], np.int16)
    read = "import pickle, sys; print(pickle.load(sys.stdin.buffer).opened().table.tolist())"
    with engine._table(two, pays=True) as table:
        assert table is not None
        out = subprocess.run([sys.executable, "-c", read], input=pickle.dumps(table), capture_output=True, check=True)
        assert out.stdout.decode().strip() == "[[16000000.0, 0.0], [0.0, 16000000.0]]"
        assert replace(table, stat=(0, 0, 0)).opened() is None
    assert table.opened() is None


def test_a_table_of_all_pairs_is_made_only_where_turns_are_left_that_it_pays_for(
    whole: Run, cut: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def write_table(vectors: Any, _path: Path) -> None:
        made.append(len(vectors))
        raise OSError

    monkeypatch.setattr(engine, "write_table", write_table)
    turns = sum(pq.read_metadata(shard).num_rows for shard in (whole.path / "turns").iterdir())
    n = len(world.plan(USERS, ARMS).simulator.messages)
    for pairs, out, expected in (
        (n**2 // turns, "none", []), (n**2 // turns + 1, "made", [n]), (n**2 // turns + 1, "cut", [n])
    ):  # fmt: skip
        monkeypatch.setattr(engine, "_PAIRS_A_TURN", pairs)
        carry_out(tmp_path / out)
        assert made == expected, out


def test_vectors_that_do_not_fit_are_refused_before_anything_runs(tmp_path: Path) -> None:
    plan = world.plan(USERS, ARMS)

    class Doubled:
        digest, pure = "doubled", True

        def embed(self, texts: Any, progress: Any = None) -> Any:
            return plan.embedder.embed(texts) * np.int16(2)

    with pytest.raises(UsageError, match="vectors are off the grid"):
        execute(replace(plan, embedder=Doubled()), tmp_path, 9)
    assert not list(tmp_path.rglob("*.parquet"))


def test_arms_whose_names_begin_alike_do_not_take_each_others_shards(tmp_path: Path) -> None:
    plan = world.plan(USERS, ("skg",))
    twins = tuple(replace(plan.arms[0], name=name) for name in ("skg", "skg-2", "skg2", "s"))
    for arms in (twins[1:], twins):
        execute(replace(plan, arms=arms), tmp_path, 30)
    world.manifest(tmp_path, USERS, ("skg",))
    assert len(list((tmp_path / "turns").iterdir())) == 4
    counts = [pq.read_metadata(f).num_rows for f in (tmp_path / "turns").iterdir()]
    assert set(counts) == {Run(tmp_path).turns("skg").num_rows}


class Noting:
    """A simulator that notes for whom events are made."""

    def __init__(self, simulator: World[Any]) -> None:
        self._simulator, self.asked = simulator, list[int]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._simulator, name)

    def begin(self, seed: int, users: I32, weeks: int) -> Any:
        self.asked += users.tolist()
        return self._simulator.begin(seed, users, weeks)


class Listing:
    """Keeps the tasks of a run, and carries out none; counts are made."""

    def __init__(self) -> None:
        self.tasks: list[Any] = []

    def carry_out(self, job: Any, tasks: Any, workers: int, folder: Path, progress: Any) -> Any:
        if isinstance(job, engine.Counting):
            return Local().carry_out(job, tasks, workers, folder, progress)
        self.tasks = list(tasks)
        raise KeyboardInterrupt


def test_tasks_are_user_ids_and_the_process_that_hands_them_out_makes_no_events(tmp_path: Path) -> None:
    plan, listing = world.plan(3000, ARMS), Listing()
    noting = Noting(plan.simulator)
    made = replace(plan, simulator=cast("World[Any]", noting))
    totals: list[tuple[int, int]] = []
    with pytest.raises(KeyboardInterrupt):
        engine.execute(
            made, tmp_path, cohort=512, workers=2, launcher=listing, progress=lambda *given: totals.append(given)
        )
    assert noting.asked == []
    for arm in range(len(ARMS)):
        users = np.concatenate([task.users for task in listing.tasks if arm in task.arms])
        assert np.array_equal(np.sort(users), np.arange(3000))
    assert max(len(pickle.dumps(task)) for task in listing.tasks) < 512 * 4 + 1000
    counts = plan.simulator.count(plan.seed, np.arange(3000, dtype=np.int32), plan.weeks)
    assert totals == [(0, 3 * int(counts.sum()))]
    busiest = [int(counts[task.users].max()) for task in listing.tasks]
    assert busiest == sorted(busiest, reverse=True)


@pytest.mark.parametrize("cohort", [4, 8, 500])
def test_one_process_makes_the_events_of_a_user_once_for_all_arms(tmp_path: Path, cohort: int) -> None:
    plan = world.plan(6, ARMS)
    noting = Noting(plan.simulator)
    execute(replace(plan, simulator=noting), tmp_path, cohort)
    assert sorted(noting.asked) == list(range(6))
