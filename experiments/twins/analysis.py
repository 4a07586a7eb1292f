"""Memories in three twins: what each gains where tasks, families of tasks, or neither come back."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, get_args

import typer

import skg_bench
from skg_bench.analysis.comparison.compare import ComparisonRow, compare
from skg_bench.analysis.counts.wording import interval, number
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment, Folder
from skg_bench.runfolder.measured_run import measured_run
from skg_bench.runfolder.run import Run
from skg_bench.simulator.gym.twins import Reuse

COMMAND = "skg-bench experiment twins --write reports"
REFERENCE = "never"
GAINS: Mapping[str, Sequence[Reuse]] = {  # twins in which an arm is expected to gain
    "everything": ("entry",),
    "answers": ("entry",),
    "procedures": ("entry", "family"),
}
SHARES = ("first_time", "transfer", "retention")
HEAD = (
    "comes back", "arm", "solved", "solved - never", "new messages", "at first", "transfer", "retention",
    "tokens read a message",
)  # fmt: skip


@dataclass(frozen=True)
class Twins:
    """Figures of the arms against the one without a memory, in each twin."""

    runs: Mapping[Reuse, Run]
    rows: Mapping[tuple[Reuse, str, str], ComparisonRow]  # by twin, arm and metric

    @staticmethod
    def of(runs: Mapping[Reuse, Run]) -> "Twins":
        """Figures of a run for each twin."""
        rows = {
            (reuse, row.arm, row.metric.name): row
            for reuse, run in runs.items()
            for row in compare([measured_run(run)], REFERENCE).rows
        }
        return Twins(runs, rows)

    def gain(self, reuse: Reuse, arm: str) -> tuple[float, float, float]:
        """Difference to the arm without a memory in the share of solved tasks, and its interval."""
        estimate = self.rows[reuse, arm, "solved"].difference.estimate
        low, high = estimate.interval(new=True)
        return estimate.mean, low, high

    def table(self) -> Table:
        """Table of what each memory gains."""
        rows = []
        for reuse, run in self.runs.items():
            for arm in run.arms:
                gain = ("-", "-")
                if arm != REFERENCE:
                    mean, low, high = self.gain(reuse, arm)
                    gain = number(mean, "share", signed=True), interval(low, high, "share", signed=True)
                tokens = run.turns(arm, ["tokens_in"]).to_pandas()["tokens_in"].mean()
                shares = (self._share(reuse, arm, name) for name in SHARES)
                rows.append((reuse, arm, self._share(reuse, arm, "solved"), *gain, *shares, f"{tokens:,.0f}"))
        sizes = next(iter(self.runs.values())).manifest
        return Table(f"Twins, {sizes['users']} users, {sizes['weeks']} weeks", HEAD, rows)

    def _share(self, reuse: Reuse, arm: str, metric: str) -> str:
        row = self.rows.get((reuse, "answers" if arm == REFERENCE else arm, metric))
        if row is None:
            return "-"
        return number(row.reference_mean if arm == REFERENCE else row.mean, "share")

    def unexpected(self) -> list[str]:
        """Sentences on gains that are not as expected."""
        lines = []
        for reuse in self.runs:
            for arm, where in GAINS.items():
                mean, low, _ = self.gain(reuse, arm)
                if (low > 0) != (reuse in where):
                    verb = "gains" if low > 0 else "does not gain"
                    lines.append(f"{arm} {verb} with reuse={reuse}: {number(mean, 'share', signed=True)}.")
        return lines


def played(folder: Path, overrides: Sequence[str]) -> Mapping[Reuse, Run]:
    """Runs of all twins."""
    return {
        reuse: skg_bench.run(["experiment=twins", f"simulator.reuse={reuse}", f"out={folder / reuse}", *overrides])
        for reuse in sorted(get_args(Reuse))
    }


def analyse(
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Such as seed=2; for all three runs.")
    ] = None,
    users: Annotated[int, typer.Option(help="Of each run.", min=2)] = 60,
    out: Folder = None,
) -> Report:
    """Makes its own runs, a minute of CPU time. As expected if answers help where tasks come back, and procedures where
    families do.
    """
    with tempfile.TemporaryDirectory() as folder:
        given = [f"users={users}", "weeks=8", *(overrides or ())]
        twins = Twins.of(played(out or Path(folder), given))
        wrong, table = twins.unexpected(), twins.table()
    how = (
        "Twins have as many tasks, at the same times, in the same wordings, from the same entries. The model is a "
        "script that solves a task only if its answer or the procedure of its family stands in the prompt: the table "
        "shows that the instrument tells these memories apart, and nothing of real models. Each task is judged by its "
        "family's own check. Intervals are for new users and messages."
    )
    words = "\n".join(f"* {line}" for line in (wrong or ["All is as expected."]))
    text = page("Answers and procedures in twins", COMMAND, how, words, table)
    return Report([table, *wrong], text, holds=not wrong)


EXPERIMENT = Experiment(analyse)
