"""Trust in what a log says of arms that were not run: in worlds drawn by seed, whose targets are run as well."""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from math import isnan, sqrt
from multiprocessing import get_context
from statistics import median
from typing import Annotated

import typer

from experiments.not_run.played import AskedTarget, LogSize, asked_targets, written
from experiments.not_run.worlds import DrawnWorld
from skg_bench.analysis.statistics.binomial import exact_share
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment

SIZE = LogSize(users=140, weeks=4, others=100)  # of the committed report
SEED = 11
"""Seed of the committed report. No world of it was looked at before the method was fixed."""
ERRORS = 2.0  # Monte Carlo standard errors: there is no other slack
LEAST_GIVEN, COVERAGE, BOUNDED, ERROR = 0.7, (0.93, 0.97), 0.97, 0.2  # what is due
ROWS = "not_run_targets.csv"
TITLE = "What logs say of arms that were not run"
BY_TARGET = "By target"
WITHHELD = "Withheld"
WORDS = """
{} worlds of seed {}, each with a log of {} users and {} weeks. All values are differences to the log's own arm in
utility a turn. *Given*: targets that are not withheld; of these are all shares but that of *bounds*. *These users*:
intervals for the users of the log that hold what the target came to when it was run on them. *Other users*: intervals
for other users that hold what it came to on {} more; where that truth is uncertain, its error is added to the
interval's. *Wrong signs*: of verdicts, against either truth. *Error by that of IPS*: ratio of the median errors for
these users, of targets that change the policy alone; IPS values them in the states of the log (`step`). *Bounds*: all
answers that the log does not know are wrong, or all are right, for other users with half of their interval; of all
targets. *Luck*: part of the truth for these users, of answers of the LLM to messages that a skill answered in the log.
No log tells it: an estimate that knew the LLM's true chances would have {:.2f} times the median
error of IPS. Intervals of shares are exact binomial ones, as if targets of one world were independent. Rows of all
targets: [{}]({}).
"""
WITHHELD_WORDS = "Verdicts that were not given, what the replay came to all the same, and why."


@dataclass(frozen=True)
class Due:
    """A figure of the report, and whether it is as due."""

    measured: str
    cells: tuple[str, str, str]  # figure, of how many, its interval
    due: str
    holds: bool


def dues(rows: Sequence[AskedTarget]) -> list[Due]:
    """Figures over all targets."""
    given = [row for row in rows if not row.withheld]
    decided = [row for row in given if row.verdict in ("higher", "lower")]
    these, others = (sum(map(held, given)) for held in (_these, _others))
    wrong, bounded = sum(map(_wrong_sign, decided)), sum(row.bounded for row in rows)
    (low, high), n, ratio = COVERAGE, len(given), error_by_ips(given)
    most = high * n + _slack(high, n)
    return [
        Due("given", _share(n, len(rows)), f"{100 * LEAST_GIVEN:.0f} % or more", n >= LEAST_GIVEN * len(rows)),
        Due("these users", _share(these, n), f"{100 * low:.0f} % or more", these >= _least(low, n)),
        Due("other users", _share(others, n), f"{100 * low:.0f} to {100 * high:.0f} %",
            _least(low, n) <= others <= most),
        Due("wrong signs", _share(wrong, len(decided)), "none", not wrong),
        Due("error by that of IPS", (f"{ratio:.2f}", "", ""), f"{ERROR:g} or less", ratio <= ERROR),
        Due("bounds", _share(bounded, len(rows)), f"{100 * BOUNDED:.0f} % or more",
            bounded >= _least(BOUNDED, len(rows))),
    ]  # fmt: skip


def error_by_ips(rows: Sequence[AskedTarget]) -> float:
    """Median error for these users by that of IPS, over targets that change the policy alone; NaN without any."""
    return _by_ips(rows, lambda row: row.error)


def luck_by_ips(rows: Sequence[AskedTarget]) -> float:
    """The same for an estimate that is off by the luck of the LLM's unknown answers alone."""
    return _by_ips(rows, lambda row: abs(row.luck))


def _by_ips(rows: Sequence[AskedTarget], error: Callable[[AskedTarget], float]) -> float:
    both = [row for row in rows if not isnan(row.ips)]
    return median(map(error, both)) / median(abs(row.ips - row.truth_these) for row in both) if both else float("nan")


def _these(row: AskedTarget) -> bool:
    return row.holds_these


def _others(row: AskedTarget) -> bool:
    return row.holds_others


def _wrong_sign(row: AskedTarget) -> bool:
    """Does a verdict say the opposite of the truth for these users, or of that for others beyond its own error?"""
    sign = {"higher": 1.0, "lower": -1.0}.get(row.verdict, 0.0)
    return sign * row.truth_these < 0 or sign * row.truth_others < -ERRORS * row.error_others


def _slack(share: float, n: int) -> float:
    return ERRORS * sqrt(share * (1.0 - share) * n)


def _least(share: float, n: int) -> float:
    return share * n - _slack(share, n)


def _share(count: int, n: int) -> tuple[str, str, str]:
    """A share, of how many, and its exact interval."""
    if not n:
        return "-", "0", "-"
    low, high = exact_share(count, n)
    return f"{100 * count / n:.1f} %", f"{n}", f"{100 * low:.1f} to {100 * high:.1f} %"


def summary(rows: Sequence[AskedTarget]) -> Table:
    """Table of all that is due."""
    cells = [(due.measured, *due.cells, due.due, "yes" if due.holds else "NO") for due in dues(rows)]
    return Table("All targets", ("measured", "found", "of", "95 % interval", "due", "as due"), cells)


def by_target(rows: Sequence[AskedTarget]) -> Table:
    """Table of each kind of target."""
    headings = (
        "target", "asked", "given", "known turns", "median effect", "median error", "luck", "IPS", "these users hold",
        "other users hold",
    )  # fmt: skip
    return Table(BY_TARGET, headings, [_kind(name, rows) for name in dict.fromkeys(row.target for row in rows)])


def _kind(name: str, rows: Sequence[AskedTarget]) -> tuple[str, ...]:
    targets = [row for row in rows if row.target == name]
    given = [row for row in targets if not row.withheld]

    def middle(figure: Callable[[AskedTarget], float], digits: str) -> str:
        values = [value for row in given if not isnan(value := figure(row))]
        return format(median(values), digits) if values else "-"

    return (
        name, f"{len(targets)}", f"{len(given)}", middle(lambda row: row.known, ".1%").replace("%", " %"),
        middle(lambda row: abs(row.truth_these), ".4f"), middle(lambda row: row.error, ".4f"),
        middle(lambda row: abs(row.luck), ".4f"),
        middle(lambda row: abs(row.ips - row.truth_these), ".4f"),
        f"{sum(map(_these, given))} of {len(given)}", f"{sum(map(_others, given))} of {len(given)}",
    )  # fmt: skip


def withheld(rows: Sequence[AskedTarget]) -> Table:
    """Table of targets that are withheld, with their errors."""
    headings = ("world", "log", "target", "replayed", "true", "error", "bounds hold", "reason")
    cells = [
        (
            f"{row.world}", f"{row.logger}, {row.corpus}", row.target, f"{row.value:+.4f}", f"{row.truth_these:+.4f}",
            f"{row.error:.4f}", "yes" if row.bounded else "NO", row.withheld.partition(";")[0],
        )
        for row in rows
        if row.withheld
    ]  # fmt: skip
    return Table(WITHHELD, headings, cells)


def report_command(worlds: int, seed: int, size: LogSize) -> str:
    """The command that makes such a report."""
    usual = asdict(SIZE)
    sizes = {name: value for name, value in asdict(size).items() if value != usual[name]}
    words = "".join(f" --{name} {value}" for name, value in {"worlds": worlds, "seed": seed, **sizes}.items())
    return f"skg-bench experiment not_run{words} --write reports"


def report(rows: Sequence[AskedTarget], seed: int, size: LogSize) -> Report:
    """Tables and page of these rows."""
    worlds = len({row.world for row in rows})
    words = WORDS.format(
        worlds,
        seed,
        size.users,
        size.weeks,
        size.others,
        luck_by_ips([row for row in rows if not row.withheld]),
        ROWS,
        ROWS,
    )
    parts = [summary(rows), by_target(rows), withheld(rows)]
    holds = all(due.holds for due in dues(rows))
    verdict = "As due." if holds else "Not as due."
    text = page(TITLE, report_command(worlds, seed, size), parts[0], words, parts[1], parts[2], WITHHELD_WORDS, verdict)
    return Report([*parts, verdict], text, holds=holds, figures={ROWS: written(rows)})


def analyse(
    worlds: Annotated[int, typer.Option(help="Worlds, each with one log.", min=1)] = 20,
    seed: Annotated[int, typer.Option(help="Of the draws of worlds.", min=0)] = SEED,
    users: Annotated[int, typer.Option(help="Of each log.", min=2)] = SIZE.users,
    weeks: Annotated[int, typer.Option(help="Of each log.", min=1)] = SIZE.weeks,
    others: Annotated[int, typer.Option(help="Users on whom the truth for other users is taken.", min=2)] = SIZE.others,
    workers: Annotated[int, typer.Option(help="Processes.", min=1)] = 2,
) -> Report:
    """Makes its own logs, in a quarter of an hour of one core; as expected if each figure is as due."""
    size = LogSize(users, weeks, others)
    drawn = [DrawnWorld(seed, number) for number in range(worlds)]
    with ProcessPoolExecutor(min(workers, worlds), mp_context=get_context("spawn")) as pool:
        rows = [row for part in pool.map(partial(asked_targets, size=size), drawn) for row in part]
    return report(rows, seed, size)


EXPERIMENT = Experiment(analyse, one_thread=True)
