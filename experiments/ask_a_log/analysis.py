"""How often intervals of `skg-bench estimate` hold the truth, in logs whose truth is known."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Annotated

import numpy as np
import typer

from skg_bench.analysis.policy_value.decision_sums import DecisionSums, LoggedDecisions, PolicyChoices, needed_terms
from skg_bench.analysis.policy_value.estimates import LOG, PolicyEstimates
from skg_bench.analysis.policy_value.estimators import ESTIMATORS, chosen_estimators
from skg_bench.analysis.policy_value.step_values import step_values
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment
from skg_bench.core.grid import F64, I64
from skg_bench.study.replications import generator

COMMAND = "skg-bench experiment ask_a_log --write reports"
NAMES = ("ips", "snips", "dr", "sndr")
HEADINGS = ("world", "measured", "logs", "withheld", *NAMES)
TITLE = "Intervals that hold the truth"
WORDS = """
Shares of 95 % intervals that hold the truth, in percent, among logs that are not withheld. *By user*: as printed.
*By row*: as if rows were independent. *Difference*: of the policy to the log, by user. Each log has 30 to 400 users.
"""
RIGHT = np.array([[0.3, 0.5], [0.6, 0.4]])  # chance of a good answer, by state and action
LOGGED, ASKED = np.array([0.3, 0.6]), np.array([0.7, 0.5])  # chance of the second action, by state
MODEL = np.array([[0.35, 0.4], [0.5, 0.45]])  # rewards as a poor model has them
LOWEST, HIGHEST = 0.93, 0.97


@dataclass(frozen=True)
class LogWorld:
    """A population of users who are asked; effects are uniform with this standard deviation."""

    name: str
    spread: float  # between users, of each action and of both
    tail: float  # exponent of the Pareto law of their decisions; 0: all have 20 to 120


WORLDS = (
    LogWorld("users are alike", 0.0, 0.0),
    LogWorld("users differ", 0.11, 0.0),
    LogWorld("few have most of the log", 0.11, 1.5),
)


@dataclass(frozen=True)
class Coverage:
    """Share of intervals that hold the truth, by estimator."""

    world: LogWorld
    measured: str  # by user | by row | difference
    logs: int
    withheld: int
    shares: tuple[float, ...]  # of NAMES

    @property
    def due(self) -> bool:
        """Is it within two Monte Carlo standard errors of 93 to 97 %, as is due by user?"""
        slack = 2 * sqrt(LOWEST * (1 - LOWEST) / max(self.logs - self.withheld, 1))
        within = all(LOWEST - slack <= share <= HIGHEST + slack for share in self.shares)
        return within or self.measured == "by row"


def value(chance: F64) -> float:
    """Worth of a policy that takes the second action with this chance, by state."""
    return float(np.mean((1 - chance) * RIGHT[:, 0] + chance * RIGHT[:, 1]))


def answers(world: LogWorld, rng: np.random.Generator) -> PolicyEstimates:
    """Draw a log, and ask it."""
    users = int(np.exp(rng.uniform(np.log(30), np.log(400))))
    user = np.repeat(np.arange(users), _decisions(world, users, rng))
    state = rng.integers(0, 2, len(user))
    action: I64 = (rng.random(len(user)) < LOGGED[state]).astype(np.int64)
    taste = sqrt(3) * world.spread * rng.uniform(-1, 1, (users, 3))
    right = RIGHT[state, action] + taste[user, action] + 0.5 * taste[user, 2]
    reward = (rng.random(len(user)) < right).astype(np.float64)
    propensity, probability = (np.where(action, chance[state], 1 - chance[state]) for chance in (LOGGED, ASKED))
    expected = (1 - ASKED[state]) * MODEL[state, 0] + ASKED[state] * MODEL[state, 1]
    wanted = {LOG: [ESTIMATORS["ips"]], "asked": chosen_estimators(NAMES, model=True)}
    sums = DecisionSums([needed_terms(each) for each in wanted.values()], rows=True)
    log = LoggedDecisions(propensity, reward, user=user, predicted=MODEL[state, action])
    sums.add(log, [PolicyChoices(propensity), PolicyChoices(probability, expected)])
    return step_values(sums.total(), wanted, reference=LOG, users=True)


def _decisions(world: LogWorld, users: int, rng: np.random.Generator) -> I64:
    if not world.tail:
        return rng.integers(20, 121, users)
    return np.minimum(8 * (1 + rng.pareto(world.tail, users)), 2_000).astype(np.int64)


def coverages(world: LogWorld, logs: int, seed: int) -> Iterator[Coverage]:
    """Draw logs, and count the intervals that hold the truth."""
    truth, gap = value(ASKED), value(ASKED) - value(LOGGED)
    drawn = [answers(world, generator(seed, i)).values[1:] for i in range(logs)]
    given = [values for values in drawn if values[0].verdict != "withheld"]
    parts = {
        "by user": [[low <= truth <= high for low, high in (v.interval for v in values)] for values in given],
        "by row": [
            [v.row_interval[0] <= truth <= v.row_interval[1] for v in values if v.row_interval] for values in given
        ],
        "difference": [
            [low <= gap <= high for low, high in (v.difference_interval for v in values)] for values in given
        ],
    }
    for measured, held in parts.items():
        yield Coverage(world, measured, logs, logs - len(given), tuple(np.mean(held, axis=0).tolist()))


def table(lines: Sequence[Coverage]) -> Table:
    """Shares in percent."""
    rows = [
        (
            line.world.name,
            line.measured,
            f"{line.logs:,}",
            f"{line.withheld:,}",
            *(f"{100 * x:.1f}" for x in line.shares),
        )
        for line in lines
    ]
    return Table(TITLE, HEADINGS, rows)


def analyse(
    logs: Annotated[int, typer.Option(help="Logs of each world.", min=2)] = 1000,
    seed: Annotated[int, typer.Option(help="Of all draws.")] = 0,
) -> Report:
    """Draw logs and ask them; as expected if intervals by user hold the truth in 93 to 97 %, up to two Monte Carlo
    standard errors.
    """
    lines = [line for world in WORLDS for line in coverages(world, logs, seed)]
    shown, holds = table(lines), all(line.due for line in lines)
    words = "As due." if holds else "Not as due."
    return Report([shown, words], page("Asking a log", COMMAND, shown, WORDS, words), holds=holds)


EXPERIMENT = Experiment(analyse)
