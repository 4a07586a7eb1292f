"""Exact lifts of skills: users of a run are played again, each time without one of their skills.

A skill is left out from its birth to the end, as `curator=without` does it. Rows are left-out skills, stepped side by
side, whichever users they are of: a row has the same bits in any cohort. Nothing is written to the run.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from skg_bench.analysis.counts.columns import column
from skg_bench.analysis.counts.metrics import Utility
from skg_bench.analysis.counts.outcomes import worth_of
from skg_bench.analysis.lift.first_order import Lifts
from skg_bench.app.building import build
from skg_bench.app.caller import callers_script_left_alone
from skg_bench.app.counterexample import cases
from skg_bench.app.hydra_trees import hydra_trees
from skg_bench.app.needed_messages import needed_only
from skg_bench.app.trust import FromFile
from skg_bench.asking.asking import placed
from skg_bench.assistant.pipeline.components import HasComponents, components, with_components
from skg_bench.assistant.python import Python
from skg_bench.assistant.python.forgotten_answers import ForgettingEach
from skg_bench.core.arms import Arm
from skg_bench.core.assistant import Applied
from skg_bench.core.batch import Batch
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import Feedback
from skg_bench.core.grid import F64, I32, I64
from skg_bench.core.launching import Tick
from skg_bench.core.learning_jobs import Course, Jobs
from skg_bench.curator.without import WithoutEach
from skg_bench.engine.agreement_judge import AgreementJudge
from skg_bench.engine.cohort import Rollout, cohort_of
from skg_bench.engine.execute import Job, Progress, replay_job
from skg_bench.engine.plan import Plan
from skg_bench.runfolder.run import Run


def exact_lifts(run: Run, arm: str, lifts: Lifts, chosen: I64, progress: Progress, *, trust: bool) -> F64:
    """Utility of each chosen skill's user over the run, less that without the skill, `[len(chosen)]`.

    `chosen`: rows of `lifts`. `progress(done, total)` counts turns. Raises UsageError for an arm that forks or begins
    with skills, for one that reaches something and is not trusted, and where code or data are no longer those of the
    run.
    """
    if (lifts.born < 0).any():
        raise UsageError(
            f"{run.path}: arm {arm!r} began with skills (seeds), which are in its books from the start and were never "
            "captured; leave out --exact"
        )
    prices = Utility.of(run.config)
    whole = worth_of(run, arm, prices)
    plan = needed_only(_plan(run, arm, trust=trust), len(whole))
    users, start = np.unique(column(whole, "user"), return_index=True)
    turns = np.diff(start, append=len(whole))
    row = lifts.user[chosen]
    order = np.argsort(-turns[row], kind="stable")  # rows in order of falling turns, as a cohort has them
    total, size = int(turns[row].sum()), int(run.config["cohort"])
    exact = np.zeros(len(chosen))
    with callers_script_left_alone(), replay_job(plan, run.path, total) as job:
        (ready,) = job.plan.arms
        replay = PlayedAgain(job, prices, start, column(whole, "utility"))
        parts = np.array_split(order, max(1, round(len(order) / size))) if len(order) else []
        tasks = [
            RowsWithout(_without(ready, lifts.skill[at], run), users[lifts.user[at]], lifts.user[at], lifts.born[at])
            for at in (chosen[part] for part in parts)
        ]
        (node,) = hydra_trees().options("launcher", ["local"])
        launcher = build("launcher", node, FromFile(str(run.path), trust))
        workers = min(int(run.config["workers"]), len(tasks))  # a task alone needs no process of its own
        progress(0, total)
        results = launcher.carry_out(replay, tasks, workers, run.path, lambda done: progress(done, total))
    for part, result in zip(parts, results, strict=True):
        exact[part] = result
    return exact


def _plan(run: Run, name: str, *, trust: bool) -> Plan:
    """The plan of one arm of a run, from its manifest.

    Raises UsageError for an arm that goes on from another one, and for what may not be reached.
    """
    origin, scenario, spec = FromFile(str(run.path), trust), cases.scenario_of(run, 0), cases.spec_of(run, name)
    if len(spec.compositions) > 1:
        raise UsageError(
            f"arm {name!r} goes on from another arm (fork), whose skills it did not capture; name an arm without a "
            "fork, or leave out --exact"
        )
    cases.admit(origin, scenario, [spec])
    world, embedder = build("simulator", scenario.simulator, origin), build("embedder", scenario.embedder, origin)
    for seam, made in (("simulator", world), ("embedder", embedder)):
        if made.digest != run.manifest["data"][seam]:
            raise UsageError(f"{run.path} was made from other data ({seam}) than are here now; run it again")
    config, arm = run.config, spec.arm(name, origin)
    if reason := _unplayed(arm):
        raise UsageError(f"arm {name!r}: {reason}; or leave out --exact")
    judge = AgreementJudge(**config["comparison"])
    seed, salt = int(config["seed"]), scenario.seed >> 64
    return Plan(seed, int(config["users"]), int(config["weeks"]), world, embedder, (arm,), judge, salt)


def _unplayed(arm: Arm) -> str | None:
    """Reason why its users cannot be played again without what they learned, None: they can."""
    match arm.assistant:
        case Python() as assistant:
            return assistant.unforgotten()
        case HasComponents():
            return None
        case assistant:
            return f"{type(assistant).__name__} cannot be made to forget one answer; take a class with forget"


def _without(arm: Arm, skills: I32, run: Run) -> Arm:
    """The arm whose rows each leave out one of these skills; of a Python class, answers of these turns."""
    if isinstance(arm.assistant, Python):
        return placed(replace(arm, assistant=ForgettingEach(arm.assistant, tuple(skills.tolist()))), run.path)
    curator = WithoutEach(components(arm).curator, tuple(skills.tolist()))
    return placed(with_components(arm, curator=curator), run.path)


@dataclass(frozen=True)
class RowsWithout:
    """Rows to play again, in order of falling turns."""

    arm: Arm  # which leaves a skill of each out
    users: I32  # [R] ids
    place: I32  # [R] places of the users in the run
    born: I64  # [R] turns up to which a row is as it was


@dataclass(frozen=True)
class PlayedAgain:
    """Plays rows again, and gives what each lost by it."""

    job: Job
    prices: Utility
    start: I64  # [n] first turn of each user of the run
    utility: F64  # of each turn of the run, by user

    def begin(self) -> Callable[[RowsWithout, Tick], F64]:
        """Setting of the process, made once."""
        setting = self.job.setting()

        def play(task: RowsWithout, tick: Tick) -> F64:
            users, row = np.unique(task.users, return_inverse=True)
            rollout = Rollout(setting, [task.arm], cohort_of(setting, users).rows(row))
            losses = LossWriter(self, task, np.zeros(len(row)))
            rollout.to_the_end(losses, tick)
            return losses.lost

        return play


@dataclass(frozen=True)
class LossWriter:
    """Sums up what rows lose, turn by turn; of their logs nothing is kept."""

    run: PlayedAgain
    rows: RowsWithout
    lost: F64  # [R] so far

    def turn(self, t: int, **values: np.ndarray) -> None:
        """Raises UsageError for a row that differs from the run before its skill was born."""
        n, rows = len(values["offer"]), self.rows
        right, offer = pa.array(values["answer_correct"] > 0), pa.array(values["offer"], mask=values["offer"] < 0)
        costs = {name: values[name] for name in ("cost_usd", "learning_cost_usd", "latency_ms")}
        utility = 1.0 - self.run.prices.loss(pa.table({"answer_correct": right, "offer": offer, **costs}))
        gap = self.run.utility[self.run.start[rows.place[:n]] + t] - utility
        match rows.arm.assistant:
            case ForgettingEach(name=name):
                _check_forgotten(name, rows, t, values["source_turn"])
        if wrong := np.flatnonzero((gap != 0) & (t <= rows.born[:n])).tolist():
            raise UsageError(
                "this version of code and data no longer gives what the run logged (user "
                f"{rows.users[wrong[0]]}, turn {t}); run it again"
            )
        self.lost[:n] += gap

    def update(self, t: int, batch: Batch, applied: Applied) -> None:
        """Discarded."""

    def feedback(self, t: int, feedback: Feedback, time: I64, skill: I32) -> None:
        """Discarded."""

    def learning(self, t: int, jobs: Jobs, time: I64, course: Course | None) -> None:
        """Discarded."""


def _check_forgotten(name: str, rows: RowsWithout, turn: int, source: I32) -> None:
    """Raises UsageError for an answer that was to be forgotten and comes back at a turn, from turns `source` `[n]`."""
    again = np.flatnonzero((source == rows.born[: len(source)]) & (turn > source)).tolist()
    if again:
        raise UsageError(
            f"{name}.forget dropped nothing: user {rows.users[again[0]]} was given the answer of "
            f"turn {source[again[0]]} again, at turn {turn}; drop all that is kept of words with the reference"
        )
