"""Logs of drawn worlds, what they say of targets, and the truth: the targets run on the same users, and on others."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from io import StringIO
from math import nan, sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np

import skg_bench
from experiments.not_run.long_messages import LongMessages
from experiments.not_run.worlds import LOGGER, DrawnWorld
from skg_bench.analysis.counts.metrics import Utility
from skg_bench.analysis.counts.outcomes import worth_of
from skg_bench.analysis.policy_value.estimates import PolicyEstimates
from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare, start
from skg_bench.app.logged_choices import run_decisions
from skg_bench.app.prepared_run import PreparedRun
from skg_bench.core.assistant import Applied
from skg_bench.core.batch import Batch
from skg_bench.core.feedback import Feedback
from skg_bench.core.grid import F64, I32, I64
from skg_bench.core.learning_jobs import Course, Jobs
from skg_bench.core.world import FALLBACK, World
from skg_bench.engine.cohort import Rollout, cohort_of
from skg_bench.engine.execute import replay_job
from skg_bench.runfolder.run import Run

ROUNDED = 1e-6  # values are kept to half of that
Z = 1.96  # of the error of the truth for other users


@dataclass(frozen=True)
class LogSize:
    """Size of each world's log, and of its truth."""

    users: int  # of the log
    weeks: int
    others: int  # more users, on whom the truth for other users is taken


@dataclass(frozen=True)
class AskedTarget:
    """Estimate and truth of a target of a world. Values are differences to the log's arm in utility."""

    world: int
    corpus: str
    logger: str
    target: str
    known: float  # share of turns with the logged answer
    value: float  # of the replays
    truth_these: float
    truth_others: float
    error_others: float  # standard error of the truth for other users
    these_low: float  # interval for these users; NaN: withheld
    these_high: float
    others_low: float  # interval for other users
    others_high: float
    bounds_low: float  # if all unknown answers are wrong
    bounds_high: float
    ips: float  # in the states of the log; NaN: the target is not one of scores alone
    snips: float
    luck: float  # of answers of the LLM that the log lacks, in the truth for these users
    verdict: str
    withheld: str

    @property
    def error(self) -> float:
        """Error of the replays, for these users."""
        return abs(self.value - self.truth_these)

    @property
    def holds_these(self) -> bool:
        """Does the interval for these users hold the truth?"""
        return self.these_low - ROUNDED <= self.truth_these <= self.these_high + ROUNDED

    @property
    def holds_others(self) -> bool:
        """Does the interval for other users hold the truth, as far as that is known?"""
        middle, half = (self.others_low + self.others_high) / 2, (self.others_high - self.others_low) / 2
        return abs(middle - self.truth_others) <= sqrt(half**2 + (Z * self.error_others) ** 2) + ROUNDED

    @property
    def bounded(self) -> bool:
        """Do bounds hold the truth for these users and, with the sampling error, that for other users?"""
        half = sqrt((np.nan_to_num(self.others_high - self.others_low) / 2) ** 2 + (Z * self.error_others) ** 2)
        others = self.withheld or self.bounds_low - half <= self.truth_others <= self.bounds_high + half
        return bool(others) and self.bounds_low - ROUNDED <= self.truth_these <= self.bounds_high + ROUNDED


@dataclass(frozen=True)
class UtilitySums:
    """Writer of an arm's rollout: turns and utility by row, and the luck of each answer of the LLM."""

    prices: Utility
    chance: F64  # of right answers of the LLM, by message
    turns: F64  # [R]
    worth: F64  # [R]
    luck: F64  # [R, T] utility less its expectation; NaN: a skill answered, or there is no such turn

    def turn(self, t: int, **values: np.ndarray) -> None:
        """Adds what turn `t` of the rows still there is worth."""
        n, prices = len(values["skill"]), self.prices
        paid = prices.usd * (values["cost_usd"] + values["learning_cost_usd"])
        paid += prices.second / 1000.0 * values["latency_ms"] + prices.offer * (values["offer"] >= 0)
        self.turns[:n] += 1.0
        self.worth[:n] += (1.0 + prices.wrong) * values["answer_correct"] - prices.wrong - paid
        luck = (1.0 + prices.wrong) * (values["answer_correct"] - self.chance[values["message"]])
        self.luck[:n, t] = np.where(values["serving"] == FALLBACK, luck, nan)

    def update(self, t: int, batch: Batch, applied: Applied) -> None:
        """Discarded."""

    def feedback(self, t: int, feedback: Feedback, time: I64, skill: I32) -> None:
        """Discarded."""

    def learning(self, t: int, jobs: Jobs, time: I64, course: Course | None) -> None:
        """Discarded."""


def asked_targets(world: DrawnWorld, size: LogSize) -> list[AskedTarget]:
    """Make a world's log in a temporary folder, ask it about each target, and run the targets."""
    with TemporaryDirectory() as folder:
        run = start(_prepared(world, [LOGGER], size.users, size.weeks, Path(folder) / "run"))
        targets = {each.name: list(each.overrides) for each in world.targets}
        estimates = skg_bench.estimate(run, targets=targets, arm=LOGGER)
        policies = {each.name: each.overrides for each in world.targets if each.weighted}
        weighted = weighted_differences(run, policies)
        sums = true_sums(world, size, Path(folder))
    return [_asked(world, size, estimates, name, weighted.get(name, (nan, nan)), sums) for name in targets]


def _prepared(world: DrawnWorld, arms: Sequence[str], users: int, weeks: int, out: Path) -> PreparedRun:
    """A run of some of the world's arms, with an LLM that fails on long messages."""
    listed = ", ".join(f"{name}: [{', '.join(world.arms[name])}]" for name in arms)
    size = (f"users={users}", f"weeks={weeks}", f"seed={world.run_seed}", f"out={out}", f"reference={LOGGER}")
    job = prepare(compose(["profile=smoke", "workers=1", "cohort=1024", *world.users, f"arms={{{listed}}}", *size]))
    simulator = cast("World[Any]", LongMessages(job.plan.simulator, world.values["lost_per_word"]))
    return replace(job, plan=replace(job.plan, simulator=simulator))


def true_sums(world: DrawnWorld, size: LogSize, out: Path) -> Mapping[str, UtilitySums]:
    """Turns and utility of each arm by user, played on the users of the log and on as many others as `size` says."""
    users = np.arange(size.users + size.others, dtype=np.int32)
    job = _prepared(world, list(world.arms), len(users), size.weeks, out / "truth")
    prices, sums, simulator = Utility.of(job.composed.root), {}, cast("LongMessages", job.plan.simulator)
    chance = np.maximum(world.values["right"] - simulator.lost, 0.0)
    with replay_job(job.plan, out, job.turns()) as played:
        setting = played.setting()
        cohort = cohort_of(setting, users).side_by_side(1)
        for arm in played.plan.arms:
            luck = np.full((len(users), int(cohort.n.max())), nan)
            writer = UtilitySums(prices, chance, np.zeros(len(users)), np.zeros(len(users)), luck)
            Rollout(setting, [arm], cohort.side_by_side(1)).to_the_end(writer, lambda _: None)
            order = np.argsort(cohort.user)
            sums[arm.name] = replace(
                writer, turns=writer.turns[order], worth=writer.worth[order], luck=writer.luck[order]
            )
    return sums


def weighted_differences(run: Run, targets: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[float, float]]:
    """IPS and SNIPS of the utility of policies in the states of the log, less that of the log."""
    table = run_decisions(run, LOGGER, targets)
    worth = worth_of(run, LOGGER, Utility.of(run.config))["utility"].to_numpy()
    (block,) = table.blocks(["propensity", *targets])
    propensity = block.chances("propensity", "it is needed")
    weights = {name: block.chances(name, "it is needed", zero=True) / propensity for name in targets}
    mean = worth.mean()
    return {
        name: (float((w * worth).mean() - mean), float((w * worth).sum() / w.sum() - mean) if w.any() else nan)
        for name, w in weights.items()
    }


def _asked(
    world: DrawnWorld,
    size: LogSize,
    estimates: PolicyEstimates,
    name: str,
    weighted: tuple[float, float],
    sums: Mapping[str, UtilitySums],
) -> AskedTarget:
    value = next(each for each in estimates.values if each.policy == name)
    replay = next(each for each in estimates.replays if each.policy == name)
    log = estimates.values[0].value
    these, others = (
        difference(sums[LOGGER], sums[name], part) for part in (slice(size.users), slice(size.users, None))
    )
    row = AskedTarget(
        world.number, world.values["corpus"], world.values["logger"], name, replay.known, value.value - log, these[0],
        *others, *replay.these_users_difference, *value.difference_interval, replay.bounds[0] - log,
        replay.bounds[1] - log, *weighted, luck_of_unknown(sums[LOGGER], sums[name], slice(size.users)), value.verdict,
        replay.withheld,
    )  # fmt: skip
    cells = {each.name: getattr(row, each.name) for each in fields(row)}
    rounded: dict[str, Any] = {name: round(cell, 6) for name, cell in cells.items() if isinstance(cell, float)}
    return replace(row, **rounded)


def difference(log: UtilitySums, target: UtilitySums, users: slice) -> tuple[float, float]:
    """Difference in utility a turn of an arm to the logger, and its standard error by user."""
    turns, gap = log.turns[users], (target.worth - log.worth)[users]
    mean = float(gap.sum() / turns.sum())
    residual = gap - mean * turns
    return mean, float(np.sqrt((residual**2).sum() * len(gap) / (len(gap) - 1)) / turns.sum())


def luck_of_unknown(log: UtilitySums, target: UtilitySums, users: slice) -> float:
    """Part of a target's utility a turn that was luck: of answers of the LLM where a skill answered in the log. An
    estimate from the true chances would be off by it.
    """
    unknown = np.isnan(log.luck[users])
    return float(np.nansum(target.luck[users][unknown]) / log.turns[users].sum())


def written(rows: Iterable[AskedTarget]) -> str:
    """Rows as CSV."""
    text = StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow([each.name for each in fields(AskedTarget)])
    table.writerows(map(astuple, rows))
    return text.getvalue()


def read_back(text: str) -> list[AskedTarget]:
    """Rows of a CSV that `written` made."""
    kinds = {each.name: each.type for each in fields(AskedTarget)}
    return [
        AskedTarget(**{name: cast("type", kinds[name])(cell) for name, cell in row.items()})
        for row in csv.DictReader(StringIO(text))
    ]
