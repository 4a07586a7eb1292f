"""`skg_bench.run`, from overrides to a finished run, with progress; `compare`, `explain` and `plot`. Little is imported
before the first line.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING

from skg_bench.app.compose import compose, composer
from skg_bench.app.overrides import check_override_texts, parse
from skg_bench.app.progress import console, progress_bars, run_headline
from skg_bench.core.errors import UsageError, brief

if TYPE_CHECKING:
    from skg_bench.analysis.comparison.compare import Comparison
    from skg_bench.analysis.report.plots import Plot
    from skg_bench.engine.execute import Progress
    from skg_bench.runfolder.run import Run


@brief
def run(overrides: Sequence[str] = (), progress: "Progress | bool | None" = None) -> "Run":
    """Simulate what the overrides say and return the run; a finished run of the same identity is returned at once.

    `progress(done, total)` counts turns; for a new run its first call comes before anything is simulated, with an
    estimated total (of a log: the exact one).
    True: what the command line shows, on standard error; False: nothing; None: True on a terminal and in a notebook.

    >>> run(["experiment=assistant_growth", "profile=smoke"]).turns("skg")

    Raises UsageError for bad overrides and for a directory that holds another run, OSError if it cannot be written.
    """
    check_override_texts(overrides)
    if progress is None:
        progress = sys.stderr.isatty() or "ipykernel" in sys.modules
    if isinstance(progress, bool):
        return _shown(overrides) if progress else _counted(overrides, None)
    return _counted(overrides, progress)


@brief
def compare(
    *runs: "Run | str | Path",
    reference: str | None = None,
    correction: str = "holm",
    margins: Mapping[str, float] | None = None,
    flips: int = 0,
) -> "Comparison":
    """Every arm of the runs against the reference arm (default: the first run's own), paired user by user.

    It holds no figures of hits that nobody can tell. See `analysis.compare` for the rest. Raises UsageError for what is
    no run, runs that share no events, an unknown reference, metric or correction, and flips below 0.
    """
    from skg_bench.analysis.report.hidden_memory import readable_comparison
    from skg_bench.runfolder.hidden_hits import arms_without_hits
    from skg_bench.runfolder.run import opened_run

    opened = [*map(opened_run, runs)]
    compared = whole_comparison(opened, reference, correction=correction, margins=margins, flips=flips)
    return readable_comparison(compared, {arm for run in opened for arm in arms_without_hits(run)})


def whole_comparison(
    opened: Sequence["Run"],
    reference: str | None = None,
    *,
    correction: str = "holm",
    margins: Mapping[str, float] | None = None,
    flips: int = 0,
) -> "Comparison":
    """The comparison with all hits, also of arms of which nobody can tell them."""
    from skg_bench.analysis.comparison.compare import compare as paired
    from skg_bench.analysis.report.hidden_memory import silence_sentences
    from skg_bench.analysis.report.outside_arms import unjudged_answers
    from skg_bench.runfolder.cautions import few_users, unfinished_run
    from skg_bench.runfolder.measured_run import instance_words, measured_run
    from skg_bench.runfolder.run import needs_right

    if flips < 0:
        raise UsageError(f"flips={flips}; it is a number of events, 0 or more")
    for metric, size in (margins or {}).items():
        if not _is_number(size):
            raise UsageError(f"margins={{{metric!r}: {size!r}}}; a margin is a number in the unit of its metric")
    for run in opened if flips else ():
        needs_right(run, "compare --flips")
    compared = paired([*map(measured_run, opened)], reference, correction=correction, margins=margins, flips=flips)
    shared = dict.fromkeys(words for words in map(instance_words, opened) if words)
    rows = compared.rows
    if shared and compared.users == 1:  # resamples of one instance are all the same
        rows = tuple(replace(row, bootstrap=(nan, nan)) for row in rows)
    few = few_users(compared.users, "instance" if shared else "user")
    silent = dict.fromkeys(sentence.text for run in opened for sentence in silence_sentences(run))
    unjudged = [f"{run.path}: {text}" if len(opened) > 1 else text for run in opened for text in unjudged_answers(run)]
    warnings = filter(None, [*map(unfinished_run, opened), few])
    gaps = (*warnings, *shared, *silent, *unjudged, *compared.gaps)
    return replace(compared, gaps=gaps, rows=rows)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def explain(source: "Run | str | Path") -> list[str]:
    """Sentences on what a run shows, as `skg-bench run` ends with them: the verdict, why, and what to be careful with.

    >>> for sentence in explain(run): print(sentence)

    Raises UsageError for what is no run, and for a run without figures.
    """
    from skg_bench.analysis.report import verdict
    from skg_bench.analysis.report.hidden_memory import silence_sentences
    from skg_bench.analysis.report.hit_cosines import cosine_sentences
    from skg_bench.analysis.report.logged import language_sentences
    from skg_bench.analysis.report.outside_arms import outside_sentences
    from skg_bench.analysis.summary import read_summary
    from skg_bench.runfolder.run import opened_run

    opened = opened_run(source)
    figures = read_summary(opened)
    before = [*language_sentences(opened), *outside_sentences(opened, figures.reference)]
    after = [*silence_sentences(opened), *cosine_sentences(opened)]
    return [sentence.text for sentence in [*before, *verdict.words(figures), *after]]


def plot(source: "Run | Comparison | str | Path", *names: str, arms: Sequence[str] | None = None) -> "Plot":
    """A figure of metrics: of a run curves by week with bands, of a comparison differences with intervals.

    `names`: of metrics, default: the main ones. `arms`: default: of a run those that its page shows first, of a
    comparison all.

    >>> plot(run, "hit_rate", arms=["skg", "never"])
    >>> plot(compare(run)).save("differences.svg")

    Raises UsageError for what is no run, a run without figures, an unknown metric or arm.
    """
    from skg_bench.analysis.comparison.compare import Comparison
    from skg_bench.analysis.report.plots import curves_plot, differences_plot
    from skg_bench.runfolder.run import opened_run

    if isinstance(arms, str):
        raise UsageError(f"arms={arms!r}; give a list of names, such as [{arms!r}]")
    if isinstance(source, Comparison):
        return differences_plot(source, names, arms)
    return curves_plot(opened_run(source), names, arms)


def _counted(overrides: Sequence[str], progress: "Progress | None") -> "Run":
    from skg_bench.app.launch import prepare, start

    job = prepare(compose(overrides))
    if progress is not None and job.state == "new":
        progress(0, job.turns())
    return start(job, progress)


def _shown(overrides: Sequence[str]) -> "Run":
    shared, parsed, screen = composer(), parse(overrides), console(sys.stderr)
    root = shared.root(parsed)
    screen.print(run_headline(root))

    from skg_bench.app.launch import prepare, start

    job = prepare(shared.arms(parsed, root))
    screen.print(f"{job.out} ({job.state})", soft_wrap=True)

    def say(line: str) -> None:
        screen.print(line, soft_wrap=True)

    if job.state == "finished":
        return start(job, say=say)
    with progress_bars(root["experiment"], screen) as (turns, texts):
        return start(job, turns, say, texts)
