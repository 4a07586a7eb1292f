"""Trackers beside a run: they cost it seconds at most, take nothing from it, and leave nothing running."""

import json
import logging
import multiprocessing
import re
import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from typer.testing import CliRunner

import skg_bench
from skg_bench.app import launch, run_trackers
from skg_bench.app.cli import app
from skg_bench.app.compose import compose
from skg_bench.app.run_trackers import beside
from skg_bench.runfolder.run import Run
from tests.app.conftest import TINY
from tests.app.sinks import Mood
from tests.runs import save
from tests.tracker.databases import put_new


@pytest.fixture
def run(tiny_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A finished run that may be written to."""
    for name in ("OPIK_URL_OVERRIDE", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    return Run(shutil.copytree(tiny_run.path, tmp_path / "runs" / "tiny"))


def call(*words: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(words))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def lines(places: list[Mood], run: Run) -> tuple[list[str], float]:
    """What is said of each, and the seconds that the run waited for it."""
    with beside(places, run.path) as deliveries:
        for stage in ("turns", "tables", "page"):
            deliveries.reached(stage)
        begun = monotonic()
        reports = list(deliveries.lines())
        deliveries.end()
        return reports, monotonic() - begun


def test_each_place_has_a_process_of_its_own_and_is_waited_for_until_it_ends(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_trackers, "LONGEST_WAIT", 100.0)
    later = f"; the rest, once: skg-bench export mood {run.path}"
    reports, seconds = lines([Mood("well"), Mood("refuses"), Mood("dies"), Mood("floods")], run)
    assert reports == [
        "mood: 10 of 10, False, ['curves.svg', 'report.html']",
        f"mood: 3 of 10 delivered (ConnectionError: nobody is at home){later}",
        f"mood: 3 of 10 delivered (its process ended with code -9){later}",
        "mood: 10 of 10, False, ['curves.svg', 'report.html']",
    ]
    assert seconds < 100.0
    assert not multiprocessing.active_children()


@pytest.fixture
def quick(forked_trackers: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of trackers import nothing anew."""
    forked_trackers(monkeypatch)


@pytest.mark.usefixtures("quick")
def test_a_place_that_hangs_costs_a_run_less_than_five_seconds(run: Run) -> None:
    reports, seconds = lines([Mood("hangs"), Mood("hangs early")], run)
    for line in reports:
        assert re.match(r"mood: (nothing|3 of 10) delivered \(the run did not wait for it any longer\)", line)
        assert line.endswith(f"; the rest, once: skg-bench export mood {run.path}")
    assert seconds < 5.0
    assert not multiprocessing.active_children()


@pytest.mark.usefixtures("quick")
def test_a_place_of_this_machine_is_not_ended_while_it_opens(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_trackers, "LONGEST_WAIT", 2.0)
    reports, _ = lines([Mood("opens slowly", reads=("page",), place="here"), Mood("hangs early")], run)
    assert (run.path / "opened").is_file()
    assert reports[0] == "mood: waiting until here is open; a new database takes some seconds"
    assert reports[1].startswith("mood: 10 of 10")
    assert "did not wait" in reports[2]


@pytest.mark.usefixtures("quick")
def test_what_reads_turns_does_not_wait_for_the_page(run: Run) -> None:
    (run.path / "report.html").unlink()
    with beside([Mood("well", reads=("turns",))], run.path) as deliveries:
        deliveries.reached("turns")
        assert list(deliveries.lines()) == ["mood: 10 of 10, False, []"]


def test_a_run_that_is_interrupted_leaves_no_process_and_delivers_nothing(
    elsewhere: Path, tiny: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(done: int, total: int) -> None:
        assert multiprocessing.active_children()
        raise KeyboardInterrupt

    job = launch.prepare(compose([*tiny, "out=cut"]))
    with pytest.raises(KeyboardInterrupt):
        launch.start(replace(job, sinks=(Mood("well"), Mood("hangs early"))), interrupt, pytest.fail)
    assert not multiprocessing.active_children()


@pytest.mark.usefixtures("quick")
def test_a_tracker_changes_neither_a_run_nor_its_identity(
    tiny_run: Run, tiny: tuple[str, ...], elsewhere: Path, caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.delenv("OPIK_URL_OVERRIDE", raising=False)
    with caplog.at_level(logging.WARNING, "skg_bench"):
        run = skg_bench.run([*tiny, "tracker=opik", "tracker.users=2"])
    (warning,) = [record.message for record in caplog.records if record.name == "skg_bench"]
    assert "no server is named" in warning
    assert warning.endswith(f"skg-bench export opik {run.path}")
    events = [json.loads(line)["trace"]["metadata"] for line in (run.path / "events.jsonl").read_text().splitlines()]
    assert len({event["user"] for event in events}) == 2
    assert run.manifest["identity"] == tiny_run.manifest["identity"]
    for file in ("summary.json", "curves.csv"):
        assert (run.path / file).read_bytes() == (tiny_run.path / file).read_bytes()
    assert launch.prepare(compose([*tiny, "tracker=both"])).state == "finished"
    assert launch.prepare(compose(tiny)).state == "finished"


@pytest.fixture(scope="module")
def both_told(
    tmp_path_factory: pytest.TempPathFactory,
    forked_trackers: Callable[[pytest.MonkeyPatch], None],
    once: Callable[..., Path],
) -> Iterator[tuple[Path, tuple[int, str, str]]]:
    """A folder in which a run went to both trackers, and the end of its command."""
    home = tmp_path_factory.mktemp("both")
    (home / "runs").mkdir()
    put_new(once, home / "runs" / "mlflow.db")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        forked_trackers(patch)
        for name in ("OPIK_URL_OVERRIDE", "MLFLOW_TRACKING_URI"):
            patch.delenv(name, raising=False)
        patch.setattr(run_trackers, "LONGEST_WAIT", 60.0)  # a machine that is busy with other tests
        yield home, call("run", *TINY, "tracker=both")


@pytest.mark.filterwarnings("ignore")  # MLflow's own
def test_a_run_goes_to_mlflow_beside_it_once_however_often_it_is_asked_for(
    both_told: tuple[Path, tuple[int, str, str]], tiny: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, (code, out, err) = both_told
    monkeypatch.chdir(home)
    assert (code, err) == (0, "")
    assert "mlflow: 3 runs in sqlite:///runs/mlflow.db; look: mlflow ui --backend-store-uri" in out
    assert "opik: 0 of " in out
    code, out, _ = call("run", *tiny, "tracker=mlflow")
    assert code == 0
    assert "is finished: nothing is left to simulate" in out
    assert "mlflow: 3 runs in sqlite:///runs/mlflow.db; look: mlflow ui --backend-store-uri" in out
    assert "mlflow" not in call("run", *tiny)[1]
    (run,) = Path("runs").glob("first-*")
    code, out, _ = call("export", "mlflow", str(run))
    assert code == 0
    assert "mlflow: 3 runs in sqlite:///runs/mlflow.db; look" in out


def with_tracker(run: Run, tracker: dict[str, Any]) -> Run:
    """The run with this tracker in its manifest."""
    save(run.path, {**run.manifest, "config": {**run.config, "tracker": tracker}})
    return Run(run.path)


def both(url: str) -> dict[str, Any]:
    """A tracker of a manifest that names this address for everything."""
    return {
        "_target_": "skg_bench.tracker.both.Both",
        "mlflow": {"_target_": "skg_bench.tracker.mlflow.MLflow", "uri": url, "page": False},
        "opik": {"_target_": "skg_bench.tracker.opik.Opik", "url": url, "users": 3, "texts": "hash"},
    }


def test_an_export_takes_settings_from_the_run_but_no_address(run: Run) -> None:
    there = with_tracker(run, both("http://127.0.0.1:9"))
    (sink,) = run_trackers.chosen_sinks("opik", there, ["tracker.users=2"])
    assert repr(sink) == "Opik(url=None, users=2, texts='hash')"
    (sink,) = run_trackers.chosen_sinks("opik", there, ["tracker.url=http://127.0.0.1:8"])
    assert repr(sink) == "Opik(url='http://127.0.0.1:8', users=3, texts='hash')"
    assert list(map(repr, run_trackers.chosen_sinks("both", there, ["tracker.opik.url=http://127.0.0.1:8"]))) == [
        "MLflow(uri=None, page=False)", "Opik(url='http://127.0.0.1:8', users=3, texts='hash')",
    ]  # fmt: skip


@pytest.mark.parametrize("tracker", ["text", {"_target_": 3, "url": 4}, {"opik": None}])
def test_an_export_of_a_run_with_a_strange_tracker_takes_nothing_from_it(run: Run, tracker: Any) -> None:
    (sink,) = run_trackers.chosen_sinks("opik", with_tracker(run, tracker), [])
    assert repr(sink) == "Opik(url=None, users=1, texts=None)"


@pytest.fixture
def silent() -> Iterator[tuple[str, socket.socket]]:
    """Address of a server that takes connections and never answers; the socket has those that were made."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        yield f"http://127.0.0.1:{server.getsockname()[1]}", server


@pytest.mark.filterwarnings("ignore")  # MLflow's own
@pytest.mark.parametrize(("name", "parameter"), [("opik", "url"), ("mlflow", "uri")])
def test_an_export_connects_to_no_address_of_a_manifest_and_says_how_to(
    run: Run,
    name: str,
    parameter: str,
    silent: tuple[str, socket.socket],
    both_told: tuple[Path, tuple[int, str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address, server = silent
    run = Run(shutil.copytree(run.path, both_told[0] / "runs" / name))  # beside which MLflow has its database
    monkeypatch.setenv("OPIK_API_KEY", "sesame")
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "sesame")
    with_tracker(run, both(address))
    code, out, _ = call("export", name, str(run.path))
    with pytest.raises(TimeoutError):
        server.accept()
    assert f"{name}: the run's manifest names {address}, and an export takes no address from a manifest" in out
    assert f"skg-bench export {name} {run.path} tracker.{parameter}={address}\n" in out
    assert code == (1 if name == "opik" else 0)  # Opik has no address then, MLflow its database beside the run


@pytest.mark.usefixtures("quick")
def test_an_export_to_a_server_that_never_answers_ends_at_its_deadline(
    run: Run, silent: tuple[str, socket.socket]
) -> None:
    address, server = silent
    begun = monotonic()
    code, out, _ = call("export", "opik", str(run.path), f"tracker.url={address}", "--deadline", "6")
    assert 6 <= monotonic() - begun < 20  # without a deadline httpx waits for 30
    assert code == 1
    assert "delivered (the deadline of 6 s passed; --deadline SECONDS sets another); the rest, once: " in out
    assert out.endswith(f"skg-bench export opik {run.path} tracker.url={address}\n")
    server.accept()[0].close()  # it was asked
    assert not multiprocessing.active_children()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["opk"], "did you mean 'opik'?"),
        (["none"], "tracker=none delivers nowhere"),
        (["opik", "users=3"], "takes tracker.KEY=VALUE"),
        (["opik", "tracker.user=3"], "did you mean 'tracker.users'?"),
        (["opik", "tracker.url=http://me:sesame@host"], "OPIK_API_KEY"),
    ],
)
def test_a_bad_export_is_one_message_and_exit_code_2(run: Run, words: list[str], message: str) -> None:
    code, _, err = call("export", words[0], str(run.path), *words[1:])
    assert code == 2
    assert err.startswith("error: ")
    assert message in err
    assert "sesame" not in err
    assert not (run.path / "events.jsonl").exists()


def test_what_is_no_finished_run_is_not_exported(run: Run, tmp_path: Path) -> None:
    assert "is no run directory" in call("export", "opik", str(tmp_path))[2]
    save(run.path, {**run.manifest, "incomplete": True})
    assert "is not finished" in call("export", "opik", str(run.path))[2]
