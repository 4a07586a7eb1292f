"""Steps of `run`, `compare` and `report`, in the order in which a reader sees them."""

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from skg_bench.analysis.counts.wording import least
from skg_bench.app.compose import Composed, composer
from skg_bench.app.hydra_trees import Config
from skg_bench.app.overrides import parse, sweep_cells
from skg_bench.app.plain_errors import nothing_written
from skg_bench.app.progress import console, progress_bars, run_headline, working
from skg_bench.core.errors import UsageError, nearest
from skg_bench.core.text import plural

if TYPE_CHECKING:
    from skg_bench.analysis.comparison.compare import Comparison
    from skg_bench.app.prepared_run import PreparedRun


def run(texts: Sequence[str], *, multirun: bool, dry_run: bool) -> None:
    """Compose, announce, check, simulate, and show the arms. All cells of a sweep are checked before the first starts.

    Raises UsageError, OSError.
    """
    screen = console()
    with nothing_written():
        texts = _with_log(texts, screen)
        composed = [_composed(cell, screen) for cell in (sweep_cells(texts) if multirun else [list(texts)])]
        with _reading(composed, screen):
            jobs = _jobs(composed, multirun=multirun)
        turns = _announce(jobs, screen, dry_run=dry_run)
    if multirun:
        screen.print(f"{plural(len(jobs), 'run')}, {_about(jobs)}{turns:,} turns to simulate")
    if dry_run:
        return
    for job in jobs:
        _carry_out(job, screen)
    if len(jobs) > 1:
        _grid(jobs, screen)
        folders = shlex.join(str(job.out) for job in jobs)
        screen.print(f"again: skg-bench compare {folders}", soft_wrap=True)
        screen.print(f"next: skg-bench report {folders}", soft_wrap=True)


def _with_log(texts: Sequence[str], screen: Console) -> list[str]:
    """Overrides, where a log stands in place of those that read it."""
    if all("=" in text or text.startswith("~") for text in texts):
        return list(texts)
    from skg_bench.app.log_source import is_log, log_source

    logs = [text for text in texts if is_log(text)]
    if not logs:
        return list(texts)
    if len(logs) > 1:
        raise UsageError(f"{' and '.join(logs)}: a run replays one log")
    given = [text for text in texts if text not in logs]
    source = log_source(logs[0], given)
    columns = ", ".join(f"{field}: {guess.words}" for field, guess in source.guesses.items())
    read = f"columns {columns}" if columns else f"{source.written} (simulator={source.simulator})"
    screen.print(f"{logs[0]}: {read}", soft_wrap=True, markup=False)
    overrides, notes = source.overrides(given)
    for note in (*notes, f"more of it: skg-bench data check {shlex.quote(logs[0])}"):
        screen.print(f"  {note}", soft_wrap=True, markup=False)
    return overrides


def _composed(texts: Sequence[str], screen: Console) -> Composed:
    shared, overrides = composer(), parse(texts)
    root = shared.root(overrides)
    screen.print(run_headline(root))  # the first line comes before the arms are composed and anything heavy is imported
    composed = shared.arms(overrides, root)
    unconcerned: dict[tuple[str, ...], list[str]] = {}
    for text, arms in composed.without.items():
        unconcerned.setdefault(tuple(arms), []).append(text.partition("=")[0])  # a value may be a secret
    for names, concerned in unconcerned.items():
        does = "does" if len(concerned) == 1 else "do"
        screen.print(f"  {', '.join(concerned)} {does} not concern {', '.join(names)}: no such parameter there")
    if asking := [name for name, arm in composed.arms.items() if _asks_for_nothing(arm)]:
        why = "policy=never uses no skill, yet users are asked to name some, at a price; add curator=none"
        screen.print(f"  {', '.join(asking)}: {why}")
    return composed


def _asks_for_nothing(arm: Config) -> bool:
    """Does an arm capture by asking its users, and never use what it captured?"""
    policy, curator = arm.get("policy"), arm.get("curator")
    targets = [str(each.get("_target_")) if isinstance(each, Mapping) else "" for each in (policy, curator)]
    return targets == ["skg_bench.policy.never.Never", "skg_bench.curator.skg.SKG"]


@contextmanager
def _reading(composed: Sequence[Composed], screen: Console) -> Iterator[None]:
    """Say what reading logs takes, before the block reads them.

    Raises UsageError for a log that cannot be opened, or is larger than is read.
    """
    from skg_bench.app.building import build
    from skg_bench.app.trust import COMMAND_LINE
    from skg_bench.core.record import ReadsLog

    worlds = [build("simulator", cell.root["simulator"], COMMAND_LINE) for cell in composed]
    lines = dict.fromkeys(world.reading for world in worlds if isinstance(world, ReadsLog))
    large = [line for line in lines if line is not None]
    for line in large:
        screen.print(line, soft_wrap=True)
    with working("reading", console(sys.stderr)) if large else nullcontext():
        yield


def _jobs(composed: Sequence[Composed], *, multirun: bool) -> "list[PreparedRun]":
    """One job a directory: cells that come out the same are one."""
    from skg_bench.app.launch import prepare

    jobs = [prepare(cell, Path(cell.root["out"] or "runs") if multirun else None) for cell in composed]
    return list({job.out: job for job in jobs}.values())


def _announce(jobs: "Sequence[PreparedRun]", screen: Console, *, dry_run: bool) -> int:
    """Print where each run goes and what it costs; returns the turns of all that are not finished."""
    from skg_bench.app import asks, result_tables
    from skg_bench.app.outside_costs import announce_outside

    whole = 0
    for job in jobs:
        if dry_run:
            result_tables.plan(screen, job)
            asks.announce(screen, job)
            announce_outside(screen, job)
            for line in job.cautions():
                screen.print(line, soft_wrap=True)
        turns = job.turns() if dry_run or job.state != "finished" else 0
        whole += turns if job.state != "finished" else 0
        cost = f", {_about([job])}{turns:,} turns{job.share}" if turns else ""
        screen.print(f"{job.out} ({job.state}){_swept(job, jobs)}{cost}", soft_wrap=True)
    return whole


def _swept(job: "PreparedRun", jobs: "Sequence[PreparedRun]") -> str:
    """Overrides of a run that not all runs of its sweep have, as words behind its folder."""
    others = [{override.text for override in each.composed.given} for each in jobs]
    texts = [each.text for each in job.composed.given if any(each.text not in other for other in others)]
    return f": {' '.join(texts)}" if texts else ""


def _about(jobs: "Sequence[PreparedRun]") -> str:
    """Words before their number of turns."""
    return "" if all(job.counted for job in jobs) else "about "


def _carry_out(job: "PreparedRun", screen: Console) -> None:
    from skg_bench.analysis.summary import read_summary
    from skg_bench.app import api, result_tables
    from skg_bench.app.launch import start

    if job.state == "finished":
        screen.print(f"{job.out} is finished: nothing is left to simulate", soft_wrap=True)
        finished = start(job, say=lambda line: screen.print(line, soft_wrap=True))
    else:
        with progress_bars(job.composed.root["experiment"], screen) as (progress, embedding):
            finished = start(job, progress, lambda line: screen.print(line, soft_wrap=True), embedding)
    if not finished.finished:  # a part of it is done
        return
    figures = read_summary(finished)
    result_tables.print_arms(screen, figures)
    if figures.telling.links and figures.waterfall:
        result_tables.print_regret(screen, figures)
    for sentence in api.explain(finished):
        screen.print(f"* {sentence}")
    screen.print(f"page: {finished.path / 'report.html'}", soft_wrap=True)
    log, path = figures.log or {"knows": (), "redacted": True}, shlex.quote(str(finished.path))
    judged = "answer" in log["knows"] and not log["redacted"]  # what people say of the answers decides such a log
    rest = f"data label {path} --page label.html" if judged else f"compare {path} --metric all"
    screen.print(f"next: skg-bench {rest}", soft_wrap=True)


def compare(
    runs: Sequence[Path],
    *,
    reference: str | None,
    correction: str,
    margins: Sequence[str],
    flips: int,
    figure: Path | None,
    metrics: Sequence[str] = (),
) -> None:
    """Print paired differences, and what had to be left out; draw them. `margins`: METRIC=SIZE each. `metrics`: those
    of which to print a table, or `all`; default: the first that is known, utility, and those with a margin.

    Raises UsageError.
    """
    from skg_bench.app import api
    from skg_bench.runfolder.run import Run

    _read_with_memory_of_the_system()
    sizes = _sizes(margins)
    if figure and figure.suffix != ".svg":
        raise UsageError(f"--figure {figure}: a figure is SVG; give a name that ends in .svg")
    opened = [Run(path) for path in runs]
    compared = api.whole_comparison(opened, reference, correction=correction, margins=sizes, flips=flips)
    names = _metrics(compared, metrics)
    _show(compared, console(), names, runs)
    if flips and not compared.flips:
        why = "of no arm is it known which answers were right at the events, and in the order, of the reference"
        console().print(f"  --flips {flips}: there are none to show, as {why}", soft_wrap=True)
    _judged(runs, console())
    if figure is not None:
        _draw(compared, figure, console(), runs)


def _read_with_memory_of_the_system() -> None:
    """Arrow's own allocator gives a table's memory back and asks for it again: of 20 million turns 2 s, 0.1 GiB."""
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())


def _metrics(compared: "Comparison", given: Sequence[str]) -> Sequence[str]:
    """The metrics of which to print tables.

    Raises UsageError for an unknown one.
    """
    known = dict.fromkeys(row.metric.name for row in compared.rows)
    for name in given:
        if name not in (*known, "all"):
            raise UsageError(f"--metric {name}: there is no such metric; {nearest(name, [*known, 'all'])}")
    if "all" in given:
        return list(known)
    with_margin = [row.metric.name for row in compared.rows if row.margin is not None]
    return list(dict.fromkeys(given or [*list(known)[:1], *with_margin]))


def _sizes(margins: Sequence[str]) -> dict[str, float]:
    """Margins by metric. Raises UsageError for a metric that has two."""
    sizes = dict[str, float]()
    for metric, size in map(_margin, margins):
        if metric in sizes:
            raise UsageError(
                f"--margin {metric}={size:g}: {metric} has the margin {sizes[metric]:g} already; give one for a metric"
            )
        sizes[metric] = size
    return sizes


def _margin(text: str) -> tuple[str, float]:
    metric, _, size = text.partition("=")
    try:
        return metric, float(size)
    except ValueError as error:
        raise UsageError(f"--margin {text}: give METRIC=SIZE in the metric's unit, such as utility=0.02") from error


def _show(compared: "Comparison", screen: Console, names: Sequence[str], runs: Sequence[Path]) -> None:
    from skg_bench.app import result_tables
    from skg_bench.runfolder.measured_run import shared_by
    from skg_bench.runfolder.run import Run
    from skg_bench.runfolder.worded_arms import arms_in_words

    unit = "instance" if any(shared_by(Run(path)) for path in runs) else "user"
    seeds = f", seeds {', '.join(map(str, compared.seeds))}" if len(compared.seeds) > 1 else ""
    screen.print(
        f"{plural(compared.users, unit)}{seeds}, {plural(compared.turns, 'turn')} of each arm, against "
        f"{compared.reference}"
    )
    for gap in compared.gaps:
        screen.print(f"  {gap}", soft_wrap=True)
    hidden = _hidden(runs)
    result_tables.print_differences(screen, compared, names, hidden)
    by = f"verdict and p are for new {compared.noun}s"
    screen.print(f"{by}; p is corrected for the number of arms", soft_wrap=True)
    if compared.rows:
        screen.print(least(*compared.rows[0].difference.estimate.least_shares), soft_wrap=True)
    if compared.break_even:
        result_tables.print_pays(screen, compared, hidden)
    if compared.matched:
        result_tables.print_matched(screen, compared.matched, compared.reference, hidden)
    for why in compared.unmatched:
        screen.print(f"  {why}", soft_wrap=True)
    in_words = {arm for path in runs for arm in arms_in_words(Run(path))} if compared.flips else set[str]()
    for line in result_tables.flip_lines(compared, in_words):
        screen.print(line, soft_wrap=True, markup=False, highlight=False)
    if others := sorted({row.metric.name for row in compared.rows} - set(names)):
        screen.print(f"other metrics: --metric NAME, or all: {', '.join(others)}")


def _hidden(runs: Sequence[Path]) -> set[str]:
    """Arms of the runs of which nobody can tell what they answer from memory."""
    from skg_bench.runfolder.hidden_hits import arms_without_hits
    from skg_bench.runfolder.run import Run

    return {arm for path in runs for arm in arms_without_hits(Run(path))}


def _judged(runs: Sequence[Path], screen: Console) -> None:
    """Differences in words that people or programs judged after the run."""
    from skg_bench.analysis.labels.word_table import word_tables
    from skg_bench.app.judged_words import show_words
    from skg_bench.runfolder.run import Run

    for path in runs:
        tables = word_tables(Run(path))
        if tables is not None:
            screen.print(str(path), soft_wrap=True)
            show_words(screen, tables)


def _draw(compared: "Comparison", file: Path, screen: Console, runs: Sequence[Path]) -> None:
    from skg_bench.analysis.report import forest
    from skg_bench.analysis.report.hidden_memory import readable_comparison
    from skg_bench.analysis.summary import replace_text
    from skg_bench.core.temporary import PUBLIC_MODE

    replace_text(file, forest.forest_svg(readable_comparison(compared, _hidden(runs))), mode=PUBLIC_MODE)
    screen.print(f"figure: {file}", soft_wrap=True)


def _grid(jobs: "Sequence[PreparedRun]", screen: Console) -> None:
    """One table and one figure of all cells; cells whose users meet other events cannot be paired."""
    from hashlib import sha256

    from skg_bench.app import api
    from skg_bench.runfolder.run import Run

    folders = [job.out for job in jobs]
    try:
        compared = _without_repeats(api.whole_comparison([Run(folder) for folder in folders]))
    except UsageError as error:
        screen.print(f"no table of all runs: {error}", soft_wrap=True)
        return
    _show(compared, screen, _metrics(compared, ()), folders)
    name = sha256(" ".join(sorted(job.identity for job in jobs)).encode()).hexdigest()[:8]
    _draw(compared, folders[0].parent / f"grid-{name}.svg", screen, folders)


def _without_repeats(compared: "Comparison") -> "Comparison":
    """A comparison without the reference arm of other runs, where it did the same there: it is listed once."""
    name = compared.reference.rpartition(":")[2]
    same = {row.arm for row in compared.rows if row.difference.verdict == "identical"}
    again = sorted(arm for arm in same if arm.rpartition(":")[2] == name)
    rows = tuple(row for row in compared.rows if row.arm not in again)
    flips = tuple(each for each in compared.flips if each.arm not in again)
    gaps = (f"the same as the reference on every turn, and not listed: {', '.join(again)}",) if again else ()
    return replace(compared, rows=rows, flips=flips, gaps=(*compared.gaps, *gaps))


def report(paths: Sequence[Path], users: Sequence[str], beside: Sequence[Path]) -> None:
    """Write the page of a run again: its own, or one with these users to look into, who are named by their number or as
    a replayed log names them; with what runs beside say about them. Of several runs: one page, side by side.

    Raises UsageError.
    """
    from skg_bench.analysis import report as page
    from skg_bench.analysis import summary
    from skg_bench.analysis.report.people import numbered
    from skg_bench.runfolder.measured_run import measured_run
    from skg_bench.runfolder.run import Run, made_here

    _read_with_memory_of_the_system()
    if len(paths) > 1 and (users or beside):
        raise UsageError("--user and --beside go with one run; leave them out to see several runs side by side")
    others, runs = [Run(path) for path in beside], [Run(path) for path in paths]
    for run in runs if users else ():
        made_here(run, "--user")
    for run in runs:
        try:
            summary.read_summary(run)
            outdated = not run.finished  # turns may have been made since
        except UsageError:  # there is none, or of another version
            outdated = True
        if outdated:
            summary.write_summary(measured_run(run))
    if len(runs) > 1:
        file = page.write_side_by_side(runs)
        file = file.relative_to(here) if file.is_relative_to(here := Path.cwd()) else file
    else:
        file = page.write_page(runs[0], numbered(runs[0], users) or None, others)
    console().print(f"page: {file}", soft_wrap=True)


def export(name: str, path: Path, texts: Sequence[str], deadline: int) -> bool:
    """Deliver a finished run to where people follow runs; returns whether all of it is there after `deadline` seconds.

    Raises UsageError.
    """
    from skg_bench.app import run_trackers
    from skg_bench.runfolder.run import Run

    run, screen = Run(path), console()
    sinks = run_trackers.chosen_sinks(name, run, texts)
    for line in run_trackers.not_taken(sinks, run):
        screen.print(line, soft_wrap=True)
    return run_trackers.deliver_all(sinks, run, deadline, lambda line: screen.print(line, soft_wrap=True))
