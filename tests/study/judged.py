"""Differences with a verdict."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """A difference with its interval."""

    low: float
    high: float

    @property
    def word(self) -> str:
        return "better" if self.low > 0 else "worse" if self.high < 0 else "open"


BETTER, WORSE, OPEN = Difference(0.1, 0.3), Difference(-0.3, -0.1), Difference(-0.1, 0.1)
