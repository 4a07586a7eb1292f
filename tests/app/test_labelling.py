"""The whole way of labels by commands: draw, judge, read, decide, and what is refused on it."""

import csv
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

import skg_bench
from skg_bench.analysis.counts.wording import number
from skg_bench.analysis.labels.label_shares import PairLabel
from skg_bench.analysis.labels.labelled_run import kept_labels, labelled_run
from skg_bench.analysis.report.judged_arms import judged_log
from skg_bench.analysis.summary import read_summary
from skg_bench.app import labelling
from skg_bench.runfolder.lock import held
from skg_bench.runfolder.run import Run
from tests.analysis.labels.planted_log import play_log
from tests.app.test_cli import call, refused
from tests.conftest import ROOT
from tests.runs import tables_alone

LABELS = ROOT / "tests" / "analysis" / "labels" / "sgd_labels.csv"


@pytest.fixture
def folder(once: Callable[..., Path], elsewhere: Path) -> Path:
    """A copy of a replayed log, and the log beside it."""
    made = once("labels", play_log)
    shutil.copy(made / "log.csv", elsewhere)
    return Path(shutil.copytree(made / "run", elsewhere / "run")).relative_to(elsewhere)


def rows_of(file: str | Path) -> list[dict[str, str]]:
    with Path(file).open(newline="") as lines:
        return list(csv.DictReader(lines))


def judge(sheet: str, out: str, changes: Mapping[str, str] | None = None) -> str:
    """The sheet with true labels: an answer names what it answers, and whether it is right."""
    asked = dict[str, str]()
    for row in rows_of("log.csv"):
        asked.setdefault(row["message"], row["answer"].split(";")[0])
    rows = rows_of(sheet)
    for row in rows:
        right = row["answer"].startswith(f"{asked[row['message']]}; right")
        label = "right" if right else "wrong"
        row["label"] = (changes or {}).get(label, label)
    with Path(out).open("w", newline="") as file:
        lines = csv.DictWriter(file, rows[0])
        lines.writeheader()
        lines.writerows(rows)
    return out


def test_from_a_log_to_a_decision(folder: Path) -> None:
    code, out, _ = call("data", "label", str(folder), "--n", "40", "--out", "s.csv", "--page", "s.html")
    assert code == 0
    assert out.startswith("40 turns with ")
    assert "then: skg-bench data label run --read s.csv" in out
    assert Path("s.csv").stat().st_mode & 0o777 == Path("s.html").stat().st_mode & 0o777 == 0o600
    code, out, _ = call("data", "label", str(folder), "--read", judge("s.csv", "ann.csv"), "--price", "0.02")
    assert code == 0
    assert "all: pays if a wrong answer costs less than $0.0" in out
    assert "a hit saves $0.01" in out
    assert "at $0.02 a wrong answer, near pays" in out
    code, out, _ = call(
        "data", "label", str(folder), "--next", "20", "--arm", "near", "--price", "0.02", "--out", "t.csv"
    )
    assert code == 0
    assert out.startswith("decided: at $0.02 a wrong answer, near pays")
    assert not Path("t.csv").exists()
    code, out, _ = call(
        "data", "label", str(folder), "--next", "20", "--arm", "all", "--price", "0.05", "--out", "t.csv"
    )
    assert code == 0
    before, more = ({row["pair"] for row in rows_of(f)} for f in ("s.csv", "t.csv"))
    assert not before & more


def test_a_second_rater_is_held_against_the_first(folder: Path) -> None:
    call("data", "label", str(folder), "--n", "30", "--out", "s.csv")
    call("data", "label", str(folder), "--read", judge("s.csv", "ann.csv"))
    code, out, _ = call("data", "label", str(folder), "--read", judge("s.csv", "bob.csv", {"wrong": "near"}))
    assert code == 0
    assert "ann and bob: the same label at " in out
    assert "(ann: wrong, bob: near)" in out


def test_a_sheet_that_is_read_again_corrects_its_rater(folder: Path) -> None:
    call("data", "label", str(folder), "--n", "30", "--out", "s.csv")
    first = call("data", "label", str(folder), "--read", judge("s.csv", "ann.csv", {"wrong": "near"}))[1]
    wrong = sum(row["label"] == "near" for row in rows_of("ann.csv"))
    code, out, _ = call("data", "label", str(folder), "--read", judge("s.csv", "ann.csv"))
    assert code == 0
    assert out.startswith(f"{wrong} labels of the same raters are replaced\n")
    assert "replaced" not in first
    labels = rows_of(folder / "labels.csv")
    assert (len(labels), {row["rater"] for row in labels}) == (len(rows_of("s.csv")), {"ann"})
    assert sum(row["label"] == "wrong" for row in labels) == wrong > 0


def test_labels_of_two_commands_at_once_are_not_lost(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call("data", "label", str(folder), "--n", "10", "--out", "ann.csv")[0] == 0
    judge("ann.csv", "ann.csv")
    monkeypatch.setattr(labelling, "_PATIENCE", 0.0)
    with held(folder, "tables"):  # as another command does that has read the labels and will write them
        code, _, err = call("data", "label", str(folder), "--read", "ann.csv")
    assert code == 2
    assert "wait for it" in err
    assert not (folder / "labels.csv").exists()
    assert call("data", "label", str(folder), "--read", "ann.csv")[0] == 0


def test_a_label_that_is_blank_in_a_sheet_that_is_read_again_is_withdrawn(folder: Path) -> None:
    call("data", "label", str(folder), "--n", "30", "--out", "s.csv")
    call("data", "label", str(folder), "--read", judge("s.csv", "ann.csv"), "--read", judge("s.csv", "bob.csv"))
    rows = Path("ann.csv").read_text().splitlines()
    Path("ann.csv").write_text("\n".join([*rows[:11], *(re.sub(r"(wrong|right)$", "", row) for row in rows[11:])]))
    code, out, _ = call("data", "label", str(folder), "--read", "ann.csv")
    assert code == 0
    assert out.startswith(f"{len(rows) - 11} labels of the same raters are withdrawn: their rows are blank now\n")
    kept = [row["rater"] for row in rows_of(folder / "labels.csv")]
    assert (kept.count("ann"), kept.count("bob")) == (10, len(rows) - 1)


def test_a_gap_stops_the_count_of_its_kind_of_hits_and_the_screen_says_so(folder: Path) -> None:
    call("data", "label", str(folder), "--n", "30", "--out", "s.csv")
    rows = Path(judge("s.csv", "ann.csv")).read_text().splitlines()
    Path("ann.csv").write_text("\n".join([rows[0], re.sub(r"(wrong|right)$", "", rows[1]), *rows[2:]]))
    _, out, _ = call("data", "label", str(folder), "--read", "ann.csv")
    counted = sum(each.shares.judged for each in labelled_run(Run(folder), kept_labels(Run(folder))).arms)
    assert counted > 0  # hits of rows below the gap
    assert "so have those of all hits of its kind that were drawn before it; a sheet's rows are in another order" in out


def test_a_machine_alone_decides_nothing_and_with_labels_its_errors_are_taken_out(folder: Path) -> None:
    code, out, _ = call("data", "label", str(folder), "--judge", "exact")
    assert code == 0
    assert "wrong, as judged by exact" in out
    assert "all: no decision without labels of people" in out
    call("data", "label", str(folder), "--n", "60", "--out", "s.csv")
    call("data", "label", str(folder), "--n", "100000", "--out", "every.csv")
    judge("every.csv", "model.csv", {"wrong": "near"})  # a judge that finds nothing wrong
    code, out, _ = call("data", "label", str(folder), "--read", judge("s.csv", "ann.csv"), "--judge", "model.csv")
    assert code == 0
    row = next(line for line in out.splitlines() if line.startswith("all "))
    assert row.split("%")[0].split()[-1] == "0.0"
    assert "wrong by people: the judge says so too" in out
    assert re.search(r"^all +0 of [1-9]", out, re.MULTILINE)
    assert "all: pays if a wrong answer costs less than $0.0" in out
    assert not {"model"} & {row["rater"] for row in rows_of(folder / "labels.csv")}


def test_labels_of_another_run_of_the_log_count_where_the_same_pairs_occur(folder: Path) -> None:
    shutil.copytree(folder, "other")
    call("data", "label", str(folder), "--n", "30", "--out", "s.csv")
    judge("s.csv", "ann.csv")
    outs = [call("data", "label", run, "--read", "ann.csv")[1].replace("other", "run") for run in ("run", "other")]
    assert outs[0] == outs[1]


def test_with_all_judged_no_label_can_change_the_decision(folder: Path) -> None:
    call("data", "label", str(folder), "--n", "100000", "--out", "s.csv")
    call("data", "label", str(folder), "--read", judge("s.csv", "ann.csv"))
    code, out, _ = call("data", "label", str(folder), "--next", "5", "--arm", "all", "--out", "t.csv")
    assert (code, out) == (0, "all: every hit that could tell is judged; no label can change the decision\n")
    reason = "every answer that could tell is judged, so there is nothing to judge"
    assert reason in refused("data", "label", "run", "--out", "t.csv")


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ((), "neither --out nor --page says where"),
        (("--out", "log.csv"), "log.csv is there already"),
        (("--next", "5", "--out", "t.csv"), "has 2 arms that answer from memory; add --arm: all, near"),
        (("--next", "5", "--arm", "never"), "--arm never"),
        (("--read", "none.csv"), "none.csv"),
        (("--read", "log.csv"), "log.csv has no column 'pair'"),
        (("--n", "0"), "--n"),
        (("--judge", "none.csv"), "none.csv"),
        (("--judge", "log.csv"), "log.csv has no column 'pair'"),
    ],
)
def test_what_cannot_be_is_refused(folder: Path, words: tuple[str, ...], fault: str) -> None:
    assert fault in refused("data", "label", str(folder), *words)


def test_first_is_no_option_of_a_log(folder: Path) -> None:
    message = refused("data", "label", str(folder), "--arm", "all", "--first", "hit", "--out", "s.csv")
    assert message.rstrip().endswith("leave --first out here")
    assert "--estimand" not in message


def test_a_sheet_without_labels_and_one_of_another_log_are_refused(folder: Path) -> None:
    call("data", "label", str(folder), "--n", "5", "--out", "s.csv")
    assert "s.csv holds no label yet" in refused("data", "label", "run", "--read", "s.csv")
    Path("far.csv").write_text(f"pair,label\n{7:016x},right\n")
    assert "none of its 1 pairs of message and answer occurs in run" in refused(
        "data", "label", "run", "--read", "far.csv"
    )
    assert not (Run(folder).path / "labels.csv").exists()


def test_the_docs_say_what_forty_labels_of_a_public_log_decide(
    published: Callable[[str], Path], elsewhere: Path
) -> None:
    arms = "arms={everything: [curator=everything], never: [policy=never, curator=none]}"
    log = published("sgd") / "dev"
    with tables_alone():
        skg_bench.run(["simulator=sgd", f"simulator.path={log}", arms, "reference=never", "out=run"], progress=False)
    code, out, _ = call("data", "label", "run", "--read", str(LABELS), "--price", "2")
    assert code == 0
    words = (ROOT / "docs" / "logs.md").read_text()
    lines = out.splitlines()
    assert "\n".join(line.rstrip() for line in lines[1:5]) in words
    assert lines[5] == "  at 2.00 calls of the model a wrong answer, everything is not decided yet"
    more = "skg-bench data label run --next 20 --arm everything --price 2 --out more-1.csv --page more-1.html"
    assert lines[6] == f"  more labels: {more}"
    summary = read_summary(skg_bench.Run("run")).arms["everything"]
    low, high = (number(summary[name].mean, "share") for name in ("wrong_lower", "wrong_upper"))
    assert f"Without labels between {low} and {high} were wrong." in words


def test_a_judge_that_was_made_from_the_labels_is_named(folder: Path) -> None:
    """It has no error where people looked, and 0 % wrong everywhere else: the interval would be narrow, and off."""
    call("data", "label", str(folder), "--n", "60", "--out", "s.csv")
    judge("s.csv", "ann.csv")
    code, out, _ = call("data", "label", str(folder), "--read", "ann.csv", "--judge", "ann.csv")
    assert code == 0
    assert "ann.csv agrees with every label: if it was made from them, its figures are worth nothing" in out


def test_another_seed_draws_other_turns(folder: Path) -> None:
    """An arm that was tuned on labels is right where they are: its turns are drawn anew."""
    for seed in ("0", "1"):
        call("data", "label", str(folder), "--n", "30", "--seed", seed, "--out", f"s{seed}.csv")
    first, second = ({row["pair"] for row in rows_of(f"s{seed}.csv")} for seed in (0, 1))
    assert len(first & second) < len(first) / 2
    sheet = judge("s0.csv", "ann.csv")
    out = call("data", "label", str(folder), "--read", sheet, "--seed", "0")[1]
    judged = int(next(line for line in out.splitlines() if line.startswith("all ")).split()[2])
    assert judged >= 5
    kept = (folder / "labels.csv").read_bytes()
    error = refused("data", "label", str(folder), "--read", sheet, "--seed", "1")
    assert "ann.csv was drawn in another order" in error
    assert (folder / "labels.csv").read_bytes() == kept  # a seed by mistake does not reorder the labels of the run


def test_the_order_of_another_seed_is_kept_for_the_run_and_its_page(folder: Path) -> None:
    _, out, _ = call("data", "label", str(folder), "--n", "30", "--seed", "4", "--out", "s.csv")
    assert out.splitlines()[-1] == "then: skg-bench data label run --read s.csv --seed 4"
    judge("s.csv", "ann.csv")
    out = call("data", "label", str(folder), "--read", "ann.csv", "--seed", "4")[1]
    assert out == call("data", "label", str(folder), "--read", "ann.csv")[1]
    row = next(line for line in out.splitlines() if line.startswith("all "))
    hits, judged = row.split()[1:3]
    page = judged_log(Run(folder))
    assert page is not None
    assert page.rows[0].judged == f"{judged} of {hits}"
    assert int(judged) >= 20


CHANGED = 12  # day from which another one is on call


def write_calls(folder: Path) -> None:
    """Four users ask on 24 days who is on call; from day 12 on another answer is right, and the log gives it."""
    folder.mkdir(parents=True, exist_ok=True)
    days = [(day, user) for day in range(24) for user in range(4)]
    lines = [f"{user},2026-03-{day + 1:02d} 0{user + 8}:00,Who is on call?,{on_call(day)}" for day, user in days]
    (folder / "calls.csv").write_text("\n".join(["user,time,message,answer", *lines]) + "\n")
    arms = "arms={all: [curator=everything, policy.threshold=0.5], never: [policy=never, curator=none]}"
    log = ["simulator=recorded", f"simulator.path={folder / 'calls.csv'}", "simulator.columns.answer=answer"]
    skg_bench.run([*log, arms, "reference=never", f"out={folder / 'calls'}"], progress=False)


def on_call(day: int) -> str:
    return "Meier" if day < CHANGED else "Schulz"


def test_an_answer_that_was_right_and_later_is_not_keeps_both_labels(
    once: Callable[..., Path], elsewhere: Path
) -> None:
    """A label counts for the turn that a person saw: not where the same answer was given at another time."""
    shutil.copytree(once("calls", write_calls) / "calls", "run")
    call("data", "label", "run", "--n", "30", "--out", "s.csv")
    rows = rows_of("s.csv")
    for row in rows:
        row["label"] = "right" if row["answer"] == on_call(int(row["when"][8:10]) - 1) else "wrong"
    assert {row["label"] for row in rows if row["answer"] == "Meier"} == {"right", "wrong"}
    with Path("ann.csv").open("w", newline="") as file:
        lines = csv.DictWriter(file, rows[0])
        lines.writeheader()
        lines.writerows(rows)
    code, _, _ = call("data", "label", "run", "--read", "ann.csv")
    assert code == 0
    labelled = labelled_run(Run(Path("run")), kept_labels(Run(Path("run"))))
    ((hits,), ((stored, logged),)) = labelled.hit_pairs.arms, labelled.labelled
    judged = (stored != PairLabel.UNJUDGED) & (logged != PairLabel.UNJUDGED)
    assert judged.sum() == labelled.arms[0].shares.judged == 30
    assert set(logged[judged].tolist()) == {PairLabel.RIGHT}  # the log was right each day
    assert labelled.arms[0].shares.logged_wrong.low < 1e-6
    times = labelled.hit_pairs.table["logged_time"].to_pylist()
    given = labelled.hit_pairs.stored["all"].to_pylist()
    truth = [PairLabel.RIGHT if given[i] == on_call(times[i].day - 1) else PairLabel.WRONG for i in hits.turn]
    assert stored[judged].tolist() == np.array(truth)[judged].tolist()
