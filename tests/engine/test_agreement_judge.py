"""A judge of two texts errs as often as declared, is paid for each verdict, and touches nothing else."""

import numpy as np
import pytest
import yaml

from skg_bench.app.packages import packages
from skg_bench.core.draws import key
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import AGREES, RATING, Feedback
from skg_bench.engine.agreement_judge import JUDGE, AgreementJudge

N = 20_000


def given() -> Feedback:
    """Every second user's answers are compared, a quarter say the same; all others rate `ok`."""
    row, kind = np.arange(N), np.where(np.arange(N) % 2 == 0, AGREES, RATING).astype(np.int32)
    return Feedback(row, kind, (row % 4 == 0).astype(np.int32), np.zeros(N, np.int64))


def test_the_judge_errs_as_often_as_declared_and_only_about_comparisons() -> None:
    before, event = given(), key(3, np.arange(N))
    after, paid = JUDGE.judged(before, event)
    compared = before.kind == AGREES
    assert np.array_equal(after.value[~compared], before.value[~compared])
    wrong = after.value[compared] != before.value[compared]
    for said in (0, 1):
        share = wrong[before.value[compared] == said].mean()
        assert abs(share - JUDGE.errs) < 4 * np.sqrt(JUDGE.errs * (1 - JUDGE.errs) / (N / 4))
    assert paid is not None
    assert np.array_equal(paid, np.where(compared, JUDGE.usd, 0.0))


def test_where_nothing_is_compared_nothing_is_paid() -> None:
    before = given().rows(np.arange(1, N, 2))
    assert JUDGE.judged(before, key(3, np.arange(N))) == (before, None)


def test_the_default_is_that_of_the_configuration() -> None:
    root = yaml.safe_load((packages()[0].conf / "config.yaml").read_text("utf-8"))
    assert AgreementJudge(**root["comparison"]) == JUDGE


@pytest.mark.parametrize(("errs", "usd"), [(-0.1, 0), (0.6, 0), (float("nan"), 0), (0.1, -1), (0.1, float("inf"))])
def test_a_judge_that_is_none_is_refused(errs: float, usd: float) -> None:
    with pytest.raises(UsageError, match=r"comparison\.(errs|usd)="):
        AgreementJudge(errs, usd)
