"""Figure of what a log says of policies, as one SVG: values with intervals, hollow if they are of the log's states."""

from collections.abc import Sequence
from html import escape
from math import isnan
from textwrap import wrap

from skg_bench.analysis.policy_value.estimates import PolicyEstimates, PolicyValue
from skg_bench.analysis.report.chart import tick, ticks
from skg_bench.analysis.report.forest import LETTER
from skg_bench.analysis.report.picture import STYLE

_PANEL, _PAD, _HEAD, _FOOT, _LINE, _SIDE = 360, 14, 62, 30, 20, 200  # pixels
_UNDER = (
    "Hollow: other decisions in the states of the log (step), not the value of an arm that learns. 95 %, other users."
)
_REPLAYED = "Filled: arms that were replayed on the messages of the log. 95 %, other users."
_OWN = """
.ends { stroke: var(--ink); stroke-width: 2; } .dot { fill: var(--paper); stroke: var(--ink); stroke-width: 1.4; }
.reference { stroke: var(--rule-2); stroke-width: 1.2; } .withheld .dot { stroke: var(--rule-2); }
.replayed .given .dot { fill: var(--ink); } .name { fill: var(--ink); } .withheld text { fill: var(--soft); }
"""


def estimates_svg(estimates: PolicyEstimates) -> str:
    """The figure as text. What is withheld is grey, with the reason below; a line marks the log's own mean reward."""
    values = estimates.values
    names = [f"{value.policy}, {value.estimator}" for value in values]
    left = _PAD + LETTER * max(map(len, names)) + 10
    width, bottom = left + _PANEL + _SIDE, _HEAD + _LINE * len(values)
    letters = int((width - 2 * _PAD) / LETTER * 1.15)
    under = [*wrap(_REPLAYED if estimates.replays else _UNDER, letters), *_reasons(estimates, letters)]
    height = bottom + _FOOT + 16 * len(under) + _PAD
    size = f'width="{width:.0f}" height="{height}"'
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" {size} role="img"',
        f' aria-label="{escape(estimates_in_words(estimates))}">',
        f'<style>{STYLE}{_OWN}</style><rect class="paper" {size} rx="6"/>',
        f'<text class="title" x="{_PAD}" y="{_PAD + 12}">Values of policies, by a log</text>',
        f'<text x="{_PAD}" y="{_PAD + 28}">{escape(_size(estimates))}</text>',
        f'<g class="{"replayed" if estimates.replays else "step"}">',
        *_panel(values, names, left),
        "</g>",
        *(
            f'<text x="{_PAD}" y="{bottom + _FOOT + 16 * (i + 1)}">{escape(line)}</text>'
            for i, line in enumerate(under)
        ),
    ]
    return "".join([*out, "</svg>\n"])


def estimates_in_words(estimates: PolicyEstimates) -> str:
    """The values in words, for those who do not see the figure."""
    phrases = (
        f"{each.policy} by {each.estimator}: {'-' if isnan(each.value) else f'{each.value:.4g}'}, {each.verdict}"
        for each in estimates.values
    )
    where = "on the messages" if estimates.replays else "in the states"
    return f"Values of policies {where} of a log, against {estimates.reference}: {'; '.join(phrases)}."


def _size(estimates: PolicyEstimates) -> str:
    users = "rows independent" if estimates.users is None else f"{estimates.users:,} users"
    return f"{estimates.rows:,} decisions, {users}; verdicts on the difference to {estimates.reference}"


def _reasons(estimates: PolicyEstimates, letters: int) -> list[str]:
    """Reasons of what is withheld, in lines."""
    known = [(each.policy, each.withheld) for each in estimates.weights]
    known += [(each.policy, each.withheld) for each in estimates.replays]
    reasons = (f"{policy} is withheld: {withheld}." for policy, withheld in known if withheld)
    return [line for reason in reasons for line in wrap(reason, letters)]


def _panel(values: Sequence[PolicyValue], names: Sequence[str], left: float) -> list[str]:
    known = [v for value in values for v in (value.value, *value.interval) if not isnan(v)]
    marks, step = ticks(min(known, default=0.0), max(known, default=1.0))
    low, high, bottom = marks[0], marks[-1], _HEAD + _LINE * len(values)

    def x(value: float) -> float:
        return left + _PANEL * (value - low) / (high - low)

    out = []
    for mark in marks:
        line = f'<line x1="{x(mark):.1f}" x2="{x(mark):.1f}" y1="{_HEAD}" y2="{bottom}"/>'
        label = f'<text x="{x(mark):.1f}" y="{bottom + 16}" text-anchor="middle">{tick(mark, "", step)}</text>'
        out.append(f'<g class="grid">{line}</g>{label}')
    if not isnan(values[0].value):  # of the log
        at = x(values[0].value)
        out.append(f'<line class="reference" x1="{at:.1f}" x2="{at:.1f}" y1="{_HEAD}" y2="{bottom}"/>')
    for i, (value, name) in enumerate(zip(values, names, strict=True)):
        y, (begin, end) = _HEAD + _LINE * (i + 0.5), value.interval
        out.append(f'<g class="{"withheld" if isnan(begin) else "given"}">')
        out.append(f'<text class="name" x="{left - 10:.0f}" y="{y + 4:.1f}" text-anchor="end">{escape(name)}</text>')
        if not isnan(begin):
            out.append(f'<line class="ends" x1="{x(begin):.1f}" x2="{x(end):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
        if not isnan(value.value):
            out.append(f'<circle class="dot" cx="{x(value.value):.1f}" cy="{y:.1f}" r="4"/>')
        out.append(f'<text x="{left + _PANEL + 12:.0f}" y="{y + 4:.1f}">{escape(value.verdict)}</text></g>')
    return out
