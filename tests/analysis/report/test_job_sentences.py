"""What the head of the page says of learning jobs, and the figures behind it."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import skg_bench
from skg_bench.analysis import summary
from skg_bench.analysis.report.job_sentences import learning_sentences
from skg_bench.analysis.summary.job_outcomes import LearningJobs, learning_jobs

JOBS = LearningJobs({"applied": 30, "unchanged": 6}, 41, 0, 90_000, 1.234, ["toy, json_schema"])


def sentence(jobs: LearningJobs) -> tuple[str, str]:
    """Text and tone."""
    (said,) = learning_sentences(cast("Any", SimpleNamespace(learning={"model": jobs})), "model")
    return said.text, said.tone


def test_jobs_are_counted_by_how_they_ended_with_what_they_cost() -> None:
    text = (
        "model had 36 learning jobs (30 applied, 6 unchanged); by the prices of its configuration they cost 1.23 USD."
    )
    assert sentence(JOBS) == (text, "plain")


def test_refused_operations_are_counted() -> None:
    assert "unchanged); 5 proposed operations were refused; by the prices" in sentence(replace(JOBS, refused=5))[0]


@pytest.mark.parametrize("result", ["timed_out", "invalid", "error"])
def test_jobs_that_came_to_nothing_are_a_caution_about_the_arm(result: str) -> None:
    text, tone = sentence(replace(JOBS, results={"applied": 30, result: 10}))
    assert tone == "caution"
    assert f"(30 applied, 10 {result.replace('_', ' ')}); 25% came to nothing, so that this arm says little" in text


def test_one_job_that_cost_little_is_no_plural_and_not_free() -> None:
    text, _ = sentence(replace(JOBS, results={"refused": 1}, refused=1, cost_usd=0.00082))
    begins = "model had 1 learning job (1 refused); 1 proposed operation was refused"
    assert text == f"{begins}; by the prices of its configuration it cost 0.00082 USD."


def test_where_prices_are_not_known_or_0_learning_is_not_said_to_cost_nothing() -> None:
    text, _ = sentence(replace(JOBS, cost_usd=0.0))
    assert text.endswith("; its prices are 0 or not known, so that utility pays nothing for 90,000 tokens.")


def test_the_figures_are_sums_over_the_log_of_jobs(tmp_path: Path) -> None:
    arms = "arms={model: [curator=reflecting], never: [policy=never, curator=none]}"
    model = "curator.llm.script=obedient"
    run = skg_bench.run(["curator=reflecting", model, arms, "users=3", "weeks=1", "serving=prompted", "reference=never",
                         f"out={tmp_path / 'run'}"])  # fmt: skip
    rows = run.learning("model").to_pylist()
    jobs = summary.read_summary(run).learning["model"]
    assert learning_jobs(run, "never") is None
    assert jobs.results == Counter(row["result"] for row in rows)
    assert sum(jobs.results.values()) == len(rows) > 10
    assert (jobs.operations, jobs.refused) == tuple(
        sum(row[name] for row in rows) for name in ("operations", "refused")
    )
    assert jobs.tokens == sum(row["tokens_in"] + row["tokens_out"] for row in rows)
    assert jobs.cost_usd == pytest.approx(sum(row["cost_usd"] for row in rows))
    assert jobs.served == ()  # a script is no server
