"""Carrying out a plan: going on from whatever an earlier attempt left, and saying what stands in the way."""

import errno
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow.parquet as pq
import pytest

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I32
from skg_bench.core.run import Run
from skg_bench.core.world import World
from skg_bench.engine import execute as engine
from skg_bench.engine import vectors
from skg_bench.engine.plan import Plan
from skg_bench.engine.vectors import SimilarityTable
from skg_bench.launcher.local import Local
from tests.laws import world

ARMS = ("skg", "frozen_all", "frequency")
USERS = 26
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


@pytest.fixture
def cut(tmp_path: Path, whole: Run) -> Path:
    """The same run as a kill leaves it: some shards are whole, some lack that of the turns, some are half written."""
    carry_out(tmp_path / "cut")
    turns = sorted((tmp_path / "cut" / "turns").iterdir())
    assert len(turns) > 6
    for shard in turns[1::2]:
        shard.unlink()
    for shard in turns[1::4]:
        (tmp_path / "cut" / "updates" / shard.name).unlink()
        (tmp_path / "cut" / "feedback" / f"{shard.stem}.4711.tmp").write_bytes(b"PAR1")
    (tmp_path / "cut" / "work.1a2b3c.tmp").write_bytes(b"half a file of tasks")
    return tmp_path / "cut"


@pytest.mark.parametrize(("cohort", "workers"), [(24, 1), (24, 2), (9, 1), (500, 1)])
def test_a_run_that_was_cut_off_goes_on_in_cohorts_of_any_size(
    whole: Run, cut: Path, cohort: int, workers: int
) -> None:
    kept = {file.name: file.stat().st_mtime_ns for file in (cut / "turns").iterdir()}
    run = carry_out(cut, cohort, workers)
    assert world.differences(whole, run, range(USERS)) == []
    names = [sorted(f.name for f in (cut / log).iterdir()) for log in world.LOGS]
    assert names[0] == names[1] == names[2]  # no half of an earlier attempt is left
    assert sorted(f.name for f in cut.iterdir()) == ["feedback", "learning", "manifest.json", "turns", "updates"]
    assert {f: (cut / "turns" / f).stat().st_mtime_ns for f in kept} == kept  # nothing is done twice


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
    done_before = sum(pq.read_metadata(f).num_rows for f in (cut / "turns").iterdir())
    run = carry_out(cut, 24, workers, lambda done, total: reports.append((done, total)))
    total = sum(run.turns(arm, ["turn"]).num_rows for arm in ARMS)
    assert reports[0] == (done_before, total)
    assert reports[-1] == (total, total)
    assert all(a[0] <= b[0] for a, b in pairwise(reports))


@pytest.mark.parametrize("contents", [b"", b"PAR1 torn"])
def test_a_torn_shard_is_named_and_nothing_is_lost(cut: Path, contents: bytes) -> None:
    shards = sorted((cut / "turns").iterdir())
    shards[1].write_bytes(contents)
    with pytest.raises(UsageError, match=rf"{shards[1].name} is torn or unreadable .* delete it and run again"):
        carry_out(cut)
    assert all(shard.exists() for shard in shards)


def test_a_full_disk_stops_the_run_and_it_goes_on_later(
    whole: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, room = pq.write_table, [7]

    def full(*given: Any, **named: Any) -> None:
        if not room[0]:
            given[1].write(b"PAR1")
            raise OSError(errno.ENOSPC, "No space left on device")
        room[0] -= 1
        write(*given, **named)

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(OSError, match="No space left"):
        carry_out(tmp_path / "run")
    assert not list((tmp_path / "run").rglob("*.tmp"))
    monkeypatch.undo()
    assert world.differences(whole, carry_out(tmp_path / "run"), range(USERS)) == []


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
    whole: Run, tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no name while the run lasts, so that it ends with the process."""
    opened, names = [], set[str]()

    def open_table(path: Path) -> SimilarityTable:
        opened.append(path)
        return vectors.open_table(path)

    def look(_done: int, _total: int) -> None:
        names.update(file.name for folder in (temporary, tmp_path / "run") for file in folder.iterdir())

    monkeypatch.setattr(engine, "_PAIRS_A_TURN", 10**9)
    monkeypatch.setattr(engine, "open_table", open_table)
    run = carry_out(tmp_path / "run", progress=look)
    assert len(opened) == 1
    assert names == {"feedback", "learning", "manifest.json", "turns", "updates"}
    assert world.differences(whole, run, range(USERS)) == []


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
    rows = {len({*pq.read_table(f, columns=["user"])["user"].to_pylist()}) for f in (tmp_path / "turns").glob("s.*")}
    assert sum(rows) >= 1
    assert Run(tmp_path).turns("skg").num_rows * 4 == sum(
        pq.read_metadata(f).num_rows for f in (tmp_path / "turns").iterdir()
    )


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
        return []


def test_tasks_are_user_ids_and_the_process_that_hands_them_out_makes_no_events(tmp_path: Path) -> None:
    plan, listing = world.plan(3000, ARMS), Listing()
    noting = Noting(plan.simulator)
    made = replace(plan, simulator=cast("World[Any]", noting))
    totals: list[tuple[int, int]] = []
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
    plan = world.plan(USERS, ARMS)
    noting = Noting(plan.simulator)
    execute(replace(plan, simulator=noting), tmp_path, cohort)
    assert sorted(noting.asked) == list(range(USERS))
