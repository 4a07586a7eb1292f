"""How good numbers of users are that `skg-bench plan` takes from a pilot, where the population is known."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Annotated

import numpy as np
import typer

from skg_bench.analysis.statistics.intervals import ALPHA, POWER, t_quantile
from skg_bench.analysis.statistics.planned_users import LEAST_PLANNED, PlannedUsers, least_users, planned_users
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment
from skg_bench.core.grid import F64
from skg_bench.study.replications import generator

COMMAND = "skg-bench experiment ask_a_log/plans --write reports"
TITLE = "Plans from a pilot"
HEADINGS = (
    "differences", "effect", "studies", "power at the planned number", "interval holds the true number", "trusted",
    "holds where trusted", "within 20 %",
)  # fmt: skip
WORDS = """
A study draws a pilot of 50 to 800 users and plans for a power of 80 %. *Power*: share of later studies of the planned
size that find the effect. *True number*: that with a power of 80 % by simulation. *Trusted*: as the command says. All
in percent, of studies that plan 50 users or more. *Pilot's*: the effect is not given either.
"""
EFFECTS = (0.15, 0.2, 0.3)  # in standard deviations
LEAST, MOST, HELD = 0.75, 0.90, 0.90
PILOTS = 50, 800
_AGAIN = 40  # later studies of each

Draw = Callable[[np.random.Generator, tuple[int, ...]], F64]


def _rare(rng: np.random.Generator, shape: tuple[int, ...]) -> F64:
    signed = np.where(rng.random(shape) < 0.75, 1.0, -1.0) * rng.exponential(size=shape)
    return (np.where(rng.random(shape) < 0.4, signed, 0.0) - 0.2) / sqrt(0.76)


POPULATIONS: Mapping[str, Draw] = {
    "heavy tails, kurtosis 6": lambda rng, shape: rng.laplace(size=shape) / sqrt(2),
    "skewed, kurtosis 11": lambda rng, shape: (rng.gamma(0.75, size=shape) - 0.75) / sqrt(0.75),
    "most users are alike, kurtosis 15": _rare,
}
"""Differences of users, with mean 0 and standard deviation 1."""


def detected(values: F64) -> F64:
    """Share of samples `[..., n]` whose mean is above 0 by Student's t, two-sided at 5 %."""
    n = values.shape[-1]
    t = values.mean(axis=-1) / (values.std(axis=-1, ddof=1) / sqrt(n) + 1e-300)
    share: F64 = (t > t_quantile(1 - ALPHA / 2, n - 1.0)).mean(axis=-1)
    return share


def true_users(draw: Draw, effect: float, samples: int, rng: np.random.Generator) -> float:
    """Users with a power of 80 %, between sizes whose power is simulated."""
    middle = least_users(1.0, effect)
    sizes = [round(middle * factor) for factor in (0.8, 0.9, 1.0, 1.1, 1.2)]
    power = [float(detected(draw(rng, (samples, n)) + effect)) for n in sizes]
    slope, start = np.polyfit(sizes, power, 1)
    return float((POWER - start) / slope)


@dataclass(frozen=True)
class Plans:
    """Studies of one population."""

    population: str
    given: bool  # was the effect given?
    power: F64  # [S] at the planned number
    planned: Sequence[PlannedUsers]
    true: F64  # [S] true numbers

    @property
    def held(self) -> F64:
        """Does the interval hold the true number? `[S]`"""
        ends = np.array([(each.low, each.high) for each in self.planned])
        return ((ends[:, 0] <= self.true) & (self.true <= ends[:, 1])).astype(np.float64)

    @property
    def trusted(self) -> F64:
        """Is the interval called trusted? `[S]`"""
        return np.array([each.trusted for each in self.planned], np.float64)

    @property
    def due(self) -> bool:
        """Are power and intervals as they should be, up to two Monte Carlo standard errors? Power only of an effect
        that is given: who plans for a pilot's own difference plans for its luck.
        """
        slack = 2 * sqrt(HELD * (1 - HELD) / len(self.true))
        power = float(self.power.mean())
        return bool(self.held.mean() >= HELD - slack) and (not self.given or LEAST <= power <= MOST)


def plans(population: str, studies: int, samples: int, seed: int) -> Iterator[Plans]:
    """Studies with the effect given, and with that of the pilot."""
    draw, rng = POPULATIONS[population], generator(seed, list(POPULATIONS).index(population))
    truth = {effect: true_users(draw, effect, samples, rng) for effect in EFFECTS}
    for given in (True, False):
        power, planned, true = list[float](), list[PlannedUsers](), list[float]()
        while len(planned) < studies:
            effect = EFFECTS[len(planned) % len(EFFECTS)]
            n = int(np.exp(rng.uniform(*np.log(PILOTS))))
            pilot = draw(rng, (n,)) + effect
            plan = planned_users([pilot], np.zeros(n), pilot, effect if given else None)
            if LEAST_PLANNED <= plan.users < 20 * PILOTS[1]:
                power.append(float(detected(draw(rng, (_AGAIN, int(plan.users))) + effect)))
                planned.append(plan)
                true.append(truth[effect])
        yield Plans(population, given, np.array(power), planned, np.array(true))


def table(lines: Sequence[Plans]) -> Table:
    """Shares in percent."""
    rows = []
    for line in lines:
        held, trusted = line.held, line.trusted > 0
        near = np.abs(np.array([each.users for each in line.planned]) / line.true - 1) <= 0.2
        shares = (line.power.mean(), held.mean(), trusted.mean(), held[trusted].mean(), near.mean())
        effect = "given" if line.given else "pilot's"
        rows.append((line.population, effect, f"{len(held):,}", *(f"{100 * share:.1f}" for share in shares)))
    return Table(TITLE, HEADINGS, rows)


def analyse(
    studies: Annotated[int, typer.Option(help="Studies of each population.", min=2)] = 200,
    samples: Annotated[int, typer.Option(help="Samples behind each true power.", min=100)] = 10_000,
    seed: Annotated[int, typer.Option(help="Of all draws.")] = 0,
) -> Report:
    """Plan studies of known populations; as expected if their power is 75 to 90 % for a given effect, and intervals
    hold the true number in nine of ten, up to two Monte Carlo standard errors.
    """
    lines = [line for name in POPULATIONS for line in plans(name, studies, samples, seed)]
    shown, holds = table(lines), all(line.due for line in lines)
    words = "As due." if holds else "Not as due."
    return Report([shown, words], page("Plans", COMMAND, shown, WORDS, words), holds=holds)


EXPERIMENT = Experiment(analyse)
