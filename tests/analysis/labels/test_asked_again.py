"""Precision of the sign, on pairs whose labels are known."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from skg_bench.analysis.labels.asked_again import asked_again
from skg_bench.analysis.labels.hit_pairs import HitPairs, hit_pairs
from skg_bench.analysis.labels.label_shares import PairLabel
from skg_bench.runfolder.run import Run
from tests.analysis.labels.planted_log import truth


@pytest.fixture(scope="module")
def pairs(log_run: Run) -> HitPairs:
    return hit_pairs(log_run, ["all", "near"])


def signed(pairs: HitPairs, sign: Sequence[bool]) -> HitPairs:
    """The log, with these signs of its turns."""
    place = pairs.table.column_names.index("asked_again")
    return replace(pairs, table=pairs.table.set_column(place, "asked_again", pa.array(sign, pa.bool_())))


def test_counts_are_of_distinct_judged_pairs(pairs: HitPairs) -> None:
    from statsmodels.stats.proportion import proportion_confint  # takes long to import

    sign = [i % 3 == 0 for i in range(len(pairs.table))]
    right = truth(pairs)
    result = asked_again(signed(pairs, sign), right)
    assert result is not None
    expected = dict[int, tuple[bool, bool]]()
    for hits, (_, labels) in zip(pairs.arms, right, strict=True):
        for turn, pair, label in zip(hits.turn.tolist(), hits.logged.tolist(), labels.tolist(), strict=True):
            before = expected.get(pair, (False, False))[0]
            expected[pair] = (before or sign[turn], label == PairLabel.WRONG)
    for place, wanted in enumerate((True, False)):
        chosen = [wrong for has, wrong in expected.values() if has is wanted]
        assert (result.wrong[place], result.judged[place]) == (sum(chosen), len(chosen))
    assert (result.answers, result.again) == (len(sign), sum(sign))
    low, high = proportion_confint(result.wrong[0], result.judged[0], method="beta")
    assert (
        f"{result.wrong[0]:,} of {result.judged[0]:,} ({100 * low:.1f} % to {100 * high:.1f} %) with the sign"
        in result.words
    )


def test_a_sign_that_tells_the_truth_is_always_right(pairs: HitPairs) -> None:
    right = truth(pairs)
    sign = [False] * len(pairs.table)
    for hits, (_, labels) in zip(pairs.arms, right, strict=True):
        for turn in hits.turn[labels == PairLabel.WRONG].tolist():
            sign[turn] = True
    result = asked_again(signed(pairs, sign), right)
    assert result is not None
    assert result.wrong[0] == result.judged[0] > 5
    assert result.wrong[1] == 0 < result.judged[1]


def test_unknown_and_missing_labels_count_nowhere(pairs: HitPairs) -> None:
    labels = [(stored, np.where(np.arange(len(logged)) % 2, PairLabel.UNKNOWN, PairLabel.UNJUDGED))
              for stored, logged in truth(pairs)]  # fmt: skip
    result = asked_again(signed(pairs, [True] * len(pairs.table)), labels)
    assert result is not None
    assert result.judged == (0, 0)
    assert result.words.endswith("(100.0 %), a sign and no rating. People judged none of these")


def test_without_conversations_there_is_no_sign(pairs: HitPairs) -> None:
    assert asked_again(pairs, truth(pairs)) is None
