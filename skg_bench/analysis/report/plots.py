"""Figures for a notebook, drawn by the code of the page: curves of a run with bands, differences of a comparison."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

from skg_bench.analysis.comparison.compare import Comparison
from skg_bench.analysis.report.arm_looks import looks_of
from skg_bench.analysis.report.chart import chart_in_words
from skg_bench.analysis.report.forest import forest_in_words, forest_svg, main_metrics, measured_metrics
from skg_bench.analysis.report.page_charts import Curves, weekly_charts
from skg_bench.analysis.report.picture import side_by_side
from skg_bench.analysis.summary import read_summary
from skg_bench.core.errors import UsageError, nearest
from skg_bench.core.temporary import PUBLIC_MODE, replace_whole
from skg_bench.core.text import printable
from skg_bench.runfolder.run import Run, made_here

PLOTTED = ("utility_difference", "correct", "hit_rate", "err_per_hit")  # curves, where the domain names none
_COLUMNS = 2  # charts of a row: as wide as a notebook


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure: a notebook shows it, `save` writes it. It follows the reader's light or dark scheme."""

    svg: str
    words: str  # the figure for those who do not see it, a line a chart

    def save(self, file: str | Path) -> Path:
        """Write the figure into a file, .svg, and return where it is.

        Raises UsageError for a name of another format, OSError.
        """
        path = Path(file)
        if path.suffix != ".svg":
            raise UsageError(f"{path}: a plot is SVG; give a name that ends in .svg")
        replace_whole(path, self.svg.encode(), mode=PUBLIC_MODE)
        return path

    def __repr__(self) -> str:
        return printable(self.words)

    def _repr_html_(self) -> str:
        """An image: its style reaches nothing else of the notebook."""
        source = b64encode(self.svg.encode()).decode()
        return f'<img style="max-width: 100%" alt="{escape(self.words)}" src="data:image/svg+xml;base64,{source}">'


def curves_plot(run: Run, names: Sequence[str] = (), arms: Sequence[str] | None = None) -> Plot:
    """Curves by week, a chart a metric, with 95 % bands of the learner and its reference, or of two arms.

    `names`: of metrics; default: those of the domain, or PLOTTED. `arms`: default: those that the page shows first.

    Raises UsageError for a run without figures, and a metric or an arm that it does not have.
    """
    made_here(run, "a curve by week")
    content = read_summary(run)
    looks = looks_of(run, content)
    known = [look.arm for look in looks if look.drawn]
    _check_names("arm", arms or (), known, str(run.path))
    charts = {
        chart.id.removeprefix("f-"): chart
        for chart in weekly_charts(Curves.read(run.table("curves.csv"), content.users), looks, content)
    }
    _check_names("curve", names, charts, str(run.path))
    wanted = names or [name for name in content.telling.picture or PLOTTED if name in charts]
    shown = list(arms) if arms else [look.arm for look in looks if look.shown]
    panels = [charts[name] for name in wanted]
    words = "\n".join(chart_in_words(panel, shown) for panel in panels)
    return Plot(side_by_side(panels, looks, shown, _COLUMNS), words)


def differences_plot(comparison: Comparison, names: Sequence[str] = (), arms: Sequence[str] | None = None) -> Plot:
    """Differences from the reference arm, a chart a metric, with intervals for these and for new requests.

    `names`: of metrics; default: utility, the first ones of the domain, and those of answers. `arms`: default: all.

    Raises UsageError for a metric or an arm that the comparison does not have.
    """
    _check_names("arm", arms or (), [row.arm for row in comparison.rows], "the comparison")
    rows = tuple(row for row in comparison.rows if not arms or row.arm in arms)
    shown = replace(comparison, rows=rows)
    measured = measured_metrics(shown)
    _check_names("measured metric", names, measured, "the comparison")
    wanted = names or [name for name in main_metrics(shown) if name in measured]
    return Plot(forest_svg(shown, wanted), "\n".join(forest_in_words(shown, name) for name in wanted))


def _check_names(what: str, given: Iterable[str], known: Iterable[str], whose: str) -> None:
    options = list(known)
    for name in given:
        if name not in options:
            raise UsageError(f"{whose} has no {what} {name!r}; {nearest(name, options)}")
