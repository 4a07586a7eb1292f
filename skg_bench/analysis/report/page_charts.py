"""Charts of the page as values: curves by week, and utility over prices (`curves.csv`, `summary.json`)."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from skg_bench.analysis.counts.wording import named
from skg_bench.analysis.report.arm_looks import Look
from skg_bench.analysis.report.chart import GEOMETRY, NO_LINES, SINGLE_WEEKS, Chart, Series, Track
from skg_bench.analysis.report.sentences import code, without_markup
from skg_bench.analysis.summary.document import Summary
from skg_bench.analysis.summary.figures import Figure
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import text_of

DOTTED = " Dotted: the ceiling, see Glossary."
WEEKLY = (
    ("utility_difference", "Utility beyond {reference}",
     "Gain of a request over {reference}, same users and requests."),
    ("hit_rate", "Answered from memory", f"Share of requests.{DOTTED}"),
    ("other_intent", "For another intent, per hit",
     "Share of the answers from memory that had been given to another intent."),
    ("err_per_hit", "Wrong answers per hit", "Share of the answers from memory that were wrong (truth)."),
    ("correct", "Answered rightly", "True satisfaction: share of requests answered rightly, rated or not."),
    ("rated_ok", "Rated ok", "What users say: share of their ratings that are ok."),
    ("err_per_request", "Wrong answers per request", "Share of requests answered wrongly, from memory or by the LLM."),
    ("skills", "Size of the skillbook", "Active skills of a user at the end of the week."),
    ("new_skills_per_week", "New skills a week", "Skills added, per user."),
    ("offers_per_week", "Burden of offers", "How often a user is asked to name a skill, a week."),
    ("calls_saved", "Calls saved", "Share of requests that needed no LLM."),
    ("cost_usd", "Cost per request", "Metered, US dollars."),
    ("latency_ms", "Wait per request", "Simulated time to the answer."),
)  # fmt: skip
METERED_COLUMNS = ("cost_usd", "latency_ms")
UNITS = {"utility_difference": "utility", "learning_effect": "utility"}
CEILING_METRICS = {  # the highest first, which is drawn under the others
    "ceiling_procedure": "procedures", "ceiling_1": "ceiling k=1", "ceiling_2": "ceiling k=2",
    "ceiling_3": "ceiling k=3",
}  # fmt: skip
LEAST_USERS = 10  # users that a mean in a chart needs
ARM_OF_EVENTS = "*"  # the arm under which `curves.csv` holds what belongs to the events


def users_for_a_mean(users: int) -> int:
    """Users that a mean needs to be drawn: LEAST_USERS, or half of the users of a small run."""
    return min(LEAST_USERS, -(-users // 2))


@dataclass(frozen=True)
class Curves:
    """`curves.csv`: (arm, metric) -> mean, low, high by week."""

    weeks: int
    tracks: Mapping[tuple[str, str], tuple[Track, Track, Track]]

    @classmethod
    def read(cls, path: Path, users: int) -> "Curves":
        """Rows without the points to which fewer of the `users` of the run contribute than `users_for_a_mean`.

        Raises UsageError if the file is not there.
        """
        if not path.is_file():
            raise UsageError(f"{path} is missing; finish the run with `skg-bench run`")
        rows: dict[tuple[str, str], dict[int, list[float | None]]] = {}
        for row in csv.DictReader(StringIO(text_of(path))):
            enough = int(row["n"]) >= users_for_a_mean(users)
            values = [float(row[c]) if row[c] and enough else None for c in ("mean", "low", "high")]
            rows.setdefault((row["arm"], row["metric"]), {})[int(row["period"])] = values
        weeks = max((max(periods) for periods in rows.values()), default=1)
        nothing: list[float | None] = [None, None, None]
        tracks = {}
        for key, periods in rows.items():
            points = [periods.get(week, nothing) for week in range(1, weeks + 1)]
            tracks[key] = ([v[0] for v in points], [v[1] for v in points], [v[2] for v in points])
        return cls(weeks, tracks)

    def series(self, arm: str, metric: str, css: str, name: str | None = None) -> Series | None:
        """One line; None where nothing was measured."""
        track = self.tracks.get((arm, metric))
        if track is None or all(v is None for v in track[0]):
            return None
        return Series(name or arm, css, *track)

    def chart(self, metric: str, title: str, says: str, unit: str, looks: Sequence[Look]) -> Chart:
        """The arms' curves of a metric."""
        drawn = [look for look in looks if look.drawn]
        lines = [s for look in drawn if (s := self.series(look.arm, metric, look.classes)) is not None]
        ceilings = [
            s
            for name, label in CEILING_METRICS.items()
            if metric == "hit_rate"
            if (s := self.series(ARM_OF_EVENTS, name, f"ceiling-k {name}", label)) is not None
        ]
        positions = [float(week) for week in range(1, self.weeks + 1)]
        if not ceilings:
            says = says.removesuffix(DOTTED)
        return Chart(f"f-{metric}", title, says, unit, "week", positions, lines, ceilings)


def weekly_charts(curves: Curves, looks: Sequence[Look], summary: Summary) -> list[Chart]:
    """The small multiples, without those that this run did not measure."""
    charts, metrics, reference = [], summary.metrics, summary.reference
    wanted = [(each.metric, each.title, each.says) for each in summary.telling.weekly]
    for metric, title, says in wanted or WEEKLY:
        unit = UNITS.get(metric) or (metrics[metric].unit if metric in metrics else None)
        if unit is None or (reference is None and "{reference}" in title):
            continue
        if summary.log and metric in METERED_COLUMNS:  # by the log, or simulated
            says = metrics[metric].says
        title, says = (named(text.replace("{reference}", code(str(reference))), summary.telling.noun)
                       for text in (title, says))  # fmt: skip
        chart = curves.chart(metric, title, says, unit, looks)
        if chart.series:
            charts.append(chart)
    return charts


def learning(curves: Curves, looks: Sequence[Look]) -> Chart | None:
    """Live minus frozen, by week."""
    title, says = "What learning on is worth, by week", "Utility of the live arm beyond its frozen twin."
    chart = curves.chart("learning_effect", title, says, "utility", looks)
    return chart if chart.series else None


def sensitivity(summary: Summary, looks: Sequence[Look], reference: str | None) -> Chart | None:
    """Utility beyond the reference at other prices of a wrong answer."""
    prices = summary.sensitivity.wrong
    lines = _by_price(summary.sensitivity.differences, looks)
    if reference is None or not lines or len(prices) < 2:
        return None
    for price in summary.telling.prices:
        title = f"Utility beyond {code(reference)}, by the price of {price.noun}"
        now = summary.utility.wrong
        says = price.says.replace("{now}", f"{now:g}")
        return Chart("f-sensitivity", title, says, "utility", "price", [float(p) for p in prices], lines, now=now)
    title = f"Utility beyond {code(reference)}, by the price of a wrong answer"
    says = f"A right answer is worth 1; the price of a wrong one is set to {summary.utility.wrong:g} in this run."
    return Chart("f-sensitivity", title, says, "utility", "price", [float(p) for p in prices], lines)


def offers(summary: Summary, looks: Sequence[Look], reference: str | None) -> Chart | None:
    """Utility beyond the reference at other prices of an offer to capture; None where no arm makes offers."""
    prices, made = summary.offers.prices, any((total.get("offer") or 0) > 0 for total in summary.totals.values())
    lines = _by_price(summary.offers.differences, looks)
    if reference is None or not lines or not made or len(prices) < 2:
        return None
    title, now = f"Utility beyond {code(reference)}, by the price of an offer", summary.utility.offer
    says = f"A right answer is worth 1; asking a user to name a skill costs {now:g} in this run."
    return Chart("f-offers", title, says, "utility", "price", [float(p) for p in prices], lines, now=now)


def _by_price(against: Mapping[str, Sequence[Figure]], looks: Sequence[Look]) -> list[Series]:
    """A line for each arm that is drawn, from its figures at each price."""
    return [
        Series(
            look.arm,
            look.classes,
            *([getattr(f, end) for f in against[look.arm]] for end in ("mean", "low_new", "high_new")),
        )
        for look in looks
        if look.drawn and any(f.mean is not None for f in against.get(look.arm, ()))
    ]


def packed(charts: Sequence[Chart]) -> dict[str, Any]:
    """Data from which `figures.js` draws them again."""
    return {
        "geometry": GEOMETRY,
        "empty": NO_LINES,
        "few": SINGLE_WEEKS,
        "charts": [
            {
                "id": c.id,
                "title": without_markup(c.title),
                "unit": c.unit,
                "axis": c.axis,
                "positions": list(c.positions),
                "series": [_packed(s) for s in c.series],
                "ceilings": [_packed(s) for s in c.ceilings],
            }
            for c in charts
        ],
    }


def _packed(s: Series) -> dict[str, Any]:
    tracks = {"mean": s.mean, "low": s.low, "high": s.high}
    short = {name: [None if v is None else float(f"{v:.7g}") for v in track] for name, track in tracks.items()}
    return {"name": s.name, "css": s.css, **short}
