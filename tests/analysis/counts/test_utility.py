"""Utility by turn and utility by counts are the same number."""

from pathlib import Path

import pytest

from skg_bench.analysis.counts.metrics import LOSS_COLUMNS, Utility
from skg_bench.analysis.counts.tally import events, tallies
from tests.analysis.synthetic import make_run


@pytest.mark.req("K24")
def test_what_turns_are_worth_sums_to_the_utility_of_their_counts(tmp_path: Path) -> None:
    run, price = make_run(tmp_path / "run", users=4, weeks=2), Utility(wrong=2.5, usd=30.0, second=0.1, offer=0.07)
    requests = events(run)
    for arm in run.arms:
        tally = tallies(run, arm, requests)[0]
        by_count = sum(weight * tally.by_cell[name].sum() for name, weight in price.count().items())
        assert (1.0 - price.loss(run.turns(arm, LOSS_COLUMNS))).sum() == pytest.approx(by_count, rel=1e-12)


@pytest.mark.req("K17")
def test_an_offer_costs_its_price_whatever_the_user_answers(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", users=4, weeks=2)
    free, dear = (Utility(wrong=1.0, usd=0.0, second=0.0, offer=offer) for offer in (0.0, 0.07))
    table = run.turns("skg", [*LOSS_COLUMNS])
    offered = table["offer"].is_valid().to_numpy()
    assert offered.any()
    assert not offered.all()
    assert dear.loss(table) - free.loss(table) == pytest.approx(0.07 * offered)
    assert dear.at_offer(0.0).count == free.at_offer(0.0).count
