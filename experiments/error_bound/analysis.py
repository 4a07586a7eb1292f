"""Errors per request and the ceiling of warm-up of a run of `error_bound`."""

import argparse
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from skg_bench.analysis.statistics.inference import PairedT, paired_t
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64
from skg_bench.core.run import Run

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
    """For each turn, how often the nearest skill had been compared since its answer was stored."""
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


def markdown(arm_lines: list[Line]) -> str:
    """The table as a report."""
    rows = [COLUMNS, ("---",) * len(COLUMNS), *table(arm_lines)]
    text = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return f"# Errors per request\n\nIn percent of requests: means over users, 95 % intervals by user.\n\n{text}"


def _of(run: Path) -> list[Line]:
    arm_lines = lines(Run(run))
    if all(line.delta is None for line in arm_lines):
        raise UsageError(f"no arm of {run} has policy=vcache; run experiment=error_bound")
    return arm_lines


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 if an arm is shown to err more than it promises, 2 for a run of another experiment."""
    parser = argparse.ArgumentParser(prog="python -m experiments.error_bound.analysis", description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--write", type=Path, help="also write the table here, as markdown")
    given = parser.parse_args(arguments)
    try:
        arm_lines = _of(given.run)
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    shown = Table(*COLUMNS, title="Requests, in percent: mean over users, 95 %")
    for cells in table(arm_lines):
        shown.add_row(*cells)
    Console(width=140).print(shown)
    if given.write:
        given.write.write_text(markdown(arm_lines), "utf-8")
    broken = [line.arm for line in arm_lines if not line.holds]
    print(f"promised and broken: {', '.join(broken)}" if broken else "No arm is shown to err more than it promises.")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
