"""Knowers of what is asked, rightness of requests for facts, and causes of what is lost, by arm."""

from dataclasses import dataclass

import numpy as np

from skg_bench.analysis.comparison.seeds import SeedRuns
from skg_bench.app.experiment_report import Table
from skg_bench.simulator.facts.table import KNOWERS, pair_needs
from skg_bench.simulator.facts.waterfall import FACT_CAUSES, fact_losses

COLUMNS = ("arm", "told", "changed", "not told", *(cause.replace("_", " ") for cause in FACT_CAUSES))
KNOWER_COLUMNS = ("corpus", "who can know it", "share of requests", "right without memory")


@dataclass(frozen=True)
class ArmFacts:
    """One arm: shares of right answers, and chances of wrong ones by cause."""

    arm: str
    told: float
    changed: float
    not_told: float
    losses: dict[str, float]

    @property
    def cells(self) -> tuple[str, ...]:
        """Cells under COLUMNS; shares in percent."""
        shares = (f"{100 * share:.1f}" for share in (self.told, self.changed, self.not_told))
        return (self.arm, *shares, *(f"{self.losses[cause]:.1f}" for cause in FACT_CAUSES))


def arm_facts(runs: SeedRuns, arm: str) -> ArmFacts:
    """Counts of an arm over all seeds."""
    turns = runs.turns(arm)
    right = turns["answer_correct"].fill_null(False).to_numpy()
    known, missing = (np.array(turns["need"].to_pylist()) == need for need in ("told", "not_told"))
    changed = known & turns["fact_changed"].to_numpy()
    world = runs.config["simulator"]
    guesses = max(0.0, 1.0 - world["asks_back"] - world["declines"])
    losses = fact_losses(turns, runs.updates(arm), runs.feedback(arm), pair_needs(world["facts"]), guesses)
    shares = [float(right[mask].mean()) if mask.any() else 0.0 for mask in (known, changed, missing)]
    return ArmFacts(arm, shares[0], shares[1], shares[2], losses)


def cause_table(corpus: str, runs: SeedRuns) -> Table:
    """Rightness and causes of all arms on a corpus."""
    rows = [arm_facts(runs, arm).cells for arm in runs.arms]
    return Table(f"Requests for facts on {corpus}: right, in percent, and wrong by cause", COLUMNS, rows)


def knowers(corpus: str, runs: SeedRuns, arm: str) -> list[tuple[str, ...]]:
    """Cells under KNOWER_COLUMNS of an arm without a memory."""
    turns = runs.turns(arm, ["known_by", "need", "answer_correct"])
    knower, need = (np.array(turns[name].to_pylist(), dtype=object) for name in ("known_by", "need"))
    right = turns["answer_correct"].fill_null(False).to_numpy()
    requests = (knower != "telling").sum()
    masks = {name: knower == name for name in KNOWERS if name != "user"}
    masks["the user, who told it"] = (knower == "user") & (need == "told")
    masks["the user, who never told it, or ended it"] = (knower == "user") & (need == "not_told")
    return [
        (corpus, name, f"{100 * mask.sum() / requests:.1f} %", f"{100 * right[mask].mean():.1f} %")
        for name, mask in masks.items()
        if mask.any()
    ]
