"""The experiment on memories of facts: its claims, its sweep, and a small run on both corpora."""

from pathlib import Path

import numpy as np
import pytest

from experiments.facts.analysis import analyse, unexpected
from experiments.facts.played import cpu_minutes, overrides_of
from experiments.facts.worths import CONTROLS, MEMORIES, Worth, random_effects, verdict
from skg_bench.analysis.comparison.over_corpora import DEPENDS
from skg_bench.app.readmes import tables
from skg_bench.core.errors import UsageError
from tests.imports import ROOT

KEEPS = MEMORIES[4]
SHAM = CONTROLS[2]
BETTER, WORSE, OPEN = Worth(0.2, 0.1, 0.3, "utility"), Worth(-0.2, -0.3, -0.1, "utility"), Worth(0.0, -1, 1, "utility")


def test_a_small_run_tells_who_can_know_and_what_the_oracle_gains(tmp_path: Path) -> None:
    report = analyse(
        ["embedder=hashing", "simulator.users.volume_spread=0.2"],
        corpus=["built-in"],
        seeds=2,
        users=4,
        weeks=2,
        out=tmp_path,
        arm=["never", "facts_oracle"],
    )
    table, memories, _, causes = (part for part in report.parts if not isinstance(part, str))
    assert [row[1] for row in table.rows][:2] == ["world", "device"]
    assert [row[0] for row in memories.rows] == ["facts_oracle - never"]
    never, oracle = (dict(zip(causes.headings, row, strict=True)) for row in causes.rows)
    assert float(never["told"]) <= 10 < 80 < float(oracle["told"])
    assert oracle["told not kept"] == oracle["outdated"] == "0.0" != never["told not kept"]
    assert "2 seeds of 4 users and 2 weeks" in report.page


def test_cpu_minutes_grow_with_users_and_runs() -> None:
    small, large = (overrides_of("built-in", ["never"], [f"users={n}", "weeks=8"]) for n in (50, 500))
    assert cpu_minutes(small, 4) == pytest.approx(4 * cpu_minutes(small, 1))
    assert cpu_minutes(large, 1) > cpu_minutes(small, 1)


def test_an_unknown_corpus_is_refused_with_the_valid_ones() -> None:
    with pytest.raises(UsageError, match="--corpus sgd: valid are built-in, clinc150"):
        overrides_of("sgd", (), ())


def test_on_clinc150_arms_keep_its_facts() -> None:
    arms = overrides_of("clinc150", ["keeps", "sham"], ())[2]
    assert arms.count("facts_clinc150") == 2


def test_equal_seeds_have_the_error_of_their_weights_and_unequal_ones_a_wider_one() -> None:
    equal = random_effects(np.full(4, 0.1), np.full(4, 0.02))
    assert equal[0] == pytest.approx(0.1)
    assert equal[2] - equal[1] == pytest.approx(2 * 3.1824 * 0.01, rel=1e-3)  # t of 3 degrees of freedom, 0.02 / 2
    spread = random_effects(np.array([0.0, 0.2, 0.0, 0.2]), np.full(4, 0.02))
    assert spread[0] == pytest.approx(0.1)
    assert spread[2] - spread[1] > 3 * (equal[2] - equal[1])
    assert random_effects(np.zeros(3), np.zeros(3)) == (0, 0, 0)


def test_intervals_over_seeds_hold_the_truth_as_often_as_they_say() -> None:
    rng, held = np.random.default_rng(1), 0
    for _ in range(2000):
        means = 0.05 + rng.normal(0, 0.02, 5) + rng.normal(0, 0.02, 5)
        _, low, high = random_effects(means, np.full(5, 0.02))
        held += low <= 0.05 <= high
    assert 0.93 <= held / 2000 <= 0.99


def test_a_claim_whose_sign_differs_between_corpora_depends_on_the_corpus() -> None:
    other = Worth(-0.01, -0.2, 0.1, "utility")
    assert verdict({"a": BETTER, "b": BETTER}) == "better"
    assert verdict({"a": BETTER, "b": WORSE}) == verdict({"a": BETTER, "b": other}) == DEPENDS
    assert verdict({"a": BETTER, "b": Worth(0.01, -1, 1, "utility")}) == "better on a, open on b"
    assert verdict({"a": OPEN, "b": other}) == "open"


@pytest.mark.parametrize(
    ("claim", "each", "says"),
    [(KEEPS, (BETTER, OPEN), 0), (KEEPS, (OPEN, OPEN), 1), (KEEPS, (BETTER, WORSE), 1), (SHAM, (OPEN, WORSE), 0),
     (SHAM, (OPEN, BETTER), 1)],
)  # fmt: skip
def test_verdicts_that_were_not_expected_are_told(claim, each, says: int) -> None:  # type: ignore[no-untyped-def]
    assert len(unexpected({"a": {claim: each[0]}, "b": {claim: each[1]}})) == says


def test_the_readme_is_right_that_no_share_turns_a_verdict() -> None:
    (table,) = tables((ROOT / "reports" / "facts_sweep.md").read_text("utf-8"))
    claims, shares = ({row[at] for row in table.rows} for at in (0, 1))
    assert (len(claims), len(shares), len(table.rows)) == (6, 5, 30)
    assert {row[-1] for row in table.rows} == {"no"}
    readme = " ".join((ROOT / "experiments" / "facts" / "README.md").read_text("utf-8").split())
    assert "No value that was tried of five shares that nobody knows turns one of six verdicts" in readme
