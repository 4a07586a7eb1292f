"""A run whose Opik fails ends as it would have without it, seconds later at most, and an export delivers all, once."""

import json
import shlex
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from uuid import UUID

import pytest
from typer.testing import CliRunner

from skg_bench.app import launch, run_trackers
from skg_bench.app.cli import app
from skg_bench.app.compose import compose
from skg_bench.runfolder.run import Run
from skg_bench.runfolder.tracking import Stage
from tests.tracker.conftest import SMALL
from tests.tracker.server import Failure, Server, lines

_HIGHEST = (1 << 62) - 1


@pytest.mark.parametrize("failure", [None, "refuse", "hang", "500", "deaf"])
def test_a_run_outlives_its_tracker_and_an_export_delivers_all_of_it_once(
    failure: Failure | None, server: Server, original: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    forked_trackers: Callable[[pytest.MonkeyPatch], None],
) -> None:  # fmt: skip
    if failure is None:  # in fresh processes, as elsewhere
        monkeypatch.setattr(run_trackers, "LONGEST_WAIT", 100.0)  # a machine that is busy with other tests
    else:
        forked_trackers(monkeypatch)
        server.fail(failure, after=0 if failure == "refuse" else 1)
    described, output = list[float](), list[str]()
    describe = launch.write_outputs

    def timed(out: Path, reached: Callable[[Stage], None]) -> Run:
        try:
            return describe(out, reached)
        finally:
            described.append(monotonic())

    monkeypatch.setattr(launch, "write_outputs", timed)
    words = [*SMALL, f"out={tmp_path / 'run'}", "tracker=opik", f"tracker.url={server.url}", "tracker.users=null"]
    run = launch.start(launch.prepare(compose(words)), None, output.append)
    assert failure is None or monotonic() - described[0] < 5.0
    assert (run.path / "summary.json").read_bytes() == (original.path / "summary.json").read_bytes()
    (line,) = output
    assert ("; the rest, once: skg-bench export opik" in line) == (failure is not None)
    server.fail(None)
    command = ["export", "opik", str(run.path), f"tracker.url={server.url}"]
    assert failure is None or shlex.split(line.partition("once: skg-bench ")[2]) == command
    for _ in range(2):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.output
    assert "(0 of them new)" in result.stdout
    assert lines(run.path / "deliveries.jsonl") == [{"tracker": "opik", "address": server.url}]
    assert server.complaints == []
    counts = Counter(UUID(name).int & _HIGHEST for name in server.traces)
    assert set(counts) == {int(event["key"], 16) for event in lines(run.path / "events.jsonl")}
    assert set(counts.values()) == {1}
    assert json.loads((run.path / "manifest.json").read_text("utf-8"))["incomplete"] is False
