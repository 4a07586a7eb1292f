"""Whether the corpus was large enough for a claim about curves."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from skg_bench.analysis.counts.tally import LoggedEvents, events
from skg_bench.analysis.summary.saturation import saturation
from tests.analysis.synthetic import make_run


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


def test_a_user_with_a_single_one_off_counts_as_one_with_many_and_one_without_does_not(on: LoggedEvents) -> None:
    one_off = (on.row == 0) & on.one_off
    one_off[np.flatnonzero(on.row == 1)[0]] = True
    shares = saturation(replace(on, one_off=one_off, used_up=on.row == 1))
    assert shares.one_offs_again == pytest.approx(1 / 2)
