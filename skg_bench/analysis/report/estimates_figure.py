"""Figure of what a log says of policies, as one SVG: values with intervals, hollow if they are of the log's states."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import isnan, nan
from textwrap import wrap

from skg_bench.analysis.policy_value.estimates import STEP, PolicyEstimates, PolicyValue
from skg_bench.analysis.report.chart import tick, ticks
from skg_bench.analysis.report.forest import LETTER
from skg_bench.analysis.report.picture import STYLE

_PANEL, _PAD, _HEAD, _FOOT, _LINE, _SIDE = 360, 14, 62, 30, 20, 200  # pixels
_UNDER = (
    "Hollow: other decisions in the states of the log (step), not the value of an arm that learns. 95 %, other users."
)
_REPLAYED = (
    "Filled: arms that were replayed on the messages of the log. Thin: 95 %, other users. Thick: 95 %, these users. "
    "Band behind: other ratings, and answers that the log could not have given all wrong or all right."
)
_OWN = """
.ends { stroke: var(--ink); stroke-width: 2; } .these { stroke: var(--ink); stroke-width: 5; }
.band { fill: var(--rule); opacity: 1; } .dot { fill: var(--paper); stroke: var(--ink); stroke-width: 1.4; }
.reference { stroke: var(--rule-2); stroke-width: 1.2; } .replayed .dot { fill: var(--ink); }
.withheld .dot, .withheld line { stroke: var(--rule-2); } .withheld.replayed .dot { fill: var(--ceiling-line); }
.name { fill: var(--ink); } .withheld text { fill: var(--soft); }
"""


def estimates_svg(estimates: PolicyEstimates) -> str:
    """The figure as text. What is withheld is grey, with the reason below; a line marks the log's own mean reward."""
    values = estimates.values
    names = [
        f"{each.policy}, {STEP if estimates.replays and each.estimand == STEP else each.estimator}" for each in values
    ]
    left = _PAD + LETTER * max(map(len, names)) + 10
    width, bottom = left + _PANEL + _SIDE, _HEAD + _LINE * len(values)
    letters = int((width - 2 * _PAD) / LETTER * 1.15)
    under = [*wrap(_legend(estimates), letters), *_reasons(estimates, letters)]
    height = bottom + _FOOT + 16 * len(under) + _PAD
    size = f'width="{width:.0f}" height="{height}"'
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" {size} role="img"',
        f' aria-label="{escape(estimates_in_words(estimates))}">',
        f'<style>{STYLE}{_OWN}</style><rect class="paper" {size} rx="6"/>',
        f'<text class="title" x="{_PAD}" y="{_PAD + 12}">Values of policies, by a log</text>',
        f'<text x="{_PAD}" y="{_PAD + 28}">{escape(_size(estimates))}</text>',
        *_panel(_marks(estimates), names, left),
        *(
            f'<text x="{_PAD}" y="{bottom + _FOOT + 16 * (i + 1)}">{escape(line)}</text>'
            for i, line in enumerate(under)
        ),
    ]
    return "".join([*out, "</svg>\n"])


def _legend(estimates: PolicyEstimates) -> str:
    """Meaning of the marks that are drawn."""
    hollow = any(value.estimand == STEP for value in estimates.values)
    return " ".join([*([_REPLAYED] if estimates.replays else []), *([_UNDER] if hollow else [])])


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
    reasons = (f"{policy} is withheld: {withheld}." for policy, withheld in estimates.reasons)
    return [line for reason in reasons for line in wrap(reason, letters)]


@dataclass(frozen=True)
class _Mark:
    """Marks of a policy, each `(NaN, NaN)` where there is none."""

    value: PolicyValue
    these: tuple[float, float]  # interval for these users
    band: tuple[float, float]


def _marks(estimates: PolicyEstimates) -> list[_Mark]:
    replays = {each.policy: each for each in estimates.replays}
    zero = next(value.value for value in estimates.values if value.policy == estimates.reference)
    marks = []
    for value in estimates.values:
        these = band = (nan, nan)
        if value.estimand != STEP and (replay := replays.get(value.policy)):
            these, (low, high) = replay.these_users, replay.sensitivity
            from_zero = 0.0 if value.policy == estimates.reference else zero  # else it is of the difference
            band = (from_zero + low, from_zero + high)
        marks.append(_Mark(value, these, band))
    return marks


def _panel(drawn: Sequence[_Mark], names: Sequence[str], left: float) -> list[str]:
    known = [x for mark in drawn for x in (mark.value.value, *mark.value.interval, *mark.these, *mark.band)]
    known = [x for x in known if not isnan(x)]
    marks, step = ticks(min(known, default=0.0), max(known, default=1.0))
    low, high, bottom = marks[0], marks[-1], _HEAD + _LINE * len(drawn)

    def x(value: float) -> float:
        return left + _PANEL * (value - low) / (high - low)

    def line(kind: str, ends: tuple[float, float], y: float) -> list[str]:
        if isnan(ends[0]):
            return []
        return [f'<line class="{kind}" x1="{x(ends[0]):.1f}" x2="{x(ends[1]):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>']

    out = []
    for mark in marks:
        grid = f'<line x1="{x(mark):.1f}" x2="{x(mark):.1f}" y1="{_HEAD}" y2="{bottom}"/>'
        label = f'<text x="{x(mark):.1f}" y="{bottom + 16}" text-anchor="middle">{tick(mark, "", step)}</text>'
        out.append(f'<g class="grid">{grid}</g>{label}')
    if not isnan(drawn[0].value.value):  # of the log
        at = x(drawn[0].value.value)
        out.append(f'<line class="reference" x1="{at:.1f}" x2="{at:.1f}" y1="{_HEAD}" y2="{bottom}"/>')
    for i, (shown, name) in enumerate(zip(drawn, names, strict=True)):
        value, y = shown.value, _HEAD + _LINE * (i + 0.5)
        given = "withheld" if value.verdict == "withheld" or isnan(value.interval[0]) else "given"
        out.append(f'<g class="{given}{"" if value.estimand == STEP else " replayed"}">')
        if not isnan(shown.band[0]):
            place = f'x="{x(shown.band[0]):.1f}" width="{x(shown.band[1]) - x(shown.band[0]):.1f}"'
            out.append(f'<rect class="band" {place} y="{y - 7:.1f}" height="14"/>')
        out.append(f'<text class="name" x="{left - 10:.0f}" y="{y + 4:.1f}" text-anchor="end">{escape(name)}</text>')
        out += [*line("ends", value.interval, y), *line("these", shown.these, y)]
        if not isnan(value.value):
            out.append(f'<circle class="dot" cx="{x(value.value):.1f}" cy="{y:.1f}" r="4"/>')
        out.append(f'<text x="{left + _PANEL + 12:.0f}" y="{y + 4:.1f}">{escape(value.verdict)}</text></g>')
    return out
