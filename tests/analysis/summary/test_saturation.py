"""Whether the corpus was large enough for a claim about curves."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from skg_bench.analysis import summary
from skg_bench.analysis.comparison.compare import compare, verdict_words
from skg_bench.analysis.counts.tally import LoggedEvents, events
from skg_bench.analysis.report.verdict import finding_sentences, words
from skg_bench.analysis.summary.saturation import saturation
from skg_bench.runfolder.run import Run
from tests.analysis.synthetic import ARMS, World, make_run


@pytest.fixture(scope="module")
def on(tmp_path_factory: pytest.TempPathFactory) -> LoggedEvents:
    return events(make_run(tmp_path_factory.mktemp("runs") / "run", users=5, weeks=3))


def test_verbatim_repeats_are_those_of_the_same_user(on: LoggedEvents) -> None:
    texts = [set[int]() for _ in on.users]
    share = np.zeros(len(on.users))
    for row, text in zip(on.row, on.text, strict=True):
        share[row] += text in texts[row]
        texts[row].add(int(text))
    assert saturation(replace(on, text=on.text % 40)).verbatim > saturation(on).verbatim
    assert saturation(on).verbatim == pytest.approx(float((share / np.bincount(on.row)).mean()))


def test_types_count_as_used_up_once_and_one_offs_by_request(on: LoggedEvents) -> None:
    typed = np.flatnonzero((on.row == 0) & ~on.one_off)
    single = np.flatnonzero((on.row == 1) & on.one_off)
    used_up = np.zeros(len(on), np.bool_)
    kind = on.kind[typed[0]]
    used_up[typed[on.kind[typed] == kind]] = True
    used_up[single[:2]] = True
    shares = saturation(replace(on, used_up=used_up))
    types = len(np.unique(on.kind[typed]))
    assert shares.types_used_up == pytest.approx(1 / types / len(on.users))
    assert shares.one_offs_again == pytest.approx(2 / len(single) / len(on.users))


def test_above_five_percent_claims_are_not_testable_and_the_reason_is_said(on: LoggedEvents) -> None:
    assert saturation(on).reasons == []
    worn = saturation(replace(on, used_up=on.one_off))
    assert worn.reasons == ["100.0% of one-off requests were drawn before (limit 5%)"]


def test_a_run_without_one_offs_has_no_such_share(tmp_path: Path) -> None:
    shares = saturation(events(make_run(tmp_path / "run", users=2, weeks=1, one_offs=0.0)))
    assert np.isnan(shares.one_offs_again)
    assert shares.reasons == []


# ------------------------------------------------------------------------------------------ verdicts on utility

HARMFUL = {**ARMS, "skg": World(hit_right=0.2), "twin": World(hit=0.0)}


def harmful(folder: Path, *, used_up: bool) -> Run:
    """A run in which `skg` does harm, and `twin` does what `never` does."""
    types, per_week = (8, 150.0) if used_up else (400, 18.0)
    return make_run(folder / "run", users=16, weeks=6, types=types, per_week=per_week, one_offs=0.0, arms=HARMFUL)


@pytest.fixture(scope="module")
def harm(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bool, Path], Run]:
    """A copy of such a run, which is made once."""
    made = {used_up: harmful(tmp_path_factory.mktemp("harm"), used_up=used_up) for used_up in (False, True)}
    return lambda used_up, folder: Run(shutil.copytree(made[used_up].path, folder / "run"))


@pytest.mark.parametrize("used_up", [False, True])
def test_a_run_whose_corpus_was_used_up_has_no_verdict_on_utility(
    harm: Callable[[bool, Path], Run], tmp_path: Path, used_up: bool
) -> None:
    run = harm(used_up, tmp_path)
    figures = summary.write_summary(run)
    assert figures.saturation.testable is not used_up
    assert figures.differences["skg"]["utility"].verdict == ("not testable here" if used_up else "worse")
    assert figures.effects["frozen"].metrics["utility"].verdict == ("not testable here" if used_up else "worse")
    hits = figures.differences["skg"]["hit_rate"].verdict  # what was done is no claim about its worth
    assert hits == ("withheld" if used_up else "better")  # eight intents are too few for an interval
    assert figures.differences["twin"]["utility"].verdict == "identical"  # whatever was said


@pytest.mark.parametrize("used_up", [False, True])
def test_compare_has_no_verdict_on_utility_where_the_corpus_was_used_up_and_says_why(
    harm: Callable[[bool, Path], Run], tmp_path: Path, used_up: bool
) -> None:
    run = harm(used_up, tmp_path)
    compared = compare([run], margins={"utility": 5.0})
    row = next(row for row in compared.rows if (row.arm, row.metric.name) == ("skg", "utility"))
    assert verdict_words(row) == ("not testable here" if used_up else "worse, yet equal within 5.000")
    assert list(compared.gaps) == [f"no verdict on utility: {reason}" for reason in saturation(events(run)).reasons]
    assert bool(compared.gaps) is used_up


def test_the_page_says_that_a_corpus_that_was_used_up_leaves_the_question_open(
    harm: Callable[[bool, Path], Run], tmp_path: Path
) -> None:
    content = summary.write_summary(harm(True, tmp_path))
    sentences = words(content)
    assert not [sentence.text for sentence in sentences if sentence.tone in ("good", "bad")]
    first, *others = (sentence.text for sentence in sentences)
    assert first.startswith("Not shown that skg helps or harms: ")
    assert first.endswith("It is not testable here: the corpus was used up.")
    assert any("Not shown that what skg learned" in text and "the corpus was used up" in text for text in others)
    of_page = finding_sentences(content, "skg")
    assert any("whether they pay is not testable here" in sentence.text for sentence in of_page)
    assert any(text.startswith("Claims about curves and utility are not testable here: ") for text in others)


def test_a_user_with_a_single_one_off_counts_as_one_with_many_and_one_without_does_not(on: LoggedEvents) -> None:
    one_off = (on.row == 0) & on.one_off
    one_off[np.flatnonzero(on.row == 1)[0]] = True
    shares = saturation(replace(on, one_off=one_off, used_up=on.row == 1))
    assert shares.one_offs_again == pytest.approx(1 / 2)
