"""Decisions of an arm of a run, and the chance that the arm with another policy would have taken each of them, in the
state that it was taken in: on the shortlist and the scores of the log.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skg_bench.app.building import build
from skg_bench.app.hydra_trees import hydra_trees
from skg_bench.app.overrides import parse
from skg_bench.app.trust import FromFile
from skg_bench.core.deciding import Candidates, Policy, Shown
from skg_bench.core.draws import fold
from skg_bench.core.errors import UsageError, nearest
from skg_bench.core.foreign import FAULTS
from skg_bench.core.grid import F64, I32, I64
from skg_bench.core.types import Completions, WrittenTexts
from skg_bench.runfolder import schema
from skg_bench.runfolder.run import Run
from skg_bench.simulator.logs.decision_table import DecisionTable, TableBlock

_SIGNALS = ("shortlist", "similarity", "preference", "score", "combined")
_READ = ("user", "turn", "skill", "propensity", "serving", *_SIGNALS)
_FAILED = "procedure_failed"  # how such a turn was served
_EXACT = 1e-6  # to which a policy that is played again states the propensity of the log, which is a float32
Targets = Mapping[str, Sequence[str]]  # overrides of the arm, by name


def run_decisions(run: Run, arm: str | None, targets: Targets) -> DecisionTable:
    """The turns of an arm, with a column for each target: its probability of what the arm did.

    Raises UsageError for an unknown arm, and targets that change anything but the policy, or to one that does not
    decide by scores alone; and where the arm's own policy does not state the propensities of the log.
    """
    name = one_arm(run, arm)
    names = tuple(schema.turns(1, run.domain.outcome, in_words=run.domain.in_words).names)
    if taken := [target for target in targets if target in names]:
        raise UsageError(f"--target {taken[0]}: the log has a column of this name; take another one")
    policies = {target: _target_policy(run, name, target, texts) for target, texts in targets.items()}
    return DecisionTable(run.path, (*names, *targets), partial(_run_blocks, run, name, policies))


def stored_chances(run: Run, arm: str) -> F64 | None:
    """Probability with which the arm let a skill answer, of each of its turns; None: its policy decides by more than
    scores, or the log has none.
    """
    table = run.turns(arm, list(_READ))
    if any(table[name].null_count for name in _SIGNALS):
        return None
    choices = _logged_choices(run, arm, table)
    shares = choices.shares(build("policy", _node(run, arm), FromFile(str(run.path), trusted=False)))
    return None if shares is None else 1.0 - shares[:, 0]


def one_arm(run: Run, arm: str | None) -> str:
    """The arm whose log it is; None: the only one.

    Raises UsageError where there are several, or none of this name.
    """
    if arm is None and len(run.arms) > 1:
        raise UsageError(f"{run.path} has {len(run.arms)} arms; say whose log it is: --arm {'|'.join(run.arms)}")
    if arm is not None and arm not in run.arms:
        raise UsageError(f"--arm {arm}: {nearest(arm, run.arms)}")
    return arm or run.arms[0]


def _run_blocks(
    run: Run, arm: str, policies: Mapping[str, Policy[Any]], columns: Sequence[str]
) -> Iterator[TableBlock]:
    logged = [column for column in columns if column not in policies]
    table = run.turns(arm, list(dict.fromkeys([*logged, *(_READ if policies else ())])))
    cells = {column: table[column].combine_chunks() for column in logged}
    if policies:
        choices = _logged_choices(run, arm, table)
        _check_replay(run, arm, choices, table)
        for name, policy in policies.items():
            share = choices.probability(policy)
            if share is None:
                raise UsageError(
                    f"--target {name}: its policy decides by more than the scores of the log: ratings, a memory, a "
                    "model. Take one that does not, such as threshold, epsilon_threshold, softmax, never"
                )
            cells[name] = pa.array(share)
    yield TableBlock(run.path, np.arange(1, len(table) + 1), cells)


def arm_choices(run: Run, arm: str) -> "LoggedChoices":
    """Shortlists of all turns of an arm, and what it did with them.

    Raises UsageError where the arm logs no shortlists.
    """
    return _logged_choices(run, arm, run.turns(arm, _READ))


def target_chances(run: Run, arm: str, targets: Targets) -> Mapping[str, F64]:
    """Probability of what the arm did at each turn, of those targets that `run_decisions` takes."""
    table, chances = run.turns(arm, list(_READ)), {}
    if any(table[name].null_count for name in _SIGNALS):
        return {}
    choices = _logged_choices(run, arm, table)
    for name, texts in targets.items():
        try:
            share = choices.probability(_target_policy(run, arm, name, texts))
        except UsageError:  # it changes more than the policy
            continue
        if share is not None:
            chances[name] = share
    return chances


# ---------------------------------------------------------------------------------------------------------- targets


def _target_policy(run: Run, arm: str, target: str, texts: Sequence[str]) -> Policy[Any]:
    where = f"--target {target}: "
    node = _node(run, arm)
    for override in parse(list(texts), where):
        head, _, key = override.path.partition(".")
        if head != "policy" or override.delete or "." in key:
            raise UsageError(
                f"{where}{override.text}: the log tells of another policy on the arm's own shortlists; write policy="
                "NAME or policy.KEY=VALUE. Another router, scorer or curator needs a run of its own"
            )
        if override.choice:
            (chosen,) = hydra_trees().options("policy", [str(override.value)])
            node = dict(chosen)
        elif key not in node:
            raise UsageError(f"{where}{override.text}: {nearest(key, [name for name in node if name != '_target_'])}")
        else:
            node[key] = override.value
    if not texts:
        raise UsageError(f"{where}no override is given; write --target '{target}=[policy.threshold=0.6]'")
    policy: Policy[Any] = build("policy", node, FromFile(str(run.path), trusted=False), where)
    return policy


def _node(run: Run, arm: str) -> dict[str, Any]:
    """The arm's policy as its manifest describes it."""
    composition = run.manifest["compositions"].get(arm, {})
    node = composition.get("policy") if isinstance(composition, Mapping) else None
    if not isinstance(node, Mapping):
        raise UsageError(
            f"{run.path}: arm {arm!r} has no policy, and no shortlists; a target changes the policy of an arm"
        )
    return dict(node)


# ------------------------------------------------------------------------------------------------------- on the log


@dataclass(frozen=True)
class LoggedChoices:
    """Shortlists of n turns, and the place of what was done."""

    skill: I32  # [n, K]
    signals: Mapping[str, F64]  # [n, K] each of the other signals
    place: I32  # [n] -1: the LLM answered

    def probability(self, policy: Policy[Any]) -> F64 | None:
        """The policy's probability of what was done `[n]`; None: it decides by more than what the log has."""
        shares = self.shares(policy)
        return None if shares is None else shares[np.arange(len(self.place)), self.place + 1]

    def shares(self, policy: Policy[Any]) -> F64 | None:
        """The policy's probabilities `[n, 1 + K]` of the LLM and of each candidate; None: as of `probability`."""
        memory = policy.start(1)
        if _remembers(memory):
            return None
        try:
            first, second = (policy.propensities(self._candidates(made_up=each), memory) for each in (False, True))
        except FAULTS:
            return None
        if not np.array_equal(first, second):
            return None
        return np.minimum(first, 1.0).astype(np.float32).astype(np.float64)  # as the engine rounds them

    def _candidates(self, *, made_up: bool) -> Candidates:
        """Candidates as a policy is given them. The log has no counters and no texts: all are 0, or made up, and then a
        policy that reads them decides otherwise, or fails.
        """
        n, k = self.skill.shape
        score = None if np.isnan(self.signals["score"]).all() else self.signals["score"]
        keys = fold(np.arange(n, dtype=np.uint64)[:, None], np.arange(k)) if made_up else np.zeros((n, k), np.uint64)
        miss, ok, more = ((keys >> np.uint64(shift) & np.uint64(7)).astype(np.int32) for shift in (0, 3, 6))
        shown = Shown(np.arange(n), more[:, 0], keys, keys[:, 0], cast(WrittenTexts, None), _ignore)
        return Candidates(
            self.skill, self.signals["similarity"], self.signals["preference"], score, self.signals["combined"],
            miss + ok + 2 * more, ok + more / 2, miss + ok + more, more[:, 0], miss, shown if made_up else None,
        )  # fmt: skip


def _remembers(memory: Any) -> bool:
    """Is there anything in a policy's memory, such as a pair of memories?"""
    return any(map(_remembers, memory)) if isinstance(memory, tuple) else memory is not None


def _ignore(_rows: I64, _cost: Completions) -> None:
    """Costs of a policy that asks, which is refused."""


def _logged_choices(run: Run, arm: str, table: pa.Table) -> LoggedChoices:
    lists = {name: table[name].combine_chunks() for name in _SIGNALS}
    flat = {name: column.flatten() for name, column in lists.items()}
    if any(column.null_count for column in (*lists.values(), *flat.values())):
        raise UsageError(f"{run.path}: arm {arm!r} logs no shortlists; give --policy NAME=COLUMN in place of --target")
    failed = int(pc.sum(pc.equal(table["serving"].cast(pa.string()), _FAILED)).as_py() or 0)
    if failed:
        raise UsageError(
            f"{run.path}: arm {arm!r}: in {failed:,} turns the procedure of a skill failed and the LLM answered; the "
            "log does not say which skill was chosen there. Ask a log with serving=stored or serving=prompted"
        )
    skill = flat["shortlist"].to_numpy().reshape(len(table), -1)
    done = table["skill"].to_numpy()
    listed = skill == done[:, None]
    place = np.where(done >= 0, listed.argmax(axis=1), -1).astype(np.int32)
    if (lost := (done >= 0) & ~listed.any(axis=1)).any():
        where = _turn(table, int(lost.argmax()))
        raise UsageError(f"{run.path}: arm {arm!r}, {where}: the skill that answered is on no shortlist")
    signals = {name: flat[name].to_numpy().reshape(skill.shape).astype(np.float64) for name in _SIGNALS[1:]}
    return LoggedChoices(skill, signals, place)


def _check_replay(run: Run, arm: str, choices: LoggedChoices, table: pa.Table) -> None:
    """Raise UsageError where the arm's own policy, played on the log, states another propensity than the log."""
    share = choices.probability(build("policy", _node(run, arm), FromFile(str(run.path), trusted=False)))
    if share is None:
        return
    logged = table["propensity"].to_numpy()
    other = np.abs(share - logged) > _EXACT
    if other.any():
        at = int(other.argmax())
        raise UsageError(
            f"{run.path}: arm {arm!r}, {_turn(table, at)}: its policy does this with probability {share[at]:.6g}, and "
            f"the log says {logged[at]:.6g}; the log was changed, or the policy was another one"
        )


def _turn(table: pa.Table, at: int) -> str:
    return f"user {table['user'][at].as_py()}, turn {table['turn'][at].as_py()}"
