"""Words that a judge graded: sheets, labels and judges of a run on tasks, and no verdict without people."""

import csv
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

import skg_bench
from skg_bench.analysis.gate.panel import panel
from skg_bench.analysis.labels.labelled_run import kept_labels
from skg_bench.analysis.labels.word_differences import WordsDifference, judged_words, kept_judges
from skg_bench.analysis.labels.word_pairs import has_tasks
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from tests.app.test_cli import call, refused
from tests.simulator.tasks.test_tasks import played

TRUTH = "message.rpartition(' | ')[2].rstrip(']') in answer"
PROGRAM = "def judge(message, answer):\n    return {}\n"


def tasks(users: int = 12) -> list[Mapping[str, str]]:
    """Two keys of each user: told, and asked for."""
    rows = list[Mapping[str, str]]()
    for user in range(users):
        for place in range(2):
            who, ask, code = {"user": f"u{user}"}, f"What is the key of door {place}{user}?", f"k{user:02d}-{place}x9q"
            asked = {"message": ask, "reference": code, "kind": f"door {place}"}
            said = f"The key of door {place}{user} is {code}."
            rows.append({**who, "time": f"2026-01-{5 + place:02d}T09:00:00", "message": said})
            rows += [{**who, "time": f"2026-01-{6 + place:02d}T1{hour}:00:00", **asked} for hour in range(place + 1)]
    return rows


@pytest.fixture
def folder(once: Callable[..., Path], elsewhere: Path) -> Path:
    """A copy of a run on tasks whose words nothing checked."""

    def play(into: Path) -> None:
        into.mkdir()
        played(into, "simulator.check=labels", "learner=stored", rows=tasks())

    return Path(shutil.copytree(once("judged-words", play) / "run", elsewhere / "run")).relative_to(elsewhere)


def rows_of(file: str | Path) -> list[dict[str, str]]:
    with Path(file).open(newline="") as lines:
        return list(csv.DictReader(lines))


def people(sheet: str, out: str, changes: Mapping[str, str] | None = None) -> str:
    """The sheet with true labels."""
    rows = rows_of(sheet)
    for row in rows:
        label = "right" if row["message"].rpartition(" | ")[2].rstrip("]") in row["answer"] else "wrong"
        row["label"] = (changes or {}).get(label, label)
    with Path(out).open("w", newline="") as file:
        lines = csv.DictWriter(file, rows[0])
        lines.writeheader()
        lines.writerows(rows)
    return out


def program(body: str, name: str = "my.py") -> str:
    Path(name).write_text(PROGRAM.format(body))
    return f"{name}:judge"


def differences(run: Run, arm: str = "all") -> list[WordsDifference]:
    """Differences of an arm by each judge that lies beside a run."""
    return [row for row in judged_words(run, kept_labels(run), kept_judges(run)) if row.arm == arm]


def line_of(out: str, arm: str) -> str:
    return next(line for line in out.splitlines() if line.startswith(f"{arm} "))


def test_a_run_that_nothing_checks_has_no_figure_of_right_answers(folder: Path) -> None:
    run = Run(folder)
    assert has_tasks(run)
    for arm in run.arms:
        turns = run.turns(arm)
        assert turns["answer_correct"].null_count == len(turns)
        assert turns["user_satisfaction"].null_count == len(turns)
    compared = skg_bench.compare(run.path)
    right = [row for row in compared.rows if row.metric.name in ("correct", "utility", "err_per_request")]
    assert right
    assert all(np.isnan(row.difference.estimate.mean) for row in right)
    out = call("compare", str(folder))[1]
    assert "no verdict: fewer than 10 labels" in line_of(out.partition("right answers to")[2], "all")
    assert "people judge: skg-bench data label run --out label.csv" in out
    page = (folder / "report.html").read_text("utf-8")
    assert "Nobody has judged these words yet, so there is no verdict." in page
    with pytest.raises(UsageError, match="gave answers of its own that the world cannot judge"):
        panel(run, "all")


def test_an_arm_alone_has_a_page_and_nothing_to_judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = played(tmp_path, "simulator.check=labels", "arms={all: [assistant=recall]}", "reference=all", rows=tasks(2))
    assert "What people and judges say" not in (run.path / "report.html").read_text("utf-8").partition("</nav>")[2]
    assert "words are judged arm against arm" in refused("data", "label", "run", "--out", "s.csv")


def test_where_all_arms_say_the_same_words_that_is_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arms = "arms={a: [policy=never, curator=none], b: [assistant=recall, assistant.recalls=last, assistant.last=0]}"
    played(tmp_path, "simulator.check=labels", arms, "reference=a", rows=tasks(2))
    assert "run: all arms say the same words, so there is nothing to judge" in refused(
        "data", "label", "run", "--out", "s"
    )


def test_a_judge_alone_gives_no_verdict_and_people_give_one(folder: Path) -> None:
    code, out, _ = call("data", "label", str(folder), "--judge", program(f"'right' if {TRUTH} else 'wrong'"))
    assert code == 0
    assert "judge: my.py:judge" in out
    assert "no verdict: only by this judge" in line_of(out, "all")
    assert "+100.0 pp" in line_of(out, "all")
    assert "the same words" in line_of(out, "stored")
    code, out, _ = call("data", "label", str(folder), "--n", "20", "--out", "s.csv")
    assert out.startswith("20 turns with ")
    sheet = rows_of("s.csv")
    assert {"k00-0x9q", "k11-1x9q"} & {row["message"].rpartition(" | ")[2].rstrip("]") for row in sheet}
    assert "arm" not in sheet[0]
    code, out, _ = call("data", "label", str(folder), "--read", people("s.csv", "ann.csv"))
    assert code == 0
    row = line_of(out, "all")
    assert " better " in row
    assert "it agrees with every label: if it was made from them" in out
    assert int(row.split(" of 36 ")[0].split()[-1]) >= 20
    call("report", str(folder))
    page = (folder / "report.html").read_text("utf-8")
    assert "Judge: my.py:judge" in page
    assert "Nobody has judged these words yet" not in page
    assert line_of(call("compare", str(folder))[1].partition("right answers to")[2], "all") == row


def test_a_judge_made_from_few_labels_is_named_as_such(folder: Path) -> None:
    """Twelve right answers and twelve others are labels enough, if none of both kinds is twenty."""
    call("data", "label", str(folder), "--n", "12", "--out", "s.csv")
    out = call("data", "label", str(folder), "--read", people("s.csv", "ann.csv"), "--judge", "ann.csv")[1]
    assert "12 of 12 (" in line_of(out, "all")
    assert " better " in line_of(out, "all")
    assert "it agrees with every label: if it was made from them" in out


def test_a_judge_that_flatters_is_seen_and_corrected(folder: Path) -> None:
    """Half of the wrong words of `never` pass."""
    half = "'right' if sum(map(ord, message)) % 2 or " + TRUTH + " else 'wrong'"
    call("data", "label", str(folder), "--n", "100", "--out", "s.csv")
    people("s.csv", "ann.csv")
    out = call("data", "label", str(folder), "--read", "ann.csv", "--judge", program(half))[1]
    (made,) = differences(Run(folder))
    assert made.alone.mean < 0.7
    assert made.corrected.mean == pytest.approx(1.0)
    assert made.found[0] == made.found[1]
    assert 0 < made.refused[0] < made.refused[1]
    assert "it agrees with every label" not in out
    assert f"{made.refused[0]} of {made.refused[1]} (" in line_of(out, "all")


def test_two_judges_stand_side_by_side(folder: Path) -> None:
    """A lenient and a strict one; near is not right."""
    for name, word in (("lenient.py", "right"), ("strict.py", "near")):
        out = call("data", "label", str(folder), "--judge", program(f"'{word}'", name))[1]
    judges = [line for line in out.splitlines() if line.startswith("judge: ")]
    assert judges == ["judge: lenient.py:judge", "judge: strict.py:judge"]
    call("data", "label", str(folder), "--n", "100", "--out", "s.csv")
    call("data", "label", str(folder), "--read", people("s.csv", "ann.csv"))
    lenient, strict = differences(Run(folder))
    assert (lenient.found[0], lenient.refused[0]) == (lenient.found[1], 0)
    assert (strict.found[0], strict.refused[0]) == (0, strict.refused[1])
    assert lenient.corrected == strict.corrected


def test_a_model_judges_by_the_rubric(folder: Path) -> None:
    code, out, _ = call("data", "label", str(folder), "curator.llm=scripted", "--judge", "model")
    assert code == 0
    assert "judge: scripted/learner" in out
    assert "no verdict: only by this judge" in line_of(out, "all")


def test_two_rubrics_are_two_judges(folder: Path) -> None:
    package = Path(skg_bench.__file__).parent / "prompts" / "answer_judge.md"
    text = package.read_text("utf-8").replace("is wrong, however", "may be right, however")
    Path("lenient").mkdir()
    Path("lenient/answer_judge.md").write_text(text)
    words = ("data", "label", str(folder), "curator.llm=scripted", "--judge", "model")
    call(*words)
    out = call(*words, "curator.prompts=lenient")[1]
    judges = [line for line in out.splitlines() if line.startswith("judge: ")]
    assert judges == ["judge: scripted/learner", "judge: scripted/learner by lenient"]


def test_the_check_of_a_run_is_a_judge_whose_errors_labels_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = [row for row in tasks() if "reference" in row]
    run = played(tmp_path, "simulator.check=exact", rows=tasks())
    call("data", "label", "run", "--n", "100", "--out", "s.csv")
    out = call("data", "label", "run", "--read", people("s.csv", "ann.csv"))[1]
    assert "judge: the run's check (exact)" in out
    (made,) = differences(run)
    assert made.turns == len(asked)
    assert made.alone.mean == 0.0  # it says that a sentence is not the key
    assert made.found[0] == 0 < made.found[1]
    assert made.corrected.mean == pytest.approx(1.0)


def test_by_the_check_alone_the_difference_is_that_of_compare(tmp_path: Path) -> None:
    rows = [{"reference": "Noted", "kind": "telling", **row} for row in tasks()]
    run = played(tmp_path, rows=rows)
    by_check = {row.arm: row for row in skg_bench.compare(run.path).rows if row.metric.name == "correct"}
    (made,) = [row for row in judged_words(run, {}, {}) if row.arm == "all"]
    assert made.alone.mean == pytest.approx(by_check["all"].difference.estimate.mean) == pytest.approx(0.6)
    assert made.verdict == "no verdict: only by this judge"


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("--judge", "exact"), "--judge exact compares with a log's own answers"),
        (("--next", "5", "--out", "t.csv"), "--next draws answers from memory of a log"),
        (("--judge", "my.py:judge", "--price", "1"), "--arm and --price are of answers from memory"),
        (("--judge", "raises.py:judge"), "raised ZeroDivisionError"),
        (("--judge", "share.py:judge"), "it says '0.7'; valid: wrong, near, right, unknown"),
        (("--read", "other.csv"), "none of its 1 pairs of message and answer occurs in run"),
        (("--read", "empty.csv"), "holds no label yet"),
    ],
)
def test_what_cannot_be_judged_is_refused(folder: Path, words: tuple[str, ...], fault: str) -> None:
    program("'right'")
    program("1 / 0", "raises.py")
    program("0.7", "share.py")
    Path("other.csv").write_text("pair,label\n00000000000000aa,right\n")
    Path("empty.csv").write_text("pair,label\n")
    assert fault in refused("data", "label", str(folder), *words)
    assert not (folder / "labels.csv").exists()


def test_a_raters_word_that_another_contradicts_counts_both_ways(folder: Path) -> None:
    call("data", "label", str(folder), "--n", "100", "--out", "s.csv")
    call("data", "label", str(folder), "--read", people("s.csv", "ann.csv"))
    out = call("data", "label", str(folder), "--read", people("s.csv", "bob.csv", {"right": "wrong"}))[1]
    assert "ann and bob: the same label at " in out
    assert " inconclusive " in line_of(out, "all")


def test_where_nothing_came_nobody_is_asked_and_nothing_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quiet.py").write_text(
        "class Quiet:\n    def answer(self, user, time, message, model):\n        return ''\n"
    )
    arms = f"arms={{quiet: [assistant=python, assistant.file={tmp_path / 'quiet.py'}:Quiet], all: [assistant=recall]}}"
    run = played(tmp_path, "simulator.check=labels", arms, "reference=all", rows=tasks())
    call("data", "label", "run", "--judge", program("'right'"))
    call("data", "label", "run", "--n", "100", "--out", "s.csv")
    assert all("The key of door" in row["answer"] for row in rows_of("s.csv"))
    call("data", "label", "run", "--read", people("s.csv", "ann.csv"))
    (made,) = differences(run, "quiet")
    assert made.alone.mean == made.corrected.mean == -1.0
    assert made.verdict == "worse"
    assert made.refused == (0, 0)
