"""Arms at one error rate, against what one counts by raising a threshold by hand."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import skg_bench
from skg_bench.analysis.comparison.compare import compare
from skg_bench.analysis.comparison.matched import (
    LEVELS,
    MATCHED_RESAMPLES,
    Fallbacks,
    Ladder,
    Matched,
    hits,
    ladder,
    matched,
)
from skg_bench.analysis.counts.metrics import Utility
from skg_bench.analysis.counts.tally import LoggedEvents, events
from skg_bench.analysis.statistics.inference import percentile, resampled_means
from skg_bench.runfolder.run import Run
from tests.analysis.synthetic import ARMS, UTILITY, World, make_run
from tests.runs import changed

PRICE = Utility(**UTILITY)
KEY = ["user", "turn"]
ARMS_OF_THIS = {**ARMS, "careless": World(hit=0.95, hit_right=0.6)}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_run(tmp_path_factory.mktemp("matched") / "run", users=16, weeks=6, arms=ARMS_OF_THIS)


def climb(run: Run, arm: str, requests: LoggedEvents, fallbacks: Fallbacks | None = None) -> Ladder:
    known = fallbacks or Fallbacks.of(requests)
    if fallbacks is None:
        hits(run, "never", requests, PRICE, known)
    return ladder(hits(run, arm, requests, PRICE, known), known, requests)


def by_hand(run: Run, arm: str, threshold: float) -> dict[str, float]:
    """Mean over users when every hit below the threshold is answered as `never` was."""
    columns = ["fallback_to_llm", "answer_correct", "skill_score", "cost_usd", "latency_ms", "offer"]
    arm_turns, never = (run.turns(a, columns).to_pandas() for a in (arm, "never"))
    hit = ~arm_turns["fallback_to_llm"] & (arm_turns["skill_score"] >= threshold)
    right = arm_turns["answer_correct"].where(hit, never["answer_correct"])
    cost, wait = (arm_turns[c].where(hit, never[c]) for c in ("cost_usd", "latency_ms"))
    asked = arm_turns["offer"].notna() & (hit | arm_turns["fallback_to_llm"])
    worth = right * 2.0 - 1.0 - 10.0 * cost - 0.02 / 1000 * wait - PRICE.offer * asked
    figures = {"wrong": hit & ~arm_turns["answer_correct"], "hit_rate": hit, "correct": right, "utility": worth}
    return {
        name: float(values.astype(float).groupby(arm_turns["user"]).mean().mean()) for name, values in figures.items()
    }


def test_every_level_is_what_one_counts_with_that_threshold(run: Run) -> None:
    for arm in ("skg", "careless"):
        rungs = climb(run, arm, events(run))
        assert len(rungs.threshold) <= LEVELS + 1
        assert rungs.unknown == 0
        for level in (0, 1, 10, len(rungs.threshold) // 2, -2, -1):
            expected = by_hand(run, arm, rungs.threshold[level])
            assert rungs.wrong[:, level].mean() == pytest.approx(expected["wrong"])
            for name, values in rungs.figures.items():
                assert values[:, level].mean() == pytest.approx(expected[name]), name
        assert rungs.wrong[:, -1].max() == rungs.figures["hit_rate"][:, -1].max() == 0.0


def test_the_arm_that_errs_more_is_held_to_a_higher_threshold_until_both_err_alike(run: Run) -> None:
    requests = events(run)
    careful, careless = climb(run, "skg", requests), climb(run, "careless", requests)
    match = matched("careless", careless, careful, 0)
    as_run = by_hand(run, "skg", -np.inf)
    assert match.wrong == pytest.approx(as_run["wrong"])
    assert match.reference_threshold is None
    assert match.threshold is not None
    assert {name: pair.reference for name, pair in match.figures.items()} == pytest.approx(
        {name: as_run[name] for name in match.figures}
    )
    level = int(np.searchsorted(careless.threshold, match.threshold))
    more, less = (by_hand(run, "careless", careless.threshold[at]) for at in (level - 1, level))
    assert more["wrong"] > match.wrong >= less["wrong"]
    share = (more["wrong"] - match.wrong) / (more["wrong"] - less["wrong"])
    for name, pair in match.figures.items():
        assert pair.arm == pytest.approx(more[name] + share * (less[name] - more[name]))
        assert pair.difference == pytest.approx(pair.arm - pair.reference)
        assert pair.low < pair.difference < pair.high


def test_which_arm_is_the_reference_changes_only_signs(run: Run) -> None:
    requests = events(run)
    a, b = climb(run, "skg", requests), climb(run, "careless", requests)
    forward, backward = matched("a", a, b, 0), matched("b", b, a, 0)
    assert (forward.threshold, forward.reference_threshold) == (backward.reference_threshold, backward.threshold)
    for name, pair in forward.figures.items():
        other = backward.figures[name]
        assert (pair.difference, pair.low, pair.high) == pytest.approx((-other.difference, -other.high, -other.low))


def test_an_arm_against_itself_is_as_it_was_run(run: Run) -> None:
    rungs = climb(run, "skg", events(run))
    match = matched("skg", rungs, rungs, 0)
    assert (match.threshold, match.reference_threshold) == (None, None)
    assert all((pair.difference, pair.low, pair.high) == (0, 0, 0) for pair in match.figures.values())


def test_what_no_arm_asked_the_llm_is_not_guessed(run: Run) -> None:
    requests = events(run)
    alone = climb(run, "skg", requests, Fallbacks.of(requests))
    fell_back = run.turns("skg", ["fallback_to_llm"])["fallback_to_llm"].to_numpy()
    assert alone.unknown == int((~fell_back).sum())
    assert set(alone.figures) == {"hit_rate"}
    assert set(matched("skg", alone, climb(run, "careless", requests), 0).figures) == {"hit_rate"}


def test_an_interval_holds_the_truth_as_often_as_it_says(tmp_path: Path) -> None:
    """Two arms alike but for random draws, one careless; matched in every resample, 95 % covers no difference."""
    rng, inside, trials = np.random.default_rng(3), 0, 100
    for trial in range(trials):
        a, b = _drawn(rng, 40, 0.5), _drawn(rng, 40, 0.2)
        match = matched("a", a, b, trial)
        inside += match.figures["hit_rate"].low <= 0.0 <= match.figures["hit_rate"].high
    assert inside / trials >= 0.88


def _drawn(rng: np.random.Generator, users: int, floor: float) -> Ladder:
    """Users with 60 turns each: scores uniform, right with the score's probability, hits from `floor` on."""
    score = rng.random((users, 60)) + rng.normal(0, 0.1, (users, 1))
    wrong = rng.random((users, 60)) > score
    threshold = np.append(np.linspace(floor, 1.3, 60), np.inf)
    hit = score[:, :, None] >= threshold
    return Ladder(threshold, (hit & wrong[:, :, None]).mean(axis=1), {"hit_rate": hit.mean(axis=1)}, 0)


def test_compare_matches_every_arm_with_hits(run: Run) -> None:
    comparison = compare([run], "skg")
    by_arm = {match.arm: match for match in comparison.matched}
    assert set(by_arm) == {"frozen", "careless"}
    assert set(by_arm["careless"].figures) == {"hit_rate", "correct", "utility"}
    assert by_arm["careless"].figures["hit_rate"].difference < 0 < _difference(comparison, "careless", "hit_rate")
    assert comparison.unmatched == ("never: no answer from memory, nothing to match",)
    nothing = compare([run], "never")
    assert nothing.matched == ()
    assert "never has no answer from memory" in nothing.unmatched[0]


def test_arms_of_another_llm_say_nothing_of_what_this_one_would_have_answered(run: Run, tmp_path: Path) -> None:
    arms = {name: ARMS_OF_THIS[name] for name in ("skg", "careless", "never")}
    other = make_run(tmp_path / "other", users=16, weeks=6, arms=arms)
    compositions = other.manifest["compositions"]
    compositions["never"]["llm"] = {"_target_": "another", "right": 0.1}
    comparison = compare([changed(other, compositions=compositions)], "skg")
    assert [set(match.figures) for match in comparison.matched] == [{"hit_rate"}]
    assert "what the LLM would have answered instead of some hits is not known" in comparison.unmatched[-1]


def _difference(comparison: object, arm: str, metric: str) -> float:
    rows = comparison.rows  # type: ignore[attr-defined]
    return float(next(r.difference.estimate.mean for r in rows if (r.arm, r.metric.name) == (arm, metric)))


def test_matching_is_the_same_for_runs_of_several_seeds(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / f"s{s}", seed=s, users=6, weeks=3, arms=ARMS_OF_THIS) for s in (0, 1)]
    match: Matched = next(candidate for candidate in compare(runs, "skg").matched if candidate.arm == "careless")
    tables = [
        r.turns("careless", ["fallback_to_llm", "answer_correct"]).to_pandas().assign(seed=s)
        for s, r in enumerate(runs)
    ]
    assert (
        match.wrong
        < pd.concat(tables)
        .eval("wrong = ~fallback_to_llm & ~answer_correct")
        .groupby(["seed", "user"])["wrong"]
        .mean()
        .mean()
    )


FORKS = (
    "arms={skg: [policy.threshold=0.2], low: [fork=skg@40, curator=none, policy.threshold=0.2], "
    "high: [fork=skg@40, curator=none, policy.threshold=0.3], never: [policy=never]}"
)


@pytest.mark.usefixtures("bare")
def test_where_nothing_is_learned_the_log_says_what_a_run_with_the_raised_threshold_does(tmp_path: Path) -> None:
    """The premise of it all, in the closed loop: skillbooks are the same, draws are the event's and not the arm's."""
    run = skg_bench.run([
        FORKS, "reference=skg", "profile=smoke", "users=12", "weeks=3", "workers=1", "simulator.volume_spread=0.2",
        f"out={tmp_path / 'run'}",
    ])  # fmt: skip
    low, high, never = (run.turns(arm).to_pandas() for arm in ("low", "high", "never"))
    late = low["turn"] >= 40
    hit, left = ~low["fallback_to_llm"] & late, ~high["fallback_to_llm"] & late
    fell = hit & ~left
    assert fell.sum() > 20
    assert left.sum() > 3
    assert (left == (hit & (low["skill_score"] >= 0.3))).all()
    for column in ("answer_correct", "cost_usd", "latency_ms"):
        assert (high.loc[fell, column] == never.loc[fell, column]).all()
        assert (high.loc[left, column] == low.loc[left, column]).all()


def test_at_equal_errors_the_interval_is_that_of_the_resampled_difference(run: Run) -> None:
    """An arm that errs as the reference in every resample is not held to another threshold."""
    base = climb(run, "skg", events(run))
    better = replace(base, figures={**base.figures, "utility": base.figures["utility"] + base.figures["hit_rate"]})
    pair = matched("better", better, base, 0).figures["utility"]
    means = resampled_means(base.figures["hit_rate"][:, :1], 0, MATCHED_RESAMPLES)
    low, high = (float(percentile(means, p)[0]) for p in (0.025, 0.975))
    assert pair.difference == pytest.approx(base.figures["hit_rate"][:, 0].mean())
    assert (pair.low, pair.high) == pytest.approx((low, high), abs=1e-12)
