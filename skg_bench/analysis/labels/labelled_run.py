"""A run of a log with its labels: shares of each arm, the decision by price, and who agrees."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skg_bench.analysis.counts.columns import seconds
from skg_bench.analysis.counts.roles import roles
from skg_bench.analysis.labels.asked_again import AskedAgain, asked_again
from skg_bench.analysis.labels.hit_pairs import ArmHits, HitPairs, hit_pairs
from skg_bench.analysis.labels.label_shares import ArmShares, PairLabel, arm_shares
from skg_bench.analysis.labels.price_decision import PriceDecision, hit_saving
from skg_bench.analysis.labels.rater_labels import (
    LABELS_FILE,
    RaterAgreement,
    agreements,
    labels_of,
    labels_seed,
    merged,
    read_sheet,
    settled,
)
from skg_bench.core.calendar import EPOCH, WEEK
from skg_bench.core.grid import I64
from skg_bench.runfolder.run import Run

ByRater = Mapping[int, Mapping[str, int]]  # label by pair and rater
Machine = Callable[[HitPairs], Mapping[int, int]]  # label by pair
_BLOCKS = 12  # of weeks, of which shares are shown


@dataclass(frozen=True, slots=True)
class WeekShares:
    """Hits of an arm in some weeks: as judged by a machine, and by people."""

    first: int  # week, the first is 1
    last: int
    wrong: int  # hits, by the machine
    hits: int  # that it judged
    people_wrong: int  # pairs
    people: int  # distinct pairs that people judged


@dataclass(frozen=True, slots=True)
class MachineShares:
    """Shares of an arm by a machine's labels, and with its errors taken out by those of people."""

    wrong: float  # by the machine alone
    corrected: ArmShares
    decision: PriceDecision
    weeks: Sequence[WeekShares]
    confusion: I64  # [2, 2] stored answers that people judged: wrong or not by people, and by the machine


@dataclass(frozen=True, slots=True)
class ArmLabels:
    """An arm that answers from memory."""

    arm: str
    shares: ArmShares
    decision: PriceDecision
    machine: MachineShares | None  # None: no machine judged


@dataclass(frozen=True)
class LabelledRun:
    """Arms of a run under labels; those that answered nothing from memory have no figures."""

    hit_pairs: HitPairs
    labelled: Sequence[tuple[I64, I64]]  # of each arm: labels of stored answers and of the log's own
    arms: Sequence[ArmLabels]
    agreements: Sequence[RaterAgreement]
    again: AskedAgain | None  # None: the log names no conversations
    n_labels: int  # pairs of this run that are judged
    n_other: int  # pairs of other runs


def kept_labels(run: Run) -> ByRater:
    """Labels that lie beside a run.

    Raises UsageError for a file that is none of ours.
    """
    file = run.path / LABELS_FILE
    return merged(read_sheet(file)) if file.is_file() else {}


def kept_seed(run: Run) -> int:
    """Seed of the order in which the turns of a run are judged; 0: no other one was chosen."""
    file = run.path / LABELS_FILE
    return labels_seed(file) if file.is_file() else 0


def judged_arms(run: Run) -> list[str]:
    """Arms whose hits can be judged, in order: all but the one that asks the model alone."""
    never = roles(run).never
    return [arm for arm in run.arms if arm != never]


def labelled_run(
    run: Run, by_rater: ByRater, arms: Sequence[str] | None = None, judge: Machine | None = None, seed: int = 0
) -> LabelledRun:
    """Shares and decisions of arms (None: of all) under labels. `judge`: a machine that labels pairs. `seed`: of the
    order in which turns are judged.

    Raises UsageError as `hit_pairs` does, and as the machine.
    """
    pairs = hit_pairs(run, judged_arms(run) if arms is None else arms, seed)
    machine = None if judge is None else judge(pairs)
    labels, never = settled(by_rater), roles(run).never
    labelled = [hit_labels(hits, labels) for hits in pairs.arms]
    figures = []
    for hits, (stored, logged) in zip(pairs.arms, labelled, strict=True):
        if not len(hits.turn):
            continue
        shares, saving = arm_shares(hits, stored, logged), hit_saving(run, hits.arm, never)
        by_machine = None if machine is None else hit_labels(hits, machine)
        corrected = None
        if by_machine is not None:
            with_labels = arm_shares(hits, stored, logged, by_machine)
            corrected = MachineShares(
                float((by_machine[0] == PairLabel.WRONG).mean()),
                with_labels,
                PriceDecision(saving, with_labels.excess),
                _weeks(pairs, hits, stored, by_machine[0]),
                _confusion(hits, stored, by_machine[0]),
            )
        figures.append(ArmLabels(hits.arm, shares, PriceDecision(saving, shares.excess), corrected))
    known = np.array(sorted(labels), np.uint64)
    here = set(known[np.isin(known, pairs.pairs)].tolist())
    common = {pair: by_name for pair, by_name in by_rater.items() if pair in here}
    return LabelledRun(
        pairs, labelled, figures, agreements(common), asked_again(pairs, labelled), len(here), len(labels) - len(here)
    )


def hit_labels(hits: ArmHits, labels: Mapping[int, int]) -> tuple[I64, I64]:
    """Labels of stored answers and of the log's own."""
    return labels_of(hits.pair, labels), labels_of(hits.logged, labels)


def _weeks(pairs: HitPairs, hits: ArmHits, people: I64, machine: I64) -> list[WeekShares]:
    """Shares by week; of a long log by as many weeks as make `_BLOCKS`."""
    week = (seconds(pairs.table, "time")[hits.turn] - EPOCH) // WEEK
    width = -(-(int(week.max()) + 1) // _BLOCKS)
    by_machine, by_people = machine < PairLabel.UNKNOWN, people < PairLabel.UNKNOWN
    shares = []
    for block in np.unique(week // width).tolist():
        rows = week // width == block
        _, first = np.unique(hits.pair[rows & by_people], return_index=True)
        judged = people[rows & by_people][first]
        shares.append(
            WeekShares(
                block * width + 1,
                (block + 1) * width,
                int((machine[rows & by_machine] == PairLabel.WRONG).sum()),
                int((rows & by_machine).sum()),
                int((judged == PairLabel.WRONG).sum()),
                len(judged),
            )
        )
    return shares


def _confusion(hits: ArmHits, people: I64, machine: I64) -> I64:
    """Pairs `[2, 2]` of a stored answer by people (wrong, not wrong) and by the machine."""
    _, first = np.unique(hits.pair, return_index=True)
    both = first[(people[first] < PairLabel.UNKNOWN) & (machine[first] < PairLabel.UNKNOWN)]
    rows, columns = ((labels[both] != PairLabel.WRONG).astype(np.int64) for labels in (people, machine))
    counts = np.zeros((2, 2), np.int64)
    np.add.at(counts, (rows, columns), 1)
    return counts
