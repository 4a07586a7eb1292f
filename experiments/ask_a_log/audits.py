"""Ratings of users, and turns that people judged, as rewards of a policy that was not run; the truth is known."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan, nan, sqrt
from typing import Annotated

import numpy as np
import typer

from skg_bench.analysis.policy_value.decision_sums import DecisionSums, LoggedDecisions, PolicyChoices, needed_terms
from skg_bench.analysis.policy_value.estimates import LOG, PolicyEstimates
from skg_bench.analysis.policy_value.estimators import ESTIMATORS
from skg_bench.analysis.policy_value.step_values import step_values
from skg_bench.app.audit_draw import drawn_rows
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment
from skg_bench.core.grid import F64
from skg_bench.study.replications import generator

COMMAND = "skg-bench experiment ask_a_log/audits --write reports"
TITLE = "Ratings, and judged turns"
HEADINGS = ("rewards", "measured", "logs", "withheld", "mean error", "interval holds the truth", "wrong sign")
WORDS = """
Logs of 100 users with 40 to 120 turns, in which users rate bad answers three times as often as good ones. The policy
that is asked answers less from memory where that is often wrong. *Ratings, as if by chance*: those who rate are taken
for all. *Ratings, bounds by odds*: the odds of being rated are between 1/6 and 6 times as large for good answers.
*Judged*: turns that `skg-bench data label --first` draws, half of them hits. Shares in percent, errors in
points of a hundred; of logs that are not withheld. *Wrong sign*: of all verdicts on the difference.
"""
USERS, JUDGED = 100, 500
RIGHT = np.array([[0.92, 0.88], [0.88, 0.55]])  # chance of a right answer, by state: of the LLM, from memory
LOGGED, ASKED = np.array([0.6, 0.5]), np.array([0.7, 0.1])  # chance to answer from memory, by state
RATED = np.array([0.3, 0.1])  # chance of a rating, of a wrong and of a right answer
SPREAD = 0.04  # between users, of each way to answer
LOWEST, HIGHEST = 0.93, 0.97


def value(chance: F64) -> float:
    """Worth of a policy that answers from memory with this chance, by state."""
    return float(np.mean((1 - chance) * RIGHT[:, 0] + chance * RIGHT[:, 1]))


TRUTH, GAP = value(ASKED), value(ASKED) - value(LOGGED)


@dataclass(frozen=True)
class AskedLog:
    """A log that is asked by ratings as if by chance, by ratings alone, and by judged turns."""

    by_chance: PolicyEstimates
    by_ratings: PolicyEstimates
    judged: PolicyEstimates


def ask(number: int, seed: int, judged: int = JUDGED) -> AskedLog:
    """Draw a log, and ask it in the three ways."""
    rng = generator(seed, number)
    user = np.repeat(np.arange(USERS), rng.integers(40, 121, USERS))
    state = rng.integers(0, 2, len(user))
    hit = rng.random(len(user)) < LOGGED[state]
    taste = sqrt(3) * SPREAD * rng.uniform(-1, 1, (USERS, 2))
    right = rng.random(len(user)) < RIGHT[state, hit.astype(int)] + taste[user, hit.astype(int)]
    propensity, probability = (np.where(hit, chance[state], 1 - chance[state]) for chance in (LOGGED, ASKED))
    rated = rng.random(len(user)) < RATED[right.astype(int)]
    chosen, chance = drawn_rows(hit, judged, number)

    def estimates(known: np.ndarray, chances: F64 | None) -> PolicyEstimates:
        wanted = {LOG: [ESTIMATORS["snips"]], "asked": [ESTIMATORS["snips"]]}
        sums = DecisionSums([needed_terms(each) for each in wanted.values()], rows=False)
        rewards = np.where(known, right, np.nan)
        sums.add(
            LoggedDecisions(propensity, rewards, chances, user), [PolicyChoices(propensity), PolicyChoices(probability)]
        )
        return step_values(sums.total(), wanted, reference=LOG, users=True)

    return AskedLog(
        estimates(rated, np.full(len(user), rated.mean())), estimates(rated, None), estimates(chosen, chance)
    )


@dataclass(frozen=True)
class AuditLine:
    """A way to know rewards, over all logs."""

    rewards: str
    measured: str
    logs: int
    withheld: int
    error: float  # NaN: all are withheld
    held: float  # share of intervals, or bounds, that hold the truth
    wrong: float | None  # share of verdicts with the wrong sign; None: no verdict is given

    @property
    def due(self) -> bool:
        """Is it within two Monte Carlo standard errors of 93 to 97 %, as is due where turns are judged? Bounds must
        hold the truth in 93 % or more.
        """
        slack = 2 * sqrt(LOWEST * (1 - LOWEST) / self.logs)
        if self.rewards == "ratings, as if by chance":
            return True
        return LOWEST - slack <= self.held and (self.wrong is None or self.held <= HIGHEST + slack)


def audit_lines(logs: int, seed: int) -> Iterator[AuditLine]:
    """Draw logs, ask them, and count."""
    drawn = [ask(i, seed) for i in range(logs)]
    for name, known in (
        ("ratings, as if by chance", [each.by_chance for each in drawn]),
        (f"{JUDGED} judged turns", [each.judged for each in drawn]),
    ):
        values = [made.values[1] for made in known]
        given = [each for each in values if each.verdict != "withheld"]
        signs = [each.verdict for each in given if each.verdict in ("higher", "lower")]
        wrong = signs.count("lower") / len(signs) if signs else None
        for measured, truth, ends, points in (
            ("value", TRUTH, [each.interval for each in given], [each.value for each in given]),
            ("difference", GAP, [each.difference_interval for each in given], [each.difference for each in given]),
        ):
            held = [low <= truth <= high for low, high in ends]
            yield AuditLine(
                name, measured, logs, logs - len(given), _mean(np.abs(np.array(points) - truth)), _mean(held), wrong
            )
    rated = [made.by_ratings.weights[1].rated for made in drawn]
    ends = [(each.low, each.high) for each in rated if each is not None]
    error = float(np.mean([abs(each.value - TRUTH) for each in rated if each is not None]))
    share = float(np.mean([low <= TRUTH <= high for low, high in ends]))
    yield AuditLine("ratings, bounds by odds", "value", logs, 0, error, share, None)


def _mean(values: Sequence[float] | F64) -> float:
    return float(np.mean(values)) if len(values) else nan


def table(lines: Sequence[AuditLine]) -> Table:
    """Shares in percent."""
    rows = [
        (
            line.rewards, line.measured, f"{line.logs:,}", f"{line.withheld:,}",
            *("-" if isnan(x) else f"{100 * x:.{digits}f}" for x, digits in ((line.error, 2), (line.held, 1))),
            "-" if line.wrong is None else f"{100 * line.wrong:.1f}",
        )
        for line in lines
    ]  # fmt: skip
    return Table(TITLE, HEADINGS, rows)


def analyse(
    logs: Annotated[int, typer.Option(help="Logs, each with an audit of its own.", min=2)] = 2000,
    seed: Annotated[int, typer.Option(help="Of all draws.")] = 0,
) -> Report:
    """Draw logs and audit them; as expected if intervals from judged turns hold the truth in 93 to 97 %, up to two
    Monte Carlo standard errors, and bounds by odds in 93 % or more.
    """
    lines = list(audit_lines(logs, seed))
    shown, holds = table(lines), all(line.due for line in lines)
    words = "As due." if holds else "Not as due."
    return Report([shown, words], page("Audits", COMMAND, shown, WORDS, words), holds=holds)


EXPERIMENT = Experiment(analyse)
