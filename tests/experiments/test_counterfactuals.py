"""Placebos are accepted by equivalence within a margin, and measured from where their arms part."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from experiments.counterfactuals.analysis import analyse
from skg_bench.analysis.comparison.contrasts import MARGINS, contrast_verdict, contrasts, findings, parting
from skg_bench.analysis.statistics.intervals import Estimate
from skg_bench.app.api import run as simulate
from skg_bench.app.compose import compose
from skg_bench.core.errors import UsageError
from skg_bench.core.package import CONF
from skg_bench.runfolder import schema
from skg_bench.runfolder.run import Run
from tests.runs import save


def estimate(mean: float, se: float) -> Estimate:
    return Estimate(mean, se / 2, 99, se, 99, 100, 0)


@pytest.mark.parametrize(
    ("mean", "se", "expected"),
    [
        (0.001, 0.001, "equivalent"),
        (0.003, 0.001, "equivalent"),  # and different from 0
        (0.0, 0.0, "equivalent"),
        (0.001, 0.01, "inconclusive"),  # its interval contains 0
        (0.006, 0.003, "inconclusive"),
        (0.02, 0.003, "not equivalent"),
        (-0.02, 0.003, "not equivalent"),
        (0.02, 0.0, "not equivalent"),
    ],
)
def test_a_difference_is_equivalent_to_nothing_only_if_it_is_shown_to_lie_within_the_margin(
    mean: float, se: float, expected: str
) -> None:
    p, outcome = contrast_verdict(estimate(mean, se), 0.005)
    assert outcome == expected
    assert (p < 0.05) == (expected == "equivalent")


def test_chance_alone_is_found_equivalent_at_most_at_the_nominal_rate_at_the_margin_itself() -> None:
    rng, count = np.random.default_rng(0), 0
    for _ in range(2000):
        d = rng.normal(0.005, 0.02, 60)
        e = Estimate(d.mean(), 0.0, 59, float(d.std(ddof=1)) / 60**0.5, 59, 60, 0)
        count += contrast_verdict(e, 0.005)[1] == "equivalent"
    assert count / 2000 < 0.065


def test_every_arm_of_a_contrast_is_in_the_experiment_and_every_arm_is_in_a_contrast() -> None:
    experiment = yaml.safe_load((CONF / "experiment" / "counterfactuals.yaml").read_text("utf-8"))
    arms, named = (
        set(experiment["arms"]),
        {contrast[side] for contrast in experiment["contrasts"] for side in ("arm", "reference")},
    )
    assert arms - named == {"plain", "never"}  # plain is forked from; never is in every report


def test_a_contrast_begins_where_its_arms_part(tmp_path: Path) -> None:
    composed = compose(["experiment=counterfactuals"])
    manifest = {"schema": schema.SCHEMA_VERSION, "compositions": composed.arms, "config": composed.root}
    save(tmp_path, manifest)
    run = Run(tmp_path)
    begins = {f"{contrast.arm}-{contrast.reference}": parting(run, contrast) for contrast in contrasts(run)}
    assert begins["sham-frozen_100"] == begins["skg-sham"] == begins["plain_copies-plain_frozen"] == 100
    assert begins["skg-masked"] == begins["skg-without"] == 0


@pytest.fixture(scope="module")
def small(once: Callable[..., Path]) -> Run:
    """The exact placebo and one that is not, small."""
    whole = yaml.safe_load((CONF / "experiment" / "counterfactuals.yaml").read_text("utf-8"))["arms"]
    wanted = ("skg", "frozen_100", "sham", "plain", "plain_frozen", "plain_copies")
    arms: dict[str, Any] = {name: [text.replace("100", "15") for text in whole[name]] for name in wanted}
    entries = (
        "{kind: nothing by construction, arm: plain_copies, reference: plain_frozen, asks: copies},"
        "{kind: control, arm: sham, reference: frozen_100, asks: random turns}"
    )
    words = [
        f"arms={json.dumps(arms)}", f"contrasts=[{entries}]", "reference=skg", "users=12", "workers=1", "weeks=2",
        "simulator.rated_share=0.6", "utility.offer=0", "simulator.volume_spread=0.2", "simulator.day_spread=0.2",
    ]  # fmt: skip
    return Run(once("counterfactuals", lambda folder: simulate([*words, f"out={folder}"])))


def test_copies_of_skills_change_nothing_and_random_captures_do(small: Run) -> None:
    by_arm = {(finding.contrast.arm, finding.metric.name): finding for finding in findings(small)}
    for metric in MARGINS:
        exact = by_arm["plain_copies", metric]
        assert (exact.estimate.mean, exact.estimate.se, exact.verdict) == (0, 0, "equivalent")
        assert exact.p == 0.5**12  # of the sign test of 12 users
    assert by_arm["sham", "hit_rate"].estimate.mean > 0


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ('[{kind: effect, arm: skg, reference: nevr, asks: ""}]', "'nevr' is no arm"),
        ('[{kind: magic, arm: skg, reference: never, asks: ""}]', "kinds are"),
        ("[{arm: skg, reference: never}]", "exactly the keys kind, arm, reference, asks"),
    ],
)
def test_a_contrast_that_cannot_be_is_refused(entry: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        compose([f"contrasts={entry}"])


def test_a_run_that_names_no_contrasts_is_refused(tmp_path: Path) -> None:
    other = simulate(
        ["arms={skg: [], never: [policy=never]}", "users=2", "workers=1", "weeks=1", f"out={tmp_path / 'run'}"]
    )
    with pytest.raises(UsageError, match="names no contrasts; make a run that does: skg-bench run experiment=counterf"):
        analyse(other)
