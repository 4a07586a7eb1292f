"""`skg-bench estimate` and `skg_bench.estimate`: values, from a log, of policies and arms that were not run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from math import isnan
from pathlib import Path

import numpy as np

from skg_bench.analysis.policy_value.decision_sums import (
    DecisionSums,
    LoggedDecisions,
    PolicyChoices,
    SummedDecisions,
    needed_terms,
)
from skg_bench.analysis.policy_value.estimates import LOG, LOOP, SNAPSHOT, STEP, PolicyEstimates, PolicyValue
from skg_bench.analysis.policy_value.estimators import ESTIMATORS, PolicyEstimator, chosen_estimators
from skg_bench.analysis.policy_value.loop_values import loop_values
from skg_bench.analysis.policy_value.step_values import step_values
from skg_bench.app.judged_turns import TO_JUDGE, DrawnRows
from skg_bench.app.logged_choices import one_arm, run_decisions, target_chances
from skg_bench.app.replayed_arms import UTILITY, replay_arms
from skg_bench.core.errors import UsageError, nearest
from skg_bench.core.grid import F64
from skg_bench.engine.execute import Progress
from skg_bench.runfolder.run import Run, opened_run
from skg_bench.simulator.logs.decision_table import (
    CandidateLists,
    CopiedRows,
    DecisionTable,
    TableBlock,
    UserNumbers,
    decision_table,
    is_list,
)
from skg_bench.simulator.logs.outcome_models import ModelKind

DECISION_FIELDS = {
    "user": "who was served, for intervals by user",
    "action": "what was done, where policies are lists over candidates",
    "propensity": "the log's probability of it, above 0, at most 1",
    "reward": "a number, or true and false",
    "reward_propensity": "chance that the reward of this row is known, where rewards are missing",
    "candidates": "list of all that could have been done",
    "predicted": "list of a model's rewards of the candidates",
}
"""Columns that a log may have, and what each says."""
NEEDED_FIELDS = ("propensity", "reward")
_SHEET = ("reward", "reward_propensity")  # columns that a sheet of drawn rows has beside TO_JUDGE
FieldColumns = Mapping[str, str]  # by field


def estimate(
    source: "Run | str | Path",
    policies: Mapping[str, str | float] | None = None,
    *,
    targets: Mapping[str, Sequence[str]] | None = None,
    columns: FieldColumns | None = None,
    against: str = LOG,
    estimators: Sequence[str] = (),
    arm: str | None = None,
    by_row: bool = False,
    estimand: str | None = None,
    reward_model: ModelKind = "logistic",
    judged: str | Path | None = None,
    progress: Progress | None = None,
) -> PolicyEstimates:
    """Values of policies and arms that were not run, with intervals for other users.

    `estimand`: `loop`, the arm from the first turn on, learning (default with targets); `snapshot@S`, an arm that
    learns nothing from turn S on; `step`, other decisions in the states that the log reached (default with policies).

    `source`: a table, or a run folder and its `arm`. `policies`: for each, its probability of the logged decision: a
    number, or a column, which may hold lists over candidates. `targets`: for a run, by name, overrides of its arm.
    `columns`: by field of DECISION_FIELDS; default: the field's own name. `against`: the policy to compare with, or the
    log. `by_row`: also gives intervals as if rows were independent. `reward_model`: kind of the models that draw what
    is not logged (`loop`, `snapshot@S`), whose reward is `utility` or `answer_correct`. `judged`: a table of `skg-bench
    data label RUN`, by which these know right answers. `progress(done, total)` counts
    replayed turns.

    >>> estimate("clicks.csv", {"random": "1/34"}, columns={"reward": "click"})

    Raises UsageError for bad input, with the row and what to do.
    """
    given = columns or {}
    estimand = estimand or (LOOP if targets and not policies else STEP)
    if estimand != STEP:
        since = None if estimand == LOOP else _snapshot_turn(estimand)
        _check_replayed(source, policies or {}, given, estimators, by_row=by_row)
        _check_targets(targets or {}, estimand, against)
        run, reward = opened_run(source), given.get("reward", UTILITY)
        logger = one_arm(run, arm)
        replayed = replay_arms(
            run, logger, targets or {}, reward, judged=None if judged is None else Path(judged), model=reward_model,
            since=since, progress=progress or _quiet,
        )  # fmt: skip
        made = loop_values(
            replayed.logged, replayed.targets, replayed.calibrations, estimand=estimand, reference=against,
            stream=replayed.stream,
        )  # fmt: skip
        if estimand != LOOP or isnan(made.values[0].value):
            return made
        beside = _in_states_of_log(replayed.decisions, target_chances(run, logger, targets or {}), against)
        return replace(made, values=(*made.values, *beside))
    if judged is not None:
        raise UsageError(f"--judged {judged} goes with --target in a run, replayed; of a table give its column reward")
    table, columns = _opened(source, targets or {}, arm, given)
    named = _policies(table, {**(policies or {}), **{name: name for name in targets or {}}}, against)
    sheet = {TO_JUDGE, *_SHEET} <= set(table.names) and all(columns.get(name) == name for name in _SHEET)
    drawn = DrawnRows() if sheet else None
    needed = [*columns.values(), *(p for p in named.values() if isinstance(p, str)), *([TO_JUDGE] if drawn else [])]
    blocks = table.blocks(list(dict.fromkeys(needed)))
    first = next(blocks, None)
    if first is None or not len(first):
        raise UsageError(f"{table.path} has no rows; give a row for each decision")
    lists = {name for name, policy in named.items() if isinstance(policy, str) and is_list(first.cells[policy])}
    _check_lists(table.path, columns, lists)
    if not lists and "predicted" in given:
        raise UsageError(
            f"{table.path}: column {columns['predicted']!r} has a model's rewards, and no policy says what it would do "
            "instead; give a policy as a column of lists over the candidates"
        )
    chosen = chosen_estimators(estimators, model=bool(lists) and "predicted" in columns)
    model = lists if "predicted" in columns else set[str]()
    wanted: dict[str, list[PolicyEstimator]] = {LOG: [ESTIMATORS["ips"]]}
    wanted |= {name: [each for each in chosen if name in model or not each.model] for name in named}
    reference = list(wanted).index(against)
    read = chain([first], blocks)
    path = table.path if table.path.is_file() else None
    sums = _summed(
        read, columns, named, wanted, lists=lists, by_row=by_row, reference=reference, drawn=drawn, path=path
    )
    if drawn is not None:
        drawn.check(table.path)
    try:
        return step_values(sums, wanted, reference=against, users="user" in columns)
    except UsageError as error:
        raise UsageError(f"{table.path}: {error}") from error


def _in_states_of_log(log: LoggedDecisions, chances: Mapping[str, F64], against: str) -> Iterator[PolicyValue]:
    """Values of policies in the states of the log, of those that it carries; nothing if it does not carry `against`."""
    if not chances or against not in (LOG, *chances) or np.isnan(log.reward).any():
        return
    wanted = {LOG: [ESTIMATORS["ips"]], **{name: [ESTIMATORS["snips"]] for name in chances}}
    sums = DecisionSums(
        [needed_terms(each) for each in wanted.values()], rows=False, reference=list(wanted).index(against)
    )
    sums.add(log, [PolicyChoices(log.propensity), *map(PolicyChoices, chances.values())])
    total = sums.total()
    if total.highest > total.lowest:
        made = step_values(total, wanted, reference=against, users=True)
        if against in dict(made.reasons):
            return
        yield from (value for value in made.values if value.policy in chances and value.verdict != "withheld")


def _quiet(_done: int, _total: int) -> None:
    """Ignores progress."""


def _snapshot_turn(estimand: str) -> int:
    name, _, turn = estimand.partition("@")
    if name != SNAPSHOT or not turn.isascii() or not turn.isdigit() or not 0 < int(turn) < 2**31:
        raise UsageError(f"--estimand {estimand}: write step, loop, or snapshot@S with a turn S from 1 on")
    return int(turn)


def _check_targets(targets: Mapping[str, Sequence[str]], estimand: str, against: str) -> None:
    if not targets:
        raise UsageError(f"--estimand {estimand} is of targets; give one: --target 'strict=[policy.threshold=0.6]'")
    if against not in (LOG, *targets):
        raise UsageError(f"--against {against}: {nearest(against, [LOG, *targets])}")


def _check_replayed(
    source: "Run | str | Path",
    policies: Mapping[str, str | float],
    columns: FieldColumns,
    estimators: Sequence[str],
    *,
    by_row: bool,
) -> None:
    """Raises UsageError for arguments that only the estimand `step` takes."""
    if not isinstance(source, Run) and not Path(source).is_dir():
        raise UsageError(f"{source} is a table: --arm and --target go with a run folder; give --policy NAME=COLUMN")
    for option, given in (("--policy", policies), ("--estimator", estimators), ("--by-row", by_row)):
        if given:
            raise UsageError(f"{option} goes with --estimand step; leave it out, or add --estimand step")
    if more := sorted(set(columns) - {"reward"}):
        raise UsageError(f"--columns {more[0]}: a run folder names its columns itself; leave it out")


# ---------------------------------------------------------------------------------------------------- what is given


def _opened(
    source: "Run | str | Path", targets: Mapping[str, Sequence[str]], arm: str | None, given: FieldColumns
) -> tuple[DecisionTable, FieldColumns]:
    if not isinstance(source, str | Path) or Path(source).is_dir():
        table = run_decisions(opened_run(source), arm, targets)
    elif targets or arm is not None:
        raise UsageError(f"{source} is a table: --arm and --target go with a run folder; give --policy NAME=COLUMN")
    else:
        table = decision_table(Path(source))
    for name in given:
        if name not in DECISION_FIELDS:
            known = ", ".join(f"{field} ({meaning})" for field, meaning in DECISION_FIELDS.items())
            raise UsageError(f"--columns: {name} is no field; {nearest(name, DECISION_FIELDS)}; they are {known}")
    columns = {field: field for field in DECISION_FIELDS if field in table.names} | dict(given)
    for field, column in columns.items():
        if column not in table.names:
            raise UsageError(f"{table.path} has no column {column!r} for {field}; {nearest(column, table.names)}")
        others = [other for other in columns if other != field and columns[other] == column]
        if others and "propensity" in field:
            raise UsageError(
                f"{table.path}: column {column!r} is {field} and {others[0]}; a chance is nothing else: name another "
                f"column for {others[0]}"
            )
    for field in NEEDED_FIELDS:
        if field not in columns:
            raise UsageError(
                f"{table.path} has no column {field!r} ({DECISION_FIELDS[field]}); name it: --columns '{{{field}: "
                f"COLUMN}}'. It has {', '.join(table.names)}"
            )
    return table, columns


def _policies(table: DecisionTable, given: Mapping[str, str | float], against: str) -> dict[str, str | float]:
    """A column or a probability for each."""
    if not given:
        raise UsageError("no policy is given; ask for one: --policy NAME=1/34, or --policy NAME=COLUMN")
    named = {name: _policy(table, name, text) for name, text in given.items()}
    if against not in (LOG, *named):
        raise UsageError(f"--against {against}: {nearest(against, [LOG, *named])}")
    return named


def _policy(table: DecisionTable, name: str, text: str | float) -> str | float:
    if name == LOG:
        raise UsageError(f"--policy {name}={text}: {LOG} is the name of what made the log; take another one")
    if text in table.names:
        return str(text)
    try:
        share = float(Fraction(str(text)))
    except (ValueError, ZeroDivisionError) as error:
        raise UsageError(
            f"--policy {name}={text}: neither a probability, such as 1/34, nor a column of {table.path}; "
            f"{nearest(str(text), table.names)}"
        ) from error
    if not 0 < share <= 1:
        raise UsageError(f"--policy {name}={text}: a probability is above 0 and at most 1")
    return share


def _check_lists(path: Path, columns: FieldColumns, lists: set[str]) -> None:
    for field in ("candidates", "action") if lists else ():
        if field not in columns:
            raise UsageError(
                f"{path}: policy {min(lists)} is a column of lists, which needs a column {field!r} "
                f"({DECISION_FIELDS[field]}); name it: --columns '{{{field}: COLUMN}}'"
            )


# ------------------------------------------------------------------------------------------------------ one pass


@dataclass(frozen=True)
class _Reader:
    """Rows of a block as the sums take them."""

    columns: FieldColumns
    policies: Mapping[str, str | float]
    lists: set[str]
    users: UserNumbers

    def log(self, block: TableBlock, lists: CandidateLists | None) -> LoggedDecisions:
        names = self.columns
        propensity = block.chances(names["propensity"], f"{DECISION_FIELDS['propensity']} is needed")
        reward = block.numbers(
            names["reward"], f"{DECISION_FIELDS['reward']} is needed, or nothing where it is missing"
        )
        chance = predicted = user = None
        if "reward_propensity" in names:
            chance = block.chances(names["reward_propensity"], "a chance above 0, at most 1, is needed in every row")
        if "predicted" in names and lists is not None:
            predicted = lists.values(names["predicted"], "a finite number for each candidate is needed")[lists.place]
        if "user" in names:
            user = self.users.of_block(block, names["user"])
        return LoggedDecisions(propensity, reward, chance, user, predicted)

    def choices(self, block: TableBlock, lists: CandidateLists | None) -> Iterator[PolicyChoices]:
        for name, policy in self.policies.items():
            if not isinstance(policy, str):
                yield PolicyChoices(np.full(len(block), policy))
            elif name not in self.lists or lists is None:
                yield PolicyChoices(block.chances(policy, f"policy {name}: 0 to 1 is needed", zero=True))
            else:
                share, expected = lists.shares(policy), None
                if "predicted" in self.columns:
                    predicted = lists.values(self.columns["predicted"], "")
                    expected = np.add.reduceat(share * predicted, lists.starts) / np.add.reduceat(share, lists.starts)
                yield PolicyChoices(share[lists.place], expected)


def _summed(
    blocks: Iterator[TableBlock],
    columns: FieldColumns,
    policies: Mapping[str, str | float],
    wanted: Mapping[str, Sequence[PolicyEstimator]],
    *,
    lists: set[str],
    by_row: bool,
    reference: int,
    drawn: DrawnRows | None,
    path: Path | None,
) -> SummedDecisions:
    """Sums over all rows. `path`: of a table, in which no row may be a copy; None: these are turns of a run."""
    reader = _Reader(columns, policies, lists, UserNumbers())
    sums = DecisionSums([needed_terms(estimators) for estimators in wanted.values()], rows=by_row, reference=reference)
    copies = CopiedRows()
    for block in blocks:
        candidates = block.candidates(columns["candidates"], columns["action"]) if lists else None
        log = reader.log(block, candidates)
        if drawn is not None:
            drawn.add(block, log.reward)
        choices = [PolicyChoices(log.propensity), *reader.choices(block, candidates)]
        sums.add(log, choices)
        copies.add(log.reward, *(each.probability for each in choices), *(() if log.user is None else (log.user,)))
    if path is not None:
        copies.check(path)
    return sums.total()
