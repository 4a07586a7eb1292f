"""Arms of one or several runs against a reference arm, paired on the same users and events.

Runs that differ only in their seed are combined: events are aligned on (seed, user, event), and users of different
seeds are different users.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np

from skg_bench.analysis.comparison.align import alignment
from skg_bench.analysis.comparison.flips import DONE_COLUMNS
from skg_bench.analysis.comparison.matched import HIT_COLUMNS, Matched
from skg_bench.analysis.comparison.seeds import by_configuration, labels
from skg_bench.analysis.comparison.tested_arms import BOOTSTRAP_SEED, Flipped, TestedArm, tested_arms
from skg_bench.analysis.counts.break_even import BreakEven
from skg_bench.analysis.counts.columns import Words
from skg_bench.analysis.counts.log_counts import LOGGED_COLUMNS
from skg_bench.analysis.counts.measure import (
    CORRECTIONS,
    Difference,
    differences,
)
from skg_bench.analysis.counts.metrics import Metric, Utility, known, logged, metrics
from skg_bench.analysis.counts.outcomes import metrics_of, outcome_columns
from skg_bench.analysis.counts.tally import TALLY_COLUMNS, needs_answers
from skg_bench.analysis.counts.turn_logs import user_blocks
from skg_bench.analysis.counts.wording import bare, interval, number, rise_or_fall
from skg_bench.analysis.statistics.inference import cluster_bootstrap
from skg_bench.analysis.statistics.intervals import ALPHA, LEAST_INTENTS, Estimate
from skg_bench.analysis.summary.saturation import withheld
from skg_bench.core.domain import domain_of
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64
from skg_bench.core.text import html_table, printable, text_table, wrapped
from skg_bench.runfolder.run import Run, refuse_twice, same_events
from skg_bench.runfolder.telling import telling_of

if TYPE_CHECKING:
    from pandas import DataFrame

COMPARED_METRICS = (
    "utility", "hit_rate", "correct", "err_per_hit", "err_per_request", "rated_ok", "cost_usd", "latency_ms",
)  # fmt: skip
HEADINGS = (
    "arm", "metric", "value", "reference", "difference", "these requests", "bootstrap", "new requests", "detectable",
    "p ({correction})", "users +/=/-", "verdict",
)  # fmt: skip
_IN_BRIEF = [HEADINGS.index(heading) for heading in ("arm", "metric", "difference", "new requests", "verdict")]


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One arm and one metric against the reference."""

    arm: str  # after what tells its run from the others, when there are several
    metric: Metric
    mean: float
    reference_mean: float
    difference: Difference
    bootstrap: tuple[float, float]  # 95 % interval over resampled users, these requests
    wins: int  # users with a better value (higher, where neither is better)
    ties: int
    losses: int
    margin: float | None  # what is too small to matter, if that was said
    equivalent: float | None  # p-value of "differs by the margin or more", new requests, corrected as the others
    largest: tuple[tuple[str, float], ...]  # intents that contribute most to the difference, with their shares of it


@dataclass(frozen=True, slots=True)
class Comparison:
    """Paired differences on the events that all runs share."""

    reference: str
    seeds: tuple[int, ...]
    users: int
    turns: int
    correction: str
    rows: tuple[ComparisonRow, ...]  # by arm, then by metric
    gaps: tuple[str, ...]  # what a run lacks of the others' events, or of a corpus; never read as a regression
    matched: tuple[Matched, ...]  # arms at the error rate of the reference or the reference at theirs
    unmatched: tuple[str, ...]  # why there are not more of them
    flips: tuple[Flipped, ...]  # of arms that meet the events in the reference's order
    break_even: Mapping[str, BreakEven]  # by arm, the reference too; of those whose hits the LLM's answers are known to
    noun: str = "request"  # for what users bring
    own: tuple[str, ...] = ()  # metrics that the domain shows beside those of every world

    def to_pandas(self) -> "DataFrame":
        """A row for each arm and metric. `low` and `high` are for new requests, `low_these` and `high_these` for these
        requests; `p` is corrected over the arms.
        """
        from pandas import DataFrame

        return DataFrame([_record(row) for row in self.rows])

    def __repr__(self) -> str:
        """The differences that `skg-bench compare` prints first."""
        first = [row.metric.name for row in self.rows[:1]]
        brief = ([row[at] for at in _IN_BRIEF] for row in (HEADINGS, *cells(self, first)))
        return printable("\n".join((wrapped(self._caption, 80), text_table(*brief), "all metrics: to_pandas()")))

    def _repr_html_(self) -> str:
        """Table of `skg-bench compare`, for a notebook."""
        return html_table(self._caption, headings(self), cells(self))

    @property
    def _caption(self) -> str:
        about = f"{self.users:,} users, {self.turns:,} turns of each arm, against {self.reference}"
        return "; ".join((about, *self.gaps))


def compare(
    runs: Sequence[Run],
    reference: str | None = None,
    *,
    correction: str = "holm",
    margins: Mapping[str, float] | None = None,
    flips: int = 0,
) -> Comparison:
    """Every arm of `runs` against `reference`, an arm of the first run that has it (default: the first run's own).

    Where several runs have arms of one name, `label:arm` says which; a label is the configuration that tells a run from
    the others, or its folder. p-values are corrected over the arms, for each metric. `margins`: by metric, what is too
    small a difference to matter. `flips`: how many events that an arm answered worse are told, of each arm. Utility is
    priced as in the reference's run.

    Raises UsageError for a run given twice, when runs share no user, when the events that they share differ, for an
    unknown reference, metric or correction, and for flips where nothing is answered.
    """
    if not runs:
        raise UsageError("nothing to compare; name at least one run directory")
    refuse_twice(runs, "to compare them")
    same_events(runs, "a comparison")
    for run in runs if flips else ():
        needs_answers(run, "compare --flips")
    if correction not in CORRECTIONS:
        raise UsageError(f"correction={correction!r}, valid are {', '.join(CORRECTIONS)}")
    groups = by_configuration(runs)
    columns = [*TALLY_COLUMNS, *HIT_COLUMNS, *DONE_COLUMNS]
    columns += [name for run in runs for name in outcome_columns(run)]
    columns += LOGGED_COLUMNS if any(run.manifest.get("log") for run in runs) else ()
    parts = user_blocks(groups, columns)
    wanted = reference if reference is not None else runs[0].config.get("reference")
    names = labels(groups)
    arms = {
        (at, arm): arm if len(groups) == 1 else f"{names[at]}:{arm}"
        for at, combined in enumerate(groups)
        for arm in combined.arms
    }
    references = [
        (at, arm) for at, arm in arms if wanted in (arm, arms[at, arm], f"{groups[at].runs[0].path.name}:{arm}")
    ]
    if not references:
        raise UsageError(f"reference {wanted!r} is no arm of these runs; they have {', '.join(arms.values())}")
    first = groups[references[0][0]]
    price, telling = Utility.of(first.config), telling_of(first.manifest)
    log = runs[0].manifest.get("log")
    shown = metrics_of(first, price) if not log else known(metrics(price)) | logged(log["knows"])
    if unknown := [name for name in margins or {} if name not in shown]:
        raise UsageError(f"margin of {unknown[0]!r}: no such metric; valid are {', '.join(shown)}")
    sides = alignment(parts)
    tested = tested_arms(parts, arms, references[0], sides.moved, shown, price, flips)
    reasons = [] if log else tested.used_up
    rows = tuple(
        replace(row, difference=withheld(row.difference, reasons))
        for row in _rows(tested.arms, shown, correction, margins or {}, tested.requests.about)
    )
    seeds = sorted({int(run.manifest["seed"]) for run in runs})
    return Comparison(
        arms[references[0]], tuple(seeds), len(tested.requests.users), len(tested.requests), correction, rows,
        (*sides.gaps, *(f"no verdict on utility: {reason}" for reason in reasons)),
        tested.matched, tested.unmatched, tested.flips, tested.break_even, telling.noun,
        (*telling.terminal, *(each.name for each in domain_of(first.manifest).metrics)),
    )  # fmt: skip


def _rows(
    tested: Sequence[TestedArm],
    shown: Mapping[str, Metric],
    correction: str,
    margins: Mapping[str, float],
    about: Words,
) -> tuple[ComparisonRow, ...]:
    """Rows by arm, then by metric; the same resamples for all of them."""
    if not tested:
        return ()
    # one user again and again is no sample: NaN, shown as a dash
    boot = cluster_bootstrap(np.stack([pair.each[name] for pair in tested for name in shown], axis=1), BOOTSTRAP_SEED)
    low, high = (end.reshape(len(tested), len(shown)) for end in boot)
    rows: dict[tuple[str, str], ComparisonRow] = {}
    for column, metric in enumerate(shown.values()):
        estimates = [pair.against[metric.name] for pair in tested]
        margin = margins.get(metric.name)
        equal = _equivalences(estimates, margin, correction)
        tests = differences(metric, estimates, correction, [pair.same for pair in tested])
        for i, (pair, test) in enumerate(zip(tested, tests, strict=True)):
            name = metric.name
            largest = tuple((str(about[intent]), share) for intent, share in test.estimate.largest)
            wins, ties, losses = _counted(pair.each[name], metric)
            rows[pair.label, name] = ComparisonRow(
                pair.label, metric, pair.means[name], pair.base[name], test,
                (float(low[i, column]), float(high[i, column])), wins, ties, losses, margin, equal[i],
                largest,
            )  # fmt: skip
    return tuple(rows[pair.label, name] for pair in tested for name in shown)


def _equivalences(estimates: Sequence[Estimate], margin: float | None, correction: str) -> Sequence[float | None]:
    if margin is None:
        return [None] * len(estimates)
    return CORRECTIONS[correction]([e.equivalence(margin) for e in estimates])


def _counted(each: F64, metric: Metric) -> tuple[int, int, int]:
    """Users with a better, an equal and a worse value. What differs by rounding is equal."""
    each = each[~np.isnan(each)]
    tie = np.abs(each) <= 1e-12 * max(1.0, float(np.abs(each).max(initial=0.0)))
    up = int(np.sum(~tie & (each > 0)))
    down = len(each) - up - int(tie.sum())
    return (down, int(tie.sum()), up) if metric.better == "lower" else (up, int(tie.sum()), down)


def _record(row: ComparisonRow) -> dict[str, Any]:
    d = row.difference
    (low, high), (low_these, high_these) = (d.estimate.interval(new=new, bounds=_bounds(row)) for new in (True, False))
    return {
        "arm": row.arm, "metric": row.metric.name, "value": row.mean, "reference": row.reference_mean,
        "difference": d.estimate.mean, "low": low, "high": high, "low_these": low_these, "high_these": high_these,
        "low_bootstrap": row.bootstrap[0], "high_bootstrap": row.bootstrap[1], "detectable": d.mde_new,
        "detectable_rise": d.mde_rise, "detectable_fall": d.mde_fall,
        "p": d.p_adjusted, "shrunken": d.shrunken, "intents": d.estimate.intents,
        "wins": row.wins, "ties": row.ties, "losses": row.losses, "verdict": verdict_words(row),
    }  # fmt: skip


def _bounds(row: ComparisonRow) -> tuple[float, float]:
    """No difference of two shares is beyond 1."""
    return (-1.0, 1.0) if row.metric.unit == "share" else (-np.inf, np.inf)


def headings(comparison: Comparison) -> list[str]:
    """Headings of the columns of `cells`."""
    name = {"holm": "Holm", "bh": "BH", "by": "BY"}[comparison.correction]
    return [heading.format(correction=name) for heading in HEADINGS]


def cells(comparison: Comparison, names: Sequence[str] = ()) -> list[tuple[str, ...]]:
    """The table as text under HEADINGS, for these metrics (by default the main ones) and those with a margin."""
    table: list[tuple[str, ...]] = []
    names = names or (*COMPARED_METRICS, *comparison.own)
    for row in comparison.rows:
        if row.metric.name in names or row.margin is not None:
            unit, d = row.metric.unit, row.difference
            table.append((
                row.arm, row.metric.label, number(row.mean, unit), number(row.reference_mean, unit),
                number(d.estimate.mean, unit, signed=True),
                *(
                    bare(interval(*span, unit, signed=True))
                    for span in (
                        d.estimate.interval(new=False, bounds=_bounds(row)),
                        row.bootstrap,
                        d.estimate.interval(new=True, bounds=_bounds(row)),
                    )
                ),
                "-" if d.estimate.se_new == 0 else bare(rise_or_fall(d.mde_rise, d.mde_fall, unit)),
                "-" if d.p_adjusted != d.p_adjusted else f"{d.p_adjusted:.3f}",
                f"{row.wins}/{row.ties}/{row.losses}", verdict_words(row),
            ))  # fmt: skip
    return table


PAYS_HEADINGS = ("arm", "right per hit", "pays from", "right beyond that", "new requests", "hits pay")


def pays(comparison: Comparison) -> list[tuple[str, ...]]:
    """Table under PAYS_HEADINGS, a row for each arm with hits: how many are right, and from how many on hits pay."""
    table: list[tuple[str, ...]] = []
    for arm, figures in comparison.break_even.items():
        low, high = figures.margin_interval
        span = bare(interval(low, high, "difference", signed=True))
        table.append((
            arm, number(figures.precision.mean, "share"), number(figures.pays_from.mean, "share"),
            number(figures.margin.mean, "difference", signed=True), span,
            "yes" if low > 0 else "no" if high < 0 else "open",
        ))  # fmt: skip
    return table


def carried(row: ComparisonRow) -> str:
    """Cautions on a difference: few intents, or a verdict that exaggerates its size; may be empty."""
    d = row.difference
    if not row.largest:
        return ""
    named = ", ".join(f"{shorten(name, 30, placeholder=' ...')} {100 * share:.1f} %" for name, share in row.largest)
    text = f"effective intents {d.estimate.intents:.1f}; largest: {named}; together "
    text += f"{100 * sum(share for _, share in row.largest):.0f} %"
    if d.estimate.withheld:
        few = f"the requests have {d.estimate.design:.1f} effective intents"
        text += f"; withheld: {few}, and an interval for new requests takes {LEAST_INTENTS:g}"
    if d.estimate.others:
        ends = {"score": d.estimate.interval(new=True), **d.estimate.others}
        unit = row.metric.unit
        text += f"; {', '.join(f'{name} {bare(interval(*span, unit, signed=True))}' for name, span in ends.items())}"
    if d.shrunken == d.shrunken:
        less = number(d.shrunken, row.metric.unit, signed=True)
        text += f"; below what is detectable estimates exaggerate: shrunken, {less}"
    return text


def verdict_words(row: ComparisonRow) -> str:
    """The verdict in words; what is not shown is inconclusive, never equal, unless a margin says what equal is."""
    d = row.difference
    if d.verdict in ("identical", "equal for every user", "withheld", "not testable here"):
        return d.verdict
    words = "" if d.verdict == "inconclusive" else d.verdict
    if not _equal(row):
        return words or "inconclusive"
    within = f"equal within {number(row.margin or 0.0, row.metric.unit, signed=True).lstrip('+')}"
    return f"{words}, yet {within}" if words and d.verdict != "depends on the interval" else within


def _equal(row: ComparisonRow) -> bool:
    """Is the difference smaller than the margin, by all intervals? Where they disagree on 0 alone, it still is."""
    if row.margin is None or row.equivalent is None or not row.equivalent < ALPHA:
        return False
    return all(-row.margin < low and high < row.margin for low, high in row.difference.estimate.others.values())
