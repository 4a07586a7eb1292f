"""A skewed world: the cells of a real run as a finite population, drawn again.

Users and intents are drawn with replacement, each with all its cells (a one-off message is an intent of its own): the
pigeonhole model (Owen 2007). The population's own difference is the truth for new users and new requests. Few intents
carry what `skg` loses, so that a sample often misses them, and Student's interval lies on one side of the truth.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path

import numpy as np

import skg_bench
from experiments.known_truth.worlds import generator
from skg_bench.analysis.counts.metrics import Utility, metrics
from skg_bench.analysis.counts.tally import events, tallies
from skg_bench.analysis.statistics.intervals import ALPHA, POWER, Cells, Estimate, _mix, estimates, sums
from skg_bench.core.grid import F64, I64
from skg_bench.core.run import Run

USERS, WEEKS = 100, 26  # of the run: those of `profile=demo`
DRAWN = (30, 100)
COVERS, SIDE, SURE = 0.02, 0.035, 0.05  # misses from nominal, on one side, and verdicts from POWER
CONTRASTS = (("skg", "never", 0), ("oracle", "never", 0), ("skg", "frozen_100", 100), ("skg", "frozen_400", 400))
ARMS = (
    "{skg: [], never: [policy=never, curator=none], oracle: [router=oracle, policy=always, curator=oracle], "
    "frozen_100: [freeze=all, freeze_at=100], frozen_400: [freeze=all, freeze_at=400]}"
)  # of `experiment=assistant_growth`, those whose differences the READMEs report
HEADINGS = (
    "difference", "users", "runs", "effective intents", "below, Student", "above, Student", "below", "above",
    "withheld",
    "as due",
)  # fmt: skip
POWER_HEADINGS = (
    "difference", "users", "printed, before", "verdicts, before", "false, before", "printed", "verdicts", "false",
    "as due",
)  # fmt: skip


@dataclass(frozen=True)
class Population:
    """A paired difference in utility per request, cell by cell."""

    name: str
    cells: Cells
    over: F64  # [c] requests
    gained: F64  # [c] utility

    @property
    def truth(self) -> float:
        """The difference over all users and intents."""
        return self._estimate(self.cells, self.over, self.gained)[0].mean

    def drawn(self, users: int, rng: np.random.Generator) -> tuple[Estimate, Estimate]:
        """The estimate from other users and intents; and what it was before: Student's t, one size of effects."""
        user = rng.integers(0, self.cells.n_users, users)
        times = rng.multinomial(self.cells.n_intents, np.full(self.cells.n_intents, 1 / self.cells.n_intents))
        first = np.searchsorted(self.cells.user, np.arange(self.cells.n_users + 1))
        of_user, cell = _repeated(first[user], (first[1:] - first[:-1])[user])
        begins = np.cumsum(times) - times
        at, intent = _repeated(begins[self.cells.intent[cell]], times[self.cells.intent[cell]])
        cells = Cells(of_user[at], intent, users, self.cells.n_intents)
        return self._estimate(cells, self.over[cell[at]], self.gained[cell[at]])

    def _estimate(self, cells: Cells, over: F64, gained: F64) -> tuple[Estimate, Estimate]:
        (estimate,) = estimates(cells, [over], [[gained]])
        total = sums(cells.user, cells.n_users, over)
        weight = over / total[cells.user] / estimate.n_users
        by_user, both = estimate.se**2, estimate.se_new**2
        by_intent = both - by_user
        df = both**2 / (by_user**2 / estimate.df + by_intent**2 / _mix(cells, weight).df)
        return estimate, replace(estimate, df_new=df, skewness=0.0)


def _repeated(start: I64, length: I64) -> tuple[I64, I64]:
    """The ranges from `start` on, one after another: which one it is, and what is in it."""
    which = np.repeat(np.arange(len(start)), length)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(length) - length, length) + start[which]


def play(out: Path, users: int, weeks: int, seed: int, workers: int = 1) -> Run:
    """The run whose cells are the population, into folder `out`."""
    size = [f"users={users}", f"weeks={weeks}", f"seed={seed}", f"workers={workers}"]
    return skg_bench.run([f"arms={ARMS}", *size, f"out={out}", "reference=never"], progress=False)


def populations(run: Run) -> list[Population]:
    """The differences of CONTRASTS, over the turns from which on they are reported."""
    requests, utility = events(run), metrics(Utility.of(run.config))["utility"]
    rows = []
    for arm, reference, since in CONTRASTS:
        a, b = (tallies(run, name, requests, (since,))[since] for name in (arm, reference))
        turn = a.by_cell["turn"]
        some = turn > 0
        gained = sum(
            (w * (a.by_cell[name] - b.by_cell[name]) for name, w in utility.count.items()), np.zeros(len(turn))
        )
        users, user = np.unique(requests.cells.user[some], return_inverse=True)
        intents, intent = np.unique(requests.cells.intent[some], return_inverse=True)
        cells = Cells(user, intent, len(users), len(intents))
        rows.append(Population(f"{arm} - {reference}", cells, turn[some], gained[some]))
    return rows


@dataclass(frozen=True)
class Rates:
    """Shares of replications, as printed and as by Student's t before."""

    name: str
    users: int
    replications: int
    intents: float  # median effective number
    misses: tuple[float, float]  # the truth lies below the interval, above it
    student: tuple[float, float]
    withheld: float
    printed: tuple[float, float]  # median detectable size, before and now
    verdicts: tuple[float, float]  # of the right sign, if every request gains or loses that
    false: tuple[float, float]  # verdicts if there is no difference

    @property
    def holds(self) -> bool:
        """Whether the interval holds the truth in 93 to 97 %, and a verdict comes in 80 %, or is a little surer."""
        far = 3 * sqrt(ALPHA * (1 - ALPHA) / self.replications)
        covers = abs(sum(self.misses) - ALPHA) <= COVERS + far and max(self.misses) <= SIDE + far
        slack = 3 * sqrt(POWER * (1 - POWER) / self.replications)
        return covers and POWER - SURE - slack <= self.verdicts[1] <= POWER + 2 * SURE + slack

    def coverage(self) -> tuple[str, ...]:
        """As text under HEADINGS."""
        shares = (*self.student, *self.misses, self.withheld)
        numbers = (str(self.users), f"{self.replications:,}", f"{self.intents:.1f}")
        return (self.name, *numbers, *map(_percent, shares), "yes" if self.holds else "NO")

    def power(self) -> tuple[str, ...]:
        """As text under POWER_HEADINGS."""
        pairs = zip(self.printed, self.verdicts, self.false, strict=True)
        cells = [text for size, *shares in pairs for text in (f"{size:.4f}", *map(_percent, shares))]
        return (self.name, str(self.users), *cells, "yes" if self.holds else "NO")


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def rates(population: Population, users: int, replications: int, seed: int) -> Rates:
    """Draw the population again and again."""
    pairs = [population.drawn(users, generator(seed + 2, r)) for r in range(replications)]
    now, before = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    truth = population.truth
    sign = 1.0 if truth > 0 else -1.0
    sizes = tuple(float(np.nanmedian([e.detectable(new=True) for e in estimated])) for estimated in (before, now))
    rules = zip((before, now), sizes, (_was_verdict, _is_verdict), strict=True)
    power, false = [], []
    for estimated, size, rule in rules:
        power.append(_share(rule(replace(e, mean=e.mean - truth + sign * size), sign) for e in estimated))
        none = [replace(e, mean=e.mean - truth) for e in estimated]
        false.append(_share(rule(e, 1.0) or rule(e, -1.0) for e in none))
    return Rates(
        population.name, users, replications, float(np.median([e.intents for e in now])), _misses(now, truth),
        _misses(before, truth), _share(e.withheld for e in now), (sizes[0], sizes[1]), (power[0], power[1]),
        (false[0], false[1]),
    )  # fmt: skip


def _misses(estimated: Sequence[Estimate], truth: float) -> tuple[float, float]:
    ends = np.array([e.interval(new=True) for e in estimated])
    return float((truth < ends[:, 0]).mean()), float((truth > ends[:, 1]).mean())


def _share(events: Iterable[bool]) -> float:
    return float(np.mean(list(events)))


def _is_verdict(e: Estimate, sign: float) -> bool:
    """Significance decides."""
    return e.mean * sign > 0 and e.p(new=True) < ALPHA


def _was_verdict(e: Estimate, sign: float) -> bool:
    """Significance, and an estimate of the detectable size."""
    return _is_verdict(e, sign) and abs(e.mean) >= e.detectable(new=True)
