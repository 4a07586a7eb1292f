"""Judges that are functions or models: blind, in an order of their own, resumed where they stopped, and never alone."""

import csv
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from skg_bench.analysis.labels.hit_pairs import HitPairs, hit_pairs
from skg_bench.runfolder.run import Run
from tests.app.test_cli import call, refused
from tests.app.test_forget import untold as _untold
from tests.app.test_labelling import folder as _folder
from tests.app.test_labelling import judge as judge_sheet

folder, untold = _folder, _untold
TRUTH = 'return "wrong" if "; wrong" in answer else "right"'
WRITES = """import pathlib
def judge(message, answer):
    calls = pathlib.Path("calls.txt")
    before = calls.read_text().splitlines() if calls.exists() else []
    calls.write_text("\\n".join([*before, f"{message} -> {answer}"]))
    """


def program(body: str, name: str = "my.py") -> str:
    Path(name).write_text(f"{WRITES}{body}\n")
    return f"{name}:judge"


def calls() -> list[str]:
    return Path("calls.txt").read_text().splitlines()


def kept(folder: Path) -> list[dict[str, str]]:
    (file,) = folder.glob("judge-*.csv")
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty pairs at most are judged, so that a test is short."""
    whole = HitPairs.all_texts

    def some(pairs: HitPairs) -> dict[int, tuple[str, str]]:
        texts = whole(pairs)
        return {pair: texts[pair] for pair in sorted(texts)[:20]}

    monkeypatch.setattr(HitPairs, "all_texts", some)


def test_a_function_judges_each_pair_and_sees_no_arm(folder: Path) -> None:
    code, out, _ = call("data", "label", str(folder), "--judge", program(TRUTH))
    assert code == 0
    assert "wrong, as judged by my.py:judge" in out
    assert "all: no decision without labels of people" in out
    texts = {
        f"{message} -> {answer}" for message, answer in hit_pairs(Run(folder), ["all", "near"]).all_texts().values()
    }
    asked = calls()
    assert asked[:40:2] == asked[1:40:2]  # the first twenty twice, for a function that draws
    assert len(asked) - 20 == len(set(asked)) == len(texts)
    assert set(asked) == texts
    assert asked != sorted(asked)
    assert {row["rater"] for row in kept(folder)} == {"my.py:judge"}
    assert "not judged again" not in out
    (file,) = folder.glob("judge-*.csv")
    out = call("data", "label", str(folder), "--judge", "my.py:judge")[1]
    assert calls() == asked  # what is judged is not asked for again
    n = f"{len(texts):,}"
    assert f"{n} of {n} answers have labels of my.py:judge in {file}: not judged again; move that file" in out
    assert "labels.csv" not in {file.name for file in folder.iterdir()}


def test_errors_of_a_judge_stand_beside_those_of_people(folder: Path) -> None:
    call("data", "label", str(folder), "--n", "60", "--out", "s.csv")
    lenient = 'return "wrong" if "; wrong, 1" in answer else "right"'
    code, out, _ = call(
        "data", "label", str(folder), "--read", judge_sheet("s.csv", "ann.csv"), "--judge", program(lenient)
    )
    assert code == 0
    lines = out.splitlines()
    found = next(
        i for i, line in enumerate(lines) if line.startswith("arm") and "wrong by people: the judge says" in line
    )
    finds, leaves = re.findall(r"(\d+) of (\d+) \(", lines[found + 1])
    assert 0 < int(finds[0]) < int(finds[1])
    assert leaves[0] == leaves[1]
    weeks = next(i for i, line in enumerate(lines) if line.startswith("arm") and "wrong by the judge" in line)
    rows = [line.split() for line in lines[weeks + 1 : weeks + 7]]
    assert [row[:2] for row in rows] == [["all", str(week)] for week in range(1, 7)]
    hits = len(hit_pairs(Run(folder), ["all"]).arms[0].turn)
    assert sum(int(row[2].replace(",", "")) for row in rows) == hits
    assert "all: pays if a wrong answer costs less than" in out


def test_a_module_is_found_by_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few(monkeypatch)
    Path("of_mine.py").write_text("def judge(message, answer):\n    return 'near'\n")
    monkeypatch.syspath_prepend(str(Path.cwd()))
    assert call("data", "label", str(folder), "--judge", "of_mine:judge")[0] == 0
    assert {row["label"] for row in kept(folder)} == {"near"}


@pytest.mark.parametrize("judge", ["by_rule.py:judge", "by_rule:judge"])
def test_a_judge_whose_helper_changed_judges_anew(
    judge: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few(monkeypatch)
    Path("by_rule.py").write_text("import rule7\ndef judge(message, answer):\n    return rule7.LABEL\n")
    monkeypatch.syspath_prepend(str(Path.cwd()))
    for label in ("wrong", "right"):
        (tmp_path / label).mkdir()
        (tmp_path / label / "rule7.py").write_text(f"LABEL = {label!r}\n")
        with monkeypatch.context() as patch:
            patch.syspath_prepend(str(tmp_path / label))
            assert call("data", "label", str(folder), "--judge", judge)[0] == 0
        for module in ("rule7", "by_rule"):
            sys.modules.pop(module, None)
    labels = [file.read_text() for file in folder.glob("judge-*.csv")]
    assert sorted("right" in text for text in labels) == [False, True]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("1 / 0", "it raised ZeroDivisionError: division by zero"),
        ("raise SystemExit(0)", "it raised SystemExit: 0"),
        ("return 'perhaps'", "it says 'perhaps'; valid: wrong, near, right, unknown"),
        ("return 0.5", "it says '0.5'; valid: wrong, near, right, unknown"),
        ("import time; time.sleep(9)", "it took more than 0.4 seconds; --seconds sets another limit"),
    ],
)
def test_a_judge_that_fails_is_named_with_its_row_and_goes_on_from_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch, fault: str, words: str
) -> None:
    few(monkeypatch)
    calls_with_it = (6, 7) if fault.startswith("return") else (6,)  # each pair is given twice
    body = f"if len(before) in {calls_with_it}:\n        {fault}\n    return 'right'"
    err = refused("data", "label", str(folder), "--judge", program(body), "--seconds", "0.4")
    assert "--judge my.py:judge: answer 4 of 20 (pair " in err
    assert words in err
    assert "; 3 labels are kept in run/judge-" in err
    assert len(kept(folder)) == 3
    assert call("data", "label", str(folder), "--judge", "my.py:judge", "--seconds", "0.4")[0] == 0
    assert len(kept(folder)) == 20
    assert len(calls()) == 6 + len(calls_with_it) + 2 * 17


def test_a_judge_that_differs_from_itself_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few(monkeypatch)
    err = refused("data", "label", str(folder), "--judge", program("return 'near' if len(before) == 3 else 'right'"))
    assert "answer 2 of 20 (pair " in err
    assert "it says 'right', and then 'near'; it must not draw; 1 labels are kept" in " ".join(err.split())


def test_another_text_of_the_function_is_another_judge(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few(monkeypatch)
    call("data", "label", str(folder), "--judge", program("return 'right'"))
    call("data", "label", str(folder), "--judge", program("return 'wrong'"))
    assert len(list(folder.glob("judge-*.csv"))) == 2
    assert len(calls()) == 80


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("--judge", "my.py:other"), "my.py has no function 'other'"),
        (("--judge", "short.py:judge"), "it must take a message and an answer: too many positional arguments"),
        (("--judge", "broken.py:judge"), "--judge broken.py:judge fails: SyntaxError"),
        (("--judge", "absent.py:judge"), "absent.py cannot be read"),
        (("--judge", "no_such_module:judge"), "cannot be imported: ModuleNotFoundError"),
        (("--judge", "absent.csv"), "absent.csv cannot be read"),
        (("curator.llm=scripted", "--judge", "exact"), "curator.llm=scripted: overrides go with --judge model"),
        (("seed=2", "--judge", "model"), "seed=2: --judge model takes curator.llm=..."),
        (
            ("curator.llm=simulated", "--judge", "model"),
            "writes no text; take curator.llm=scripted, endpoint or recorded",
        ),
    ],
)
def test_what_is_no_judge_is_refused(folder: Path, words: tuple[str, ...], fault: str) -> None:
    program("return 'right'")
    Path("short.py").write_text("def judge(message):\n    return 'right'\n")
    Path("broken.py").write_text("def judge(:\n")
    assert fault in refused("data", "label", str(folder), *words)


def test_a_model_judges_by_the_rubric(folder: Path) -> None:
    code, out, _ = call("data", "label", str(folder), "curator.llm=scripted", "--judge", "model")
    assert code == 0
    assert "wrong, as judged by model" in out
    assert {row["rater"] for row in kept(folder)} == {"scripted/learner"}
    assert {row["label"] for row in kept(folder)} == {"wrong", "right"}


def test_a_spent_budget_ends_with_code_3_and_a_larger_one_goes_on(folder: Path) -> None:
    words = ("data", "label", str(folder), "curator.llm=budgeted", "curator.llm.llm=scripted", "--judge", "model")
    code, _, err = call(*words, "curator.llm.tokens=30000")
    assert code == 3
    assert "the budget of 30,000 tokens is spent" in err
    first = len(kept(folder))
    assert f"; {first:,} labels are kept in run/judge-" in " ".join(err.split())
    pairs = len(hit_pairs(Run(folder), ["all", "near"]).pairs)
    assert 0 < first < pairs
    assert call(*words, "curator.llm.tokens=100000000")[0] == 0
    assert len(kept(folder)) == pairs


def test_a_removed_user_is_in_no_labels_of_a_judge(folder: Path, untold: None) -> None:
    call("data", "label", str(folder), "--judge", program(TRUTH))
    before = len(kept(folder))
    assert call("forget", str(folder), "--user", "user 3")[0] == 0
    pairs = {f"{pair:016x}" for pair in hit_pairs(Run(folder), ["all", "near"]).pairs.tolist()}
    assert {row["pair"] for row in kept(folder)} == pairs
    assert len(pairs) < before


def test_all_texts_are_those_of_the_pairs(once: Callable[..., Path], folder: Path) -> None:
    pairs = hit_pairs(Run(folder), ["all", "near"])
    texts = pairs.all_texts()
    assert sorted(texts) == pairs.pairs.tolist()
    for pair in list(texts)[:20]:
        assert pairs.texts(pair) == texts[pair]
