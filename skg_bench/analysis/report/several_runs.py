"""A page of several runs beside one another: verdicts, what differs in their configurations, arms, curves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from markupsafe import Markup

from skg_bench.analysis.counts.wording import named
from skg_bench.analysis.report.arm_looks import FROZEN_DASHES, LEARNING, Look, stylesheet
from skg_bench.analysis.report.assets import page_asset, page_template
from skg_bench.analysis.report.chart import Chart, Series, chart_svg
from skg_bench.analysis.report.page_charts import UNITS, WEEKLY, Curves
from skg_bench.analysis.report.page_value import DrawnChart
from skg_bench.analysis.report.tables import VERDICT_TONES
from skg_bench.analysis.report.typeset import DASH, marked, typeset_interval, typeset_value
from skg_bench.analysis.summary import read_summary
from skg_bench.analysis.summary.document import Summary
from skg_bench.runfolder.cautions import trusted_verdict
from skg_bench.runfolder.manifest import counted_of
from skg_bench.runfolder.run import Run, flat, refuse_twice

BANDS_OF = 4  # runs whose bands can be heading apart in one figure
FIGURES = 6  # metrics drawn, of each arm
LONGEST = 90  # characters of a value of the configuration
_ARM = "arm "  # begins keys of an arm


@dataclass(frozen=True, slots=True)
class RunBeside:
    """A run with its figures, and how it is drawn."""

    run: Run
    content: Summary
    look: Look  # `arm` is its name in figures: its number

    def verdict(self, arm: str, metric: str = "utility") -> str:
        """Verdict on an arm; a dash where there is none, as on the reference itself."""
        gap = self.content.differences.get(arm, {}).get(metric)
        if gap is None or gap.verdict == "not measured":
            return DASH
        return trusted_verdict(gap.verdict, self.content.users)


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run's row of the first table."""

    look: Look
    folder: str
    question: str
    size: str
    seed: str
    learner: str
    reference: str
    gap: "GapCell"
    state: str


@dataclass(frozen=True, slots=True)
class GapCell:
    """An arm in a run: its level, its difference from that run's reference, and the verdict."""

    level: str = DASH
    interval: str = ""
    gap: str = ""
    gap_interval: str = ""
    verdict: str = ""
    tone: str = "open"


@dataclass(frozen=True, slots=True)
class MetricTable:
    """One metric: arms x runs."""

    metric: str
    label: str
    says: str
    rows: Sequence[tuple[str, Sequence[GapCell]]]


@dataclass(frozen=True, slots=True)
class ArmCurves:
    """Figures of an arm, a line a run."""

    name: str
    figures: Sequence[DrawnChart]


def runs_html(runs: Sequence[Run]) -> str:
    """The page as text, runs in the order given.

    Raises UsageError for a run given twice, and for one without figures of this version.
    """
    refuse_twice(runs, "to see them side by side")
    beside = [RunBeside(run, read_summary(run), _look(n)) for n, run in enumerate(runs)]
    return page_template("several_runs.html.j2").render(
        css=page_asset("page.css"),
        script=page_asset("pick.js"),
        looks_css=Markup(stylesheet([each.look for each in beside])),  # noqa: S704  colours and class names of our own
        title=f"skg_bench: {len(runs)} runs side by side",
        counts=_counts(beside),
        runs=[_row(each) for each in beside],
        differing=differing_keys([run.manifest for run in runs]),
        tables=_tables(beside),
        arms=_curves(beside),
        bands=BANDS_OF,
        folders=[str(run.path) for run in runs],
        marked=marked,
    )


def differing_keys(manifests: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[str]]]:
    """Keys of what counts for a result that are not the same in all runs, with the value in each.

    Left out: keys of an arm that not all runs have or that the root's key says already, and parameters that a component
    of one run lacks because another component stands there, which its own row says.
    """
    known = [_flat(manifest) for manifest in manifests]
    shared = set.intersection(*(set(manifest["arms"]) for manifest in manifests))
    rows: dict[str, list[str]] = {}
    for key in dict.fromkeys(chain.from_iterable(known)):
        values = [values.get(key, DASH) for values in known]
        arm, _, inner = key.removeprefix(_ARM).partition(": ")
        other = _target(key) in rows and DASH in values
        if all(value == values[0] for value in values) or other or (key.startswith(_ARM) and arm not in shared):
            continue
        cells = [_short(value) for value in values]
        if not key.startswith(_ARM) or rows.get(inner) != cells:
            rows[key] = cells
    return list(rows.items())


def _target(key: str) -> str:
    """Key of the class of the component whose parameter `key` is."""
    return f"{key.rpartition('.')[0]}._target_"


def _flat(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Keys that count for a result, and versions, in one level; those of an arm begin with `arm NAME: `."""
    counted = counted_of(manifest)
    arms = {
        f"{_ARM}{arm}: {key}": value
        for arm, inner in counted["compositions"].items()
        for key, value in flat(inner).items()
    }
    digests = {f"digest of {name}": digest for name, digest in counted["data"].items()}
    versions = {f"version of {name}": version for name, version in (manifest.get("versions") or {}).items()}
    return {**flat(counted["config"]), **arms, **digests, **versions, "code": counted["code"]}


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _look(n: int) -> Look:
    light, dark = LEARNING[n % len(LEARNING)]
    dash = "none" if n < len(LEARNING) else FROZEN_DASHES[n // len(LEARNING) % len(FROZEN_DASHES)]
    main = n < BANDS_OF
    return Look(f"run {n + 1}", f"run-{n + 1}", "learning", light, dash=dash, dark=dark, width=2.2, shown=True,
                drawn=True, main=main, overrides=())  # fmt: skip


def _counts(beside: Sequence[RunBeside]) -> str:
    verdicts = [each.verdict(each.content.learner) for each in beside]
    phrases = [f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts) if verdict != DASH]
    return ", ".join(phrases)


def _row(each: RunBeside) -> RunRow:
    content = each.content
    return RunRow(
        look=each.look,
        folder=str(each.run.path),
        question=content.question,
        size=f"{content.users:,} x {DASH if content.telling.imported else f'{content.weeks:,}'}",
        seed=DASH if content.telling.imported else str(content.seed),
        learner=content.learner,
        reference=str(content.reference or DASH),
        gap=_cell(each, content.learner, "utility"),
        state="unfinished" if content.incomplete else "whole",
    )


def _cell(each: RunBeside, arm: str, metric: str) -> GapCell:
    content = each.content
    figure = content.arms.get(arm, {}).get(metric)
    if figure is None or metric not in content.metrics:
        return GapCell()
    unit = content.metrics[metric].unit
    level = typeset_value(figure.mean, unit), typeset_interval(figure.low_new, figure.high_new, unit)
    verdict = each.verdict(arm, metric)
    if arm == content.reference or verdict == DASH:
        return GapCell(*level, verdict="reference" if arm == content.reference else "")
    gap = content.differences[arm][metric]
    ends = typeset_interval(gap.low_new, gap.high_new, unit, signed=True)
    return GapCell(
        *level, typeset_value(gap.mean, unit, signed=True), ends, verdict, VERDICT_TONES.get(verdict, "open")
    )


def _tables(beside: Sequence[RunBeside]) -> list[MetricTable]:
    """A table for each metric that some run measured, the first run's metrics first."""
    arms = dict.fromkeys(chain.from_iterable(each.content.arms for each in beside))
    tables = []
    for metric in dict.fromkeys(chain.from_iterable(each.content.metrics for each in beside)):
        content = next(each.content for each in beside if metric in each.content.metrics)
        words, noun = content.metrics[metric], content.telling.noun
        rows = [(arm, [_cell(each, arm, metric) for each in beside]) for arm in arms]
        measured = [(arm, cells) for arm, cells in rows if any(cell.level != DASH for cell in cells)]
        if measured:
            label = named(words.label, noun)
            tables.append(MetricTable(metric, label[:1].upper() + label[1:], named(words.says, noun), measured))
    return tables


def _curves(beside: Sequence[RunBeside]) -> list[ArmCurves]:
    """Figures of each run's learner, then of each arm that all runs have and in which some metric has a curve."""
    if any(each.content.telling.imported for each in beside):  # made elsewhere: it has no weeks
        return []
    curves = [Curves.read(each.run.table("curves.csv"), each.content.users) for each in beside]
    shared = [arm for arm in beside[0].content.arms if all(arm in each.content.arms for each in beside)]
    drawn = [
        ArmCurves("the learner of each run", _figures(beside, curves, [each.content.learner for each in beside], "l"))
    ]
    drawn += [ArmCurves(arm, _figures(beside, curves, [arm] * len(beside), str(n))) for n, arm in enumerate(shared)]
    return [arm for arm in drawn if arm.figures]


def _figures(beside: Sequence[RunBeside], curves: Sequence[Curves], arms: Sequence[str], name: str) -> list[DrawnChart]:
    """Charts with a line a run, of its arm in `arms`; positions are weeks, as many as the longest run has."""
    weeks = max(curve.weeks for curve in curves)
    every = {each.metric: (each.title, each.says) for run in beside for each in run.content.telling.weekly}
    every = {metric: (title, says) for metric, title, says in WEEKLY} | every
    out: list[DrawnChart] = []
    for metric, (title, _) in every.items():
        words = next((each.content.metrics[metric] for each in beside if metric in each.content.metrics), None)
        unit = UNITS.get(metric) or (words.unit if words else None)
        lines = [
            _padded(line, weeks)
            for each, curve, arm in zip(beside, curves, arms, strict=True)
            if (line := curve.series(arm, metric, each.look.classes, each.look.arm)) is not None
        ]
        if unit is None or not lines or len(out) == FIGURES:
            continue
        noun = beside[0].content.telling.noun
        heading = named(title.replace("{reference}", "the run's reference"), noun)
        chart = Chart(
            f"f-{name}-{metric}", heading, "", unit, "week", [float(week + 1) for week in range(weeks)], lines
        )
        drawing = chart_svg(chart, [line.name for line in lines])
        out.append((chart, Markup(drawing)))  # noqa: S704  chart escapes names
    return out


def _padded(line: Series, weeks: int) -> Series:
    more = [None] * (weeks - len(line.mean))
    return Series(line.name, line.css, [*line.mean, *more], [*line.low, *more], [*line.high, *more])
