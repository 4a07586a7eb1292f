"""The grid of routers and rerankers: effects are means over users of differences of means over the other factor."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import skg_bench
from experiments.grid.analysis import analyse, words
from experiments.grid.effects import Effect, corrected, grids, options
from skg_bench.analysis.counts.metrics import Utility, metrics
from skg_bench.analysis.statistics.intervals import Estimate
from skg_bench.runfolder.run import Run

ARMS = "arms={never: [policy=never, curator=none], maxsim_identity: [reranker=identity], maxsim_linear: [], \
bm25_identity: [router=bm25, reranker=identity], bm25_linear: [router=bm25]}"
DENSE = (
    "simulator.messages_per_day=12",
    "simulator.volume_spread=0",
    "simulator.concentration=2",
    "simulator.accept=0.9",
    "users=4",
    "workers=1",
    "weeks=1",
)


@pytest.fixture(scope="module")
def runs(once: Callable[..., Path]) -> list[Run]:
    """Two seeds on the built-in corpus."""

    def play(folder: Path) -> None:
        for seed in "01":
            skg_bench.run(["experiment=grid", ARMS, *DENSE, f"seed={seed}", f"out={folder / seed}"])

    return [Run(once("grid", play) / seed) for seed in "01"]


def hit_rates(runs: list[Run], arm: str) -> dict[tuple[int, int], float]:
    """By seed and user, counted turn by turn."""
    rates = {}
    for seed, run in enumerate(runs):
        rows = run.turns(arm).to_pylist()
        for user in {row["user"] for row in rows}:
            hits = [not row["fallback_to_llm"] for row in rows if row["user"] == user]
            rates[seed, user] = sum(hits) / len(hits)
    return rates


def test_effects_are_those_of_the_logs(runs: list[Run]) -> None:
    (grid,), effects = grids(runs)
    rates = {arm: hit_rates(runs, arm) for arm in grid.combined.arms}
    pairs = {
        "bm25": (("bm25_identity", "bm25_linear"), ("maxsim_identity", "maxsim_linear")),
        "linear": (("maxsim_linear", "bm25_linear"), ("maxsim_identity", "bm25_identity")),
    }
    assert any(rate for arm in rates.values() for rate in arm.values())
    for option, (these, those) in pairs.items():
        each = [np.mean([rates[a][u] for a in these]) - np.mean([rates[a][u] for a in those]) for u in rates["never"]]
        (effect,) = [
            candidate for candidate in effects if (candidate.option, candidate.metric.name) == (option, "hit_rate")
        ]
        assert effect.estimate.mean == pytest.approx(float(np.mean(each)))
        assert effect.estimate.se == pytest.approx(float(np.std(each, ddof=1) / len(each) ** 0.5))
        assert effect.estimate.n_users == 8
    assert {(candidate.factor, candidate.option) for candidate in effects} == {
        ("router", "bm25"),
        ("reranker", "linear"),
    }
    assert all(candidate.p >= candidate.estimate.p(new=True) or candidate.estimate.withheld for candidate in effects)


def made(corpus: str, option: str, mean: float, se: float = 0.001) -> Effect:
    estimate = Estimate(mean, se, 99.0, se, 99.0, 100, 0)
    return Effect(corpus, "router", option, metrics(Utility(1, 0, 0, 0))["utility"], estimate, estimate.p(new=True))


def test_words_say_where_a_difference_holds_and_where_not() -> None:
    effects = corrected([
        made("A", "knn", 0.02), made("B", "knn", 0.03), made("A", "bm25", -0.02), made("B", "bm25", 0.001),
        made("A", "probe", 0.02), made("B", "probe", -0.02), made("A", "hybrid", 0.001), made("B", "hybrid", 0.0),
    ])  # fmt: skip
    text = "\n".join(words(effects))
    assert text.startswith("5 of 8 differences hold.")
    every, some, turned, silent = (
        text.index(h) for h in ("Holds on both", "Holds on one", "Turns round", "Nothing is")
    )
    knn = text.index("Utility of knn is higher than that of maxsim: +0.020 (+0.018 to +0.022) on A; +0.030")
    bm25 = text.index(
        "Utility of bm25 is lower than that of maxsim: -0.020 (-0.022 to -0.018) on A; not shown on B, +0.001"
    )
    assert every < knn < some < bm25 < turned
    assert turned < text.index("probe against maxsim, utility: +0.020") < silent
    assert text.endswith("hybrid (utility).")


def test_what_is_significant_alone_need_not_hold_among_many() -> None:
    alone = made("A", "knn", 0.0029)
    assert alone.p < 0.01
    assert alone.holds
    among = corrected([alone, *(made("A", f"router{i}", 0.0) for i in range(40))])
    assert not among[0].holds
    small = made("A", "knn", 0.0021)  # less than such a run finds in 80 %, and significant
    assert small.holds
    assert small.estimate.mean < small.estimate.detectable(new=True)


def test_a_grid_with_a_hole_is_refused(runs: list[Run]) -> None:
    assert options(runs[0].arms) == {"router": ["maxsim", "bm25"], "reranker": ["identity", "linear"]}
    with pytest.raises(skg_bench.UsageError, match="it lacks bm25_linear; run experiment=grid"):
        options([arm for arm in runs[0].arms if arm != "bm25_linear"])


def test_page_and_figure_are_written(runs: list[Run], tmp_path: Path) -> None:
    results = analyse(runs)
    results.write(tmp_path, "grid")
    report = (tmp_path / "grid.md").read_text("utf-8")
    assert any("differences hold" in str(part) for part in results.parts)
    assert "8 users (seeds 0, 1), 1 weeks" in report
    for arm in runs[0].arms:
        assert f"| {arm} | " in report
    assert "grid_the_built_in_corpus.svg" in report
    assert (tmp_path / "grid_the_built_in_corpus.svg").read_text("utf-8").startswith("<svg")
