"""Labels of a log's answers from memory: bounds, estimates, and for which price of a wrong answer hits pay."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

from skg_bench.analysis.labels.asked_again import NO_CONVERSATIONS
from skg_bench.analysis.labels.hit_pairs import SAME_TEXT
from skg_bench.analysis.labels.label_shares import LabelShare
from skg_bench.analysis.labels.labelled_run import ArmLabels, judged_arms, kept_labels, kept_seed, labelled_run
from skg_bench.analysis.labels.price_decision import decision_words
from skg_bench.analysis.report.tables import Cell
from skg_bench.analysis.report.typeset import DASH, typeset_interval, typeset_value
from skg_bench.runfolder.run import Run


@dataclass(frozen=True, slots=True)
class JudgedRow:
    """An arm that answers from memory, as texts; and numbers for `prices.js`."""

    arm: str
    judged: str
    wrong: Cell
    wrong_or_near: Cell
    logged_wrong: Cell
    excess: Cell
    bound: str  # of excess, nothing assumed and no label
    decision: str
    saving: float  # of a hit
    low: float  # wrong answers of a hit, beyond the log's
    high: float


@dataclass(frozen=True, slots=True)
class JudgedLog:
    """The section of the page."""

    rows: Sequence[JudgedRow]
    n_labels: int
    raters: Sequence[str]  # sentences on who agrees
    again: str  # sentences on users who asked again
    unit: str  # "$", or "calls" of the model
    largest: float  # price at the end of the slider
    command: str  # that draws turns to be judged


def judged_log(run: Run) -> JudgedLog | None:
    """Labels of a run; None where there is nothing to judge: users are simulated, or words or hits are missing."""
    log = run.manifest.get("log")
    if log is None or log["redacted"] or "answer" not in log["knows"] or not judged_arms(run):
        return None
    labelled = labelled_run(run, kept_labels(run), seed=kept_seed(run))
    if not labelled.arms:
        return None
    rows = [_row(arm) for arm in labelled.arms]
    saved = max((row.saving for row in rows if row.saving > 0), default=0.01)
    command = shlex.join(["skg-bench", "data", "label", str(run.path), "--out", "label.csv", "--page", "label.html"])
    return JudgedLog(
        rows,
        labelled.n_labels,
        [each.words for each in labelled.agreements],
        NO_CONVERSATIONS if labelled.again is None else labelled.again.words,
        labelled.arms[0].decision.saving.unit,
        100.0 * saved,
        command,
    )


def _row(arm: ArmLabels) -> JudgedRow:
    shares = arm.shares
    differ = 1.0 - shares.strata[SAME_TEXT] / shares.hits
    return JudgedRow(
        arm=arm.arm,
        judged=f"{shares.judged:,} of {shares.hits:,}",
        wrong=_cell(shares.wrong),
        wrong_or_near=_cell(shares.wrong_or_near),
        logged_wrong=_cell(shares.logged_wrong),
        excess=_cell(shares.excess, signed=True),
        bound=typeset_interval(-differ, differ, "share", signed=True),
        decision=decision_words(arm.decision) if shares.judged else "not known without labels",
        saving=arm.decision.saving.each,
        low=shares.excess.low,
        high=shares.excess.high,
    )


def _cell(share: LabelShare, *, signed: bool = False) -> Cell:
    if isnan(share.mean):
        return Cell(DASH, "")
    return Cell(
        typeset_value(share.mean, "share", signed=signed),
        typeset_interval(share.low, share.high, "share", signed=signed),
    )
