"""Verdicts by prior mass: in which share of the draws from a prior a claim holds."""

from dataclasses import dataclass

from scipy.stats import binomtest

from skg_bench.analysis.comparison.assay import ClaimVerdict

CUTS = (0.05, 0.9)  # shares of the prior from which on a claim is attainable, and robust
ENOUGH = 3000  # draws, none of which may hold before a claim is called impossible


def verdict_at(share: float) -> ClaimVerdict:
    """Verdict on a claim that holds in this share of the prior."""
    return "robust" if share >= CUTS[1] else "attainable" if share >= CUTS[0] else "strained"


def wilson(held: int, draws: int) -> tuple[float, float]:
    """The 95 % interval of the share of the prior, where it held in so many of the draws."""
    between = binomtest(held, draws).proportion_ci(method="wilson")
    return float(between.low), float(between.high)


def verdict_of(surely: int, at_most: int, draws: int) -> ClaimVerdict:
    """Verdict by the interval from what holds surely to what may hold at most; none where a cut lies in it."""
    if at_most == 0 and draws >= ENOUGH:
        return "impossible"
    least, most = verdict_at(wilson(surely, draws)[0]), verdict_at(wilson(at_most, draws)[1])
    return least if least == most else "not testable here"


def cut_between(least: float, most: float) -> float:
    """The first limit between two verdicts that lies between these shares."""
    return next(cut for cut in CUTS if least < cut <= most)


@dataclass(frozen=True)
class Share:
    """Share of draws in which something holds, of those in which it can be known."""

    held: int
    draws: int

    @property
    def share(self) -> float:
        """Share of the draws; NaN where there are none."""
        return self.held / self.draws if self.draws else float("nan")

    @property
    def limits(self) -> tuple[float, float]:
        """Limits of what the draws leave open at 95 %."""
        return wilson(self.held, self.draws) if self.draws else (0.0, 1.0)

    @property
    def verdict(self) -> ClaimVerdict:
        """Verdict by prior mass."""
        return verdict_of(self.held, self.held, self.draws) if self.draws else "not testable here"
