"""Losses of an arm's utility: from the ceiling down to what it reached, bar by bar, and the same as a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from markupsafe import Markup

from skg_bench.analysis.comparison.flips import REASONS
from skg_bench.analysis.report.addresses import lost
from skg_bench.analysis.report.arm_looks import Look
from skg_bench.analysis.report.chart import WIDTH, tick, ticks
from skg_bench.analysis.report.typeset import typeset_interval, typeset_value
from skg_bench.analysis.summary.document import Summary, Waterfall
from skg_bench.analysis.summary.figures import NO_FIGURE, Figure
from skg_bench.analysis.summary.losses import ORDER

Named = tuple[str, str]  # a label, and what it says
_LEFT, _RIGHT, _ROW, _BAR, _FOOT = 118, 46, 21, 13, 24  # pixels
LOSS_WORDS = {
    "novelty": ("Nothing to know", "A one-off, or no earlier answer that still holds: the LLM answered."),
    "capture": ("Not captured", "An earlier answer holds, but no skill has one: the LLM answered."),
    "wrong_source": ("Wrong source", "The stored answer was wrong from the beginning."),
    "staleness": ("Stale", "The stored answer had expired."),
    "generality": ("Not general", "The procedure does not serve other values or times than those it was made of."),
    "routing": ("Not shortlisted", "A right skill was there, but not on the shortlist."),
    "score": ("Policy: score", "A right skill was on the shortlist, but another scored higher."),
    "threshold": ("Policy: threshold",
                  "The right skill was best, but the LLM answered; or a skill answered, and none was right."),
    "slot": ("Slots", "A right procedure filled its slots wrongly, or not at all."),
    "tool": ("Tool", "The tool of a right procedure gave nothing back: the LLM answered."),
    "none": ("Right hits", "What the answers of right skills themselves cost."),
}  # fmt: skip

IN_WORDS = {
    "capture": ("Asked again", "An earlier answer holds, but the assistant asked its model."),
    "wrong_source": ("Wrong from the beginning", "The earlier answer was wrong when it was given first."),
    "staleness": ("Stale", "The earlier answer had expired."),
    "threshold": ("Does not answer this", "The earlier answer was to another request, or told of an act to do anew."),
    "routing": ("Leak", "The answer was never given to this user."),
    "none": ("Right hits", "What right answers from memory themselves cost."),
}  # fmt: skip
"""Causes of assistants without a skillbook, by what their words refer to (engine/references.py)."""
_CAUSES = {reason: cause for cause, reason in REASONS.items() if cause != "none"}
_BY_MODEL = "The model was asked, and its answer was wrong."


@dataclass(frozen=True, slots=True)
class CauseRow:
    """One cause, as text."""

    label: str
    says: str
    turns: str
    loss: str
    these: str
    new: str
    difference: str  # to the reference
    difference_new: str


@dataclass(frozen=True, slots=True)
class ArmLosses:
    """One arm's losses."""

    look: Look
    ceiling: str
    reached: str
    drawing: Markup
    rows: Sequence[CauseRow]


def reason_words(reason: str, *, in_words: bool) -> Named:
    """Label of a reason of `compare --flips`, as the page names the cause, and what it says. `in_words`: the assistant
    has no skillbook.
    """
    if reason not in _CAUSES:
        return reason, _BY_MODEL if reason == REASONS["none"] else ""
    words = LOSS_WORDS | IN_WORDS if in_words else LOSS_WORDS
    label, says = words[_CAUSES[reason]]
    return f"{label[:1].lower()}{label[1:]}", says


def panels(summary: Summary, looks: Sequence[Look], in_words: Sequence[str] = ()) -> list[ArmLosses]:
    """One per arm, in the order of `looks`; none where a log does not say what was right. `in_words`: arms whose
    assistants have no skillbook.
    """
    fallen = summary.waterfall  # empty where the right answers are not known
    links = {link.name: (link.label, link.says) for link in summary.telling.links}
    named = links or {cause: LOSS_WORDS[cause] for cause in ORDER}
    outside = links or {"novelty": LOSS_WORDS["novelty"], **{c: IN_WORDS[c] for c in ORDER if c in IN_WORDS}}
    return [
        _panel(look, fallen[look.arm], summary, outside if look.arm in in_words else named)
        for look in looks
        if look.arm in fallen
    ]


def _panel(look: Look, fall: Waterfall, summary: Summary, named: Mapping[str, Named]) -> ArmLosses:
    losses, against = fall.losses, fall.differences or {}
    return ArmLosses(
        look,
        typeset_value(fall.ceiling, "utility"),
        typeset_value(fall.ceiling - sum(_mean(losses[cause]) for cause in named), "utility"),
        Markup(waterfall_svg(look, fall, named, summary.telling.best)),  # noqa: S704  names are escaped
        [_row(words, losses[cause], against.get(cause, NO_FIGURE), summary.turns) for cause, words in named.items()],
    )


def _mean(loss: Figure) -> float:
    return 0.0 if loss.mean is None else loss.mean


def _row(words: Named, loss: Figure, against: Figure, turns: int) -> CauseRow:
    label, says = words
    return CauseRow(
        label,
        says,
        typeset_value(loss.n_turns / turns, "share"),
        typeset_value(loss.mean, "utility"),
        typeset_interval(loss.low, loss.high, "utility"),
        typeset_interval(loss.low_new, loss.high_new, "utility"),
        typeset_value(against.mean, "utility", signed=True),
        typeset_interval(against.low_new, against.high_new, "utility", signed=True),
    )


def waterfall_svg(look: Look, fall: Waterfall, named: Mapping[str, Named], best: str) -> str:
    """The bars, with the 95 % interval for new requests at the end of each. A bar below 0 goes to the right."""
    losses, ceiling = fall.losses, fall.ceiling
    levels = [ceiling]
    for cause in named:
        levels.append(levels[-1] - _mean(losses[cause]))
    reach = [
        level - end
        for level, cause in zip(levels, named, strict=False)
        for end in (losses[cause].low_new, losses[cause].high_new)
        if end is not None and cause not in LOSS_WORDS
    ]
    marks, step = ticks(min(levels + reach), max(levels + reach))
    floor = _ROW * len(levels) + _ROW + 4

    def x(value: float) -> float:
        return round(_LEFT + (WIDTH - _LEFT - _RIGHT) * max(value - marks[0], 0.0) / (marks[-1] - marks[0]), 1)

    words = "; ".join(f"{named[c][0]} {typeset_value(losses[c].mean, 'utility')}" for c in named)
    label = f"{look.arm}: from {typeset_value(ceiling, 'utility')} to {typeset_value(levels[-1], 'utility')}. {words}."
    out = [
        f'<svg class="chart falls {look.css}" viewBox="0 0 {WIDTH} {floor + _FOOT}" role="img"',
        f' aria-label="{escape(label)}"><g class="grid">',
    ]
    for mark in marks:
        out.append(f'<line x1="{x(mark)}" x2="{x(mark)}" y1="0" y2="{floor}"/>')
        out.append(f'<text x="{x(mark)}" y="{floor + 15}" text-anchor="middle">{tick(mark, "utility", step)}</text>')
    out.append(f"</g>{_words(best, ceiling, 0)}{_level(x(ceiling), 0)}")
    for n, cause in enumerate(named, 1):
        loss, middle = losses[cause], (n + 0.5) * _ROW
        before, after = x(levels[n - 1]), x(levels[n])
        wide = max(abs(before - after), 0.8)
        if cause in LOSS_WORDS:
            turns = f"Turns of {look.arm} lost to: {LOSS_WORDS[cause][0]}"
            out.append(f'<a href="{escape(lost(look.arm, cause))}" aria-label="{escape(turns)}">')
            out.append(f'<path class="target" d="M0 {n * _ROW}H{WIDTH}v{_ROW}H0z"/>')
        won = ' class="won"' if after > before else ""
        out.append(f'<rect{won} x="{min(before, after)}" y="{middle - _BAR / 2}" width="{wide:.1f}" height="{_BAR}"/>')
        if loss.low_new is not None and loss.high_new is not None:
            ends = [x(levels[n - 1] - end) for end in (loss.high_new, loss.low_new)]
            out.append(f'<line class="reach" x1="{ends[0]}" x2="{ends[1]}" y1="{middle}" y2="{middle}"/>')
        out.append(f'<line class="step" x1="{after}" x2="{after}" y1="{middle + _BAR / 2}" y2="{(n + 1) * _ROW}"/>')
        out.append(_words(named[cause][0], _mean(loss), n) + ("</a>" if cause in LOSS_WORDS else ""))
    return "".join([*out, _words("Reached", levels[-1], len(levels)), _level(x(levels[-1]), len(levels)), "</svg>"])


def _level(x: float, n: int) -> str:
    return f'<line class="level" x1="{x}" x2="{x}" y1="{n * _ROW + 2}" y2="{(n + 1) * _ROW - 2}"/>'


def _words(label: str, value: float, n: int) -> str:
    y = (n + 0.5) * _ROW + 4
    return (
        f'<text x="{_LEFT - 8}" y="{y}" text-anchor="end">{label}</text>'
        f'<text x="{WIDTH}" y="{y}" text-anchor="end">{typeset_value(value, "utility")}</text>'
    )
