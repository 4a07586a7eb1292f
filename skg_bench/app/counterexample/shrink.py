"""The smallest session that still shows a difference between two arms, found in a run by delta debugging."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skg_bench.analysis.comparison.flips import done, flips
from skg_bench.analysis.counts.metrics import Metric, Utility, metrics
from skg_bench.analysis.counts.tally import needs_truth
from skg_bench.analysis.statistics.ddmin import Subset, ddmin
from skg_bench.app.counterexample import cases
from skg_bench.app.counterexample.cases import ArmSpec, Case, Replayer, Scenario
from skg_bench.app.trust import FromFile
from skg_bench.core.arms import Arm
from skg_bench.core.errors import UsageError, nearest
from skg_bench.core.grid import F64, I64, Bool
from skg_bench.core.world import Events, calls, hit_mask
from skg_bench.engine.excerpt import Excerpts, events_of_user
from skg_bench.engine.logbook import Logbook
from skg_bench.runfolder.manifest import salted_seed
from skg_bench.runfolder.run import Run, same_events

LogsByRole = Mapping[str, Logbook]  # by role


def smallest_case(
    run: Run,
    arm: str,
    reference: str | None = None,
    *,
    against: Run | None = None,
    user: int | None = None,
    turn: int | None = None,
    metric: str | None = None,
    trust: bool = False,
) -> Case:
    """The smallest session of a user in which `arm` of `run` differs from `reference` (of `against`, else of `run`).

    It differs at one event that one answers rightly and the other wrongly: the user's event at `turn`, or else the
    first that `arm` answers wrongly, of `user` or of anybody. With `metric`, it differs by the sign of the difference
    of that metric over the session, as over the whole life of `user`. Turns at which an arm freezes or forks count
    within a session: it keeps as many events as it needs to get there.

    Raises UsageError for arms, users and turns that are not there or do not differ, and for runs whose components reach
    something, unless that is trusted.
    """
    other = against or run
    same_events((run, other), "a counterexample")
    needs_truth(run, "a counterexample")
    for key in ("seed", "weeks", "simulator", "embedder"):
        if run.config[key] != other.config[key]:
            raise UsageError(f"{run.path} and {other.path} differ in {key}; a session must be the same for both arms")
    if salted_seed(run.manifest, run.path) != salted_seed(other.manifest, other.path):
        raise UsageError(f"{run.path} and {other.path} differ in salt; a session must be the same for both arms")
    last = int(run.manifest["users"]) - 1
    if user is not None and not 0 <= user <= last:
        raise UsageError(f"user={user}: {run.path} has users 0 to {last}")
    name = reference or str(other.config["reference"])
    specs = {"arm": cases.spec_of(run, arm), "reference": cases.spec_of(other, name)}
    origin = FromFile(str(run.path), trust)
    cases.admit(origin, cases.scenario_of(run, 0), [specs["arm"]])
    cases.admit(FromFile(str(other.path), trust), None, [specs["reference"]])
    if metric is not None:
        if user is None or turn is not None:
            raise UsageError("a metric is of a whole session: give --user, and no --turn")
        return _of_metric(run, specs, user, metric, origin)
    at, reason = _flip(run, arm, other, name, user=user, turn=turn)
    right = bool(run.turns(arm, ["answer_correct"], [at[0]])["answer_correct"][at[1]].as_py())
    return of_turn(cases.scenario_of(run, at[0]), specs, at[1], reason, origin, right=right)


def of_turn(
    scenario: Scenario, specs: Mapping[str, ArmSpec], turn: int, reason: str, origin: FromFile, *, right: bool
) -> Case:
    """The smallest session up to the event at `turn` that `arm` answers rightly, `reference` wrongly; or, if
    not `right`, the other way round.

    Raises UsageError if over all events before it they do not.
    """
    session = _Session.of(scenario, specs, origin)

    def shows(logs: LogsByRole) -> Bool:
        shown: Bool = (_last(logs["arm"]) == right) & (_last(logs["reference"]) == (not right))
        return shown

    kept = session.smallest(turn, (turn,), shows)
    arm, reference = specs["arm"].name, specs["reference"].name
    better, worse = (arm, reference) if right else (reference, arm)
    says = f"user {scenario.user}, event {turn}: {better} is right, {worse} is wrong ({reason})"
    return session.case(says, kept)


def _of_metric(run: Run, specs: Mapping[str, ArmSpec], user: int, name: str, origin: FromFile) -> Case:
    of_turns = {k: m for k, m in metrics(Utility.of(run.config)).items() if _summed(m)}
    if name not in of_turns:
        raise UsageError(f"metric={name} cannot be taken over part of a session; {nearest(name, of_turns)}")
    metric, session = of_turns[name], _Session.of(cases.scenario_of(run, user), specs, origin)
    n = int(session.events.n[0])

    def sign(logs: LogsByRole) -> F64:
        value = _value(metric, logs["arm"]) - _value(metric, logs["reference"])
        return np.sign(np.where(np.isnan(value), 0.0, value))

    (whole,) = sign(session.run([tuple(range(n))]))
    if whole == 0:
        raise UsageError(f"user {user} has the same {name} under both arms; choose another user or metric")
    kept = session.smallest(n, (), lambda logs: sign(logs) == whole)
    says = f"user {user}: {name} is {'higher' if whole > 0 else 'lower'} under {specs['arm'].name} than under "
    return session.case(says + specs["reference"].name, kept)


# ---------------------------------------------------------------------------------------------------- what to show


def _flip(
    run: Run, arm: str, other: Run, reference: str, *, user: int | None, turn: int | None
) -> tuple[tuple[int, int], str]:
    """User and turn of an event that only one of them answers rightly, and why the other does not."""
    arm_turns, reference_turns = done(run, arm), done(other, reference)
    for worse, better in ((arm_turns, reference_turns), (reference_turns, arm_turns)):
        flipped = flips(worse, better)
        who, when = worse.user[flipped.at], worse.turn[flipped.at]
        fits = ((user is None) | (who == user)) & ((turn is None) | (when == turn))
        if fits.any():
            first = int(np.flatnonzero(fits)[np.argmin(when[fits])])
            return (int(who[first]), int(when[first])), flipped.reason(first)
    where = " and ".join(f"{k} {v}" for k, v in (("user", user), ("turn", turn)) if v is not None)
    both = "are right at the same turns, so no event shows a difference; choose another"
    if where:
        raise UsageError(f"at {where}, {arm} and {reference} do not differ in whether they are right; choose another")
    raise UsageError(f"in {run.path}, {arm} and {reference} {both} arm or reference")


# ---------------------------------------------------------------------------------------------------------- search


@dataclass(frozen=True)
class _Session:
    """A user's life, and parts of it, under two arms."""

    scenario: Scenario
    specs: Mapping[str, ArmSpec]
    arms: Mapping[str, Arm]
    replayer: Replayer
    events: Events
    excerpts: Excerpts
    origin: FromFile

    @classmethod
    def of(cls, scenario: Scenario, specs: Mapping[str, ArmSpec], origin: FromFile) -> "_Session":
        """All of the user's life."""
        replayer = cases.replayer_of(scenario, origin)
        events = events_of_user(replayer.simulator, scenario.seed, scenario.user, scenario.weeks)
        arms = {role: spec.arm(role, origin) for role, spec in specs.items()}
        return cls(scenario, specs, arms, replayer, events, Excerpts(replayer.setting, events), origin)

    def run(self, parts: Sequence[Subset]) -> LogsByRole:
        """Parts of it, in order of falling length."""
        events = self.excerpts.rows([np.array(part, np.int64) for part in parts])
        return cases.replayed_logs(self.replayer, self.arms, self.excerpts, events)

    def smallest(self, n: int, always: Subset, shows: Callable[[LogsByRole], Bool]) -> Subset:
        """Turns of the smallest session whose rows show it, among the first `n`, and `always`.

        A life of thousands of turns takes seconds, so the search begins with the turns that the arms learned from, or
        answered by a skill, if these show it too.

        Raises UsageError if all together do not.
        """

        def tried(parts: Sequence[Subset]) -> list[bool]:
            shown = [False] * len(parts)
            order = sorted((i for i in range(len(parts)) if parts[i] or always), key=lambda i: -len(parts[i]))
            if order:
                for i, good in zip(order, shows(self.run([(*parts[i], *always) for i in order])), strict=True):
                    shown[i] = bool(good)
            return shown

        whole = self.run([(*range(n), *always)])
        if not shows(whole)[0]:
            raise UsageError("this version of code and data no longer gives what the run logged; run it again")
        start = next((part for part in _telling(whole, n) if tried([part])[0]), tuple(range(n)))
        return (*ddmin(start, tried), *always)

    def case(self, says: str, kept: Subset) -> Case:
        """A session as a case, with what the arms do in it."""
        events = self.excerpts.rows([np.array(kept, np.int64)])
        expected = {role: cases.action_rows(log, self.replayer) for role, log in self.run([kept]).items()}
        described = cases.event_rows(events, self.replayer.simulator)
        return Case(says, self.scenario, self.specs, described, expected, self.origin)


def _telling(logs: LogsByRole, n: int) -> Iterator[Subset]:
    """Turns, of the first `n` of a row, that had to do with the skill that answered last; then with any skill."""
    near, some = set[int](), set[int]()
    for log in logs.values():
        skill = log.columns["skill"]
        some.update(np.flatnonzero(hit_mask(log.columns["serving"])).tolist())
        for update in log.updates:
            some.update(update["turn"].tolist())
            near.update(update["turn"][update["skill"] == skill[-1]].tolist())
    for turns in (near, some):
        yield tuple(sorted(turn for turn in turns if turn < n))


def _last(log: Logbook) -> I64:
    """Is each row's last answer right? -1: nobody knows."""
    n = log.n
    right: I64 = log.columns["answer_correct"][log.start[n - 1] + np.arange(len(n))].astype(np.int64)
    return right


def _rows(log: Logbook) -> I64:
    """Row that each place of a column belongs to."""
    return np.arange(log.start[-1]) - np.repeat(log.start[:-1], np.diff(log.start))


def _counts(log: Logbook) -> dict[str, F64]:
    """Counts by the names of `tally.COUNTS`, of each place of a column."""
    c = log.columns
    hit = hit_mask(c["serving"])
    wrong = np.where(c["answer_correct"] < 0, np.nan, c["answer_correct"] == 0)
    counts = {
        "turn": np.ones(len(hit)), "hit": hit, "wrong": wrong, "wrong_hit": np.where(hit, wrong, 0.0),
        "call": calls(c["serving"]), "tokens": c["tokens_in"] + c["tokens_out"], "cost": c["cost_usd"],
        "learning": c["learning_cost_usd"],
        "latency": c["latency_ms"], "offer": c["offer"] >= 0,
    }  # fmt: skip
    return {name: np.asarray(values, np.float64) for name, values in counts.items()}


def _summed(metric: Metric) -> bool:
    """Does it come from what `_counts` gives?"""
    return metric.over in ("turn", "hit") and not set(metric.count) & {"rated", "ok", "add"}


def _value(metric: Metric, log: Logbook) -> F64:
    """The metric of each row; NaN without a denominator."""
    counts, row, b = _counts(log), _rows(log), len(log.n)
    total = sum(weight * np.bincount(row, counts[name], b) for name, weight in metric.count.items())
    over = np.bincount(row, counts[metric.over], b)
    value: F64 = np.where(over > 0, total / np.where(over > 0, over, 1.0), np.nan)
    return value
