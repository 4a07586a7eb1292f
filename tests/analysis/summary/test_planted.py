"""Planted defects: each moves its own bar of the waterfall, and no other.

A bar is moved if the 95 % interval of the paired difference to the arm without the defect lies above 0. It is not moved
if that interval lies within a tenth of the move of the defect's own bar: fewer right hits have a lower price, and what
was never captured cannot expire. The policy's two bars are told apart: recency ignored lets another skill win (score),
leaked ratings push right skills below the threshold. A leak that changed the order of skills as well would move both.
"""

import json
from dataclasses import replace
from typing import Any

import pytest

from skg_bench.analysis import summary
from skg_bench.analysis.summary.losses import ORDER
from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare
from skg_bench.engine import execute as engine
from skg_bench.launcher.local import Local
from skg_bench.runfolder import schema
from skg_bench.runfolder.run import Run
from tests.analysis.planted import WORLD, laboratory, planted
from tests.runs import save

USERS = 60
BARS = {
    "stale_cache": "staleness",
    "captures_lost": "capture",
    "recency_ignored": "score",
    "ratings_leaked": "threshold",
    "router_blind": "routing",
}


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the summary of a run of all of them says."""
    composed = compose([*WORLD, f"users={USERS}"])
    made = prepare(composed).plan
    base = laboratory(made.arms[0])
    arms = (base, *planted(base).values())
    out, root = tmp_path_factory.mktemp("planted"), composed.root
    known = {"schema": schema.SCHEMA_VERSION, "arms": [arm.name for arm in arms], "config": root, "compositions": {}}
    save(out, known | {k: root[k] for k in ("question", "seed", "users", "weeks")})
    engine.execute(
        replace(made, arms=arms), out, cohort=512, workers=1, launcher=Local(), progress=lambda _done, _total: None
    )
    content: dict[str, Any] = json.loads(summary.describe(Run(out))[0].to_json())
    return content


def test_without_a_defect_what_is_lost_could_not_be_helped_by_a_skillbook(figures: dict[str, Any]) -> None:
    losses = figures["waterfall"]["base"]["losses"]
    assert figures["arms"]["base"]["hit_rate"]["mean"] > 0.3
    assert losses["routing"]["mean"] == losses["policy"]["mean"] == losses["wrong_source"]["mean"] == 0
    assert losses["capture"]["mean"] + losses["staleness"]["mean"] < 0.05 * losses["novelty"]["mean"]


@pytest.mark.parametrize(("defect", "bar"), BARS.items())
def test_a_planted_defect_moves_its_own_bar_and_no_other(figures: dict[str, Any], defect: str, bar: str) -> None:
    moved = figures["waterfall"][defect]["differences"]
    assert moved[bar]["low"] > 0
    assert moved[bar]["low_new"] > 0
    slack = moved[bar]["mean"] / 10
    for other in set(ORDER) - {bar}:
        assert -slack < moved[other]["low"] <= moved[other]["high"] < slack, other
    assert moved["novelty"]["low"] == moved["novelty"]["high"] == 0  # what cannot be known is the same for all


def test_what_the_defects_cost_is_what_their_bars_say(figures: dict[str, Any]) -> None:
    base = figures["arms"]["base"]["utility"]["mean"]
    for defect, bar in BARS.items():
        lost = base - figures["arms"][defect]["utility"]["mean"]
        assert figures["waterfall"][defect]["differences"][bar]["mean"] == pytest.approx(lost, rel=0.1)
