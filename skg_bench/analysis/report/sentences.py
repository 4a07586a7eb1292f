"""Sentences about a run, and figures within them."""

from dataclasses import dataclass
from typing import Literal

from skg_bench.analysis.counts.wording import interval, number
from skg_bench.analysis.summary.figures import Figure

Tone = Literal["good", "bad", "open", "caution", "plain"]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, and what it means for the learning arm: good, bad, open; a caution; or plainly a fact."""

    text: str
    tone: Tone


def share_of(figure: Figure) -> str:
    """A share, with its interval for new requests."""
    text = number(figure.mean, "share")
    return text if figure.low_new is None else f"{text} ({interval(figure.low_new, figure.high_new, 'share')})"
