"""What is written is read back."""

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from skg_bench.analysis.gate import outputs
from skg_bench.analysis.gate.against import Held, Reference, hold
from skg_bench.analysis.gate.outputs import GateOutcome
from skg_bench.analysis.gate.rules import RULES, blocking
from skg_bench.analysis.gate.verdict_turns import HarmedTurn, HarmedTurns, User
from tests.analysis.gate.panels import held_to, worse

MESSAGE = "50 % off? a|b *now* <script> & \x07\n::error::\u2028end"
TURN = HarmedTurn(7, MESSAGE, "LLM, right", "skillbook, wrong ('set-alarm', score 0.27)", "threshold", True)
SESSION = ("smallest session that shows it:", "  event 7")
FLIPS = HarmedTurns("err_per_request", 12, 3, (("threshold", 11), ("stale", 1)), (User(4, 0.25, (TURN,), 9),))
CHANGED = {"baseline": ["code: a -> b", 'compositions.skg.policy.threshold: 0.5 -> "<0.2>"'], "release": []}


NAMES = [rule.metric for rule in blocking(RULES)]


def held(lost: list[int], which: str = "baseline") -> Held:
    reference = Reference("release" if which == "release" else "baseline", worse([50]), RULES, "file")
    return hold(worse(lost), [reference])[0]


def outcome(*lost: list[int]) -> GateOutcome:
    whiches = ("baseline", "release")
    comparisons = tuple(held(losses, which) for losses, which in zip(lost, whiches, strict=False))
    return GateOutcome(
        "runs/x",
        "skg",
        comparisons,
        {comparison.which: CHANGED[comparison.which] for comparison in comparisons},
        FLIPS,
        SESSION,
        250,
    )


SAME, PASSED, WORSE, OPEN, FAILED = [50], [51, 50, 49], [52], [44, 64], [65]


@pytest.mark.parametrize(
    ("lost", "state"),
    [
        ([SAME], "pass"), ([PASSED], "pass"), ([WORSE], "pass"), ([OPEN], "inconclusive"), ([FAILED], "fail"),
        ([PASSED, OPEN], "inconclusive"), ([OPEN, FAILED], "fail"), ([FAILED, SAME], "fail"), ([SAME, SAME], "pass"),
    ],
)  # fmt: skip
def test_the_worse_of_two_verdicts_is_the_verdict(lost: list[list[int]], state: str) -> None:
    assert outcome(*lost).state == state


def test_junit_is_read_back_with_a_case_for_each_metric_and_baseline() -> None:
    suite = ET.fromstring(outputs.junit(outcome(OPEN, FAILED)))  # noqa: S314
    cases = suite.findall("testcase")
    assert (suite.tag, suite.get("tests")) == ("testsuite", str(len(cases)))
    assert [case.get("classname") for case in cases] == ["gate.baseline"] * len(NAMES) + ["gate.release"] * len(NAMES)
    assert [case.get("name") for case in cases] == NAMES + NAMES
    assert suite.get("failures") == str(len(suite.findall("testcase/failure"))) == "2"
    assert suite.get("errors") == str(len(suite.findall("testcase/error"))) == "2"
    failure, error = suite.find("testcase/failure"), suite.find("testcase/error")
    assert failure is not None
    assert error is not None
    assert "margin 0.5 pp" in str(suite.findall("testcase/failure")[1].get("message"))
    assert "user 4: harm +25.0 pp" in str(failure.text)
    assert 'turn 7 "50 % off? a|b *now* <script> & ::error:: end"' in str(failure.text)
    properties = {element.get("name"): element.get("value") for element in suite.findall("properties/property")}
    assert properties["baseline: compositions.skg.policy.threshold"] == '0.5 -> "<0.2>"'


def test_junit_of_the_same_bits_is_one_case_that_passed() -> None:
    suite = ET.fromstring(outputs.junit(outcome(SAME)))  # noqa: S314
    assert [(case.get("name"), len(case)) for case in suite.findall("testcase")] == [("same bits", 0)]
    assert (suite.get("failures"), suite.get("errors")) == ("0", "0")


def test_markdown_names_verdict_numbers_differences_users_turns_and_reasons() -> None:
    text = outputs.markdown(outcome(FAILED))
    lines = text.splitlines()
    assert lines[0] == "### Gate FAILED: arm skg of runs/x"
    table = [line for line in lines if line.startswith("|")]
    assert all(len(re.findall(r"(?<!\\)\|", line)) == len(outputs.GATE_HEADINGS) + 1 for line in table)
    assert "| wrong per request | +1.5 pp | +1.5 pp | +1.5 pp | 0.5 pp | 100 | FAILED |" in lines
    assert "* `code: a -> b`" in lines
    assert '  * turn 7 "50 % off? a\\|b \\*now\\* \\<script> & ::error:: end": LLM, right' in text
    assert "reason: threshold" in text
    assert "false alarms" not in text or "250" in text


def test_who_passes_is_not_named_but_counted() -> None:
    lines = outputs.explained(outcome(PASSED))
    assert lines == ["wrong per request: 12 turns became worse (threshold 11, stale 1), 3 better", *SESSION]
    assert outputs.explained(replace(outcome(PASSED), flips=None)) == []


def test_annotations_are_workflow_commands_of_one_line_each() -> None:
    commands = outputs.annotations(outcome(OPEN, FAILED))
    assert all(re.fullmatch(r"::(notice|warning|error) title=[^:,\n]+::[^\n\r]+", line) for line in commands)
    levels = [line.split(" ")[0] for line in commands]
    assert levels.count("::error") == 2
    assert levels.count("::warning") == 4  # one of them passed, but is proven worse
    assert "50 %25 off" in commands[-1]
    assert "%0A  turn 7" in commands[-1]
    assert outputs.annotations(outcome(SAME)) == ["::notice title=gate::Gate passed: arm skg of runs/x"]


def test_an_annotation_is_cut_where_a_summary_has_the_rest() -> None:
    turn = replace(TURN, message="word " * 500)
    one = replace(outcome(FAILED), flips=replace(FLIPS, users=(replace(FLIPS.users[0], turns=(turn,) * 3),)))
    line = outputs.annotations(one)[-1]
    assert len(line) < 700
    assert line.endswith("(the rest is in the summary)")
    assert "became worse" in line


@pytest.mark.parametrize(
    "said", ["##[error]x", "a ##[group]", "##vso[task.complete]", "::add-mask::x", ":::::", "x::y"]
)
def test_no_line_of_a_log_is_a_command_of_its_runner(said: str) -> None:
    line = outputs.inert(said)
    assert not re.search(r"##\w*[\[.]|::", line)
    assert line.replace("\\", "") == said
    turn = replace(TURN, message=said)
    one = replace(outcome(FAILED), flips=replace(FLIPS, users=(replace(FLIPS.users[0], turns=(turn,)),)))
    command, _, text = outputs.annotations(one)[-1].removeprefix("::").partition("::")
    assert command == "notice title=what became worse"
    assert line in text
    assert said not in text


def test_a_line_without_a_command_stays_as_it_is() -> None:
    for said in ("12:30: tea?", "# heading", "## [x]", "a: b", "#[x]", "C##"):
        assert outputs.inert(said) == said


def test_what_passed_but_is_proven_worse_is_flagged_everywhere() -> None:
    flagged = outcome(WORSE)
    assert flagged.state == "pass"
    assert any("passed, but is proven worse: by 0.2 pp at least" in text for text in outputs.sentences(flagged))
    row = next(row for row in outputs.gate_rows(flagged.held[0]) if row[0] == "wrong per request")
    assert row[1] == "+0.2 pp"
    assert row[-1] == "passed, but proven worse"
    assert any(line.startswith("::warning title=wrong per request") for line in outputs.annotations(flagged))
    assert "proven worse" in outputs.markdown(flagged)
    assert "proven worse" in outputs.junit(flagged)


def test_what_is_inconclusive_says_how_many_users_would_decide_it() -> None:
    sentences = [text for text in outputs.sentences(outcome(OPEN)) if "inconclusive" in text]
    assert len(sentences) == 2
    assert all(re.search(r"[\d,]+ users would decide it\.", text) for text in sentences)
    few = GateOutcome("r", "skg", (held_to(worse([60], users=9), worse([50], users=9)),), {}, None, (), 250)
    assert few.state == "inconclusive"
    assert any(
        "too few users: 9 have it before and after, 30 are needed; 30 users" in s for s in outputs.sentences(few)
    )


def test_false_alarms_of_a_year_are_counted() -> None:
    undecided = outcome(OPEN)
    assert 0 < undecided.false_alarms <= 0.05 * 250
    assert replace(undecided, builds=500).false_alarms == pytest.approx(2 * undecided.false_alarms)
    assert any(text.startswith("Of 250 builds a year") for text in outputs.sentences(undecided))
    assert not any("a year" in text for text in outputs.sentences(outcome(SAME)))
