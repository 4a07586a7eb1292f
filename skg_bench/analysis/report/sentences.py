"""Sentences about a run, and figures within them."""

from dataclasses import dataclass
from typing import Literal

from skg_bench.analysis.counts.wording import interval, number
from skg_bench.analysis.summary.figures import Figure

Tone = Literal["good", "bad", "open", "caution", "plain"]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, and what it means for the learning arm: good, bad, open; a caution; or plainly a fact."""

    marked: str  # names of arms stand between backticks, which the page shows as code
    tone: Tone

    @property
    def text(self) -> str:
        """The sentence without backticks, for a terminal."""
        return without_markup(self.marked)


def code(arm: str) -> str:
    """An arm's name as a sentence holds it."""
    return f"`{arm.replace('`', '')}`"


def without_markup(marked: str) -> str:
    """A marked text as a reader without markup sees it."""
    return marked.replace("`", "")


def share_of(figure: Figure) -> str:
    """A share, with its interval for new requests."""
    text = number(figure.mean, "share")
    return text if figure.low_new is None else f"{text} ({interval(figure.low_new, figure.high_new, 'share')})"
