"""Copies of a run elsewhere: a user is removed there too, and what cannot be reached is named."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from skg_bench.app import run_trackers
from skg_bench.runfolder.run import Run
from skg_bench.tracker.opik import Opik
from tests.app.test_cli import call
from tests.app.test_forget import OTHER, USER, holding
from tests.app.test_forget import folder as _folder
from tests.app.test_forget import nowhere as _nowhere
from tests.app.test_forget import untold as _untold
from tests.tracker.server import Server

folder, nowhere, untold = _folder, _nowhere, _untold


def test_opik_loses_the_traces_of_the_user(folder: Path, untold: None, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()
    try:
        run = Run(folder)
        assert run_trackers.deliver(Opik(server.url, None, "full"), run)[1]
        number = next(i for i, name in enumerate(names(run)) if name == USER)
        of_user = [trace for trace in server.traces.values() if trace["thread_id"].endswith(f"/u{number}")]
        total = len(server.traces)
        assert server.experiments
        monkeypatch.setenv("OPIK_URL_OVERRIDE", server.url)
        code, out, _ = call("forget", str(folder), "--user", USER)
        assert code == 0
        assert f"opik: {len(of_user):,} traces deleted of project " in out
        assert len(server.traces) == total - len(of_user) > 0
        assert not [trace for trace in server.traces.values() if USER in json.dumps(trace)]
        assert not (server.experiments)
        assert not (server.links)
        assert not (server.events)
        assert "experiments, again without them: skg-bench export opik " in out
        assert server.complaints == []
        assert not (folder / "events.jsonl").exists()
    finally:
        server.stop()


def names(run: Run) -> list[str]:
    table = run.turns("never", ["logged_user"])
    return [str(name) for name in dict.fromkeys(table["logged_user"].cast(pa.string()).to_pylist())]


def test_an_opik_that_does_not_delete_is_named_with_what_to_do(
    folder: Path, untold: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server()
    try:
        assert run_trackers.deliver(Opik(server.url, 2, "hash"), Run(folder))[1]
        monkeypatch.setattr("skg_bench.tracker.opik._LOOKS", (0.0, 0.0))
        server.traces = {
            name: {**trace, "thread_id": f"all/u{names(Run(folder)).index(USER)}"}
            for name, trace in server.traces.items()
        }
        server.fail("forgetful")
        monkeypatch.setenv("OPIK_URL_OVERRIDE", server.url)
        code, out, _ = call("forget", str(folder), "--user", USER)
        assert code == 1
        assert "left: opik: the server still shows " in out
        assert "what to delete there: the threads all/u" in out
        assert len(names(Run(folder))) == 5
    finally:
        server.stop()


def test_traces_that_may_have_been_sent_are_named(folder: Path, untold: None) -> None:
    run_trackers.deliver(Opik(None, 2, "hash"), Run(folder))
    code, out, _ = call("forget", str(folder), "--user", USER)
    assert code == 1
    assert "left: opik: events.jsonl holds traces, and OPIK_URL_OVERRIDE names no server; what to delete there: " in out


@pytest.mark.filterwarnings("ignore")
def test_mlflow_loses_the_copy_of_the_run(folder: Path) -> None:
    from mlflow import MlflowClient

    (sink,) = run_trackers.chosen_sinks("mlflow", Run(folder), ())
    assert run_trackers.deliver(sink, Run(folder))[1]
    kept = Path("mlartifacts")
    assert holding(kept, [USER])
    code, out, _ = call("forget", str(folder), "--user", USER)
    assert code == 0
    assert "mlflow: 4 runs removed from sqlite:///" in out
    assert not [file for file in kept.rglob("*") if file.is_file()]
    client = MlflowClient(f"sqlite:///{Path('mlflow.db').resolve()}")
    experiment = client.get_experiment_by_name(Run(folder).config["experiment"])
    assert experiment is not None
    assert len(client.search_runs([experiment.experiment_id], "", 3)) == 0
    assert run_trackers.deliver(sink, Run(folder))[1]
    assert holding(kept, [USER]) == set()
    assert holding(kept, [OTHER])
