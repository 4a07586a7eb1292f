"""Replays of a run's log under other arms (targets): logged outcomes are repeated, others drawn from models of these.

Rows are users times imputations, stepped side by side. Nothing is written to the run.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from math import nan, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from skg_bench.analysis.counts.metrics import Utility
from skg_bench.analysis.policy_value.decision_sums import LoggedDecisions
from skg_bench.analysis.policy_value.estimates import LOG, ModelCalibration, StreamCheck
from skg_bench.analysis.policy_value.loop_values import ROUNDED, LoggedRewards, ReplayedSums, calibration
from skg_bench.app.arm_keys import PIPELINE
from skg_bench.app.building import build
from skg_bench.app.caller import callers_script_left_alone
from skg_bench.app.composed_arms import arms
from skg_bench.app.hydra_trees import hydra_trees
from skg_bench.app.judged_turns import log_by_people
from skg_bench.app.logged_choices import stored_chances
from skg_bench.app.overrides import Override, check_keys, deepened, parse
from skg_bench.app.stream_checks import log_stream
from skg_bench.app.trust import FromFile
from skg_bench.core.assistant import Applied
from skg_bench.core.batch import Batch
from skg_bench.core.errors import UsageError, nearest
from skg_bench.core.feedback import Feedback
from skg_bench.core.grid import F64, I32, I64
from skg_bench.core.launching import Tick
from skg_bench.core.learning_jobs import Course, Jobs
from skg_bench.core.world import FALLBACK
from skg_bench.engine.agreement_judge import AgreementJudge
from skg_bench.engine.cohort import Rollout, cohort_of
from skg_bench.engine.execute import Job, Progress, replay_job
from skg_bench.engine.plan import Plan
from skg_bench.runfolder.manifest import salted_seed
from skg_bench.runfolder.run import Run, made_here, same_events
from skg_bench.simulator.logs.arm_log import RIGHT_ANSWER, ArmLog, arm_log
from skg_bench.simulator.logs.logged_world import (
    HARSHER,
    INVENTED_OFFER,
    KNOWN,
    MILDER,
    MODELLED,
    UNSUPPORTED,
    LoggedWorld,
    ReplayUsers,
)
from skg_bench.simulator.logs.outcome_models import HOWS, ModelKind, OutcomeModels, outcome_models

IMPUTATIONS = 5
_NUMBERS = np.array([*range(IMPUTATIONS), MILDER, HARSHER], np.int32)  # of the replays of each user
UTILITY = "utility"
"""Name of the reward that is computed from right answers, money, waiting and offers, by the prices of the run."""
REPLAYABLE = (
    "router", "reranker", "policy", "curator", "signals", "signs", "refit_every", "refit_on_capture", "refit_apart",
    "decline_is_miss", "freeze", "freeze_at",
)  # fmt: skip
"""Keys of an arm that a target may change. All others change the world, or would need answers that no log has."""
_TOLERANCE = 1e-6  # of a propensity


@dataclass(frozen=True)
class ReplayedArms:
    """Results of replays of a log."""

    users: I32  # [G] ids
    logged: LoggedRewards
    targets: Mapping[str, ReplayedSums]
    calibrations: Sequence[ModelCalibration]
    stream: StreamCheck | None  # None: the log's policy decides by more than scores
    decisions: LoggedDecisions  # of the log's arm


def replay_arms(
    run: Run,
    arm: str,
    targets: Mapping[str, Sequence[str]],
    reward: str,
    *,
    judged: Path | None = None,
    model: ModelKind = "logistic",
    since: int | None = None,
    progress: Progress,
) -> ReplayedArms:
    """Replay the arm on its own log, as a check; then each target, `IMPUTATIONS` times and twice with other ratings.

    `since`: turn of the user before which a target is the logged arm, and from which on it learns nothing; None: the
    target replaces the arm from the first turn on. `reward`: UTILITY or RIGHT_ANSWER. `judged`: a table that says which
    answers were right, in place of the log.

    Raises UsageError for an arm that cannot be replayed, for a target that changes a key beyond REPLAYABLE, and for a
    decision of the arm that differs from the log.
    """
    check_replayable(run)
    if reward not in (UTILITY, RIGHT_ANSWER):
        raise UsageError(
            f"--reward {reward}: {nearest(reward, (UTILITY, RIGHT_ANSWER))}. A replay repeats answers of the log with "
            "what they are worth; all else that a turn says may come out otherwise after the same answer"
        )
    plan, log, models = _plan(run, arm, targets, judged=judged, model=model, since=since)
    stream = log_stream(log, models.features, stored_chances(run, arm))
    prices = Utility.of(run.config) if reward == UTILITY else None
    first = since or 0
    users = np.flatnonzero(log.counts > first).astype(np.int32)
    if len(users) < 2:
        raise UsageError(
            f"{run.path}: {len(users)} users have turns from {first} on; an interval for other users needs two; "
            "take a smaller turn, or a run of more users"
        )
    users, everyone = _busiest_first(users, log), _busiest_first(np.flatnonzero(log.counts).astype(np.int32), log)
    tasks = [ReplayTask(0, part, np.zeros(len(part), np.int32)) for part in _parts(everyone, 1, run)]
    check, parts = len(tasks), _parts(users, len(_NUMBERS), run)
    for arm_number in range(1, len(targets) + 1):
        tasks += [ReplayTask(arm_number, part.repeat(len(_NUMBERS)), np.tile(_NUMBERS, len(part))) for part in parts]
    total = int(log.counts.sum()) + len(targets) * len(_NUMBERS) * int(log.counts[users].sum())
    with callers_script_left_alone(), replay_job(plan, run.path, total) as job:
        (node,) = hydra_trees().options("launcher", ["local"])
        launcher = build("launcher", node, FromFile(str(run.path), trusted=False))
        workers = min(int(run.config["workers"]), len(tasks))
        progress(0, total)
        replay = LogReplay(job, log, str(run.path), first, prices)
        results = launcher.carry_out(replay, tasks, workers, run.path, lambda done: progress(done, total))
    sums = {
        name: ReplayedSums(_by_user(results[check + i * len(parts) :][: len(parts)])) for i, name in enumerate(targets)
    }
    calibrations = [calibration(HOWS[h.how], h.predicted, h.observed, h.user, h.weight) for h in models.held_out]
    numbered = np.unique(log.user, return_inverse=True)[1].astype(np.int64)
    decisions = LoggedDecisions(log.propensity, _turn_rewards(log, prices), user=numbered)
    return ReplayedArms(users, _logged(log, users, first, prices), sums, calibrations, stream, decisions)


def check_replayable(run: Run, instead: str = "use --estimand step here") -> None:
    """Raises UsageError for a run on whose messages no other arm can be replayed; `instead`: what to do there."""
    made_here(run, "estimates of other arms")
    same_events([run], "an estimate of another arm")
    if not run.domain.answers or run.domain.in_words or run.domain.recorded or run.domain.kinds or run.domain.outcome:
        raise UsageError(
            f"{run.path} is of the world {run.domain.name!r}: another arm is replayed on messages whose answers are "
            f"right or wrong, as those of simulator=assistant or clinc150; {instead}"
        )


def _busiest_first(users: I32, log: ArmLog) -> I32:
    return users[np.argsort(-log.counts[users], kind="stable")]


def _parts(users: I32, copies: int, run: Run) -> list[I32]:
    """Users in parts of about as many rows as a cohort has; a user has `copies` rows."""
    return list(np.array_split(users, max(1, round(len(users) * copies / int(run.config["cohort"])))))


# ------------------------------------------------------------------------------------------------------- the plan


def _plan(
    run: Run,
    arm: str,
    targets: Mapping[str, Sequence[str]],
    *,
    judged: Path | None,
    model: ModelKind,
    since: int | None,
) -> tuple[Plan, ArmLog, OutcomeModels]:
    origin, mine = FromFile(str(run.path), trusted=False), run.manifest["compositions"][arm]
    _check_logger(run, arm, mine)
    compositions = {arm: mine, **{name: _target(arm, mine, name, texts, since) for name, texts in targets.items()}}
    log = arm_log(run, arm) if judged is None else log_by_people(run, arm, judged)
    embedder = build("embedder", run.config["embedder"], origin)
    if embedder.digest != run.manifest["data"]["embedder"]:
        raise UsageError(f"{run.path} was made from other data (embedder) than are here now; run it again")
    models, log = outcome_models(model, log, embedder.embed(log.messages))
    made = arms(compositions, origin)
    world = LoggedWorld(log, models, made[0].hit_latency_ms, run.domain, run.manifest["data"]["simulator"])
    config = run.config
    for each in made[1:]:
        if any(phase.assistant.sees_truth for phase in each.phases):
            raise UsageError(f"--target {each.name}: it knows which answers are right, and no log does; name another")
    plan = Plan(
        int(config["seed"]), int(config["users"]), int(config["weeks"]), world, embedder, made,
        AgreementJudge(**config["comparison"]), salted_seed(run.manifest, run.path) >> 64,
    )  # fmt: skip
    return plan, log, models


def _check_logger(run: Run, arm: str, composition: Mapping[str, Any]) -> None:
    if composition["assistant"].get("_target_") != PIPELINE:
        raise UsageError(
            f"{run.path}: arm {arm!r} is an assistant of its own, which no log can replay; name an arm with a skillbook"
        )
    reasons = {
        "forks from another arm": composition.get("fork") is not None,
        "begins with skills of a file (seeds)": composition.get("seeds") is not None,
        "learns from people beside the users (scope)": composition.get("scope") != "user",
        "runs procedures (serving=procedure)": composition.get("serving") == "procedure",
    }
    for reason, holds in reasons.items():
        if holds:
            raise UsageError(f"{run.path}: arm {arm!r} {reason}, which cannot be replayed; use --estimand step")


def _target(
    arm: str, logged: Mapping[str, Any], name: str, texts: Sequence[str], since: int | None
) -> Mapping[str, Any]:
    where = f"--target {name}: "
    if name in (arm, LOG):
        whose = "the log that targets are held against" if name == LOG else "an arm of the run"
        raise UsageError(f"{where}{whose} has this name; take another one")
    composition: dict[str, Any] = deepcopy(dict(logged))
    for override in parse(list(texts), where):
        _set(composition, override, where)
    if not texts and since is None:
        raise UsageError(f"{where}no override is given; write --target '{name}=[policy.threshold=0.6]'")
    if since is None:
        return composition
    return {**composition, "fork": f"{arm}@{since}", "freeze": "all", "freeze_at": since}


def _set(composition: dict[str, Any], override: Override, where: str) -> None:
    if override.head not in REPLAYABLE or override.delete or override.inner:
        raise UsageError(
            f"{where}{override.text}: a target may change {', '.join(REPLAYABLE)}; other keys change who asks, what "
            "the LLM answers or what is stored, and the log has only the answers of its own arm"
        )
    if override.choice:
        (composition[override.head],) = hydra_trees().options(override.head, [str(override.value)])
        return
    changed = deepened(override, composition)
    check_keys(changed, composition, where)
    node, (*above, last) = composition, changed.path.split(".")
    for key in above:
        node = node[key]
    node[last] = override.value


# ------------------------------------------------------------------------------------------------------ the replay


@dataclass(frozen=True)
class ReplayTask:
    """Rows to play, in order of falling turns."""

    arm: int  # 0: the log's own
    users: I32  # [R] ids
    imputation: I32  # [R]


@dataclass(frozen=True)
class LogReplay:
    """Replays rows on the log. Returns their sums from turn `first` on: REPLAY_SUMS `[C, R]`."""

    job: Job
    log: ArmLog
    source: str
    first: int
    prices: Utility | None  # None: the reward is the column of the log

    @cached_property
    def audit(self) -> F64:
        """Variance of the log's right answers `[N]`, as not all were judged."""
        return self.log.audit

    @cached_property
    def logged(self) -> F64:
        """Rewards of the log `[N]`."""
        return _turn_rewards(self.log, self.prices)

    def begin(self) -> Callable[[ReplayTask, Tick], F64]:
        """Function that plays a task; the setting of the process is made once."""
        setting = self.job.setting()

        def play(task: ReplayTask, tick: Tick) -> F64:
            users, row = np.unique(task.users, return_inverse=True)
            cohort = cohort_of(setting, users).rows(row)
            memory: ReplayUsers = cohort.memory.imputed(task.imputation)
            writer = ReplayWriter(self, task, np.zeros((len(row), int(cohort.n.max()))))
            Rollout(setting, [self.job.plan.arms[task.arm]], replace(cohort, memory=memory)).to_the_end(writer, tick)
            return self._sums(task, memory, writer.learning_usd)

        return play

    def _sums(self, task: ReplayTask, users: ReplayUsers, learning_usd: F64) -> F64:
        events = users.events
        row, turn = np.nonzero(np.arange(events.number.shape[1]) < events.n[:, None])
        row, turn = row[turn >= self.first], turn[turn >= self.first]
        at = row, events.number[row, turn]
        basis, chance, how, reaction = (values[at] for values in (users.basis, users.chance, users.how, users.reaction))
        unknown = basis != KNOWN
        value, scale = chance, 1.0
        if self.prices is not None:
            paid = self.prices.usd * (users.cost_usd[at] + learning_usd[row, turn])
            paid += self.prices.second / 1000.0 * users.latency_ms[at] + self.prices.offer * (reaction > 0)
            scale = 1.0 + self.prices.wrong
            value = scale * chance - self.prices.wrong - paid
        luck = scale**2 * (chance * (1.0 - chance) * unknown)
        pair = (value + self.logged[self.log.start[task.users[row]] + turn]) * unknown
        columns = (
            np.ones(len(row)), value, scale * (chance * unknown), scale * (chance * (basis == UNSUPPORTED)),
            scale * unknown, scale * (basis == UNSUPPORTED), luck, luck * (how == FALLBACK),
            scale * (unknown & (how == FALLBACK)), pair, pair**2 + luck,
            scale**2 * (self.audit[self.log.start[task.users[row]] + turn] * ~unknown),
            basis == KNOWN, basis == MODELLED, basis == UNSUPPORTED, (reaction == INVENTED_OFFER) & (basis == KNOWN),
        )  # fmt: skip
        return np.stack([np.bincount(row, column, len(events.n)) for column in columns])


@dataclass(frozen=True)
class ReplayWriter:
    """Keeps the cost of learning, and checks each decision of the log's own arm."""

    run: LogReplay
    rows: ReplayTask
    learning_usd: F64  # [R, T]

    def turn(self, t: int, **values: np.ndarray) -> None:
        """Raises UsageError where the log's own arm decides otherwise than the log says."""
        n = len(values["skill"])
        self.learning_usd[:n, t] = values["learning_cost_usd"]
        if self.rows.arm:
            return
        log = self.run.log
        at: I64 = log.start[self.rows.users[:n]] + t
        source = values["source_turn"]
        pairs: dict[str, tuple[np.ndarray, np.ndarray]] = {
            "skill": (values["skill"], log.skill[at]), "source turn": (source, log.source_turn[at]),
            "serving": (values["serving"], log.how[at]), "offer": (values["offer"], log.offer[at]),
        }  # fmt: skip
        wrong = {name: mine != theirs for name, (mine, theirs) in pairs.items()}
        pairs["propensity"] = values["propensity"], log.propensity[at]
        wrong["propensity"] = np.abs(values["propensity"] - log.propensity[at]) > _TOLERANCE
        for name, mask in wrong.items():
            if mask.any():
                i = int(mask.argmax())
                mine, theirs = (each[i].item() for each in pairs[name])
                raise UsageError(
                    f"{self.run.source}: played on its own log, the arm decides otherwise: user "
                    f"{self.rows.users[i]}, turn {t}: {name} {mine}, and the log says {theirs}. The log was changed, "
                    "or it is of another arm, or of another version of code and data; run it again"
                )

    def update(self, t: int, batch: Batch, applied: Applied) -> None:
        """Discarded."""

    def feedback(self, t: int, feedback: Feedback, time: I64, skill: I32) -> None:
        """Discarded."""

    def learning(self, t: int, jobs: Jobs, time: I64, course: Course | None) -> None:
        """Discarded."""


def _by_user(parts: Sequence[F64]) -> F64:
    """Sums `[C, G, V]` of a target's tasks, whose rows are users times `_NUMBERS`."""
    whole = np.concatenate(parts, axis=1)
    by_user: F64 = whole.reshape(len(whole), -1, len(_NUMBERS))
    return by_user


def _logged(log: ArmLog, users: I32, first: int, prices: Utility | None) -> LoggedRewards:
    """Sums of the log's own rewards by user."""
    counted, value = log.turn >= first, _turn_rewards(log, prices)
    missing = int(np.isnan(log.right[counted]).sum())
    n, scale = len(log.start) - 1, 1.0 if prices is None else 1.0 + prices.wrong
    known = np.where(np.isnan(value), 0.0, value)
    turns, sums = (
        np.bincount(log.user[counted], each[counted], n).astype(np.float64)[users]
        for each in (np.ones(len(value)), known)
    )
    return LoggedRewards(turns, sums, missing, scale**2 * float(log.audit[counted].sum()), _judging(log))


def _judging(log: ArmLog) -> tuple[float, float]:
    """Mean weight of judged turns, and its standard error, of the way to serve for which it is farthest from 1; NaN if
    nobody knows the chance of some.
    """
    if np.isnan(log.judged).any():
        return nan, 0.0
    means, judged = [(1.0, 0.0)], ~np.isnan(log.right)
    for how in HOWS:
        at = np.flatnonzero(log.how == how)
        weight = judged[at] / log.judged[at]
        if len(at):
            spread = float((weight * (1.0 / log.judged[at] - 1.0)).sum())
            means.append((float(weight.mean()), sqrt(spread) / len(at)))
    return max(means, key=lambda mean: abs(mean[0] - 1.0) / max(mean[1], ROUNDED))


def _turn_rewards(log: ArmLog, prices: Utility | None) -> F64:
    """Rewards of the log's turns `[N]`; NaN: missing."""
    if prices is None:
        return log.estimated
    paid = prices.usd * log.cost_usd + prices.second / 1000.0 * log.latency_ms + prices.offer * (log.offer >= 0)
    rewards: F64 = (1.0 + prices.wrong) * log.estimated - prices.wrong - paid - prices.usd * log.learning_usd
    return rewards
