"""Whole runs whose policy and curator ask a server, each for itself, and are played again."""

from pathlib import Path

import pytest

from skg_bench.runfolder.run import Run
from tests.llm.server import Server
from tests.llm.test_learning_runs import apart, contents, run


def overrides(server: Server | None, out: Path, recording: Path, *more: str) -> list[str]:
    """A policy and a curator with the same model and one recording; without a server: what stands in the recording."""
    address = "http://127.0.0.1:9/v1" if server is None else server.address
    values = {"address": address, "model": "toy", "key_from": "null", "folder": str(recording)}
    models = [
        text
        for seam in ("policy", "curator")
        for text in (f"{seam}.llm=recorded", *(f"{seam}.llm.{key}={value}" for key, value in values.items()))
    ]
    return [
        "experiment=guardian", "contrasts=[]", "policy=llm_chooser", "curator=reflecting", *models,
        "arms={model: [], never: [policy=never, curator=none]}", "reference=never",
        "users=3", "weeks=2", "cohort=4", "workers=1", f"out={out}", *more,
    ]  # fmt: skip


@pytest.mark.req("P45")
def test_choices_are_recorded_beside_what_is_learned_and_played_again_to_the_byte(tmp_path: Path) -> None:
    first, recording = tmp_path / "first", tmp_path / "recording"
    with Server() as server:
        ended = run(overrides(server, first, recording))
    assert ended.code == 0, ended.text
    turns = Run(first).turns("model")
    assert server.requests > turns.num_rows > 20  # one for each message, and those of learning
    assert set(server.seen.values()) == {1}
    assert set(turns["propensity"].to_pylist()) == {1.0}
    same = apart(overrides(None, tmp_path / "same", recording), OFFLINE="1")
    assert same.code == 0, same.text
    assert contents(tmp_path / "same") == contents(first)
