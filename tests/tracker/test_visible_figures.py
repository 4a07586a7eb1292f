"""Trackers of arms of which it cannot be seen what they answer from memory, and of results that were made elsewhere."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import skg_bench
from skg_bench.runfolder.hidden_hits import HIT_METRICS
from skg_bench.runfolder.run import Run
from skg_bench.tracker.events import write_events
from skg_bench.tracker.mlflow import _metrics
from skg_bench.tracker.opik_experiments import arm_experiments
from tests.app.test_cli import call

CLASS = """
class Mine:
    def __init__(self): self.words = {}
    def answer(self, user, time, message, model):
        if message not in self.words: self.words[message] = model(message)
        return self.words[message]
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A class and a memory of ours in a world that judges words."""
    folder = tmp_path_factory.mktemp("visible")
    (folder / "my.py").write_text(CLASS, "utf-8")
    mine = ["assistant=python", f"assistant.file={folder}/my.py:Mine", "assistant.controls=false"]
    arms = {"never": ["policy=never", "curator=none"], "mine": mine, "everything": ["assistant=recall"]}
    size = ["simulator=told", "llm=in_words", "users=4", "weeks=2", "workers=1", "contrasts=[]", "reference=never"]
    return skg_bench.run([*size, f"arms={json.dumps(arms)}", f"out={folder / 'run'}"], progress=False)


def tags(run: Run, arm: str) -> set[str]:
    traces = [json.loads(line)["trace"] for line in write_events(run, None, "full")[0].read_text("utf-8").splitlines()]
    return {tag for trace in traces if trace["metadata"]["arm"] == arm for tag in trace["tags"]} - {arm}


def test_no_tracker_gets_hits_that_nobody_can_see(run: Run) -> None:
    """Once, MLflow and Opik had a hit rate of 0 for a class whose prompts held all of its memory."""
    visible: dict[str, Any] = json.loads((run.path / "summary.json").read_text("utf-8"))
    metrics = {arm: {name for name, _ in names} for arm, names in _metrics(run, visible).items()}
    shown = HIT_METRICS | {f"curves/{name}" for name in HIT_METRICS}
    assert not shown & metrics["mine"]
    assert {"hit_rate", "curves/hit_rate"} <= metrics["everything"]
    assert not HIT_METRICS & set(visible["differences"]["mine"])
    assert HIT_METRICS & set(visible["differences"]["everything"])
    scores = {
        arm: {score["name"] for score in body["experiment_scores"]}
        for arm, body in arm_experiments(run, "project").items()
    }
    assert not HIT_METRICS & scores["mine"]


def test_a_trace_is_tagged_a_hit_or_a_fallback_only_where_that_is_known(run: Run, tmp_path: Path) -> None:
    assert tags(run, "mine") <= {"right", "wrong"}
    assert tags(run, "everything") >= {"hit", "fallback"}
    with (tmp_path / "results.csv").open("w", newline="") as file:
        rows = [(user, event, arm, 1) for user in "abcd" for event in range(4) for arm in ("old", "new")]
        csv.writer(file).writerows([("user", "event", "arm", "right"), *rows])
    words = ("data", "import", str(tmp_path / "results.csv"), "--out", str(tmp_path / "runs" / "theirs"))
    assert call(*words, "--reference", "old")[0] == 0
    assert tags(Run(tmp_path / "runs" / "theirs"), "new") == {"right"}
