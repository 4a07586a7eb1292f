"""A skewed world: the cells of a real run as a finite population, drawn again.

Users and intents are drawn with replacement, each with all its cells (a one-off message is an intent of its own): the
pigeonhole model (Owen 2007). The population's own difference is the truth for new users and new requests. Few intents
carry what `skg` loses, so that a sample often misses them, and Student's interval lies on one side of the truth. Where
intents are given either sign by chance, the truth is 0, and the tails are as heavy.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import skg_bench
from experiments.known_truth.quality import Drawn, Quality, quality
from skg_bench.analysis.counts.metrics import Utility, metrics
from skg_bench.analysis.counts.tally import events, tallies
from skg_bench.analysis.statistics.intervals import Cells, estimates
from skg_bench.core.grid import F64, I64
from skg_bench.runfolder.run import Run
from skg_bench.study.replications import generator

USERS, WEEKS = 100, 26  # of the run: those of `profile=demo`
DRAWN = (30, 100)
CONTRASTS = (("skg", "never", 0), ("oracle", "never", 0), ("skg", "frozen_100", 100), ("skg", "frozen_400", 400))
ARMS = (
    "{skg: [], never: [policy=never, curator=none], oracle: [router=oracle, policy=always, curator=oracle], "
    "frozen_100: [freeze=all, freeze_at=100], frozen_400: [freeze=all, freeze_at=400]}"
)  # of `experiment=assistant_growth`, those whose differences the READMEs report


@dataclass(frozen=True)
class Population:
    """A paired difference in utility per request, cell by cell."""

    name: str
    cells: Cells
    over: F64  # [c] requests
    gained: F64  # [c] utility
    either: bool = False  # an intent's sign is drawn anew, so that the truth is 0

    @property
    def truth(self) -> float:
        """The difference over all users and intents."""
        return 0.0 if self.either else estimates(self.cells, [self.over], [[self.gained]])[0].mean

    def drawn(self, users: int, rng: np.random.Generator) -> Drawn:
        """The experiment with other users and intents."""
        user = rng.integers(0, self.cells.n_users, users)
        times = rng.multinomial(self.cells.n_intents, np.full(self.cells.n_intents, 1 / self.cells.n_intents))
        first = np.searchsorted(self.cells.user, np.arange(self.cells.n_users + 1))
        of_user, cell = _repeated(first[user], (first[1:] - first[:-1])[user])
        begins = np.cumsum(times) - times
        at, intent = _repeated(begins[self.cells.intent[cell]], times[self.cells.intent[cell]])
        cells, rows = Cells(of_user[at], intent, users, self.cells.n_intents), cell[at]
        signs = rng.choice([-1.0, 1.0], self.cells.n_intents) if self.either else np.ones(self.cells.n_intents)
        return Drawn.of(cells, self.over[rows], self.gained[rows] * signs[intent])


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
    first = rows[0]
    return [*rows, replace(first, name=f"{first.name}, either sign", either=True)]


def qualities(population: Population, users: int, replications: int, seed: int) -> Quality:
    """Draw the population again and again."""
    drawn = [population.drawn(users, generator(seed + 2, r)) for r in range(replications)]
    return quality(population.name, users, drawn, population.truth)
