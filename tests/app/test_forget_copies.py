"""Copies of a run elsewhere: a user is removed there too, and what cannot be reached is named."""

import json
from contextlib import chdir
from pathlib import Path

import pyarrow as pa
import pytest

from skg_bench.app import run_trackers
from skg_bench.runfolder.deliveries import DELIVERIES_FILE
from skg_bench.runfolder.run import Run
from skg_bench.tracker.address import noted_address
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


def exported_to(folder: Path, name: str, *texts: str) -> None:
    (sink,) = run_trackers.chosen_sinks(name, Run(folder), texts)
    assert run_trackers.deliver(sink, Run(folder))[1]


def runs_at(database: Path, run: Run) -> int:
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{database.resolve()}")
    experiment = client.get_experiment_by_name(run.config["experiment"])
    return len(client.search_runs([experiment.experiment_id], "", 3)) if experiment else 0


@pytest.mark.filterwarnings("ignore")
def test_databases_that_only_an_export_named_lose_the_copy_from_any_working_directory(
    folder: Path, untold: None, tmp_path: Path
) -> None:
    first, second = tmp_path / "first.db", tmp_path / "place" / "second.db"
    second.parent.mkdir()
    for _ in range(2):
        exported_to(folder, "mlflow", f"tracker.uri=sqlite:///{first}")
    whole = folder.resolve()
    with chdir(second.parent):
        exported_to(whole, "mlflow", "tracker.uri=sqlite:///second.db")
    assert [runs_at(place, Run(folder)) for place in (first, second)] == [4, 4]
    noted = [json.loads(line) for line in (folder / DELIVERIES_FILE).read_text("utf-8").splitlines()]
    addresses = [f"sqlite:///{place}" for place in (first, second)]
    assert noted == [{"tracker": "mlflow", "address": address} for address in addresses]
    assert (folder / DELIVERIES_FILE).stat().st_mode & 0o777 == 0o600
    code, out, _ = call("forget", str(folder), "--user", USER)
    assert [f"mlflow: 4 runs removed from {address}; " in out for address in addresses] == [True, True]
    assert code == 0
    assert [runs_at(place, Run(folder)) for place in (first, second)] == [0, 0]
    assert not Path("mlflow.db").exists()
    assert (folder / DELIVERIES_FILE).is_file()


@pytest.mark.filterwarnings("ignore")
def test_a_database_that_is_not_there_any_more_is_named_and_not_made(
    folder: Path, untold: None, tmp_path: Path
) -> None:
    place = tmp_path / "moved.db"
    exported_to(folder, "mlflow", f"tracker.uri=sqlite:///{place}")
    place.rename(tmp_path / "elsewhere.db")
    code, out, _ = call("forget", str(folder), "--user", USER)
    assert code == 1
    assert f"left: mlflow: this run was delivered to sqlite:///{place}: sqlite:///{place} is not there" in out
    assert not place.exists()


@pytest.mark.filterwarnings("ignore")
def test_a_database_that_a_file_of_the_run_names_deletes_no_files_elsewhere(
    folder: Path, untold: None, tmp_path: Path
) -> None:
    from mlflow import MlflowClient

    place, files = f"sqlite:///{tmp_path / 'first.db'}", tmp_path / "files"
    MlflowClient(place).create_experiment(Run(folder).config["experiment"], files.as_uri())
    exported_to(folder, "mlflow", f"tracker.uri={place}")
    before = sorted(files.rglob("*"))
    code, out, _ = call("forget", str(folder), "--user", USER)
    assert code == 1
    assert f"left: mlflow: this run was delivered to {place}: first.db keeps files not beside itself" in out
    assert sorted(files.rglob("*")) == before != []


def test_a_server_that_only_an_export_named_loses_the_traces_and_is_sent_no_key(
    folder: Path, untold: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, other = Server(), Server()
    try:
        with monkeypatch.context() as then:
            then.setenv("OPIK_URL_OVERRIDE", server.url)
            exported_to(folder, "opik", "tracker.texts=full")
        assert server.traces
        server.headers.clear()
        monkeypatch.setenv("OPIK_URL_OVERRIDE", other.url)
        monkeypatch.setenv("OPIK_API_KEY", "the-key-of-the-reader")
        code, out, _ = call("forget", str(folder), "--user", USER)
        assert code == 0
        assert f" at {server.url}" in out
        assert f" at {other.url}" in out
        assert server.traces
        assert not [trace for trace in server.traces.values() if USER in json.dumps(trace)]
        assert "the-key-of-the-reader" not in str(server.headers)
        assert "the-key-of-the-reader" in str(other.headers)
    finally:
        server.stop()
        other.stop()


def test_a_server_that_cannot_be_asked_is_named_and_no_secret_is_noted(
    folder: Path, untold: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as then:
        then.setenv("OPIK_URL_OVERRIDE", "http://somebody:pass-word@127.0.0.1:9/api?token=to-ken")
        assert not run_trackers.deliver(Opik(None, 2, "hash"), Run(folder))[1]
    text = (folder / DELIVERIES_FILE).read_text("utf-8")
    assert not [secret for secret in ("somebody", "pass-word", "to-ken") if secret in text]
    with (folder / DELIVERIES_FILE).open("a") as lines:
        for tracker, address in (("opik", "http://opik.example/api"), ("mlflow", "http://127.0.0.1:9"), ("my", "x")):
            lines.write(json.dumps({"tracker": tracker, "address": address}) + "\n")
    code, out, _ = call("forget", str(folder), "--user", USER)
    assert code == 1
    assert "http://***@127.0.0.1:9/api?*** is noted without its secrets, so it is not asked" in out
    assert "http://opik.example/api is not on this machine" in out
    assert "http://127.0.0.1:9 is no file, and keys are sent only where MLFLOW_TRACKING_URI says" in out
    assert "left: my: this run was delivered to x, which forget cannot ask" in out
    assert len(names(Run(folder))) == 5


def test_a_line_that_is_no_delivery_is_named_by_forget_and_by_the_check(folder: Path, untold: None) -> None:
    (folder / DELIVERIES_FILE).write_text('{"tracker": "opik"}\n', "utf-8")
    code, out, _ = call("run", "--check", str(folder))
    assert code == 1
    assert f"{DELIVERIES_FILE}, line 1 must have the keys tracker, address" in out
    code, out, _ = call("forget", str(folder), "--user", USER)
    assert code == 1
    assert f"{DELIVERIES_FILE}, line 1 must have the keys tracker, address" in out
    assert len(names(Run(folder))) == 5


@pytest.mark.filterwarnings("ignore")
def test_a_line_that_cannot_be_read_hides_no_other(folder: Path, untold: None, tmp_path: Path) -> None:
    place = tmp_path / "other.db"
    exported_to(folder, "mlflow", f"tracker.uri=sqlite:///{place}")
    line = (folder / DELIVERIES_FILE).read_bytes()
    (folder / DELIVERIES_FILE).write_bytes(b'{"tracker": "op\n\xff\n' + line + b'["mlflow"]\n')
    code, out, _ = call("forget", str(folder), "--user", USER)
    assert code == 1
    assert [f"{DELIVERIES_FILE}, line {n} " in out for n in (1, 2, 3, 4)] == [True, True, False, True]
    assert f"mlflow: 4 runs removed from sqlite:///{place}; " in out
    assert runs_at(place, Run(folder)) == 0


@pytest.mark.filterwarnings("ignore")
def test_a_delivery_is_noted_before_anything_is_sent_and_after_a_torn_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / DELIVERIES_FILE).write_text('{"tracker"', "utf-8")

    def send(_sink: Opik, run: Run, _progress: object) -> str:
        last = (run.path / DELIVERIES_FILE).read_text("utf-8").splitlines()[-1]
        assert json.loads(last) == {"tracker": "opik", "address": "http://127.0.0.1:9/api"}
        return "sent"

    monkeypatch.setattr(Opik, "deliver", send)
    assert run_trackers.deliver(Opik("http://127.0.0.1:9/api", 2, "hash"), Run(folder)) == ("opik: sent", True)


@pytest.mark.parametrize(
    ("address", "noted"),
    [
        ("http://127.0.0.1:5173/api", "http://127.0.0.1:5173/api"),
        ("https://me:a/b?c#d@host/api", "https://***"),
        ('https://me:a"b@host/api', "https://***@host/api"),
        ("postgresql://me:pass@host/db", "postgresql://***@host/db"),
        ("https://host/api#key", "https://host/api#***"),
        ("sqlite:////a/b@c.db", "sqlite:////a/b@c.db"),
        ("databricks", "databricks"),
    ],
)
def test_an_address_is_noted_without_secrets(address: str, noted: str) -> None:
    assert noted_address(address) == noted


def test_a_store_of_skillbooks_is_named_with_what_to_delete(folder: Path, untold: None, tmp_path: Path) -> None:
    """Nothing was said of it, and the exit code was 0."""
    store = tmp_path / "books.db"
    for _ in range(2):
        assert call("skillbook", "push", str(folder), str(store), "--arm", Run(folder).arms[0])[0] == 0
    code, out, _ = call("forget", str(folder), "--user", USER)
    where = f"skillbooks of this run were pushed to {store}, which forget does not change"
    (line,) = [line for line in out.splitlines() if "pushed" in line]
    assert (code, line) == (1, f"left: store: {where}; what to delete there: the skillbook of user-2")
