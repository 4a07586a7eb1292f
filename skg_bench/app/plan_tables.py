"""`skg-bench plan`: a plan as a table, and what its reader must know."""

import sys
from collections.abc import Callable, Iterator
from math import ceil, isinf, isnan
from pathlib import Path

from skg_bench.analysis.policy_value.contrast_plan import ContrastPlan, Design
from skg_bench.analysis.statistics.planned_users import LEAST_EQUAL, LEAST_PILOT, LEAST_PLANNED
from skg_bench.app.estimate_tables import named_target
from skg_bench.app.progress import console, progress_bars
from skg_bench.app.table_blocks import show_table
from skg_bench.core.text import plural
from skg_bench.runfolder.cautions import unfinished_run
from skg_bench.runfolder.run import Run
from skg_bench.runfolder.telling import telling_of

_NO_END = "no end"
_TEST = "test: two-sided at 5 %, Student's t, users independent"
_LOGS = (
    "* interleave, softmax, epsilon_threshold: logs in which chance decides, for skg-bench estimate --estimand step. "
    "Their difference is that in the states of the log. Answers that neither arm gives count as wrong in *lost*"
)


def show_plan(
    plan_contrast: Callable[..., ContrastPlan],
    folder: Path,
    arm: str | None,
    target: str | None,
    *,
    reference: str | None,
    reward: str,
    effect: float | None,
) -> None:
    """Print a plan. `plan_contrast`: the function of app/planning.py.

    Raises UsageError for bad input.
    """
    with progress_bars("replay", console(sys.stderr)) as (progress, _):
        plan = plan_contrast(
            folder, arm, target=None if target is None else named_target(target), reference=reference, reward=reward,
            effect=effect, progress=progress,
        )  # fmt: skip
    run = Run(folder)
    screen, noun, weeks = console(), telling_of(run.manifest).noun, run.config.get("weeks")
    each = f", each for {plural(weeks, 'week')} as in the pilot" if weeks else ""
    size = f"as large as the pilot's, {plan.difference:+.4g}" if plan.effect is None else f"of {plan.effect:g}"
    screen.print(
        f"{plan.arm} less {plan.reference}, {plan.reward} a {noun}: {plan.difference:+.4g} in {folder}, {plan.users:,} "
        f"users. Users needed{each}, to find a difference {size} in 80 % of cases, if these two arms alone are "
        "compared:",
        soft_wrap=True,
    )
    headings = ["design", "users", "95 % interval", f"{noun}s", "answers differ", "lost", "US dollars"]
    show_table(screen, headings, [_cells(design) for design in plan.designs])
    if unfinished := unfinished_run(run):
        screen.print(f"* {unfinished}", soft_wrap=True)
    for line in _notes(plan, noun):
        screen.print(line, soft_wrap=True)


def _cells(design: Design) -> list[str]:
    planned = design.planned
    doubt = "" if planned.trusted else ", not trusted"
    ends = f"{_whole(design.groups * planned.low)} to {_whole(design.groups * planned.high)}{doubt}"
    usd = "-" if isnan(design.usd) else _NO_END if isinf(design.usd) else f"{design.usd:,.2f}"
    return [
        design.name, _whole(design.users), ends, _whole(design.turns), _whole(design.apart), f"{design.lost:.4f}", usd,
    ]  # fmt: skip


def _whole(number: float) -> str:
    return _NO_END if isinf(number) else f"{ceil(number):,}"


def _notes(plan: ContrastPlan, noun: str) -> Iterator[str]:
    planned = [design.planned for design in plan.designs]
    if plan.doubt:
        yield f"* the log does not tell enough of {plan.arm}: {plan.doubt}"
    if not all(each.trusted for each in planned):
        yield (
            f"* not trusted: the pilot is too small, and the interval may be too narrow. It needs {LEAST_PILOT} users, "
            f"and has {plan.users:,}. Their difference must come from {LEAST_EQUAL:g} users at least, if equally, "
            f"and comes from {min(each.equal for each in planned):.1f}"
        )
    if plan.effect is None:
        yield "* the pilot's own difference is an estimate: give --effect, the smallest that matters, for a surer plan"
    elif plan.effect > plan.largest:
        yield (
            f"* no user of the pilot differs by {plan.effect:g}: by {plan.largest:.4g} at most. So few users find "
            "nothing, if the difference is not that large"
        )
    if any(isinf(each.high) for each in planned):
        size = f"a billion users may not find {plan.effect:g}" if plan.effect else "the difference may be 0"
        yield f"* {_NO_END}: the pilot sets no upper end, as {size}; give a larger --effect, or take a larger pilot"
    if any(each.users < LEAST_PLANNED for each in planned):
        yield f"* take at least {LEAST_PLANNED} users: with fewer, a test of skewed differences finds more or less"
    yield f"* no log is planned: {plan.without}" if plan.without else _LOGS
    if plan.new_requests is not None:
        enough = "no number of users is enough" if isinf(plan.new_requests) else f"{_whole(plan.new_requests)} users"
        yield f"* for a verdict of skg-bench compare, which is also for new {noun}s, by simulation: {enough}"
    yield f"* lost: {plan.reward} a {noun} that users lose during the test, against the better arm alone"
    yield _TEST
