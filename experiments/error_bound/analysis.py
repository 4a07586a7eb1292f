"""Errors per request and the ceiling of warm-up of a run of `error_bound`."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from skg_bench.analysis.statistics.inference import PairedT, paired_t
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment, OneRun
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64
from skg_bench.runfolder.run import Run

COMMAND = "skg-bench run experiment=error_bound profile=demo; skg-bench experiment error_bound RUN --write reports"
COLUMNS = ("arm", "delta", "hits", "wrong", "of hits", "could be hits")


@dataclass(frozen=True)
class Line:
    """One arm; means over users of shares of their requests."""

    arm: str
    delta: float | None  # what its policy promises, None: nothing
    hits: PairedT
    wrong: PairedT  # answered from the skillbook, and wrongly
    of_hits: float  # of all hits
    ceiling: PairedT | None  # requests whose nearest skill was compared often enough; None: it does not compare

    @property
    def holds(self) -> bool:
        """Is the error per request not shown to be above what is promised?"""
        return self.delta is None or self.wrong.limit(0.025) <= self.delta


def lines(run: Run) -> list[Line]:
    """All arms, in the order of the run."""
    return [_line(run, arm) for arm in run.arms]


def _line(run: Run, arm: str) -> Line:
    turns = run.turns(arm).select(["user", "turn", "fallback_to_llm", "skill_correct", "shortlist", "agrees"])
    user = turns["user"].to_numpy()
    hit = ~turns["fallback_to_llm"].to_numpy()
    wrong = hit & ~turns["skill_correct"].fill_null(False).to_numpy()
    policy = run.manifest["compositions"][arm]["policy"]
    least = policy.get("least")
    ceiling = None if least is None else paired_t(_means(user, _compared(run, arm) >= least))
    return Line(
        arm, policy.get("delta"), paired_t(_means(user, hit)), paired_t(_means(user, wrong)),
        float(wrong.sum() / max(hit.sum(), 1)), ceiling,
    )  # fmt: skip


def _means(user: np.ndarray, value: np.ndarray) -> F64:
    """Mean of each user."""
    _, row = np.unique(user, return_inverse=True)
    mean: F64 = np.bincount(row, value) / np.bincount(row)
    return mean


def _compared(run: Run, arm: str) -> np.ndarray:
    """Number of times, at each turn, that the nearest skill had been compared since its answer was stored."""
    updates = run.updates(arm).select(["user", "turn", "op", "skill"]).to_pylist()
    stored = {(u["user"], u["turn"], u["skill"]) for u in updates if u["op"] in ("ADD", "UPDATE")}
    renewed: dict[tuple[int, int], list[int]] = {}
    for u, t, skill in sorted(stored):
        renewed.setdefault((u, t), []).append(skill)
    counts: Counter[tuple[int, int]] = Counter()
    comparisons = []
    for turn in run.turns(arm).select(["user", "turn", "shortlist", "agrees"]).to_pylist():
        u, nearest = turn["user"], turn["shortlist"][0]
        comparisons.append(counts[u, nearest] if nearest >= 0 else 0)
        if turn["agrees"] is not None:
            counts[u, nearest] += 1
        for skill in renewed.get((u, turn["turn"]), ()):
            counts[u, skill] = 0
    return np.array(comparisons)


def table(arm_lines: list[Line]) -> list[tuple[str, ...]]:
    """Cells under COLUMNS, in percent with 95 % intervals."""

    def share(t: PairedT | None) -> str:
        if t is None:
            return ""
        return f"{100 * t.mean:.2f} ({100 * t.limit(0.025):.2f} to {100 * t.limit(0.975):.2f})"

    return [
        (line.arm, "" if line.delta is None else f"{100 * line.delta:g}", share(line.hits), share(line.wrong),
         f"{100 * line.of_hits:.0f}", share(line.ceiling))
        for line in arm_lines
    ]  # fmt: skip


def analyse(run: OneRun) -> Report:
    """Analyses a run of `error_bound`; as expected if no arm is shown to err more than it promises."""
    arm_lines = lines(run)
    if all(line.delta is None for line in arm_lines):
        raise UsageError(f"no arm of {run.path} has policy=vcache; run experiment=error_bound")
    shown = Table("Requests, in percent: mean over users, 95 %", COLUMNS, table(arm_lines))
    broken = [line.arm for line in arm_lines if not line.holds]
    words = f"promised and broken: {', '.join(broken)}" if broken else "No arm is shown to err more than it promises."
    about = "In percent of requests: means over users, 95 % intervals by user."
    text = page("Errors per request", COMMAND, about, shown.markdown())
    return Report([shown, words], text, holds=not broken)


EXPERIMENT = Experiment(analyse)
