"""Rightness of requests for facts, and causes of what is lost, by arm of a run of `facts`."""

from dataclasses import dataclass

import numpy as np

from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment, OneRun
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from skg_bench.simulator.facts.table import pair_needs
from skg_bench.simulator.facts.waterfall import FACT_CAUSES, fact_losses

COMMAND = "skg-bench run experiment=facts users=16 weeks=8; skg-bench experiment facts RUN --write reports"
COLUMNS = ("arm", "told", "changed", "not told", *(cause.replace("_", " ") for cause in FACT_CAUSES))
MOST_WITHOUT_MEMORY = 0.1  # of told facts that are answered rightly


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


def arm_facts(run: Run, arm: str) -> ArmFacts:
    """Counts of an arm."""
    turns = run.turns(arm)
    right = turns["answer_correct"].fill_null(False).to_numpy()
    known, missing = (np.array(turns["need"].to_pylist()) == need for need in ("told", "not_told"))
    changed = known & turns["fact_changed"].to_numpy()
    file = run.manifest["config"]["simulator"]["facts"]
    losses = fact_losses(turns, run.updates(arm), run.feedback(arm), pair_needs(file))
    shares = [float(right[mask].mean()) if mask.any() else 0.0 for mask in (known, changed, missing)]
    return ArmFacts(arm, shares[0], shares[1], shares[2], losses)


def analyse(run: OneRun) -> Report:
    """Analyses a run of `facts`; as expected if without a memory at most a tenth of told facts is answered rightly."""
    if run.manifest["domain"]["name"] != "facts":
        raise UsageError(f"{run.path} has no facts; run experiment=facts")
    lines = [arm_facts(run, arm) for arm in run.arms]
    shown = Table("Requests for facts: right, in percent, and wrong by cause", COLUMNS, [line.cells for line in lines])
    (never,) = (line for line in lines if line.arm == run.manifest["config"]["reference"])
    holds = never.told <= MOST_WITHOUT_MEMORY
    words = f"Without a memory {100 * never.told:.1f} % of told facts are answered rightly."
    about = "Right answers in percent of requests; wrong ones as sums of their chances, by the first link that failed."
    return Report([shown, words], page("A memory of facts", COMMAND, about, shown.markdown()), holds=holds)


EXPERIMENT = Experiment(analyse)
