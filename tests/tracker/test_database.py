"""MLflow's database: made whole or not at all, whoever is killed or starts at the same time, and never migrated."""

import shlex
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from multiprocessing.context import ForkServerContext
from pathlib import Path
from time import monotonic, sleep

import pytest
from typer.testing import CliRunner

from skg_bench.app import launch, run_trackers
from skg_bench.app.cli import app
from skg_bench.app.compose import compose
from skg_bench.runfolder.run import Run
from skg_bench.runfolder.tracking import Sink, Stage
from skg_bench.tracker.mlflow import MLflow
from tests.runs import changed
from tests.tracker.conftest import SMALL

pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow's own
LOCAL = MLflow(None, None)
BEGUN = 200_000  # bytes of a database whose migrations have begun; at their end it has 950,000


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


def wait_until_migrating(folder: Path) -> None:
    deadline = monotonic() + 60
    while not any(file.stat().st_size > BEGUN for file in databases(folder)):
        assert monotonic() < deadline
        sleep(0.01)


def databases(folder: Path) -> list[Path]:
    """The database and those that are being made."""
    return [file for file in folder.iterdir() if "mlflow.db" in file.name and "journal" not in file.name]


def arms(folder: Path, run: Run) -> Counter[str]:
    """How many runs MLflow has of each arm of this run."""
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{folder / 'mlflow.db'}")
    found = client.search_runs(
        [override.experiment_id for override in client.search_experiments()],
        f"tags.`skg_bench.identity` = '{run.manifest['identity']}'",
    )
    return Counter(override.data.tags["skg_bench.arm"] for override in found if override.info.status == "FINISHED")


def test_a_run_that_ends_while_its_database_is_made_leaves_it_usable_and_says_how_to_deliver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_trackers: Callable[[pytest.MonkeyPatch], None]
) -> None:
    forked_trackers(monkeypatch)
    describe, start, late = launch.write_outputs, run_trackers.Deliveries.start, list[Callable[[], None]]()

    def starts_late(deliveries: run_trackers.Deliveries, sink: Sink) -> None:
        late.append(lambda: start(deliveries, sink))

    def ends_early(out: Path, reached: Callable[[Stage], None]) -> Run:
        run = describe(out, reached)  # may take longer than a database
        for begin in late:
            begin()
        wait_until_migrating(tmp_path)
        return run

    monkeypatch.setattr(launch, "write_outputs", ends_early)
    monkeypatch.setattr(run_trackers, "LONGEST_WAIT", 0.0)
    said = list[str]()
    with monkeypatch.context() as patch:
        patch.setattr(run_trackers.Deliveries, "start", starts_late)
        run = launch.start(
            launch.prepare(compose([*SMALL, f"out={tmp_path / 'run'}", "tracker=mlflow"])), None, said.append
        )
    assert "delivered (the run did not wait for it any longer)" in said[-1]
    words = shlex.split(said[-1].partition("once: skg-bench ")[2])
    assert words == ["export", "mlflow", str(run.path)]
    for _ in range(2):
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.output
    assert arms(tmp_path, run) == {"*": 1, "skg": 1, "never": 1}
    assert databases(tmp_path) == [tmp_path / "mlflow.db"]
    assert said[0].startswith(f"mlflow: waiting until sqlite:///{tmp_path / 'mlflow.db'} is open")


def test_a_process_that_is_killed_while_it_makes_the_database_leaves_no_database_and_its_file_is_swept(
    run: Run, forked: ForkServerContext
) -> None:
    folder = run.path.parent
    process = forked.Process(target=LOCAL.open, args=(run.path,))
    process.start()
    wait_until_migrating(folder)
    process.kill()
    process.join()
    assert not (folder / "mlflow.db").exists()
    line, complete = run_trackers.deliver(LOCAL, run)
    assert complete, line
    assert databases(folder) == [folder / "mlflow.db"]
    assert arms(folder, run) == {"*": 1, "skg": 1, "never": 1}


def test_runs_that_end_at_the_same_time_make_one_database_and_are_all_in_it(
    run: Run, forked: ForkServerContext
) -> None:
    folder, runs = run.path.parent, [run]
    runs.append(changed(Run(shutil.copytree(run.path, folder / "other")), code="another"))
    processes = [forked.Process(target=delivered, args=(one.path,)) for one in runs]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    assert databases(folder) == [folder / "mlflow.db"]
    for one in runs:
        assert arms(folder, one) == {"*": 1, "skg": 1, "never": 1}


def delivered(path: Path) -> None:
    """What a process of its own does."""
    line, complete = run_trackers.deliver(LOCAL, Run(path))
    assert complete, line


def test_a_database_in_a_folder_that_is_not_there_is_named_without_the_file_of_the_attempt(
    run: Run, tmp_path: Path
) -> None:
    address = f"sqlite:///{tmp_path / 'nowhere' / 'x.db'}"
    line, complete = run_trackers.deliver(MLflow(address, None), run)
    assert not complete
    assert f"{address} names a file in {tmp_path / 'nowhere'}, and there is no such folder" in line
    assert ".x.db." not in line


def test_a_database_that_is_not_complete_is_left_as_it_is_and_what_to_do_is_said(run: Run) -> None:
    file = run.path.parent / "mlflow.db"
    with sqlite3.connect(file) as database:
        database.execute("create table experiments (experiment_id integer)")
    database.close()
    before = file.read_bytes()
    line, complete = run_trackers.deliver(LOCAL, run)
    assert not complete
    assert f"{file} is no complete database of MLflow" in line
    assert "move it away" in line
    assert "mlflow db upgrade" in line
    assert line.endswith(f"; the rest, once: skg-bench export mlflow {run.path}")
    assert file.read_bytes() == before
