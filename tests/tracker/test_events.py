"""The event file: every turn and every learning step of the users that it traces, and nothing that is to be hidden."""

import json
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import skg_bench
from skg_bench.core.content import NAMES
from skg_bench.runfolder.run import Run
from skg_bench.skillbook.skillbook import rebuild
from skg_bench.tracker import events, learning_traces
from tests.analysis.advised import LEARNED, Purchase, drawn, make_advice_run
from tests.runs import changed
from tests.tracker.server import lines

MESSAGES = re.compile(r'"message":"([^"]*)"')


def recorded(run: Run) -> Run:
    """The run as one of recorded sessions."""
    return changed(run, config={**run.config, "simulator": {"_target_": "skg_bench.simulator.logs.recorded.Recorded"}})


@pytest.mark.req("P06")
def test_every_turn_and_every_learning_step_of_every_arm_is_a_trace_with_a_key_of_its_own(run: Run) -> None:
    path, count = events.write_events(run, None, None)
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
    path, _ = events.write_events(run, None, None)
    traces = [event["trace"] for event in lines(path)]
    steps = [trace for trace in traces if trace["name"] == learning_traces.UPDATE_TRACE]
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
    path, _ = events.write_events(run, 2, None)
    before = path.read_bytes()
    events.write_events(run, None, None)
    assert len(path.read_bytes()) > len(before)
    events.write_events(run, 2, None)
    assert path.read_bytes() == before
    assert {path.name for path in run.path.glob("*events*")} == {"events.jsonl"}
    some = [set(events.traced_users(run, n).tolist()) for n in (1, 2, 3, None)]
    assert [len(sample) for sample in some] == [1, 2, 3, 5]
    assert some[0] < some[1] < some[2] < some[3]
    assert {e["trace"]["metadata"]["user"] for e in lines(path)} == some[1]


def test_what_people_said_is_hashed_unless_a_corpus_said_it(run: Run) -> None:
    spoken = set(run.turns("skg")["message"].to_pylist()) | set(run.updates("skg")["name"].to_pylist()) - {None}
    clear = events.write_events(run, None, None)[0].read_text("utf-8")
    assert sum(json.dumps(text, ensure_ascii=False) in clear for text in spoken) == len(spoken)
    hashed = events.write_events(run, None, "hash")[0].read_text("utf-8")
    assert not [text for text in spoken if json.dumps(text, ensure_ascii=False) in hashed]
    pairs = set(zip(MESSAGES.findall(clear), MESSAGES.findall(hashed), strict=True))
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs}) > 100  # equal texts stay equal
    history = recorded(run)
    unasked = events.write_events(history, None, None)[0].read_text("utf-8")
    assert unasked == events.write_events(history, None, "hash")[0].read_text("utf-8")
    assert not [text for text in spoken if json.dumps(text, ensure_ascii=False) in unasked]
    full = events.write_events(history, None, "full")[0].read_text("utf-8")
    assert MESSAGES.findall(full) == MESSAGES.findall(clear)


@pytest.mark.req("P06", "P19", "P37", "P41")
def test_a_learning_job_is_a_trace_with_its_reflection_its_result_and_its_cost(tmp_path: Path) -> None:
    arms = "arms={model: [curator=reflecting], never: [policy=never, curator=none]}"
    run = skg_bench.run(["workers=1", "users=3", "weeks=1", arms, f"out={tmp_path / 'run'}", "serving=prompted"])
    clear = [event["trace"] for event in lines(events.write_events(run, None, None)[0])]
    jobs = [trace for trace in clear if trace["name"] == learning_traces.REFLECTION_TRACE]
    logged = run.learning("model").to_pylist()
    assert len(jobs) == len(logged) > 10
    for name, part in (("result", "output"), ("tokens_in", "metadata"), ("about", "input"), ("value", "input")):
        assert [job[part][name] for job in jobs] == [row[name] for row in logged], name
    for job, row in zip(jobs, logged, strict=True):
        reflection = json.loads(row["reflection"])
        assert job["output"]["analysis"] == reflection["analysis"]
        assert job["output"]["new_learnings"] == len(reflection["new_learnings"])
        assert job["output"]["helpful_skill_ids"] == reflection["helpful_skill_ids"]
    steps = [trace["metadata"] for trace in clear if trace["name"] == learning_traces.UPDATE_TRACE]
    named = [(step["user"], step["turn"], job["about"], job["version_written"])
             for step in steps for job in step.get("jobs", ())]  # fmt: skip
    assert named == [tuple(row[name] for name in ("user", "turn", "about", "version_written")) for row in logged]
    keys = [event["key"] for event in lines(run.path / events.EVENTS_FILE)]
    assert len(set(keys)) == len(keys)
    hidden = events.write_events(run, None, "hash")[0].read_text("utf-8")
    assert not any(json.loads(row["reflection"])["analysis"] in hidden for row in logged)
    assert not any(message in hidden for message in {row["message"] for row in run.turns("model").to_pylist()})


@pytest.mark.req("P34", "P37", "P38", "P39")
def test_two_evenings_are_found_by_the_names_of_their_traces_and_the_change_between_them(tmp_path: Path) -> None:
    life = [
        Purchase(
            "overridden", day=0.9, message="headphones, $80, late at night", learned=True, satisfaction="regret_it"
        ),
        Purchase("wait", strategy="time_cost", day=1.9, message="headphones, $60, late at night"),
        Purchase("auto_approved", "analyst", day=5.0, message="coffee, $4, in the morning"),
    ]
    run = make_advice_run(tmp_path / "run", {"guardian": [life], "never": [life]})
    traces = [
        e["trace"] for e in lines(events.write_events(run, None, None)[0]) if e["trace"]["thread_id"] == "guardian/u0"
    ]

    def named(name: str) -> dict[str, Any]:
        (trace,) = [trace for trace in traces if trace["name"] == name]
        return dict(trace)

    first, second = named("guardian:therapist:override"), named("guardian:therapist:wait")
    assert (first["input"]["message"], first["output"]["says"]) == ("headphones, $80, late at night", None)
    assert (second["input"]["message"], second["output"]["says"]["issue"]) == (
        "headphones, $60, late at night",
        LEARNED.issue,
    )
    assert second["metadata"]["truth"]["strategy"] == "time_cost"
    assert named("guardian:analyst:auto_approved")["output"]["shown"] == [0, 1]
    seeds, change = (
        trace for trace in traces if trace["name"] == learning_traces.UPDATE_TRACE and trace["output"]["operations"]
    )
    assert (seeds["metadata"]["turn"], seeds["input"]["skills"], seeds["output"]["skills"]) == (-1, 0, 1)
    assert first["start_time"] < change["start_time"] < second["start_time"]
    assert (change["input"]["skills"], change["output"]["skills"], change["metadata"]["delta"]) == (1, 2, 1)
    assert change["output"]["operations"][0]["issue"] == LEARNED.issue
    reflections = [trace for trace in traces if trace["name"] == learning_traces.REFLECTION_TRACE]
    assert [trace["output"]["new_learnings"] for trace in reflections] == [1, 1]
    assert reflections[0]["output"]["harmful_skill_ids"] == ["general-00001"]
    later = named("learning:satisfaction_feedback")
    assert later["input"] == {"about": 0, "outcome": "overridden", "satisfaction": "regret_it"}
    signal = "positive_reinforcement — user regrets having overridden the Guardian"
    assert later["output"] == {"signal": signal, "analysis": "the user felt lectured"}


@pytest.mark.req("P06")
def test_every_job_of_advice_has_a_trace_of_each_kind_that_applies(tmp_path: Path) -> None:
    arms = {"guardian": drawn(6, 20, 0.8), "never": drawn(6, 20, 0.2)}
    run = make_advice_run(tmp_path / "run", arms)
    traces = [event["trace"] for event in lines(events.write_events(run, None, None)[0])]
    for arm in run.arms:
        jobs = run.learning(arm).to_pylist()
        counted = Counter(t["name"] for t in traces if t["metadata"]["arm"] == arm)
        assert counted[learning_traces.REFLECTION_TRACE] == len(jobs) > 6
        assert counted["learning:satisfaction_feedback"] == sum(job["channel"] == "satisfaction" for job in jobs) > 0
        steps = [
            t["metadata"] for t in traces if t["name"] == learning_traces.UPDATE_TRACE and t["metadata"]["arm"] == arm
        ]
        assert sum(len(step.get("jobs", ())) for step in steps) == len(jobs)
        advice = {name: n for name, n in counted.items() if name.startswith("guardian:")}
        assert sum(advice.values()) == run.turns(arm).num_rows
        overridden = sum(row["outcome"] == "overridden" for row in run.turns(arm).to_pylist())
        assert sum(n for name, n in advice.items() if name.endswith(":override")) == overridden > 0


def rebuilt(traces: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the update log of one arm and user, from traces alone."""

    def seconds(stamp: str | None) -> int | None:
        since = datetime.fromisoformat(stamp) - datetime(2026, 1, 5, tzinfo=UTC) if stamp else None
        return None if since is None else round(since.total_seconds())

    empty = dict.fromkeys(NAMES)
    return [
        {**empty, **op, "turn": step["turn"], "time": seconds(step["applied"]), "born": seconds(op["born"]),
         "book_version": step["book_version"], "book_hash": bytes.fromhex(step["book_hash"])}
        for trace in traces if trace["name"] == learning_traces.UPDATE_TRACE
        for step in [trace["metadata"]] for op in trace["output"]["operations"]
    ]  # fmt: skip


@pytest.mark.req("P40")
@pytest.mark.parametrize("advice", [False, True])
def test_every_past_skillbook_is_rebuilt_from_the_traces_alone(run: Run, tmp_path: Path, advice: bool) -> None:
    if advice:
        run = make_advice_run(tmp_path / "advice", {"guardian": drawn(5, 20, 0.8), "never": drawn(5, 20, 0.2)})
    arm = run.arms[0]
    traces = [event["trace"] for event in lines(events.write_events(run, None, "full")[0])]
    books = 0
    for user in range(run.manifest["users"]):
        rows = rebuilt([trace for trace in traces if trace["thread_id"] == f"{arm}/u{user}"])
        for row in run.turns(arm, ["book_hash", "book_size"], [user]).to_pylist():
            book, _ = rebuild(rows, row["turn"])  # which compares the hash after each batch
            assert book.hash == row["book_hash"]
            books += 1
    assert books == run.turns(arm).num_rows


def test_no_number_is_one_that_json_does_not_have(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Run.turns

    class Holes:
        def __init__(self, rows: list[dict[str, object]]) -> None:
            self.rows = rows

        def to_pylist(self) -> list[dict[str, object]]:
            return [{**row, "skill_score": float("nan"), "max_sim": float("inf")} for row in self.rows]

    monkeypatch.setattr(Run, "turns", lambda *given: Holes(read(*given).to_pylist()))
    path, _ = events.write_events(run, 1, None)
    assert {e["trace"]["metadata"]["skill_score"] for e in lines(path) if e["trace"]["name"] == "turn"} == {None}
    assert "NaN" not in path.read_text("utf-8")
