"""An endpoint, recorded and within a budget: what is paid for is kept, and nothing is paid for twice."""

from pathlib import Path

import pytest

from skg_bench.asking.asking import placed
from skg_bench.asking.spending import SpendingFile
from skg_bench.core.errors import BudgetReached
from skg_bench.llm.budgeted import Budgeted
from skg_bench.llm.recorded import RecordedModel
from tests.llm.asks import endpoint, reflections
from tests.llm.server import Server


def test_a_run_that_reached_its_budget_keeps_what_was_under_way_and_goes_on_with_a_larger_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OFFLINE", raising=False)
    asks = reflections(60)
    with Server(seconds=0.05) as server:
        model = endpoint(server.address, in_flight=8)

        def run(tokens: int | None) -> RecordedModel:
            return placed(RecordedModel(Budgeted(model, tokens, None, None), "both", None), tmp_path)

        first = run(None).complete(asks[:10])
        spent = SpendingFile(tmp_path / "asked" / "spent.jsonl").total()
        assert (spent.asks, server.requests) == (10, 10)
        assert spent.usd == pytest.approx(sum(answer.cost_usd for answer in first))
        with pytest.raises(BudgetReached):
            run(2 * spent.tokens).complete(asks)
        stopped = server.requests
        assert 15 <= stopped <= 25 + model.in_flight  # asks are of different lengths
        assert SpendingFile(tmp_path / "asked" / "spent.jsonl").total().asks == stopped
        answers = run(None).complete(asks)
        assert server.requests == 60
        assert answers[:10] == first
    monkeypatch.setenv("OFFLINE", "1")
    assert run(1).complete(asks) == answers
