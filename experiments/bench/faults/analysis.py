"""Faults by chance against the command line, and what became of the runs."""

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from experiments.bench.faults.commands import READERS, killed, locks, recorded
from experiments.bench.faults.damage import damaged, foreign
from experiments.bench.faults.disk import full
from experiments.bench.faults.kills import parent, worker
from experiments.bench.faults.lab import Lab
from experiments.bench.faults.outcomes import Outcome, table
from experiments.bench.faults.rivals import moved, three_parts, two
from experiments.bench.faults.special import special
from experiments.bench.faults.trials import Row, chosen, report, trials
from skg_bench.app.experiment_report import Report
from skg_bench.app.experiments import Experiment
from skg_bench.app.progress import console

TITLE = "Does a figure of a run ever change unsaid?"
COMMAND = "skg-bench experiment faults"

ROWS: Mapping[str, Row] = {
    "parent": Row(100, parent), "worker": Row(100, worker), "disk": Row(40, full), "cut": Row(60, damaged),
    "flip": Row(200, damaged), "removed": Row(60, damaged), "two_equal": Row(10, two), "two_cohorts": Row(10, two),
    "moved": Row(10, moved), "foreign": Row(10, foreign), "parts": Row(3, three_parts),
    **dict.fromkeys(READERS, Row(60, killed)), "recorded": Row(40, recorded), "locks": Row(57, locks),
    "special": Row(60, special),
}  # fmt: skip


def analyse(
    seed: Annotated[int, typer.Option(help="Of all moments, places and bits.", min=0)] = 0,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="ROW[:TRIAL]", help=f"One of {', '.join(ROWS)}, or one trial of it; may be given again."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of all trials.")] = False,
    share: Annotated[float, typer.Option(help="Of all trials.", min=0.001, max=10.0)] = 1.0,
    jobs: Annotated[int, typer.Option(help="Trials at once.", min=1, max=64)] = 2,
    limit: Annotated[float, typer.Option(help="Seconds that a command may take before it counts as hung.")] = 90.0,
    minutes: Annotated[float, typer.Option(help="After which no further trial begins.")] = 60.0,
    folder: Annotated[Path, typer.Option(help="Where temporary runs lie.")] = Path("runs"),
) -> Report:
    """Kills commands and workers, fills disks, cuts, changes and removes files, puts others in their place, moves
    folders, leaves locks of wrong clocks; then the same command
    has to end with the same bytes. The exit code is 1 where a figure changed unsaid, a command hung, or a message did
    not say what to do.
    """
    wanted = chosen(ROWS, only or [], share * (0.1 if quick else 1.0))
    screen, began, outcomes = console(sys.stderr), time.monotonic(), list[Outcome]()
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="faults-", dir=folder.resolve(), ignore_cleanup_errors=True) as home:
        lab = Lab(Path(home), seed, limit)
        lab.prepare()
        left = [f"{name}: this version has none" for name, known in _features(lab) if not known]
        wanted = [each for each in wanted if each[0] != "parts" or lab.parts]
        try:
            for outcome in trials(ROWS, lab, wanted, jobs, minutes, lambda line: screen.print(line, soft_wrap=True)):
                outcomes.append(outcome)
        except KeyboardInterrupt:
            table(outcomes).show(console())
            raise
    if len(outcomes) < len(wanted):
        late = len(wanted) - len(outcomes)
        left.append(
            f"{late} trials that had not begun after {minutes:g} minutes, or whose process ended before its kill"
        )
    command = _command(seed, only or [], share, quick=quick)
    return report(TITLE, list(ROWS), outcomes, left, seed, command, time.monotonic() - began)


def _features(lab: Lab) -> list[tuple[str, bool]]:
    return [("run --check", lab.checks), ("part=I/N", lab.parts)]


def _command(seed: int, only: Sequence[str], share: float, *, quick: bool) -> str:
    words = [f"--seed {seed}"] * (seed > 0) + [f"--only {name}" for name in only]
    words += [f"--share {share:g}"] * (share != 1.0) + ["--quick"] * quick
    return " ".join([COMMAND, *words, "--write reports"])


EXPERIMENT = Experiment(analyse, one_thread=True)
