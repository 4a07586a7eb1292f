"""From the best that can be said to the utility that was reached, link by link."""

from pathlib import Path

import numpy as np
import pytest

from skg_bench.analysis import summary
from skg_bench.analysis.counts.metrics import Utility
from skg_bench.analysis.counts.tally import events
from skg_bench.analysis.summary.regret import regret
from skg_bench.app import result_tables
from skg_bench.app.progress import console
from skg_bench.runfolder.run import Run
from tests.analysis.advised import UTILITY, Purchase, drawn, make_advice_run

PRICES = Utility(**UTILITY)
LINKS = ("curation", "choice", "wear", "luck", "paid")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    arms = {"guardian": drawn(10, 30, 0.8), "never": drawn(10, 30, 0.3)}
    return make_advice_run(tmp_path_factory.mktemp("runs") / "run", arms)


def test_links_are_what_they_are_by_hand(tmp_path: Path) -> None:
    """Both turns cost 0.01 of money and 0.02 of waiting."""
    life = [Purchase(worths=(0.5, 0.3, 0.25, 0.05, 1.0), day=1.0), Purchase(worths=(0.4, 0.4, 0.1, 0.2, -1.0), day=2.0)]
    content = summary.write_summary(make_advice_run(tmp_path / "run", {"guardian": [life], "never": [life]}))
    fall = content.waterfall["guardian"]
    means = {link: figure.mean for link, figure in fall.losses.items()}
    assert fall.ceiling == pytest.approx(0.45)
    expected = {"curation": 0.1, "choice": 0.175, "wear": 0.05, "luck": (0.05 - 1.0 + 0.2 + 1.0) / 2, "paid": 0.03}
    assert means == pytest.approx(expected)
    assert [fall.losses[link].n_turns for link in LINKS] == [1, 2, 2, 2, 2]
    assert content.arms["guardian"]["utility"].mean == pytest.approx(0.45 - sum(expected.values()))


@pytest.mark.parametrize("arm", ["guardian", "never"])
def test_a_users_links_sum_to_what_the_best_kind_is_above_what_was_reached(run: Run, arm: str) -> None:
    table = run.turns(arm).to_pandas()
    paid = PRICES.usd * (table.cost_usd + table.learning_cost_usd) + PRICES.second * table.latency_ms / 1000
    lost = (table.worth_best - table.worth + paid).groupby(table.user).mean().to_numpy()
    links = regret(run, arm, events(run), PRICES)
    assert links is not None
    np.testing.assert_allclose(links.by_user(events(run)).sum(axis=0), lost, rtol=0, atol=1e-12)


def test_the_summary_leads_from_the_best_kind_to_the_utility_of_the_arm(run: Run) -> None:
    content = summary.describe(run)[0]
    for arm in run.arms:
        fall, utility = content.waterfall[arm], content.arms[arm]["utility"].mean
        assert list(fall.losses) == list(LINKS)
        assert fall.ceiling - sum(figure.mean or 0.0 for figure in fall.losses.values()) == pytest.approx(utility)
    assert content.waterfall["never"].differences is None
    differences = content.waterfall["guardian"].differences
    assert differences is not None
    less = sum(figure.mean or 0.0 for figure in differences.values())
    gap = content.arms["guardian"]["utility"].mean or 0.0, content.arms["never"]["utility"].mean or 0.0
    assert less == pytest.approx(gap[1] - gap[0])  # both have the same triggers, and so the same ceiling
    regrets = content.arms["guardian"]["regret"].mean
    bars = content.waterfall["guardian"].losses
    assert (bars["curation"].mean or 0.0) + (bars["choice"].mean or 0.0) == pytest.approx(regrets)


def test_an_arm_whose_skillbook_is_not_known_has_no_links(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    read = Run.turns

    def bookless(self: Run, arm: str, *given: object) -> pa.Table:
        table = read(self, arm, *given)  # type: ignore[arg-type]
        at = table.schema.get_field_index("worth_book")
        return table if at < 0 else table.set_column(at, "worth_book", pa.nulls(len(table), pa.float64()))

    monkeypatch.setattr(Run, "turns", bookless)
    assert summary.describe(run)[0].waterfall == {}


def test_the_terminal_leads_from_the_best_kind_to_the_utility(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    result_tables.print_regret(console(), summary.describe(run)[0])
    _, heading, *rows = capsys.readouterr().out.splitlines()
    order = [
        "best",
        "- not in the book",
        "- not chosen",
        "- worn off",
        "- luck",
        "- money and waiting",
        "= utility",
    ]
    assert sorted(order, key=heading.index) == order
    for row in rows:
        arm, ceiling, *links, reached = row.split()
        assert arm in run.arms
        assert float(ceiling) - sum(map(float, links)) == pytest.approx(float(reached), abs=0.004)
