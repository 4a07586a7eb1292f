"""`skg-bench gate` where nothing is proven: an arm that is not ahead of `never`, and no verdict at all."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.app.gate_runs import ANCHORS
from tests.app.test_cli import call, refused


def test_an_arm_that_proves_nothing_is_refused_unless_asked_for(
    play: Callable[..., Path], tmp_path: Path, clean: None
) -> None:
    file, run = str(tmp_path / "b.json"), str(play())
    message = refused("gate", "--baseline", file, "--update", run)
    assert "This arm proves nothing" in message
    assert "serving=prompted curator=everything router=recipe" in message
    assert not Path(file).exists()
    assert call("gate", "--baseline", file, "--update", "--unproven", run)[0] == 0
    assert "This arm proves nothing" in refused("gate", "--baseline", file, run)
    code, out, _ = call("gate", "--baseline", file, "--unproven", run)
    assert code == 0
    assert "of the way from `never` to the oracle" in out
    code, out, _ = call("gate", "--baseline", file, "--unproven", str(play("policy.threshold=0.2")))
    assert code == 1
    assert "no lead is judged" in " ".join(out.split())


def test_an_anchor_that_meets_another_llm_than_the_gated_arm_is_refused(
    play: Callable[..., Path], tmp_path: Path, clean: None
) -> None:
    """Any arm is ahead of one whose LLM errs more."""
    weak = "[assistant=pipeline,policy=never,curator=none,llm.right=0.5]"
    for run in (play(f"arms.never={weak}"), play("llm.right=0.5", "+arms.skg=[llm.right=0.9]")):
        file = tmp_path / "b.json"
        message = refused("gate", "--baseline", str(file), "--update", str(run))
        assert "arm 'never' of " in message
        assert "llm.right: 0.9 -> 0.5" in message
        assert not file.exists()


def test_no_report_of_an_earlier_verdict_stands_for_one_that_ended_with_an_error(
    play: Callable[..., Path], baseline: Path, tmp_path: Path
) -> None:
    words = ["gate", "--unproven", "--baseline", str(baseline)]
    reports = ["--junit", str(tmp_path / "gate.xml"), "--markdown", str(tmp_path / "gate.md")]
    assert call(*words, *reports, str(play()))[0] == 0
    assert (tmp_path / "gate.xml").exists()
    refused(*words, *reports, str(play("utility.wrong=0.5")))
    assert not (tmp_path / "gate.xml").exists()
    assert not (tmp_path / "gate.md").exists()
    text = baseline.read_bytes()
    assert "is a baseline file" in refused(*words, "--markdown", str(baseline), str(play()))
    assert baseline.read_bytes() == text


@pytest.mark.parametrize("salt", ["env", "0"])
def test_how_to_get_another_salt_works_where_the_run_reads_no_variable(
    play: Callable[..., Path], tmp_path: Path, clean: None, salt: str
) -> None:
    """The variable alone gave a run of no `experiment=gate` the same public salt, and the same advice again."""
    code, out, _ = call(
        "gate", "--unproven", "--baseline", str(tmp_path / "b.json"), "--update", str(play(f"salt={salt}"))
    )
    assert code == 0
    assert "the salt is the public default" in out
    assert ("salt=env in the command of the run and SKG_BENCH_SALT give another: export" in out) == (salt == "0")
    assert "then run and --update again" in out


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ("router=oracle,policy=always,curator=oracle", "router=oracle, curator=oracle"),
        ("assistant=recall,assistant.recalls=about", "assistant.recalls=about"),
        ("fork=oracle@9", "begins as arm 'oracle', which has router=oracle, curator=oracle"),
    ],
)
def test_an_arm_that_is_told_what_is_true_is_no_build(
    play: Callable[..., Path], baseline: Path, tmp_path: Path, parts: str, words: str
) -> None:
    """Once, `Gate passed` stood below a build that had become the oracle."""
    run = str(play(f"arms={{skg: [{parts}], {ANCHORS}}}"))
    has = words if words.startswith("begins") else f"has {words}"
    message = f"arm 'skg' of {run} {has}, with which it knows what no product can"
    assert message in refused("gate", "--baseline", str(baseline), run)
    assert message in refused("gate", "--baseline", str(tmp_path / "new.json"), "--update", run)
