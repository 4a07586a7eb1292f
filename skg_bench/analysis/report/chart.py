"""Line charts as SVG text: means with bands, a ceiling, a key below. No library, no script, no outside font.

`figures.js` moves the same elements when arms are switched; the two agree on the geometry and the rounding given here.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from html import escape

from skg_bench.analysis.report.sentences import without_markup
from skg_bench.analysis.report.typeset import typeset_value

WIDTH, HEIGHT = 420, 236  # of the plot with its axes; the key of the lines is added below
LEFT_MARGIN, RIGHT_MARGIN, TOP_MARGIN, BOTTOM_MARGIN = 46, 12, 12, 26  # margins
KEY_LEFT, KEY_COLUMNS, KEY_WIDTH, KEY_ROW = 4, 3, 139, 16
LABEL_CHARS = 19
GEOMETRY = {
    "width": WIDTH, "height": HEIGHT, "left": LEFT_MARGIN, "right": RIGHT_MARGIN, "top": TOP_MARGIN,
    "bottom": BOTTOM_MARGIN,
    "keyLeft": KEY_LEFT, "keyColumns": KEY_COLUMNS, "keyWidth": KEY_WIDTH, "keyRow": KEY_ROW, "chars": LABEL_CHARS,
}  # fmt: skip
NO_LINES = "No arm that is switched on has a line here."
SINGLE_WEEKS = "Too few users a week for a line."
FOCUSABLE = ' tabindex="0"'  # of a chart whose values can be read off
Track = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Series:
    """One line: value and band at each position, None where nothing is known."""

    name: str
    css: str  # class that carries colour, dashes and width
    mean: Track
    low: Track
    high: Track


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over the same positions of the horizontal axis."""

    id: str
    title: str  # names of arms in it and in `says` stand between backticks
    says: str
    unit: str  # of metrics.Metric
    axis: str  # what the horizontal axis counts: week
    positions: Sequence[float]  # ascending
    series: Sequence[Series]
    ceilings: Sequence[Series] = ()  # drawn behind the lines, never switched off
    now: float | None = None  # the position at which the run was made, which is marked


def tick(value: float, unit: str, step: float) -> str:
    """A value as an axis shows it: as many digits as the step between ticks needs."""
    scale, after = (
        (100.0, "\u202f%") if unit in ("share", "difference") else (0.001, " s") if unit == "ms" else (1.0, "")
    )
    digits = max(0, -math.floor(math.log10(step * scale) + 1e-9))
    lead = ("−" if value < -step / 2 else "") + ("$" if unit == "usd" else "")
    return f"{lead}{abs(value) * scale:,.{digits}f}{after}"


def ticks(low: float, high: float) -> tuple[list[float], float]:
    """Round values covering [low, high] in steps of 1, 2 or 5 times a power of ten, about five of them; the step."""
    raw = max(high - low, 1e-9) / 5
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * k for k in (1, 2, 5, 10) if power * k >= raw * 0.9999)
    first, end = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [i * step for i in range(first, max(end, first + 1) + 1)], step


def extent(series: Sequence[Series], unit: str) -> tuple[float, float]:
    """Axis range: all means, and nine tenths of each band's edge, so that a first week of few users squashes nothing.

    Zero belongs to it unless the values are far from zero.
    """
    low, high = math.inf, -math.inf
    for s in series:
        mean, bottom, top = ([v for v in track if v is not None] for track in (s.mean, s.low, s.high))
        cut = len(top) // 10
        low = min([low, *mean, *sorted(bottom)[cut:]])
        high = max([high, *mean, *sorted(top)[: len(top) - cut]])
    if low > high:
        return 0.0, 1.0
    if low > 0 and low < 0.6 * high:
        low = 0.0
    if high < 0 and high > 0.6 * low:
        high = 0.0
    least = 0.02 if unit == "share" else 1e-6
    return low, max(high, low + least)


def last(track: Track) -> int | None:
    """Index of the last known value."""
    return next((i for i in range(len(track) - 1, -1, -1) if track[i] is not None), None)


def position_ticks(positions: Sequence[float], now: float | None = None) -> list[float]:
    """The first position, then about every sixth of the way, then the last; apart by what their labels need. Others
    give way to `now`, if there is room for it.
    """
    n, first, final = len(positions), positions[0], positions[-1]
    step = next(k for k in (1, 2, 4, 8, 13, 26, 52, n) if n / k <= 8 or k == n)
    marks, span = [first], max(final - first, 1e-9)
    for position in positions:
        aside = 0.1 if len(f"{position:g}") < 3 else 0.16  # what a short label and a long one need beside the first
        if position == now and aside * span <= position - first and final - position >= 0.08 * span:
            marks = [mark for mark in marks if mark == first or position - mark >= 0.08 * span] + [position]
            continue
        room = (0.16 if len(marks) == 1 else 0.08) * span  # the first label names the axis
        if (step == 1 or position % step == 0) and position - marks[-1] >= room and final - position >= 0.1 * span:
            marks.append(position)
    return list(dict.fromkeys([*marks, final]))


@dataclass(frozen=True, slots=True)
class Frame:
    """Data to pixels."""

    first: float
    last: float
    low: float
    high: float

    def x(self, position: float) -> float:
        return LEFT_MARGIN + (WIDTH - LEFT_MARGIN - RIGHT_MARGIN) * (position - self.first) / max(
            self.last - self.first, 1e-9
        )

    def y(self, value: float) -> float:
        return (
            HEIGHT - BOTTOM_MARGIN - (HEIGHT - TOP_MARGIN - BOTTOM_MARGIN) * (value - self.low) / (self.high - self.low)
        )


def line_path(frame: Frame, positions: Sequence[float], track: Track) -> str:
    """SVG path of a line, broken where a value is missing; a dash where both neighbours are."""
    parts = []
    for i, (position, value) in enumerate(zip(positions, track, strict=True)):
        if value is None:
            continue
        x, y = frame.x(position), frame.y(value)
        starts, ends = i == 0 or track[i - 1] is None, i == len(track) - 1 or track[i + 1] is None
        if starts and ends:  # a line of one point would not be seen
            parts.append(f"M{x - 2:.1f} {y:.1f}L{x + 2:.1f} {y:.1f}")
        else:
            parts.append(f"{'M' if starts else 'L'}{x:.1f} {y:.1f}")
    return "".join(parts)


def band(frame: Frame, positions: Sequence[float], low: Track, high: Track) -> str:
    """SVG path around a band, one closed piece per unbroken stretch."""
    pieces: list[list[tuple[float, float, float]]] = [[]]
    for position, bottom, top in zip(positions, low, high, strict=True):
        if bottom is None or top is None:
            pieces.append([])
        else:
            pieces[-1].append((position, bottom, top))
    out = []
    for piece in filter(None, pieces):
        upper = [f"{frame.x(p):.1f} {frame.y(t):.1f}" for p, _, t in piece]
        lower = [f"{frame.x(p):.1f} {frame.y(b):.1f}" for p, b, _ in reversed(piece)]
        out.append("M" + "L".join(upper + lower) + "Z")
    return "".join(out)


def banded(shown: Sequence[Series]) -> Sequence[Series]:
    """Lines that show their bands, so that these do not drown one another: two at most, the main ones of many."""
    if len(shown) <= 2:
        return shown
    return [s for s in shown if "main" in s.css.split()] or shown[:1]


def height(entries: int) -> int:
    """Height of a chart by the number of lines in its key."""
    return HEIGHT + KEY_ROW * -(-entries // KEY_COLUMNS)


def chart_svg(chart: Chart, visible: Collection[str], attributes: str = "") -> str:
    """The chart as one `<svg>` element; lines of arms that are not visible are there, marked `off`."""
    shown = [s for s in chart.series if s.name in visible]
    marks, step = ticks(*extent([*shown, *chart.ceilings], chart.unit))
    frame = Frame(chart.positions[0], chart.positions[-1], marks[0], marks[-1])
    right, floor = WIDTH - RIGHT_MARGIN, HEIGHT - BOTTOM_MARGIN
    keys, bands = _labels(shown, chart.ceilings, chart.unit), banded(shown)
    out = [
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height(len(keys))}" role="img"{attributes}',
        f' aria-label="{escape(chart_in_words(chart, visible))}"><clipPath id="{chart.id}-c">',
        f'<rect x="{LEFT_MARGIN}" y="{TOP_MARGIN - 2}" width="{right - LEFT_MARGIN + 2}"',
        f' height="{floor - TOP_MARGIN + 3}"/>',
        '</clipPath><g class="grid">',
    ]
    for mark in marks:
        y = frame.y(mark)
        zero = ' class="zero"' if abs(mark) < step / 2 else ""
        out.append(f'<line x1="{LEFT_MARGIN}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"{zero}/>')
        out.append(
            f'<text x="{LEFT_MARGIN - 6}" y="{y + 3.5:.1f}" text-anchor="end">{tick(mark, chart.unit, step)}</text>'
        )
    out.append('</g><g class="places">')
    if chart.now is not None:
        x = frame.x(chart.now)
        out.append(f'<line class="now" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP_MARGIN}" y2="{floor}"/>')
    for position in position_ticks(chart.positions, chart.now):
        start = position == chart.positions[0]
        text = f"{chart.axis} {position:g}" if start else f"{position:g}"
        x, anchor = (LEFT_MARGIN - 6, "start") if start else (frame.x(position), "middle")
        if position == chart.now and LEFT_MARGIN < x < LEFT_MARGIN + 60:
            x += 5.0  # clear of the first label, which names the axis
        out.append(f'<text x="{x:.1f}" y="{HEIGHT - 9}" text-anchor="{anchor}">{escape(text)}</text>')
    out.append(f'</g><g clip-path="url(#{chart.id}-c)">')
    for ceiling in chart.ceilings:
        bottom = [None if v is None else marks[0] for v in ceiling.mean]
        out.append(f'<g class="ceiling {ceiling.css}" data-name="{escape(ceiling.name)}">')
        out.append(f'<path class="under" d="{band(frame, chart.positions, bottom, ceiling.mean)}"/>')
        out.append(f'<path class="line" d="{line_path(frame, chart.positions, ceiling.mean)}"/></g>')
    for series in reversed(chart.series):  # the first arm lies on top
        off = ("" if series.name in visible else " off") + (" banded" if series in bands else "")
        out.append(f'<g class="arm {series.css}{off}" data-name="{escape(series.name)}">')
        out.append(f'<path class="band" d="{band(frame, chart.positions, series.low, series.high)}"/>')
        out.append(f'<path class="line" d="{line_path(frame, chart.positions, series.mean)}"/></g>')
    out.append(f'</g><g class="labels">{"".join(keys)}</g>')
    empty, middle = "" if shown or chart.ceilings else NO_LINES, (TOP_MARGIN + floor) / 2
    if _is_dashes(chart, shown):
        empty, middle = SINGLE_WEEKS, TOP_MARGIN + 22  # clear of most dashes
    out.append(f'<text class="empty" x="{(LEFT_MARGIN + right) / 2}" y="{middle}" text-anchor="middle">{empty}</text>')
    out.append(f'<line class="cursor" y1="{TOP_MARGIN}" y2="{floor}" x1="-9" x2="-9"/></svg>')
    return "".join(out)


def _is_dashes(chart: Chart, shown: Sequence[Series]) -> bool:
    """Has no line of a chart by week two weeks whose users are enough, as small runs have it?"""
    known = [len(s.mean) - s.mean.count(None) for s in shown]
    return chart.axis == "week" and len(chart.positions) > 1 and bool(known) and max(known) < 2


def _labels(shown: Sequence[Series], ceilings: Sequence[Series], unit: str) -> list[str]:
    """The key under the plot: stroke, name and last value of each line, the highest first, then the ceilings."""
    last_known = [(s, last(s.mean)) for s in (*shown, *ceilings)]
    ends = [(s, s.mean[i] or 0.0) for s, i in last_known if i is not None]
    ends.sort(key=lambda end: (end[0] in ceilings, -end[1]))
    out = []
    for n, (s, value) in enumerate(ends):
        x, y = KEY_LEFT + KEY_WIDTH * (n % KEY_COLUMNS), HEIGHT + KEY_ROW * (n // KEY_COLUMNS + 0.5)
        out.append(
            f'<g class="label {s.css}" data-name="{escape(s.name)}"><path class="line" d="M{x} {y}h14"/>'
            f'<text x="{x + 18}" y="{y + 3.5}">{escape(line_label(s.name, value, unit))}</text></g>'
        )
    return out


def line_label(name: str, value: float | None, unit: str) -> str:
    """Text at the end of a line: its name, shortened so that the value still fits, and the value."""
    shown = typeset_value(value, unit)
    room = LABEL_CHARS - len(shown) - 1
    return f"{name if len(name) <= room else name[: room - 1] + '…'} {shown}"


def chart_in_words(chart: Chart, visible: Collection[str]) -> str:
    """The chart in words, for those who do not see it."""
    words = []
    for s in chart.series:
        end = last(s.mean)
        start = next((i for i, v in enumerate(s.mean) if v is not None), None)
        if s.name in visible and start is not None and end is not None:
            first, final = (typeset_value(s.mean[at], chart.unit) for at in (start, end))
            at = f"{chart.axis} {chart.positions[start]:g}", f"{chart.axis} {chart.positions[end]:g}"
            words.append(f"{s.name} from {first} at {at[0]} to {final} at {at[1]}")
    return f"{without_markup(chart.title)}: {'; '.join(words) or 'no arm is shown'}."
