"""Assay sensitivity: one rule for what a contrast of two arms may say, whichever way it comes out.

A contrast speaks only where its reference arm lies between `never`, which reuses nothing, and an oracle of the same
run, both by the interval of the difference. Below `never` an arm may be ahead because it reuses less, and behind as it
reuses more: neither says anything about the part that was changed. Without room up to an oracle nothing can be won.
(The name is that of clinical trials: ICH E10, 1.5.)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Literal, get_args

from skg_bench.analysis.statistics.intervals import Estimate

NEVER, ORACLE = "never", "oracle"  # arms of a run whose contrasts are to say something
ClaimVerdict = Literal[
    "reproduced", "not reproduced", "depends on the corpus", "robust", "attainable", "strained", "impossible",
    "contradictory", "not testable here",
]  # fmt: skip
VERDICTS: tuple[str, ...] = get_args(ClaimVerdict)
OPEN: ClaimVerdict = "not testable here"


@dataclass(frozen=True)
class Measured:
    """A figure with its interval."""

    value: float
    low: float
    high: float
    unit: str  # "share" is shown in percent, any other unit is shown as it is

    @classmethod
    def of(cls, e: Estimate, unit: str = "utility per request") -> "Measured":
        """Interval of an estimate, for new users and new requests; one that is withheld has no ends, and one that
        is disputed reaches as far as the others.
        """
        low, high = e.interval(new=True)
        for other in e.others.values() if e.disputed else ():
            low, high = min(low, other[0]), max(high, other[1])
        return cls(e.mean, -inf, inf, unit) if e.withheld else cls(e.mean, low, high, unit)

    @property
    def above(self) -> bool:
        """Does the whole interval lie above 0?"""
        return self.low > 0

    def __str__(self) -> str:
        scale, unit = (100.0, "%") if self.unit == "share" else (1.0, self.unit)
        value, low, high = (f"{scale * x:.3g}" for x in (self.value, self.low, self.high))
        return f"{value} {unit} ({f'{low} to {high}' if isfinite(self.low) else 'no interval: too few intents'})"


@dataclass(frozen=True)
class Assay:
    """Position of a contrast's reference arm in its run."""

    ahead: Measured | None  # the reference beyond `never`; None: it is `never`
    room: Measured  # an oracle of the run beyond the reference

    @property
    def gap(self) -> str:
        """Reason why the contrast can say nothing; empty: it can."""
        if self.ahead is not None and not self.ahead.above:
            return f"its reference is not shown to be ahead of one that reuses nothing: {_short(self.ahead)}"
        if not self.room.above:
            return f"no oracle of the run is shown to be ahead of its reference: {_short(self.room)}"
        return ""


def _short(m: Measured) -> str:
    return f"{m.value:+.3f} ({f'{m.low:+.3f} to {m.high:+.3f}' if isfinite(m.low) else 'no interval'})"


def claim_verdict(
    *, holds: bool, fails: bool, assay: Assay | None, used_up: Sequence[str] = (), neither: str = "not shown either way"
) -> tuple[ClaimVerdict, str]:
    """Verdict of a claim which a run measures, and of "not testable here" the reason that remains, else nothing.

    `holds`: it is shown to be true; `fails`: it is shown to be false; neither: `neither` says why, as that nothing was
    found refutes no claim. `assay`: of the contrast; None: the claim is about no difference of arms. `used_up`: reasons
    why the run's corpus is too small to show anything (`Saturation.reasons`).
    """
    if used_up:
        return OPEN, f"the corpus was used up: {'; '.join(used_up)}"
    if assay is not None and assay.gap:
        return OPEN, assay.gap
    if not (holds or fails):
        return OPEN, neither
    return ("reproduced" if holds else "not reproduced"), ""


def agree(by_seed: Sequence[float], *, above: float = -inf, below: float = inf) -> bool:
    """Does the mean of each seed lie between these?

    Users of another seed are other users, so the users of all seeds together are one larger sample, and one interval
    says what it shows. The seeds have a veto: where one of them says otherwise, another may have made the difference.
    """
    return all(above < mean < below for mean in by_seed)
