"""The world of `persuaded`: users listen ever more often, and are worse off for it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.persuaded.analysis import ARMS, analyse, figure, worse_off
from skg_bench.analysis.comparison.claimed_proofs import ClaimedProofs, claimed_proofs
from skg_bench.analysis.report.claimed import ends
from skg_bench.app.api import run as simulate
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from tests.analysis.advised import drawn, make_advice_run
from tests.analysis.comparison.test_claimed_proofs import CONTROLS


@pytest.fixture(scope="module")
def run(once: Callable[..., Path]) -> Run:
    words = ("experiment=persuaded", "users=50", "weeks=18", "workers=1")
    return Run(once("persuaded", lambda folder: simulate([*words, f"out={folder}"])))


@pytest.fixture(scope="module")
def proofs(run: Run) -> ClaimedProofs:
    proofs = claimed_proofs(run)
    assert proofs is not None
    return proofs


@pytest.mark.req("P31", "P46", "P47", "P48")
def test_acceptance_rises_about_as_the_article_has_it(proofs: ClaimedProofs) -> None:
    live, frozen = (proofs.arcs[arm].acceptance for arm in ("live", "frozen"))
    assert live.low[0] < 0.3 < live.high[0]  # of the first five interactions
    assert live.low[-1] > 0.65
    assert ends(proofs.arcs["live"].rise)[0] > 0.25
    assert frozen.high[-1] < 0.3  # whose book stays


@pytest.mark.req("P31")
def test_users_are_worse_off_for_it(proofs: ClaimedProofs) -> None:
    live, frozen = (proofs.arcs[arm].utility for arm in ("live", "frozen"))
    assert live.mean[0] > 0.05
    assert live.high[-1] < -0.05  # worse than if nothing had been said
    assert frozen.low[-1] > 0.05
    assert ends(proofs.beyond["live", "frozen"])[1] < -0.1
    assert ends(proofs.beyond["live", "sham"])[1] < -0.05


@pytest.mark.req("P32", "P33", "P44")
def test_the_other_two_proofs_would_have_been_found_as_well(proofs: ClaimedProofs) -> None:
    assert proofs.pairs["live"].share.mean > proofs.pairs["frozen"].share.mean > 0.3
    (seeds,) = proofs.seeds
    assert ends(seeds.acceptance[2])[0] > 0.15
    assert ends(seeds.utility[2])[1] < 0.01  # and is worth nothing


def test_the_experiment_reports_both_with_a_figure_in_plain_words(run: Run, proofs: ClaimedProofs) -> None:
    report = analyse(run)
    assert report.holds == worse_off(proofs)
    drawn = figure(run, proofs)
    assert report.figures == {"persuaded.svg": drawn}
    for words in ("How often users listen", "What that is worth to them", "learns", "book stays"):
        assert words in drawn
    assert "sham" not in drawn


def test_a_run_without_its_arms_or_with_too_few_interactions_is_refused(tmp_path: Path) -> None:
    lives = drawn(2, 4, 0.5)
    missing = make_advice_run(tmp_path / "missing", {"live": lives, "frozen": lives}, reference="frozen")
    with pytest.raises(UsageError, match=r"has no arm 'sham'; .* skg-bench run experiment=persuaded"):
        analyse(missing)
    short = make_advice_run(tmp_path / "short", dict.fromkeys(ARMS, lives), components=CONTROLS, reference="frozen")
    with pytest.raises(
        UsageError, match=r"too few interactions; make a longer run: skg-bench run experiment=persuaded"
    ):
        analyse(short)
