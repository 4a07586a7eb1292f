"""One SVG file with a run's main curves, for a README: `python -m skg_bench.analysis.report.picture RUN OUT.svg`.

It follows the reader's light or dark scheme by itself and needs no font but the system's.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from pathlib import Path

from skg_bench.analysis.report import chart, page_charts
from skg_bench.analysis.report.arm_looks import Look, looks_of, stylesheet
from skg_bench.analysis.report.sentences import without_markup
from skg_bench.analysis.summary import read_summary
from skg_bench.core.errors import UsageError
from skg_bench.core.text import printable
from skg_bench.runfolder.run import Run

PICTURE_PANELS = ("hit_rate", "err_per_request")
_GAP, _HEAD, _PAD = 16, 46, 14  # pixels between panels, above them, around everything
STYLE = """
svg { --paper: #fff; --ink: #15191e; --soft: #59636e; --rule: #e1e5ea; --rule-2: #c9d0d8; --ceiling: #eef0f3;
  --ceiling-line: #7d8792; font: 11.5px -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
@media (prefers-color-scheme: dark) { svg { --paper: #101317; --ink: #e7eaee; --soft: #a2acb7; --rule: #272d34;
  --rule-2: #3b434c; --ceiling: #1a1f25; --ceiling-line: #8a949e; } }
.paper { fill: var(--paper); } text { fill: var(--soft); }
.title { fill: var(--ink); font-size: 14px; font-weight: 600; }
.grid line { stroke: var(--rule); } .grid .zero { stroke: var(--rule-2); } .cursor { display: none; }
.arm .line { fill: none; stroke: var(--c); stroke-width: var(--w); stroke-dasharray: var(--d); stroke-linejoin: round; }
.band { fill: var(--c); opacity: .14; } .arm:not(.banded) .band { display: none; }
.ceiling .under { fill: var(--ceiling); }
.ceiling-k .line { fill: none; stroke: var(--ceiling-line); stroke-width: 1.2; stroke-dasharray: 1.5 2.5; }
.label text { fill: var(--c); font-size: 10.5px; font-weight: 500; }
.label .line { fill: none; stroke: var(--c); stroke-width: var(--w);
  stroke-dasharray: var(--d); }
.label.ceiling-k text { fill: var(--soft); font-style: italic; }
.label.ceiling-k .line { stroke: var(--ceiling-line); stroke-width: 1.2; stroke-dasharray: 1.5 2.5; }
"""


def picture_svg(run: Run, arms: Sequence[str] | None = None) -> str:
    """The picture as text. `arms`: which ones; None: those that are on when the page opens.

    Raises UsageError for an arm that the run does not have, or a run without `summary.json`.
    """
    content = read_summary(run)
    all_looks = looks_of(run, content)
    if unknown := [arm for arm in arms or () if arm not in run.arms]:
        raise UsageError(f"{run.path} has no arm {unknown[0]!r}; it has {', '.join(run.arms)}")
    shown_arms = list(arms) if arms is not None else [look.arm for look in all_looks if look.shown]
    curves = page_charts.Curves.read(run.table("curves.csv"), content.users)
    weekly = {c.id: c for c in page_charts.weekly_charts(curves, all_looks, content)}
    wanted = content.telling.picture or PICTURE_PANELS
    panels = [weekly[f"f-{metric}"] for metric in wanted if f"f-{metric}" in weekly]
    return side_by_side(panels, all_looks, shown_arms)


def side_by_side(
    panels: Sequence[chart.Chart], all_looks: Sequence[Look], arms: Sequence[str], columns: int | None = None
) -> str:
    """Charts side by side, with the lines of these arms; `columns`: charts of a row, None: all."""
    columns = min(columns or len(panels), len(panels))
    width = 2 * _PAD + columns * (chart.WIDTH + _GAP) - _GAP
    panels = [replace(panel, series=[s for s in panel.series if s.name in arms]) for panel in panels]
    tall = max((chart.height(len(panel.series) + len(panel.ceilings)) for panel in panels), default=chart.HEIGHT)
    rows = -(-len(panels) // max(columns, 1))
    height = 2 * _PAD + max(rows, 1) * (_HEAD + tall + _GAP) - _GAP
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f"<style>{STYLE}{stylesheet(all_looks).replace('@media screen and', '@media')}</style>",
        f'<rect class="paper" width="{width}" height="{height}" rx="6"/>',
    ]
    for n, panel in enumerate(panels):
        row, column = divmod(n, columns)
        x, y = _PAD + column * (chart.WIDTH + _GAP), _PAD + row * (_HEAD + tall + _GAP)
        box = f' x="{x}" y="{y + _HEAD}" width="{chart.WIDTH}" height="{tall}" preserveAspectRatio="xMidYMin"'
        out.append(f'<text class="title" x="{x}" y="{y + 14}">{escape(without_markup(panel.title))}</text>')
        out.append(f'<text x="{x}" y="{y + 32}">{escape(without_markup(panel.says))}</text>')
        out.append(chart.chart_svg(panel, arms, box))
    return "".join([*out, "</svg>\n"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m skg_bench.analysis.report.picture", description=picture_svg.__doc__
    )
    parser.add_argument("run", type=Path, help="folder of the run")
    parser.add_argument("out", type=Path, help="file to write, .svg")
    parser.add_argument("--arm", action="append", help="an arm to draw; may be given again")
    given = parser.parse_args(arguments)
    try:
        given.out.write_text(picture_svg(Run(given.run), given.arm), "utf-8")
    except UsageError as error:
        print(printable(f"error: {error}"), file=sys.stderr)  # noqa: T201  a command's answer
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
