"""Utility by turn and utility by counts are the same number."""

from pathlib import Path

import pytest

from skg_bench.analysis.counts.metrics import LOSS_COLUMNS, Utility
from skg_bench.analysis.counts.tally import events, tallies
from tests.analysis.synthetic import make_run


@pytest.mark.req("K24")
def test_what_turns_are_worth_sums_to_the_utility_of_their_counts(tmp_path: Path) -> None:
    run, price = make_run(tmp_path / "run", users=4, weeks=2), Utility(wrong=2.5, usd=30.0, second=0.1)
    requests = events(run)
    for arm in run.arms:
        tally = tallies(run, arm, requests)[0]
        by_count = sum(weight * tally.by_cell[name].sum() for name, weight in price.count().items())
        assert (1.0 - price.loss(run.turns(arm, LOSS_COLUMNS))).sum() == pytest.approx(by_count, rel=1e-12)
