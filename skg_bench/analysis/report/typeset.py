"""Texts and numbers as print sets them: a real minus, a thin space before units."""

import re

from markupsafe import Markup, escape

from skg_bench.analysis.counts import wording

_MINUS = re.compile(r"(?<![\w-])-(?=[$\d])")
_UNIT = re.compile(r"(?<=\d) (?=(%|pp|s)(\W|$))")
_CODE = re.compile(r"`([^`]+)`")
DASH = "–"


def typeset(text: str) -> str:
    """Minus signs before numbers, narrow no-break spaces before units."""
    return _UNIT.sub("\u202f", _MINUS.sub("−", text))


def marked(text: str) -> Markup:
    """A typeset text as markup: what stands between backticks, names of arms, is code; all else is escaped."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(typeset(text)))))  # noqa: S704  escaped first


def typeset_value(value: float | None, unit: str, *, signed: bool = False) -> str:
    """A value of a metric, in the words that the command line uses too."""
    text = wording.number(value, unit, signed=signed)
    return DASH if text == "-" else typeset(text)


def typeset_sizes(rise: float | None, fall: float | None, unit: str) -> str:
    """Sizes above and below 0, in the words that the command line uses too."""
    text = wording.rise_or_fall(rise, fall, unit)
    return DASH if text == "-" else typeset(text)


def typeset_interval(low: float | None, high: float | None, unit: str, *, signed: bool = False) -> str:
    """`low to high`; the unit is said once."""
    if low is None or high is None:
        return DASH
    first, last = typeset_value(low, unit, signed=signed), typeset_value(high, unit, signed=signed)
    for after in ("\u202f%", "\u202fpp", "\u202fs"):
        if last.endswith(after):
            first = first.removesuffix(after)
    return f"{first} to {last}"
