"""The event file: every turn and every learning step of the users that it traces, and nothing that is to be hidden."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

import skg_bench
from skg_bench.app.run_identity import write_json
from skg_bench.core.run import Run
from skg_bench.tracker import events
from tests.tracker.server import lines

MESSAGES = re.compile(r'"message":"([^"]*)"')


def recorded(run: Run) -> Run:
    """The run as one of recorded sessions."""
    manifest = dict(run.manifest)
    manifest["config"] = {**run.config, "simulator": {"_target_": "skg_bench.simulator.recorded.Recorded"}}
    write_json(run.path / "manifest.json", manifest)
    return Run(run.path)


@pytest.mark.req("P06")
def test_every_turn_and_every_learning_step_of_every_arm_is_a_trace_with_a_key_of_its_own(run: Run) -> None:
    path, count = events.write(run, None, None)
    traces = lines(path)
    assert len(traces) == count == len({event["key"] for event in traces})
    traced = Counter((t["metadata"]["arm"], t["name"]) for t in (event["trace"] for event in traces))
    for arm in run.arms:
        steps = run.updates(arm).group_by(["user", "turn"]).aggregate([]).num_rows
        assert traced[arm, "turn"] == run.turns(arm).num_rows
        assert traced[arm, "learning:skillbook_update"] == steps
    assert traced["skg", "learning:skillbook_update"] > 10


@pytest.mark.req("P38")
def test_a_learning_step_lists_its_operations_and_the_skills_before_and_after(run: Run) -> None:
    path, _ = events.write(run, None, None)
    traces = [event["trace"] for event in lines(path)]
    steps = [trace for trace in traces if trace["name"] == events.LEARNING]
    listed = [(t["metadata"]["user"], t["metadata"]["turn"], o["op"], o["skill"], o["reason"], o["source_turn"])
              for t in steps for o in t["output"]["operations"]]  # fmt: skip
    columns = ("user", "turn", "op", "skill", "reason", "source_turn")
    assert listed == [tuple(row[name] for name in columns) for row in run.updates("skg").to_pylist()]
    sizes = {(row["user"], row["turn"]): row["book_size"] for row in run.turns("skg").to_pylist()}
    for trace in steps:
        about = trace["metadata"]
        at = about["user"], about["turn"]
        assert trace["output"]["skills"] == sizes[at]
        assert trace["input"]["skills"] == (sizes[at[0], at[1] - 1] if at[1] else 0)
        assert about["delta"] == trace["output"]["skills"] - trace["input"]["skills"]
        assert about["operations"] == len(trace["output"]["operations"])
        assert about["reasons"]


def test_the_same_choice_gives_the_same_bytes_and_fewer_users_are_among_more(run: Run) -> None:
    path, _ = events.write(run, 2, None)
    before = path.read_bytes()
    events.write(run, None, None)
    assert len(path.read_bytes()) > len(before)
    events.write(run, 2, None)
    assert path.read_bytes() == before
    assert {path.name for path in run.path.glob("*events*")} == {"events.jsonl"}
    some = [set(events.sample(run, n).tolist()) for n in (1, 2, 3, None)]
    assert [len(sample) for sample in some] == [1, 2, 3, 6]
    assert some[0] < some[1] < some[2] < some[3]
    assert {e["trace"]["metadata"]["user"] for e in lines(path)} == some[1]


def test_what_people_said_is_hashed_unless_a_corpus_said_it(run: Run) -> None:
    spoken = set(run.turns("skg")["message"].to_pylist()) | set(run.updates("skg")["name"].to_pylist()) - {None}
    clear = events.write(run, None, None)[0].read_text("utf-8")
    assert sum(json.dumps(text, ensure_ascii=False) in clear for text in spoken) == len(spoken)
    hashed = events.write(run, None, "hash")[0].read_text("utf-8")
    assert not [text for text in spoken if json.dumps(text, ensure_ascii=False) in hashed]
    pairs = set(zip(MESSAGES.findall(clear), MESSAGES.findall(hashed), strict=True))
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs}) > 100  # equal texts stay equal
    path, _ = events.write(recorded(run), None, None)
    assert path.read_text("utf-8") == hashed
    assert events.write(recorded(run), None, "full")[0].read_text("utf-8") == clear


@pytest.mark.req("P06", "P19", "P41")
def test_a_learning_job_is_a_trace_with_its_reflection_its_result_and_its_cost(tmp_path: Path) -> None:
    arms = "arms={model: [curator=reflecting], never: [policy=never, curator=none]}"
    run = skg_bench.run(["workers=1", "users=3", "weeks=1", arms, f"out={tmp_path / 'run'}", "serving=prompted"])
    clear = [event["trace"] for event in lines(events.write(run, None, None)[0])]
    jobs = [trace for trace in clear if trace["name"] == events.JOB]
    logged = run.learning("model").to_pylist()
    assert len(jobs) == len(logged) > 10
    for name, part in (("result", "output"), ("reflection", "output"), ("tokens_in", "metadata"), ("about", "input")):
        assert [job[part][name] for job in jobs] == [row[name] for row in logged], name
    keys = [event["key"] for event in lines(run.path / events.FILE)]
    assert len(set(keys)) == len(keys)
    hidden = events.write(run, None, "hash")[0].read_text("utf-8")
    assert "new_learnings" not in hidden
    assert not any(message in hidden for message in {row["message"] for row in run.turns("model").to_pylist()})


def test_no_number_is_one_that_json_does_not_have(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Run.turns

    class Holes:
        def __init__(self, rows: list[dict[str, object]]) -> None:
            self.rows = rows

        def to_pylist(self) -> list[dict[str, object]]:
            return [{**row, "skill_score": float("nan"), "max_sim": float("inf")} for row in self.rows]

    monkeypatch.setattr(Run, "turns", lambda *given: Holes(read(*given).to_pylist()))
    path, _ = events.write(run, 1, None)
    assert {e["trace"]["metadata"]["skill_score"] for e in lines(path) if e["trace"]["name"] == "turn"} == {None}
    assert "NaN" not in path.read_text("utf-8")
