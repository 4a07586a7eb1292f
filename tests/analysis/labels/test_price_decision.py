"""For which price of a wrong answer hits pay, by what they save in the log's money."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from skg_bench.analysis.labels.label_shares import LabelShare
from skg_bench.analysis.labels.price_decision import HitSaving, PriceDecision, decision_words, hit_saving

NONE = float("nan")


class Tables:
    """Turns of two arms: `mine` answers some from memory."""

    manifest: Mapping[str, Any] = {"log": {"knows": ("answer", "cost_usd")}}

    def __init__(self, **arms: pa.Table) -> None:
        self.tables = arms

    def turns(self, arm: str, columns: Sequence[str], users: Sequence[int] | None = None) -> pa.Table:
        return self.tables[arm].select(columns)


def turns(cost: list[float | None], stored: list[str | None], learning: float = 0.0) -> pa.Table:
    return pa.table({"cost_usd": pa.array(cost, pa.float64()), "stored_answer": pa.array(stored, pa.string()),
                     "learning_cost_usd": [learning] * len(cost)})  # fmt: skip


def test_a_hit_saves_what_the_model_had_cost_less_what_learning_cost() -> None:
    """Turns 0 and 2 are hits, 0.10 and 0.50; turn 3 is one without a price; learning takes 0.01 at each priced turn."""
    run = Tables(mine=turns([0.0, 0.20, 0.0, None], ["a", None, "b", "c"], learning=0.01),
                 never=turns([0.10, 0.20, 0.50, None], [None] * 4))  # fmt: skip
    saving = hit_saving(run, "mine", "never")  # type: ignore[arg-type]
    assert saving.unit == "$"
    assert saving.each == pytest.approx((0.10 + 0.50 - 3 * 0.01) / 2)


def test_money_is_not_invented_where_no_hit_has_a_price() -> None:
    run = Tables(mine=turns([None, 0.2], ["a", None]), never=turns([None, 0.2], [None, None]))
    saving = hit_saving(run, "mine", "never")  # type: ignore[arg-type]
    decision = PriceDecision(saving, LabelShare(0.2, 0.1, 0.3))
    assert (saving.unit, np.isnan(saving.each)) == ("$", True)
    assert decision.verdict(0.0) == decision.verdict(100.0) == "open"
    assert decision_words(decision) == "no price is known of its hits"


@pytest.mark.parametrize(("saving", "low", "high", "verdicts"), [
    (0.10, 0.1, 0.5, ["pays", "pays", "open", "does not pay"]),
    (0.10, -0.1, 0.5, ["pays", "pays", "open", "open"]),
    (0.10, -0.5, -0.1, ["pays"] * 4),
    (-0.10, 0.1, 0.5, ["does not pay"] * 4),
    (-0.10, -0.5, -0.1, ["does not pay", "does not pay", "open", "pays"]),
])  # fmt: skip
def test_a_hit_gains_what_it_saves_less_the_price_of_its_wrong_answers(
    saving: float, low: float, high: float, verdicts: list[str]
) -> None:
    decision = PriceDecision(HitSaving(saving, "$"), LabelShare(NONE, low, high))
    assert [decision.verdict(price) for price in (0.0, 0.19, 0.9, 1.1)] == verdicts


def test_the_sentence_names_the_prices_between_which_it_is_open() -> None:
    words = decision_words(PriceDecision(HitSaving(0.10, "$"), LabelShare(NONE, 0.1, 0.5)))
    sure = decision_words(PriceDecision(HitSaving(1.0, "calls"), LabelShare(-0.1, -0.2, 0.0)))
    reason = "as these hits bring no wrong answers beyond those of the log"
    assert sure == f"pays at any price, {reason}; a hit saves 1.00 calls of the model"
    assert words == "pays if a wrong answer costs less than $0.2, not if it costs more than $1.00; a hit saves $0.1"
