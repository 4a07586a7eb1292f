"""`skg_bench.plan_contrast`: plans from a pilot, which is two arms of a run, or an arm's log and a replayed target."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from skg_bench.analysis.counts.measure import contrast
from skg_bench.analysis.counts.metrics import LOSS_COLUMNS, Utility, metrics
from skg_bench.analysis.counts.roles import roles
from skg_bench.analysis.counts.tally import events, tallies
from skg_bench.analysis.policy_value.contrast_plan import ChanceLog, ContrastPlan, Pilot, planned_designs
from skg_bench.analysis.policy_value.loop_values import loop_values
from skg_bench.analysis.policy_value.paired_turns import PairedTurns
from skg_bench.analysis.statistics.intervals import ALPHA, POWER, t_quantile
from skg_bench.analysis.statistics.planned_users import least_users
from skg_bench.app.building import build
from skg_bench.app.hydra_trees import hydra_trees
from skg_bench.app.logged_choices import arm_choices
from skg_bench.app.replayed_arms import UTILITY, replay_arms
from skg_bench.app.trust import FromFile
from skg_bench.core.deciding import Policy
from skg_bench.core.errors import UsageError, nearest
from skg_bench.core.grid import F64, Bool
from skg_bench.engine.execute import Progress
from skg_bench.runfolder.run import Run, needs_right, opened_run, same_events
from skg_bench.simulator.logs.arm_log import RIGHT_ANSWER

_METRIC = {UTILITY: "utility", RIGHT_ANSWER: "correct"}
_ERRORS = t_quantile(1 - ALPHA / 2, np.inf) + t_quantile(POWER, np.inf)  # standard errors in a difference that is found
_ANSWER = ("serving", "source_turn", "skill")  # what tells answers apart
_EVENT = ("user", "turn", "event")
_EXACT = 1e-6  # of a propensity
_RULE = "skg_bench.policy.threshold.Threshold"


def plan_contrast(
    source: "Run | str | Path",
    arm: str | None = None,
    *,
    target: tuple[str, Sequence[str]] | None = None,
    reference: str | None = None,
    reward: str = UTILITY,
    effect: float | None = None,
    progress: Progress | None = None,
) -> ContrastPlan:
    """Users that decide between two arms in 80 % of cases, by a two-sided test at 5 %, and what they cost.

    `source`: a run with both arms; or with the reference alone, on whose log `target`, a name and overrides, is
    replayed. `reward`: UTILITY or RIGHT_ANSWER, a mean over users. `effect`: smallest difference that matters; None:
    that of the pilot, whose error widens the intervals. `progress(done, total)` counts replayed turns.

    >>> plan_contrast("runs/first-1a2b3c4d", "skg", reference="never", effect=0.01).designs

    Raises UsageError for arms that are not there, that have other events or that do not differ.
    """
    run = opened_run(source)
    held = _reference(run, reference)
    if (arm is None) == (target is None):
        which = "give one of --arm and --target" if arm is not None else "which arm is to be planned for? Give --arm"
        others = ", ".join(name for name in run.arms if name != held)
        raise UsageError(f"{which}; arms of the run: {others}; an arm that was not run: --target 'strict=[...]'")
    if reward not in _METRIC:
        raise UsageError(f"--reward {reward}: {nearest(reward, list(_METRIC))}")
    if effect is not None and not 0 < effect < np.inf:
        raise UsageError(f"--effect {effect:g}: give the smallest difference that matters, above 0, such as 0.01")
    same_events([run], "a plan")
    needs_right(run, "a plan")
    if not run.domain.answers:
        raise UsageError(
            f"{run.path} is of the world {run.domain.name!r}: a plan takes answers that are right or wrong, as those "
            "of simulator=assistant"
        )
    if target is not None:
        name, pilot = target[0], _log_pilot(run, held, target, reward, progress=progress or _ignore_progress)
    else:
        name = _arm(run, str(arm), held)
        pilot = _arms_pilot(run, name, held, reward)
    if not pilot.apart:
        raise UsageError(f"{run.path}: {name} and {held} gave the same answers on every turn; nothing tells them apart")
    difference = pilot.arm - pilot.reference
    return ContrastPlan(
        name, held, reward, len(difference), float(difference.mean()), float(np.abs(difference).max()),
        effect, tuple(planned_designs(pilot, effect)),
        None if target is not None else _new_requests(run, name, held, effect, _METRIC[reward]),
        pilot.without, pilot.doubt,
    )  # fmt: skip


def _ignore_progress(_done: int, _total: int) -> None:
    """Shows nothing."""


def _reference(run: Run, named: str | None) -> str:
    known = named or roles(run).reference or (run.arms[0] if len(run.arms) == 1 else None)
    if known is None:
        raise UsageError(f"{run.path} has no reference; name an arm with --reference: {', '.join(run.arms)}")
    if known not in run.arms:
        raise UsageError(f"--reference {known}: {nearest(known, run.arms)}")
    return known


def _arm(run: Run, arm: str, reference: str) -> str:
    if arm not in run.arms:
        raise UsageError(f"--arm {arm}: {nearest(arm, run.arms)}; for one that was not run, give --target")
    if arm == reference:
        others = ", ".join(each for each in run.arms if each != arm) or "none; give --target"
        raise UsageError(f"--arm {arm}: it is the reference itself; the other arms are {others}")
    return arm


def _new_requests(run: Run, arm: str, reference: str, effect: float | None, name: str) -> float | None:
    """Users for a verdict of `compare`, whose interval is for other requests too: more users make only their part of
    its error smaller.
    """
    requests, metric = events(run), metrics(Utility.of(run.config))[name]
    mine, others = (tallies(run, each, requests)[0] for each in (arm, reference))
    estimate = contrast([metric], mine, others, requests)[name]
    size, intents = estimate.mean if effect is None else effect, estimate.se_new**2 - estimate.se**2
    if not np.isfinite(intents):
        return None
    left = (size / _ERRORS) ** 2 - max(intents, 0.0)
    return np.inf if left <= 0 else least_users(estimate.se * estimate.n_users**0.5, _ERRORS * left**0.5)


# ---------------------------------------------------------------------------------------------------------- pilots


def _arms_pilot(run: Run, arm: str, reference: str, reward: str) -> Pilot:
    """The pilot of two arms of a run.

    Raises UsageError for arms with other events, and rewards that are missing.
    """
    names, prices = (reference, arm), Utility.of(run.config) if reward == UTILITY else None
    columns = list(dict.fromkeys([*_EVENT, *_ANSWER, *LOSS_COLUMNS, "propensity"]))
    first, second = (run.turns(name, columns) for name in names)
    if len(first) != len(second) or any(not first[name].equals(second[name]) for name in _EVENT):
        raise UsageError(f"{run.path}: {arm} and {reference} have other events, so that users cannot be paired")
    _, user = np.unique(first["user"].to_numpy(), return_inverse=True)
    rewards = [_rewards(run, table, prices) for table in (first, second)]
    pairs = PairedTurns(user, rewards[0], rewards[1], _apart(first, second))
    without = _without(run, names, (first, second))
    logs = () if without else tuple(_logs(run, names, pairs, -prices.wrong if prices else 0.0))
    users = len(pairs.turns)
    usd = [sum(float(np.nansum(table[name].to_numpy())) for name in LOSS_COLUMNS[1:3]) for table in (first, second)]
    usd = usd if any(usd) else [np.nan, np.nan]  # nothing was metered, as in results made elsewhere
    return Pilot(
        pairs.means(pairs.reference), pairs.means(pairs.arm), len(user) / users, float(pairs.apart.sum()) / users,
        (usd[0] / users, usd[1] / users), logs, without, "",
    )  # fmt: skip


def _rewards(run: Run, table: pa.Table, prices: Utility | None) -> F64:
    if table[RIGHT_ANSWER].null_count:
        raise UsageError(f"{run.path}: some answers are not known to be right or wrong; a plan needs all of them")
    if prices is None:
        right: F64 = table[RIGHT_ANSWER].to_numpy().astype(np.float64)
        return right
    values: F64 = 1.0 - prices.loss(table)
    if np.isnan(values).any():
        raise UsageError(f"{run.path}: costs or waits are missing; plan by --reward {RIGHT_ANSWER}")
    return values


def _apart(first: pa.Table, second: pa.Table) -> Bool:
    """Do the answers differ `[N]`? A stored one is known by its turn, one to a prompt by the skill in it."""
    how = [np.array(table["serving"].cast(pa.string()).to_pylist()) for table in (first, second)]
    source, skill = ([table[name].to_numpy() for table in (first, second)] for name in _ANSWER[1:])
    prompts = (how[0] == "prompted") & (skill[0] != skill[1])
    right = [table[RIGHT_ANSWER].to_numpy() for table in (first, second)]  # all that results made elsewhere tell
    apart: Bool = (how[0] != how[1]) | (source[0] != source[1]) | prompts | (right[0] != right[1])
    return apart


def _without(run: Run, names: Sequence[str], tables: Sequence[pa.Table]) -> str:
    compositions = run.manifest.get("compositions", {})
    first, second = (compositions.get(name, {}) for name in names)
    if not first.get("policy") or not second.get("policy"):
        return "an arm has no policy"
    if differs := sorted(key for key in {*first, *second} - {"policy"} if first.get(key) != second.get(key)):
        return f"the arms differ in {', '.join(differs)}, not in the policy alone"
    if any(bool((np.abs(table["propensity"].to_numpy() - 1.0) > _EXACT).any()) for table in tables):
        return "an arm decides by chance already, and its log can be asked: skg-bench estimate --estimand step"
    return ""


def _logs(run: Run, names: Sequence[str], pairs: PairedTurns, wrong: float) -> list[ChanceLog]:
    """A coin where the arms differ, and policies that explore around the rule of one of them."""
    half = np.full(len(pairs.user), 0.5)
    middle = float(pairs.means(pairs.reference + pairs.arm).mean()) / 2
    logs = [ChanceLog("interleave", pairs.log_noise(half, half), middle)]
    choices = [arm_choices(run, name) for name in names]
    for name, policy in _explorers(run, names):
        first, second = (each.probability(policy) for each in choices)
        if first is not None and second is not None:
            logs.append(ChanceLog(name, pairs.log_noise(first, second), pairs.expected(first, second, wrong)))
    return logs


def _explorers(run: Run, names: Sequence[str]) -> list[tuple[str, Policy[Any]]]:
    nodes: list[Mapping[str, Any]] = [run.manifest["compositions"][name]["policy"] for name in names]
    rules = [node["threshold"] for node in nodes if node["_target_"] == _RULE]
    explorers = []
    for option, key in (("softmax", "temperature"), ("epsilon_threshold", "epsilon")) if rules else ():
        (chosen,) = hydra_trees().options("policy", [option])
        policy = build("policy", {**chosen, "threshold": rules[0]}, FromFile(str(run.path), trusted=False))
        explorers.append((f"{option}, {key} {chosen[key]:g}", policy))
    return explorers


def _log_pilot(
    run: Run, reference: str, target: tuple[str, Sequence[str]], reward: str, *, progress: Progress
) -> Pilot:
    """The pilot of an arm's log and a target, which is replayed on it.

    Raises UsageError as `replay_arms` does.
    """
    name, overrides = target
    replayed = replay_arms(run, reference, {name: overrides}, reward, progress=progress)
    sums = replayed.targets[name]
    value, known, pair, square = (sums.of(each)[:, 0] for each in ("value", "known", "pair", "pair_square"))
    turns = replayed.logged.turns
    apart, centre = turns - known, float(replayed.logged.value.sum() / turns.sum())
    noise = (square - 4 * centre * pair + 4 * centre**2 * apart) / turns**2
    middle = float(((replayed.logged.value + value) / turns).mean()) / 2
    made = loop_values(replayed.logged, replayed.targets, replayed.calibrations, estimand="loop", reference="log")
    return Pilot(
        replayed.logged.value / turns, value / turns, float(turns.mean()), float(apart.mean()), (np.nan, np.nan),
        (ChanceLog("interleave", np.maximum(noise, 0.0), middle),), "", made.replays[0].withheld,
    )  # fmt: skip
