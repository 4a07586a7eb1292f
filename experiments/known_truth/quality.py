"""How good an interval for new requests is where the truth is known: coverage on each side, width, verdicts, power."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isnan, sqrt

import numpy as np

from experiments.known_truth.before import hall
from skg_bench.analysis.statistics.intervals import ALPHA, Cells, Estimate, estimates
from skg_bench.core.grid import F64

Ends = tuple[float, float]
COVERAGE, SIDE, WIDTH, POWERS = (0.93, 0.97), (0.01, 0.04), 1.3, (0.75, 0.90)  # what is due
FALSE = (0.03, 0.065)  # where the truth is 0
ERRORS = 2.0  # Monte Carlo standard errors: there is no other slack
COVERAGE_HEADINGS = (
    "world", "users", "intents", "runs", "withheld",
    *(f"{what}, {rule}" for rule in ("Student", "Hall") for what in ("below", "above", "width")),
    "below", "above", "holds", "width", "as due",
)  # fmt: skip
VERDICT_HEADINGS = (
    "world", "users", "intents", "better", "worse", "open", "depends", "false", "rise printed", "found", "fall printed",
    "found", "as due",
)  # fmt: skip


@dataclass(frozen=True)
class Drawn:
    """One experiment: the estimate, and the interval before."""

    estimate: Estimate
    hall: Ends

    @classmethod
    def of(cls, cells: Cells, over: F64, gained: F64) -> "Drawn":
        """The mean over users of gained / over."""
        (estimate,) = estimates(cells, [over], [[gained]])
        return cls(estimate, hall(cells, over, gained, estimate))


@dataclass(frozen=True)
class Side:
    """Quality of one rule: shares of intervals above and below the truth, median width by the ideal one."""

    below: float  # the truth lies below
    above: float
    width: float

    @classmethod
    def of(cls, ends: Iterable[Ends], truth: float, ideal: float) -> "Side":
        """`ideal`: between the 2.5 and 97.5 % quantiles of the estimates."""
        low, high = np.array(list(ends)).T
        return cls(float(np.mean(truth < low)), float(np.mean(truth > high)), float(np.median(high - low)) / ideal)

    def cells(self) -> tuple[str, ...]:
        """As text."""
        return _percent(self.below), _percent(self.above), f"{self.width:.2f}"


@dataclass(frozen=True)
class Quality:
    """A world at one size."""

    name: str
    users: int
    intents: float  # effective number of the design
    replications: int
    required: bool  # not below the printed share
    withheld: float
    student: Side
    hall: Side
    now: Side
    verdicts: tuple[float, float, float, float]  # better, worse, open, depends on the interval
    false: float  # verdicts, if the truth were 0
    printed: tuple[float, float]  # median detectable rise and fall
    found: tuple[float, float]  # verdicts of that sign, if that were the truth

    @property
    def covers(self) -> bool:
        """Coverage, each side, and width are as due."""
        within = self._near(1 - self.now.below - self.now.above, COVERAGE)
        return within and all(self._near(x, SIDE) for x in (self.now.below, self.now.above)) and self.now.width <= WIDTH

    @property
    def decides(self) -> bool:
        """False alarms and power are as due."""
        return self.false <= FALSE[1] + self._far(FALSE[1]) and all(self._near(x, POWERS) for x in self.found)

    @property
    def holds(self) -> bool:
        """Both, where it is required."""
        return not self.required or (self.covers and self.decides)

    def coverage_cells(self) -> tuple[str, ...]:
        """As text under COVERAGE_HEADINGS."""
        now = self.now.cells()
        holds = _percent(1 - self.now.below - self.now.above)
        due = self._due(self.covers)
        size = (self.name, str(self.users), f"{self.intents:.0f}", f"{self.replications:,}", _percent(self.withheld))
        return (*size, *self.student.cells(), *self.hall.cells(), *now[:2], holds, now[2], due)

    def verdict_cells(self) -> tuple[str, ...]:
        """As text under VERDICT_HEADINGS."""
        shares = map(_percent, (*self.verdicts, self.false))
        powers = [text for size, share in zip(self.printed, self.found, strict=True)
                  for text in (f"{size:.3f}", _percent(share))]  # fmt: skip
        return (self.name, str(self.users), f"{self.intents:.0f}", *shares, *powers, self._due(self.decides))

    def _due(self, held: bool) -> str:
        return "not required" if not self.required else "yes" if held else "NO"

    def _near(self, share: float, span: tuple[float, float]) -> bool:
        return span[0] - self._far(span[0]) <= share <= span[1] + self._far(span[1])

    def _far(self, share: float) -> float:
        return ERRORS * sqrt(share * (1 - share) / self.replications)


def quality(name: str, users: int, drawn: Sequence[Drawn], truth: float, *, required: bool = True) -> Quality:
    """Quality by these experiments in one world. Withheld ones count in `withheld` only."""
    kept = [d for d in drawn if not isnan(d.estimate.se_new)]
    e = [d.estimate for d in kept]
    ideal = float(np.subtract(*np.quantile([x.mean for x in e], [0.975, 0.025])))
    printed = [float(np.median([x.detectable(new=True, sign=sign) for x in e])) for sign in (1.0, -1.0)]
    rows = [
        _share(_verdict(_moved(x, sign * size - truth)) == sign for x in e)
        for sign, size in zip((1.0, -1.0), printed, strict=True)
    ]
    verdicts = [_verdict(x) for x in e]
    depends = [x.disputed for x in e]
    return Quality(
        name, users, float(np.median([x.design for x in e])), len(kept), required, 1 - len(kept) / len(drawn),
        Side.of((x.student for x in e), truth, ideal), Side.of((d.hall for d in kept), truth, ideal),
        Side.of((x.interval(new=True) for x in e), truth, ideal),
        (_share(v == 1 for v in verdicts), _share(v == -1 for v in verdicts),
         _share(v == 0 and not d for v, d in zip(verdicts, depends, strict=True)), _share(depends)),
        _share(_verdict(_moved(x, -truth)) != 0 for x in e), (printed[0], printed[1]), (rows[0], rows[1]),
    )  # fmt: skip


def _moved(e: Estimate, by: float) -> Estimate:
    """If every request gained that much more."""
    ends = None if e.bootstrap is None else (e.bootstrap[0] + by, e.bootstrap[1] + by)
    return replace(e, mean=e.mean + by, bootstrap=ends)


def _verdict(e: Estimate) -> int:
    """1: better, -1: worse, 0: neither, or it depends on the interval."""
    return 0 if e.disputed or e.p(new=True) >= ALPHA else 1 if e.mean > 0 else -1


def _share(events: Iterable[bool]) -> float:
    return float(np.mean(list(events)))


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
