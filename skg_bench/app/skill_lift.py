"""`skg-bench skills`: what each skill of a run is worth, worst first, and what removing the worst would have given."""

import csv
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import numpy as np

from skg_bench.analysis.counts.roles import roles
from skg_bench.analysis.counts.wording import interval, number
from skg_bench.analysis.lift.first_order import Lifts, first_order, removal
from skg_bench.analysis.statistics.intervals import Estimate
from skg_bench.app import table_blocks
from skg_bench.app.progress import console
from skg_bench.core.errors import UsageError, nearest
from skg_bench.core.temporary import replace_whole
from skg_bench.core.text import printable
from skg_bench.runfolder.measured_run import measured_run
from skg_bench.runfolder.run import Run, made_here

_HEADINGS = ("skill", "user", "id", "served", "right", "lift", "a serving", "since turn")
_SHOWN = 10


def show_skills(folder: Path, arm: str | None, out: Path | None) -> None:
    """Print the worth of an arm's skills (None: of the learner), and write all of them as CSV.

    Raises UsageError for a run without the arm `never`, and where nobody knows which answers were right; OSError.
    """
    run = measured_run(Run(folder))
    made_here(run, "the worth of skills")
    role = roles(run)
    learner = arm if arm is not None else role.learner
    if learner not in run.arms:
        raise UsageError(f"--arm {learner}: {nearest(str(learner), run.arms)}")
    if role.never is None:
        raise UsageError(
            f"{folder} has no arm that answers by the model alone, which skills are held against; run it again with "
            "'+arms.never=[policy=never,curator=none]'"
        )
    if not run.domain.answers:
        raise UsageError(f"{folder}: its skills keep no answers; their lift is not counted yet")
    lifts = first_order(run, learner, role.never)
    screen = console()
    for line in _sentences(lifts, learner, role.never):
        screen.print(line, soft_wrap=True)
    order = np.argsort(lifts.total, kind="stable")
    shown = [i for i in order.tolist() if lifts.served[i].sum()][:_SHOWN]
    if shown:
        table_blocks.show_table(screen, _HEADINGS, [_cells(lifts, i) for i in shown])
    if out is not None:
        text = StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(("user", "skill", "name", "born", "served", "right", "lift"))
        rows.writerows(_row(lifts, i) for i in order.tolist())
        replace_whole(out, text.getvalue().encode())
        screen.print(f"all of them: {out}", soft_wrap=True)


def _sentences(lifts: Lifts, arm: str, never: str) -> Iterator[str]:
    served = lifts.served.sum(axis=1) > 0
    yield (
        f"{arm}: {len(lifts.skill):,} skills of {len(lifts.users):,} users; {int((~served).sum()):,} were never "
        f"served, {int((lifts.total < 0).sum()):,} hurt, {int((lifts.total > 0).sum()):,} helped"
    )
    yield (
        f"lift of all: {lifts.total.sum():+,.2f} utility beyond {never}, and {lifts.rest:+,.2f} at turns without a "
        "skill (offers): together the whole difference"
    )
    hurts = lifts.share_that_hurts()
    yield f"of a user's served skills, {number(hurts.mean, 'share')} hurt ({_ends(hurts, 'share')}, over users)"
    gone = removal(lifts)
    if gone.skills:
        yield (
            f"removed in the middle of the weeks, the {gone.skills:,} skills that had hurt until then would have given "
            f"{_signed(gone.by_lift)} a turn from then on"
        )
        yield f"  as many by ratings: {_signed(gone.by_ratings)}; by a coin: {_signed(gone.by_coin)}"
    yield "first order: what a skill kept others from being captured is not counted"


def _ends(estimate: Estimate, unit: str) -> str:
    low, high = estimate.interval(new=False)
    return interval(low, high, unit)


def _signed(estimate: Estimate) -> str:
    low, high = estimate.interval(new=False)
    return f"{number(estimate.mean, 'utility', signed=True)} ({interval(low, high, 'utility', signed=True)})"


def _cells(lifts: Lifts, i: int) -> list[str]:
    served, lift = int(lifts.served[i].sum()), float(lifts.total[i])
    cells = [
        lifts.name[i], str(lifts.users[lifts.user[i]]), str(lifts.skill[i]), str(served), str(lifts.right[i]),
        f"{lift:+.2f}", f"{lift / served:+.2f}", str(lifts.born[i]),
    ]  # fmt: skip
    return [printable(cell) for cell in cells]


def _row(lifts: Lifts, i: int) -> tuple[object, ...]:
    counts = int(lifts.born[i]), int(lifts.served[i].sum()), int(lifts.right[i]), float(lifts.total[i])
    return int(lifts.users[lifts.user[i]]), int(lifts.skill[i]), lifts.name[i], *counts
