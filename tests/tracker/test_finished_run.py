"""`tracker=both` on a run that is finished delivers what is missing, once, whether the server is away or back."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest
from typer.testing import CliRunner

from skg_bench.app.cli import app
from skg_bench.runfolder.run import Run
from tests.tracker.conftest import SMALL
from tests.tracker.databases import put_new
from tests.tracker.server import Server, lines

_HIGHEST = (1 << 62) - 1


@pytest.mark.filterwarnings("ignore")  # MLflow's own
def test_both_trackers_of_a_finished_run_with_the_server_away_and_back(
    server: Server, original: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    forked_trackers: Callable[[pytest.MonkeyPatch], None], once: Callable[..., Path],
) -> None:  # fmt: skip
    forked_trackers(monkeypatch)
    from mlflow import MlflowClient

    monkeypatch.chdir(tmp_path)
    for name in ("OPIK_URL_OVERRIDE", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    words = ["run", *SMALL, "out=run"]
    put_new(once, tmp_path / "mlflow.db")
    database = f"sqlite:///{tmp_path / 'mlflow.db'}"
    both = [
        "tracker=both", f"tracker.mlflow.uri={database}", f"tracker.opik.url={server.url}", "tracker.opik.users=null",
    ]  # fmt: skip

    def told(*more: str) -> dict[str, str]:
        """What is said of each tracker."""
        result = CliRunner().invoke(app, [*words, *more])
        assert result.exit_code == 0, result.output
        assert ("is finished: nothing is left to simulate" in result.stdout) == bool(more)
        said = [line for line in result.stdout.splitlines() if line.startswith(("mlflow: ", "opik: "))]
        return {line.partition(":")[0]: line for line in said if "waiting until" not in line}

    assert told() == {}
    server.fail("refuse", after=0)
    away = told(*both)
    assert away["mlflow"].startswith(f"mlflow: {len(original.arms) + 1} runs in {database}")
    assert "delivered (" in away["opik"]
    assert away["opik"].endswith(f"; the rest, once: skg-bench export opik run tracker.url={server.url}")
    assert not server.traces
    server.fail(None)
    back = told(*both)
    assert "(0 of them new)" not in back["opik"]
    assert "delivered (" not in back["opik"]
    assert back["mlflow"] == away["mlflow"]
    again = told("tracker=opik", f"tracker.url={server.url}", "tracker.users=null")
    assert "(0 of them new)" in again["opik"]

    assert server.complaints == []
    counts = Counter(UUID(name).int & _HIGHEST for name in server.traces)
    assert set(counts) == {int(event["key"], 16) for event in lines(Path("run/events.jsonl"))}
    assert set(counts.values()) == {1}
    client = MlflowClient(database)
    (experiment,) = [e for e in client.search_experiments() if e.name != "Default"]
    arms = [run.info.run_name for run in client.search_runs([experiment.experiment_id])]
    assert len(arms) == len(set(arms)) == len(original.arms) + 1
