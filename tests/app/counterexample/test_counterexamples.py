"""Counterexamples: the smallest session in which two arms differ, kept as a file that replays."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

import skg_bench
from skg_bench.app.counterexample import cases, shrink
from skg_bench.app.counterexample.cases import Case
from skg_bench.core.errors import UsageError
from skg_bench.engine.excerpt import Excerpts
from skg_bench.runfolder.run import Run
from tests.app.test_cli import call
from tests.runs import changed, logs_alone, save
from tests.work import calls_in

TURN = 30  # of a fork
FEW = ("simulator.corpus=builtin_120", "simulator.volume_spread=0.3")
ARMS = (
    f"arms={{skg: [], low: [policy.threshold=0.2], never: [policy=never], turned: ['fork=skg@{TURN}', policy=always]}}"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Three weeks of five users under a threshold of 0.5, and of 0.2; of few intents, so that each has hits."""
    out = tmp_path_factory.mktemp("counterexamples") / "run"
    with logs_alone():
        return skg_bench.run(["users=5", "weeks=3", *FEW, ARMS, "reference=skg", f"out={out}"])


def right(case: Case, role: str) -> bool:
    """Was the last answer right?"""
    return bool(case.expected[role][-1]["right"])


def without(case: Case, place: int) -> Case:
    """The session without one event, with what the arms do in it."""
    less = replace(case, events=[e for i, e in enumerate(case.events) if i != place])
    replayer = cases.replayer_of(case.scenario, case.origin)
    excerpts = Excerpts(replayer.setting, cases.events_of(less, replayer.simulator))
    arms = {role: spec.arm(role, case.origin) for role, spec in case.specs.items()}
    logs = cases.replayed_logs(replayer, arms, excerpts, excerpts.rows([np.arange(len(less.events))]))
    return replace(less, expected={role: cases.action_rows(log, replayer) for role, log in logs.items()})


@pytest.mark.parametrize("user", range(5))
def test_a_lower_threshold_is_shown_wrong_by_a_session_of_few_events_of_which_none_can_be_left_out(
    run: Run, user: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    replays = Mock(side_effect=cases.replayed_logs)
    monkeypatch.setattr(cases, "replayed_logs", replays)
    case = shrink.smallest_case(run, "low", user=user)
    assert replays.call_count <= 10  # of many sessions each: 4 in these
    check_minimal(case)


def check_minimal(case: Case) -> None:
    """A session of few events shows that the arm is wrong, and shows it no more without any of them."""
    assert 2 <= len(case.events) <= 6
    assert (right(case, "arm"), right(case, "reference")) == (False, True)
    for place in range(len(case.events) - 1):
        less = without(case, place)
        assert (right(less, "arm"), right(less, "reference")) != (False, True)


def test_of_a_whole_life_no_event_is_left_that_can_go(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search mostly begins with so few events that none can go."""
    monkeypatch.setattr(shrink, "_telling", lambda *_: iter(()))
    check_minimal(shrink.smallest_case(run, "low", user=0))


def test_the_session_ends_with_the_event_at_which_the_run_shows_it(run: Run) -> None:
    low, skg = (run.turns(arm, ["answer_correct", "event", "message"], [2]).to_pylist() for arm in ("low", "skg"))
    worse = [t["turn"] for t, s in zip(low, skg, strict=True) if s["answer_correct"] and not t["answer_correct"]]
    case = shrink.smallest_case(run, "low", user=2, turn=worse[-1])
    last = case.events[-1]
    assert (last["number"], last["message"]) == (low[worse[-1]]["event"], low[worse[-1]]["message"])
    assert case.says.startswith(f"user 2, event {worse[-1]}: skg is right, low is wrong (")
    assert [e["number"] for e in case.events] == sorted(e["number"] for e in case.events)


def test_an_event_that_the_arm_alone_answers_rightly_is_shown_too(run: Run) -> None:
    worse = shrink.smallest_case(run, "low", "never", user=1)
    assert (right(worse, "arm"), right(worse, "reference")) == (False, True)
    better = shrink.smallest_case(run, "never", "low", user=1, turn=worse.events[-1]["number"])
    assert (right(better, "arm"), right(better, "reference")) == (True, False)
    assert better.events == worse.events


@pytest.mark.parametrize("metric", ["utility", "err_per_hit"])
def test_the_sign_of_a_difference_is_shown_by_part_of_a_life(run: Run, metric: str) -> None:
    case = shrink.smallest_case(run, "low", user=4, metric=metric)
    assert 1 <= len(case.events) <= 6
    assert f"user 4: {metric} is " in case.says
    hits = [sum(row["hit"] for row in case.expected[role]) for role in ("arm", "reference")]
    assert hits[0] > hits[1] or metric == "err_per_hit"


def test_an_arm_that_forks_keeps_as_many_events_as_it_needs_to_get_there(run: Run) -> None:
    case = shrink.smallest_case(run, "turned", "skg")
    assert len(case.events) == TURN + 1
    assert set(case.specs["arm"].compositions) == {"turned", "skg"}
    assert cases.deviations(case) == []


def test_a_case_replays_in_twelve_thousand_calls_and_says_what_changed(run: Run, tmp_path: Path) -> None:
    case, path = shrink.smallest_case(run, "low"), tmp_path / "case.json"
    cases.save_case(case, path)
    read = cases.load_case(path)
    assert cases.deviations(read) == []
    assert calls_in(lambda: cases.deviations(read)) < 12_000
    raised = json.loads(path.read_text("utf-8"))
    raised["sides"]["arm"]["compositions"]["low"]["policy"]["threshold"] = 0.5
    path.write_text(json.dumps(raised), "utf-8")
    (line,) = cases.deviations(cases.load_case(path))
    assert line.startswith(f"arm (low) at {case.events[-1]['message']!r}: ")
    assert "hit True, now False" in line
    assert "right False, now True" in line


def test_a_parameter_that_came_later_than_the_file_has_its_default(run: Run, tmp_path: Path) -> None:
    case, path = shrink.smallest_case(run, "low"), tmp_path / "case.json"
    cases.save_case(case, path)
    old = json.loads(path.read_text("utf-8"))
    del old["place"]["simulator"]["order"]
    for side in old["sides"].values():
        for composition in side["compositions"].values():
            del composition["fork"], composition["curator"]["harmful_misses"]
    path.write_text(json.dumps(old), "utf-8")
    assert cases.deviations(cases.load_case(path)) == []


def test_the_arm_and_the_reference_may_come_from_two_runs(run: Run, tmp_path: Path, bare: None) -> None:
    same = ["users=5", "weeks=3", *FEW, "arms={skg: [policy.threshold=0.2]}", "reference=skg", f"out={tmp_path / 'b'}"]
    second = skg_bench.run(same)
    case = shrink.smallest_case(second, "skg", "skg", against=run)
    assert [spec.compositions["skg"]["policy"]["threshold"] for spec in case.specs.values()] == [0.2, 0.5]
    assert [e["number"] for e in case.events] == [e["number"] for e in shrink.smallest_case(run, "low").events]
    manifest = json.loads((second.path / "manifest.json").read_text("utf-8"))
    manifest["config"]["seed"] = 1
    save(second.path, manifest)
    with pytest.raises(UsageError, match="differ in seed; a session must be the same for both arms"):
        shrink.smallest_case(Run(second.path), "skg", "skg", against=run)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--arm", "lwo"], "has no arm 'lwo'; did you mean 'low'?"),
        (
            ["--arm", "skg"],
            "skg and skg are right at the same turns, so no event shows a difference",
        ),
        (["--arm", "low", "--user", "77"], "has users 0 to 4"),
        (["--arm", "low", "--user", "-1"], "has users 0 to 4"),
        (["--arm", "low", "--user", "1", "--turn", "0"], "at user 1 and turn 0, low and skg do not differ"),
        (["--arm", "low", "--metric", "utility"], "a metric is of a whole session: give --user, and no --turn"),
        (["--arm", "low", "--user", "1", "--metric", "skills"], "metric=skills cannot be taken over part of a session"),
        (["--arm", "low", "--user", "77", "--metric", "utility"], "has users 0 to 4"),
        (["--arm", "skg", "--user", "1", "--metric", "utility"], "user 1 has the same utility under both arms"),
    ],
)
def test_what_cannot_be_found_is_said(run: Run, words: list[str], message: str) -> None:
    code, _, error = call("counterexample", "find", str(run.path), *words)
    assert code == 2
    assert message in " ".join(error.split())


def test_a_run_that_this_version_does_not_give_is_said(run: Run, tmp_path: Path) -> None:
    """Its log says another thing than its events and arms do."""
    manifest = json.loads((run.path / "manifest.json").read_text("utf-8"))
    manifest["compositions"]["low"]["policy"]["threshold"] = 0.5
    shutil.copytree(run.path, tmp_path, dirs_exist_ok=True)
    changed(Run(tmp_path), compositions=manifest["compositions"])
    with pytest.raises(UsageError, match="no longer gives what the run logged; run it again"):
        shrink.smallest_case(Run(tmp_path), "low", "skg")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 99}', '{"schema": 1, "says": "x"}', "{broken"])
def test_what_is_no_case_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "case.json"
    path.write_text(text, "utf-8")
    code, _, error = call("counterexample", "replay", str(path))
    assert code == 2
    assert "find the counterexample again" in error or "is no counterexample" in error


def test_a_message_that_the_simulator_does_not_know_is_said(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    case = shrink.smallest_case(run, "low")
    cases.save_case(replace(case, events=[{**case.events[0], "message": "never said"}, *case.events[1:]]), path)
    with pytest.raises(UsageError, match="the simulator knows no message 'never said'"):
        cases.deviations(cases.load_case(path))


def test_the_commands_show_write_and_replay(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    code, out, _ = call("counterexample", "find", str(run.path), "--arm", "low", "--out", str(path))
    assert code == 0
    assert "skg is right, low is wrong" in out
    assert "leave any one out, and it does not show any more" in " ".join(out.split())
    code, out, _ = call("counterexample", "replay", str(path))
    assert code == 0
    assert "as it was" in out
    case = cases.load_case(path)
    changed = {role: [*rows[:-1], {**rows[-1], "max_sim": 0.5}] for role, rows in case.expected.items()}
    cases.save_case(replace(case, expected=changed), path)
    code, out, _ = call("counterexample", "replay", str(path))
    assert code == 1
    assert "changed" in out
    assert "max_sim 0.5, now " in " ".join(out.split())
    assert np.isfinite(case.expected["arm"][-1]["max_sim"])
