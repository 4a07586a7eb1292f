"""The controls of an experiment: arms that exist, figures that agree with one another, a best arm that may be one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from experiments.controls.analysis import (
    CAPTURED,
    ORACLES,
    REFERENCE,
    RIVALS,
    analyse,
    best,
    pairs,
    rows,
    thresholds,
)
from skg_bench.app.api import run as simulate
from skg_bench.core.errors import UsageError
from skg_bench.core.package import CONF
from skg_bench.runfolder.run import Run

FORK = 20
WANTED = (
    "skg", "never", *RIVALS, "matched_random", "repeat_last", "thompson", "lru", "oracle_router", "captured",
    "captured_centroid", "captured_frequency", "threshold_40", "threshold_80", "rag", "skg_prompted", "cache_60",
    "exp4", "linucb",
)  # fmt: skip


def whole() -> dict[str, list[str]]:
    arms: dict[str, list[str]] = yaml.safe_load((CONF / "experiment" / "controls.yaml").read_text("utf-8"))["arms"]
    return arms


@pytest.fixture(scope="module")
def small(once: Callable[..., Path]) -> Run:
    arms: dict[str, Any] = {
        name: [
            text.replace("200", str(FORK)).replace("0.023", "0.2").replace("capacity=5", "capacity=2")
            for text in whole()[name]
        ]
        for name in WANTED
    }
    words = [
        f"arms={json.dumps(arms)}", "reference=skg", "users=6", "workers=1", "weeks=1", "simulator.rated_share=0.8",
        "simulator.volume_spread=0", "simulator.day_spread=0",
        "simulator.concentration=3", "simulator.accept=0.95", "simulator.accept_one_off=0.6", "policy.threshold=0.5",
    ]  # fmt: skip
    return Run(once("controls", lambda folder: simulate([*words, f"out={folder}"])))


def test_the_arms_that_the_analysis_names_are_in_the_experiment() -> None:
    assert {REFERENCE, CAPTURED, "never", *ORACLES, *RIVALS} <= set(whole())
    assert sum(name.startswith("captured_") for name in whole()) == 3


def test_a_run_without_the_arms_is_refused(tmp_path: Path) -> None:
    few = simulate([
        "arms={skg: [], never: [policy=never, curator=none]}", "reference=skg", "users=4", "workers=1", "weeks=1",
        f"out={tmp_path / 'few'}",
    ])  # fmt: skip
    with pytest.raises(UsageError, match="has no arm 'exact_match'; it has skg, never"):
        analyse(few)


@pytest.mark.req("K26")
def test_static_retrieval_asks_the_llm_every_time_and_hears_no_rating(tmp_path: Path) -> None:
    runs = []
    for share in ("0.0", "0.9"):
        arms = json.dumps({name: whole()[name] for name in ("skg", "rag")})
        runs.append(simulate([
            f"arms={arms}", "reference=skg", "users=3", "workers=1", "weeks=1", f"simulator.rated_share={share}",
            "simulator.concentration=3", f"out={tmp_path / share}",
        ]))  # fmt: skip
    shown = ["fallback_to_llm", "matched_skill", "max_sim", "skill_score", "tokens_in", "tokens_out", "book_size"]
    deaf, hearing = (run.turns("rag", shown).to_pandas() for run in runs)
    pd.testing.assert_frame_equal(deaf, hearing)
    assert (hearing.tokens_out > 0).all()
    assert 0.1 < (~hearing.fallback_to_llm).mean() < 0.9
    assert runs[1].feedback("rag").num_rows > runs[0].feedback("rag").num_rows


def test_figures_are_those_of_the_summary_and_the_best_arm_learns_and_knows_no_truth(small: Run) -> None:
    summary = json.loads((small.path / "summary.json").read_text("utf-8"))
    arm_rows = rows(small)
    assert [row.arm for row in arm_rows] == small.arms
    for row in arm_rows:
        assert row.means["utility"].mean == pytest.approx(summary["arms"][row.arm]["utility"]["mean"])
        if row.against is None:
            assert row.arm == REFERENCE
        else:
            expected = summary["differences"][row.arm]["utility"]["mean"]
            assert row.against.estimate.mean == pytest.approx(expected)
    chosen = best(arm_rows)
    allowed = {"skg", "matched_random", "repeat_last", "thompson", "lru", "threshold_40", "threshold_80", "rag"}
    utility = {row.arm: row.means["utility"].mean for row in arm_rows if row.means["hit_rate"].mean > 0}
    assert chosen == max(allowed & set(utility), key=lambda arm: utility[arm])


def test_the_best_threshold_in_hindsight_is_that_of_the_largest_utility(small: Run) -> None:
    ranking = thresholds(small, rows(small))
    assert sorted(t for t, _ in ranking) == [0.4, 0.5, 0.8]
    utility = [row.means["utility"].mean for _, row in ranking]
    assert utility == sorted(utility, reverse=True)


def test_the_difference_at_one_error_rate_is_the_one_whose_interval_for_new_requests_is_given(small: Run) -> None:
    matches, unmatched = pairs(small, "threshold_40")
    assert {(match.arm, match.rival, match.since) for match in matches} >= {
        ("threshold_40", "frequency", 0), ("threshold_40", "centroid", 0), ("captured", "captured_centroid", FORK),
    }  # fmt: skip
    raised = 0
    for match in matches:
        assert match.new.mean == pytest.approx(match.found.figures["utility"].difference, abs=1e-9)
        assert match.new.withheld or not np.isnan(match.new.se_new)
        assert match.found.unknown == 0
        raised += match.found.threshold is not None or match.found.reference_threshold is not None
    assert raised
    reasons = {tuple(why.partition(":")[0].split(", ")) for why in unmatched}
    assert not reasons & {(match.arm, match.rival) for match in matches}
    assert len(reasons) + len(matches) == 8  # two arms, three rivals; two on the same captures


def test_from_a_turn_that_nobody_reaches_there_is_nothing_to_compare(small: Run) -> None:
    made = small.manifest["compositions"]
    longer = {arm: {**node, "fork": node["fork"] and "skg@9999"} for arm, node in made.items()}
    short = Run(small.path)
    short.manifest["compositions"] = longer
    with pytest.raises(UsageError, match="no user has more than 9999 turns"):
        pairs(short, "threshold_40")


def test_the_tables_are_on_the_page(small: Run) -> None:
    text = analyse(small).page
    assert "\nBest threshold in hindsight" in text
    assert "\n## At the same error rate\n\n" in text


def test_hits_are_as_many_as_the_rate_that_was_asked_for_says(small: Run) -> None:
    for arm in ("matched_random", "repeat_last"):
        turns = small.turns(arm, ["fallback_to_llm", "propensity"]).to_pandas()
        some = turns[turns["propensity"] < 1.0]
        hit = 1.0 - some["fallback_to_llm"].mean()
        assert len(some) > 200
        assert abs(hit - 0.2) < 5 * (0.2 * 0.8 / len(some)) ** 0.5


def test_a_cache_keeps_to_its_budget_in_a_run(small: Run) -> None:
    assert small.turns("lru", ["book_size"])["book_size"].to_numpy().max() == 2
    assert small.turns("skg", ["book_size"])["book_size"].to_numpy().max() > 2
    assert "evicted" in small.updates("lru", ["reason"])["reason"].to_pylist()
