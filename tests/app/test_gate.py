"""`skg-bench gate` on real runs: exit codes, files, what it refuses."""

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from skg_bench.analysis.gate.outputs import GateOutcome
from skg_bench.analysis.gate.verdict_turns import explain
from skg_bench.app import gate, run_identity
from skg_bench.app.counterexample import cases
from skg_bench.app.packages import Package
from skg_bench.core.errors import UsageError
from tests.app.gate_runs import BASELINE, OWN, changed
from tests.app.test_cli import call, refused

LIVE = (
    "arms={live: [], never: [policy=never,curator=none], oracle: [router=oracle,policy=always,curator=oracle]}",
    "reference=live",
)
"""Overrides of a run whose gated arm has another name."""

pytestmark = pytest.mark.usefixtures("unproven")


def test_the_same_bits_pass_at_once(baseline: Path, play: Callable[..., Path]) -> None:
    code, out, _ = call("gate", "--baseline", str(baseline), str(play()))
    assert code == 0
    assert "the same bits, turn by turn" in out
    assert "Gate passed" in out


def test_with_exact_the_exit_code_tells_the_same_bits_from_others_that_pass(
    baseline: Path, play: Callable[..., Path], tmp_path: Path
) -> None:
    code, out, _ = call("gate", "--baseline", str(baseline), str(play()), "--exact")
    assert (code, "Gate passed" in out) == (0, True)
    other = ("gate", "--baseline", str(baseline), str(play("signals.half_life_days=29")))
    assert call(*other)[0] == 0
    code, out, _ = call(*other, "--exact")
    assert code == 3
    assert "other bits than the baseline's" in out
    assert call("gate", "--baseline", str(baseline), str(play("policy.threshold=0.2")), "--exact")[0] == 1
    assert "leave out" in refused("gate", "--baseline", str(tmp_path / "x.json"), "--update", str(play()), "--exact")


def test_no_message_that_is_printed_is_a_command_of_a_runner(
    baseline: Path, play: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    message = "##[error]out ::add-mask::x \x1b[2J"

    def worded(*what: Any) -> Any:
        content = explain(*what)
        assert content is not None
        users = tuple(replace(u, turns=tuple(replace(t, message=message) for t in u.turns)) for u in content.users)
        return replace(content, users=users)

    monkeypatch.setattr(gate, "explain", worded)
    words = ("gate", "--baseline", str(baseline), str(play("policy.threshold=0.2")), "--annotations")
    code, out, _ = call(*words)
    assert code == 1
    assert "out" in out
    assert "##[" not in out
    assert "\x1b" not in out
    commands = [line for line in out.splitlines() if "::" in line]
    assert commands
    assert all(line.startswith(("::error title=", "::notice title=", "::warning title=")) for line in commands)
    assert all(line.count("::") == 2 for line in commands)


def test_the_baseline_of_a_run_is_the_same_file_whatever_cohort_it_ran_in(
    baseline: Path, play: Callable[..., Path], tmp_path: Path, clean: None
) -> None:
    other = tmp_path / "other.json"
    gate.update_baseline(play("cohort=50"), other)
    mine, theirs = (json.loads(path.read_text("utf-8")) for path in (baseline, other))
    mine["made"]["commit"] = theirs["made"]["commit"]  # somebody may commit between two runs
    assert mine == theirs


def test_a_threshold_of_a_fifth_fails_and_users_turns_and_reasons_are_named(
    baseline: Path, play: Callable[..., Path], tmp_path: Path
) -> None:
    run, junit, markdown = play("policy.threshold=0.2"), tmp_path / "r" / "gate.xml", tmp_path / "r" / "gate.md"
    case = tmp_path / "r" / "case.json"
    words = ["--junit", str(junit), "--markdown", str(markdown), "--counterexample", str(case), "--annotations"]
    code, out, _ = call("gate", "--baseline", str(baseline), str(run), *words)
    assert code == 1
    suite = ET.fromstring(junit.read_text("utf-8"))  # noqa: S314
    assert int(str(suite.get("failures"))) >= 2
    outcome = gate.gate(run, baseline)
    assert outcome.flips is not None
    assert dict(outcome.flips.reasons)["threshold"] > 0.9 * outcome.flips.worse
    for text in (out, junit.read_text("utf-8"), markdown.read_text("utf-8")):
        for user in outcome.flips.users:
            assert f"user {user.user}: harm +" in text
            assert all(f"turn {turn.turn} " in text for turn in user.turns)
        assert "reason: threshold" in text
        assert "compositions.skg.policy.threshold" in text
        assert "0.5 -> 0.2" in text or "0.5 -&gt; 0.2" in text
        assert "smallest session that shows it: " in text
    session = cases.load_case(case)
    assert 2 <= len(session.events) <= 6
    assert cases.deviations(session) == []
    last = {role: rows[-1]["right"] for role, rows in session.expected.items()}
    assert last == {"arm": False, "reference": True}
    assert out.count("::error title=") == int(str(suite.get("failures")))


SIZES = pytest.mark.parametrize("weeks", [3, pytest.param(26, marks=pytest.mark.soak)])
"""Weeks of what the project gates itself by. The soak plays them all, against the committed baseline: the learner is
ahead of `never` only then.
"""
FEW = ("users=60", "simulator.messages_per_day=4", "simulator.volume_spread=0.1")
"""Users of whom the busiest, who takes the time, does not do ten times what the others do."""


AS_THEY_ARE = ("simulator.messages_per_day=10", "simulator.volume_spread=0.7")


def own(play: Callable[..., Path], weeks: int) -> Path:
    """A run of so many weeks of OWN, of which the soak takes the users as they are."""
    return play(*OWN, *(AS_THEY_ARE if weeks == 26 else FEW), f"weeks={weeks}")


def held_against_own(run: Path, arm: str, weeks: int, folder: Path) -> GateOutcome:
    """An arm of a run of OWN against what the project gates itself by."""
    file = folder / "own.json"
    if weeks == 26:
        file.write_bytes(BASELINE.read_bytes())
    else:
        gate.update_baseline(run, file, "before", unproven=True)
    content = json.loads(file.read_text("utf-8"))
    content["made"]["compositions"] = {arm: content["made"]["compositions"][content["arm"]]}
    file.write_text(json.dumps({**content, "arm": arm}), "utf-8")
    return gate.gate(run, file)


@SIZES
def test_the_projects_own_panel_is_not_passed_by_giving_up(
    play: Callable[..., Path], tmp_path: Path, clean: None, weeks: int
) -> None:
    """An arm that captures all the same decides the same turns, which takes a minute more."""
    outcome = held_against_own(own(play, weeks), "quitting", weeks, tmp_path)
    judged = {judgement.metric: judgement for judgement in outcome.held[0].judged}
    assert outcome.state == "fail"
    assert judged["right_hits"].state == "fail"
    assert ("lead" in judged) == (weeks == 26)
    assert weeks < 26 or judged["lead"].state == "fail"


@SIZES
def test_an_improvement_with_fewer_hits_passes(
    play: Callable[..., Path], tmp_path: Path, clean: None, weeks: int
) -> None:
    """Utility rises, and fewer answers are wrong."""
    outcome = held_against_own(own(play, weeks), "gated", weeks, tmp_path)
    judged = {judgement.metric: judgement for judgement in outcome.held[0].judged}
    assert outcome.state == "pass"
    assert judged["utility"].mean < -0.002
    assert judged["err_per_request"].mean < -0.001
    assert judged["right_hits"].paid
    assert [metric.name for metric, _, _ in outcome.held[0].informs] == ["hit_rate", "err_per_hit"]


def test_without_a_change_of_configuration_there_is_no_session_to_show(
    baseline: Path, play: Callable[..., Path], tmp_path: Path
) -> None:
    """As if the code had made it worse: the file says that the old configuration was that of the run."""
    run, case = play("policy.threshold=0.2"), tmp_path / "case.json"
    content = json.loads(baseline.read_text("utf-8"))
    content["made"]["compositions"]["skg"]["policy"]["threshold"] = 0.2
    baseline.write_text(json.dumps(content), "utf-8")
    code, out, _ = call("gate", "--baseline", str(baseline), str(run), "--counterexample", str(case))
    assert code == 1
    assert "not written, no session shows it" in out
    assert not case.exists()
    content["made"]["compositions"]["skg"]["policy"]["threshold"] = 0.21  # does not do what the file says was done
    baseline.write_text(json.dumps(content), "utf-8")
    assert gate.smallest(gate.gate(run, baseline)) is None


def test_a_verdict_stands_without_a_session_that_reads_other_files(
    baseline: Path, play: Callable[..., Path], tmp_path: Path
) -> None:
    embedder = {"_target_": "skg_bench.embedder.precomputed.Precomputed", "path": "elsewhere"}
    run = shutil.copytree(play("policy.threshold=0.2"), tmp_path / "run")
    config = json.loads((run / "manifest.json").read_text("utf-8"))["config"]
    changed(run, config={**config, "embedder": embedder})
    content = json.loads(baseline.read_text("utf-8"))
    content["made"]["config"]["embedder"] = embedder  # of the system
    baseline.write_text(json.dumps(content), "utf-8")
    code, out, _ = call("gate", "--baseline", str(baseline), str(run))
    assert code == 1
    assert f"no session was looked for: {run} sets embedder.path='elsewhere', which reads files" in out
    assert "then add --trust" in out
    code, out, error = call("gate", "--baseline", str(baseline), str(run), "--trust")
    assert code == 1
    assert "no session was looked for" not in out  # it is tried, and there is no such file
    assert f"{run}, trusted by --trust:\n  embedder.path='elsewhere' reads files" in error


def test_too_few_users_are_inconclusive(play: Callable[..., Path], tmp_path: Path, clean: None) -> None:
    file = tmp_path / "small.json"
    gate.update_baseline(play("users=12"), file)
    code, out, _ = call("gate", "--baseline", str(file), str(play("users=12", "policy.threshold=0.2")))
    assert code == 3
    assert "too few users: 12 have it before and after, 30 are needed" in out


def test_the_release_is_held_to_the_budget(
    baseline: Path, play: Callable[..., Path], tmp_path: Path, clean: None
) -> None:
    """The run is main to the bit, but main has drifted since the release."""
    main, run = tmp_path / "main.json", str(play("policy.threshold=0.2"))
    gate.update_baseline(run, main)
    code, out, _ = call("gate", "--baseline", str(main), "--release", str(baseline), run)
    assert code == 1
    assert "against the baseline: the same bits" in out
    outcome = gate.gate(run, main, baseline)
    assert [held.state for held in outcome.held] == ["pass", "fail"]
    assert {judgement.metric: judgement.margin for judgement in outcome.held[1].judged}["utility"] == 0.02


def test_accepted_steps_use_up_the_budget_since_the_anchor(
    baseline: Path, play: Callable[..., Path], tmp_path: Path
) -> None:
    """Each step is accepted by --update, which leaves the anchor; --move-anchor moves it."""
    states, first = [], json.loads(baseline.read_text("utf-8"))["users"]
    for threshold in ("0.42", "0.36", "0.31"):
        run = play(f"policy.threshold={threshold}")
        outcome = gate.gate(run, baseline)
        states.append({held.which: held.state for held in outcome.held})
        assert call("gate", "--baseline", str(baseline), "--update", str(run))[0] == 0
        assert json.loads(baseline.read_text("utf-8"))["anchor"]["users"] == first
    assert list(states[0]) == ["baseline"]
    assert "fail" not in {state for held in states[:2] for state in held.values()}
    assert states[-1]["anchor"] == "fail"
    code, out, _ = call("gate", "--baseline", str(baseline), str(run))
    assert code == 1
    assert "over the budget" in out
    code, out, _ = call("gate", "--baseline", str(baseline), "--update", "--move-anchor", str(run))
    assert code == 0
    assert json.loads(baseline.read_text("utf-8"))["anchor"] is None
    assert call("gate", "--baseline", str(baseline), str(run))[0] == 0
    assert "goes with --update" in refused("gate", "--baseline", str(baseline), "--move-anchor", str(run))


def test_an_update_keeps_what_a_person_set_and_prints_what_changed(baseline: Path, play: Callable[..., Path]) -> None:
    content = json.loads(baseline.read_text("utf-8"))
    metrics = {"rated_ok": {"role": "errors", "better": "higher", "margin": 0.5}, "hit_rate": {"role": "informs"}}
    baseline.write_text(json.dumps(content | {"metrics": metrics, "budget": 1.5}), "utf-8")
    code, out, _ = call("gate", "--baseline", str(baseline), "--update", "--move-anchor", str(play()))
    assert code == 0
    after = json.loads(baseline.read_text("utf-8"))
    assert (after["metrics"], after["budget"]) == (metrics, 1.5)
    assert {"rated", "ok"} <= set(after["counts"])
    code, out, _ = call("gate", "--baseline", str(baseline), "--update", str(play("policy.threshold=0.2")))
    assert code == 0
    assert "rated ok" in out
    assert "against the anchor, budget 1.5 margins" in out


def test_an_update_goes_to_another_panel_or_world_only_with_its_anchor(
    baseline: Path, play: Callable[..., Path]
) -> None:
    words = ("gate", "--baseline", str(baseline), "--update")
    assert "the anchor in" in refused(*words, str(play("users=12")))
    assert "is of another world" in refused(*words, str(play("utility.wrong=5.0")))
    assert call(*words, "--move-anchor", str(play("users=12")))[0] == 0
    assert len(json.loads(baseline.read_text("utf-8"))["users"]) == 12


def test_a_metric_without_trials_or_users_enough_does_not_block(
    play: Callable[..., Path], tmp_path: Path, clean: None
) -> None:
    file = tmp_path / "small.json"
    code, out, _ = call("gate", "--baseline", str(file), "--update", str(play("users=12")))
    assert code == 0
    assert "harmed_users does not block: this panel has too few trials or users to judge it" in out
    assert not {"harmed_users", "worst_users"} & set(json.loads(file.read_text("utf-8"))["metrics"])


# ------------------------------------------------------------------------------------------------- what is refused


def test_an_update_refuses_a_dirty_tree(
    play: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, run = tmp_path / "b.json", tmp_path / "run"
    shutil.copytree(play(), run)
    monkeypatch.setattr(gate, "uncommitted", lambda: [str(tmp_path / "skg_bench" / "new.py"), str(file)])
    message = refused("gate", "--baseline", str(file), "--update", str(run))
    assert "the tree is dirty" in message
    assert "new.py" in message
    assert "b.json" not in message.split(";")[0]
    monkeypatch.setattr(gate, "uncommitted", lambda: [str(file)])
    gate.update_baseline(run, file)  # the file itself may be uncommitted
    changed(run, code="other")
    assert "other code" in refused("gate", "--baseline", str(file), "--update", str(run))
    changed(run, dirty="0123456789abcdef")
    assert "from a dirty tree" in refused("gate", "--baseline", str(file), "--update", str(run))


def test_an_update_refuses_a_run_with_a_plugin_from_a_dirty_tree(
    play: Callable[..., Path], tmp_path: Path, clean: None
) -> None:
    file, run = tmp_path / "b.json", shutil.copytree(play(), tmp_path / "run")
    plugin = {"version": "0.1.0", "commit": "a" * 40, "dirty": None}
    changed(run, packages={"mine": plugin})
    gate.update_baseline(run, file)
    changed(run, packages={"mine": plugin | {"dirty": "0123456789abcdef"}})
    message = refused("gate", "--baseline", str(file), "--update", str(run))
    assert "was made with the package 'mine' from a dirty tree; commit there, run again" in message


def test_what_is_uncommitted_is_what_git_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e", *words], check=True)

    package = tmp_path / "skg_bench"
    package.mkdir()
    monkeypatch.setattr(run_identity, "packages", lambda: (Package("skg_bench", package, tmp_path / "conf"),))
    assert run_identity.uncommitted() == []  # no checkout
    (package / "__init__.py").write_text("")
    (tmp_path / ".gitignore").write_text("runs/\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a").write_text("")
    assert run_identity.uncommitted() == []
    (package / "__init__.py").write_text("x = 1\n")
    (package / "a new file.py").write_text("")
    assert [Path(name).name for name in run_identity.uncommitted()] == ["__init__.py", "a new file.py"]
    assert all(Path(name).is_file() for name in run_identity.uncommitted())


def test_bad_input_is_refused_with_what_to_do(baseline: Path, play: Callable[..., Path], tmp_path: Path) -> None:
    run, file = str(play()), str(baseline)
    assert "is no run directory" in refused("gate", "--baseline", file, str(tmp_path))
    assert "is no baseline file" in refused("gate", "--baseline", str(tmp_path / "none.json"), run)
    assert "of another panel: seed=0 there, 5 in the run" in refused("gate", "--baseline", file, str(play("seed=5")))
    assert "12 in the run, 12 of them the same" in refused("gate", "--baseline", file, str(play("users=12")))
    assert "no arm 'skg'" in refused("gate", "--baseline", file, str(play(*LIVE)))
    assert "gives no verdict" in refused("gate", "--baseline", file, "--update", "--junit", "x.xml", run)
    assert "--arm" in refused("gate", "--baseline", file, "--arm", "skg", run)
    assert "is of arm 'skg'" in refused("gate", "--baseline", file, "--update", "--arm", "live", run)
    (tmp_path / "text.json").write_text("{")
    assert "corrupt" in refused("gate", "--baseline", str(tmp_path / "text.json"), run)
    assert "corrupt" in refused("gate", "--baseline", file, "--release", str(tmp_path / "text.json"), run)


def test_a_torn_shard_and_another_schema_version_are_refused(
    baseline: Path, play: Callable[..., Path], tmp_path: Path
) -> None:
    torn, old = tmp_path / "torn", tmp_path / "old"
    shutil.copytree(play(), torn)
    shutil.copytree(play(), old)
    shard = next((torn / "turns").glob("*.parquet"))
    shard.write_bytes(shard.read_bytes()[:-40])
    assert "torn or was changed" in refused("gate", "--baseline", str(baseline), str(torn))
    changed(old, schema=0)
    assert "schema version 0" in refused("gate", "--baseline", str(baseline), str(old))


def test_a_release_of_another_arm_is_refused(
    baseline: Path, play: Callable[..., Path], tmp_path: Path, clean: None
) -> None:
    release = tmp_path / "release.json"
    gate.update_baseline(play(*LIVE), release, "live", unproven=True)
    with pytest.raises(UsageError, match="gate one arm"):
        gate.gate(play(), baseline, release)


def test_a_panel_without_an_anchor_is_refused_with_what_to_add(
    baseline: Path, play: Callable[..., Path], tmp_path: Path
) -> None:
    for absent, arms in (
        ("no anchor never", "arms={skg: [], oracle: [router=oracle,policy=always,curator=oracle]}"),
        ("no anchor oracle", "arms={skg: [], never: [policy=never,curator=none]}"),
    ):
        run = play(arms, "reference=skg")
        message = refused("gate", "--baseline", str(baseline), str(run))
        assert absent in message
        assert f"run it with '+arms.{absent.split()[-1]}=[" in message
        assert absent in refused("gate", "--baseline", str(tmp_path / "new.json"), "--update", str(run))


def test_an_anchor_that_asks_users_is_none(baseline: Path, play: Callable[..., Path]) -> None:
    arms = "arms={skg: [], never: [policy=never], oracle: [router=oracle,policy=always,curator=oracle]}"
    assert "reuses answers or asks users" in refused("gate", "--baseline", str(baseline), str(play(arms)))
