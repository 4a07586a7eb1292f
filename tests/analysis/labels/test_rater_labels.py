"""Labels of raters: faults are named by row, contradictions refused, agreement is Cohen's."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skg_bench.analysis.labels.hit_pairs import hit_pairs
from skg_bench.analysis.labels.label_shares import PairLabel
from skg_bench.analysis.labels.labelled_run import labelled_run
from skg_bench.analysis.labels.machine_labels import machine_labels
from skg_bench.analysis.labels.rater_labels import (
    agreements,
    check_texts,
    labels_of,
    labels_text,
    merged,
    read_sheet,
    replaced,
    settled,
    sheet_labels,
)
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from tests.analysis.labels.planted_log import truth

PAIR = f"{2026:016x}"


def sheet(folder: Path, *rows: str, name: str = "ann.csv", head: str = "pair,label") -> Path:
    (folder / name).write_text("\n".join((head, *rows)) + "\n")
    return folder / name


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (f"{PAIR},rigth", "row 2: label 'rigth'; valid: wrong, near, right, unknown"),
        ("12 34,right", "row 2: pair '12 34' is no digest"),
        ("12_34,right", "row 2: pair '12_34' is no digest"),
        (f"{PAIR},right,more", "row 2: 3 cells, and 2 columns"),
        (PAIR, "row 2: 1 cell, and 2 columns"),
        (f'{PAIR},"right', "is no whole CSV file"),
    ],
)
def test_a_faulty_row_is_named(tmp_path: Path, row: str, fault: str) -> None:
    with pytest.raises(UsageError, match=r"ann\.csv") as error:
        read_sheet(sheet(tmp_path, row))
    assert fault in str(error.value)


def test_a_sheet_without_labels_as_a_column_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no column 'label'; it has pair"):
        read_sheet(sheet(tmp_path, PAIR, head="pair"))


def test_a_sheet_with_two_columns_of_labels_is_refused_and_may_have_two_of_notes(tmp_path: Path) -> None:
    """The last one was taken."""
    with pytest.raises(UsageError, match=r"ann\.csv has the column 'label' twice; leave one of them"):
        read_sheet(sheet(tmp_path, f"{PAIR},right,wrong", head="pair,label,Label"))
    assert len(read_sheet(sheet(tmp_path, f"{PAIR},right,,", head="pair,label,note,note"))) == 1


def test_a_sheet_whose_texts_slid_to_other_rows_is_refused(log_run: Run, tmp_path: Path) -> None:
    """As when a spreadsheet sorts one column and not the others."""
    pairs, head = hit_pairs(log_run, ["all"]), "pair,message,answer,label"
    digest, (message, answer) = next(iter(pairs.all_texts().items()))
    slid = read_sheet(sheet(tmp_path, f'{digest:016x},"{message}","{answer}",right', head=head))
    assert slid[0].label == PairLabel.RIGHT
    check_texts(slid, pairs)
    with pytest.raises(UsageError, match="row 2: its message or answer is not the one of pair"):
        check_texts(read_sheet(sheet(tmp_path, f'{digest:016x},"{message}",At ten,right', head=head)), pairs)


def test_one_rater_cannot_say_two_things_of_a_pair(tmp_path: Path) -> None:
    labels = read_sheet(sheet(tmp_path, f"{PAIR},right", f"{PAIR},WRONG "))
    with pytest.raises(UsageError, match=r"row 3: rater 'ann' says 'wrong', and of the same pair 'right' in .*row 2"):
        merged(labels)


@pytest.mark.parametrize("sign", [",", ";"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_sheet_that_a_spreadsheet_program_saved_is_read(tmp_path: Path, mark: str, sign: str) -> None:
    row = sign.join((PAIR, '"Is it open, or shut; or both?"', "yes", "right"))
    saved = read_sheet(sheet(tmp_path, row, head=mark + sign.join(("pair", "message", "answer", "label"))))
    assert [(label.label, label.texts) for label in saved] == [
        (PairLabel.RIGHT, ("Is it open, or shut; or both?", "yes"))
    ]


def test_a_row_that_is_blank_in_one_of_two_sheets_withdraws_nothing(tmp_path: Path) -> None:
    head = "pair,rater,label"
    filled, blank = (
        sheet_labels(sheet(tmp_path, f"{PAIR},ann,{label}", name=f"{label}.csv", head=head)) for label in ("near", "")
    )
    assert replaced(filled, [*filled, *blank]) == ([], 0, 0)
    assert replaced(filled, blank) == ([], 0, 1)


def test_where_raters_differ_the_label_is_unknown(tmp_path: Path) -> None:
    sheets = [
        sheet(tmp_path, f"{PAIR},{label}", name=f"{rater}.csv") for rater, label in (("a", "right"), ("b", "near"))
    ]
    by_rater = merged([label for each in sheets for label in read_sheet(each)])
    assert by_rater == {int(PAIR, 16): {"a": PairLabel.RIGHT, "b": PairLabel.NEAR}}
    assert settled(by_rater) == {int(PAIR, 16): PairLabel.UNKNOWN}


def test_labels_come_back_from_the_file_beside_a_run(tmp_path: Path) -> None:
    by_rater = {3: {"a": PairLabel.WRONG}, 2**64 - 1: {"a": PairLabel.RIGHT, "b": PairLabel.UNKNOWN}}
    (tmp_path / "labels.csv").write_text(labels_text(by_rater, 7))
    assert merged(read_sheet(tmp_path / "labels.csv")) == by_rater


def test_pairs_get_their_labels() -> None:
    pairs = np.array([5, 3, 2**63], np.uint64)
    assert labels_of(pairs, {}).tolist() == [PairLabel.UNJUDGED] * 3
    assert labels_of(pairs, {3: PairLabel.WRONG, 2**63: PairLabel.RIGHT, 9: PairLabel.NEAR}).tolist() == [
        PairLabel.UNJUDGED,
        PairLabel.WRONG,
        PairLabel.RIGHT,
    ]


def test_kappa_is_that_of_a_worked_example() -> None:
    """45 of 100 both wrong, 25 both right, 15 and 15 apart: kappa is 0.70 - 0.52 over 1 - 0.52."""
    table = {
        (PairLabel.WRONG, PairLabel.WRONG): 45,
        (PairLabel.WRONG, PairLabel.RIGHT): 15,
        (PairLabel.RIGHT, PairLabel.WRONG): 15,
        (PairLabel.RIGHT, PairLabel.RIGHT): 25,
    }
    both = [labels for labels, times in table.items() for _ in range(times)]
    (agreement,) = agreements({pair: {"a": a, "b": b} for pair, (a, b) in enumerate(both)})
    assert (agreement.pairs, agreement.same, len(agreement.differ)) == (100, 70, 30)
    assert agreement.kappa == pytest.approx(0.18 / 0.48)
    assert -1 < agreement.low < agreement.kappa < agreement.high < 1


@given(st.lists(st.integers(0, 30), min_size=16, max_size=16).filter(any))
@example([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0])
def test_kappa_and_its_interval_are_those_of_statsmodels(cells: list[int]) -> None:
    from statsmodels.stats.inter_rater import cohens_kappa  # takes long to import

    counts = np.array(cells).reshape(4, 4)
    judged = [pair for pair in np.ndindex(4, 4) for _ in range(counts[pair])]
    (agreement,) = agreements({i: {"a": a, "b": b} for i, (a, b) in enumerate(judged)})
    used = np.flatnonzero(counts.sum(axis=0) + counts.sum(axis=1))
    if len(used) == 1:
        assert np.isnan(agreement.kappa)
        return
    with np.errstate(all="ignore"):  # it divides 0 by 0 where raters never agree
        theirs = cohens_kappa(counts[np.ix_(used, used)])
    assert agreement.kappa == pytest.approx(theirs.kappa, abs=1e-12)
    ends = np.nan_to_num((theirs.kappa_low, theirs.kappa_upp), nan=theirs.kappa)  # of a variance that rounds below 0
    assert (agreement.low, agreement.high) == pytest.approx((max(ends[0], -1), min(ends[1], 1)), abs=1e-6)


def test_raters_who_know_one_label_only_have_no_kappa() -> None:
    (agreement,) = agreements({pair: {"a": PairLabel.RIGHT, "b": PairLabel.RIGHT} for pair in range(9)})
    assert np.isnan(agreement.kappa)
    assert agreement.same == 9


def test_a_judge_is_held_against_people_pair_by_pair(log_run: Run) -> None:
    """`exact` calls wrong every stored answer that is another text than the log's: of right and of wrong ones."""
    pairs = hit_pairs(log_run, ["all"])
    ((stored, _),), (arm,) = truth(pairs), pairs.arms
    words = dict(zip(arm.pair.tolist(), stored.tolist(), strict=True))
    by_rater = {pair: {"ann": label} for pair, label in words.items()}
    (figures,) = labelled_run(log_run, by_rater, ["all"], judge=partial(machine_labels, "exact")).arms
    assert figures.machine is not None
    logged = set(arm.logged.tolist())  # pairs that the log itself has, some of which are stored answers too
    flagged = {pair: int(pair in logged) for pair in words}
    expected = np.zeros((2, 2), np.int64)
    for pair, label in words.items():
        expected[int(label != PairLabel.WRONG), flagged[pair]] += 1
    assert figures.machine.confusion.tolist() == expected.tolist()
    assert figures.machine.wrong == np.mean([1 - flagged[pair] for pair in arm.pair.tolist()])
