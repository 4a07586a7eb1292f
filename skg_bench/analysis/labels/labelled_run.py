"""A run of a log with its labels: shares of each arm, the decision by price, and who agrees."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skg_bench.analysis.counts.roles import roles
from skg_bench.analysis.labels.hit_pairs import HitPairs, hit_pairs
from skg_bench.analysis.labels.label_shares import ArmShares, arm_shares
from skg_bench.analysis.labels.price_decision import PriceDecision, hit_saving, price_decision
from skg_bench.analysis.labels.rater_labels import (
    LABELS_FILE,
    Agreement,
    agreements,
    labels_of,
    merged,
    read_sheet,
    settled,
)
from skg_bench.core.grid import I64
from skg_bench.runfolder.run import Run

ByRater = Mapping[int, Mapping[str, int]]  # label by pair and rater


@dataclass(frozen=True, slots=True)
class ArmLabels:
    """An arm that answers from memory."""

    arm: str
    shares: ArmShares
    decision: PriceDecision


@dataclass(frozen=True)
class LabelledRun:
    """Arms of a run under labels; those that answered nothing from memory have no figures."""

    hit_pairs: HitPairs
    labelled: Sequence[tuple[I64, I64]]  # of each arm: labels of stored answers and of the log's own
    arms: Sequence[ArmLabels]
    agreements: Sequence[Agreement]
    n_labels: int  # pairs of this run that are judged
    n_other: int  # pairs of other runs


def kept_labels(run: Run) -> ByRater:
    """Labels that lie beside a run.

    Raises UsageError for a file that is none of ours.
    """
    file = run.path / LABELS_FILE
    return merged(read_sheet(file)) if file.is_file() else {}


def judged_arms(run: Run) -> list[str]:
    """Arms whose hits can be judged, in order: all but the one that asks the model alone."""
    never = roles(run).never
    return [arm for arm in run.arms if arm != never]


def labelled_run(run: Run, by_rater: ByRater, arms: Sequence[str] | None = None, seed: int = 0) -> LabelledRun:
    """Shares and decisions of arms (None: of all) under labels. `seed`: of the order of judging.

    Raises UsageError as `hit_pairs` does.
    """
    pairs = hit_pairs(run, judged_arms(run) if arms is None else arms, seed)
    labels, never = settled(by_rater), roles(run).never
    labelled = [(labels_of(hits.pair, labels), labels_of(hits.logged, labels)) for hits in pairs.arms]
    figures = []
    for hits, (stored, logged) in zip(pairs.arms, labelled, strict=True):
        if not len(hits.turn):
            continue
        shares = arm_shares(hits, stored, logged)
        decision = price_decision(hit_saving(run, hits.arm, never), shares.excess)
        figures.append(ArmLabels(hits.arm, shares, decision))
    known = np.array(sorted(labels), np.uint64)
    here = set(known[np.isin(known, pairs.pairs)].tolist())
    return LabelledRun(
        pairs, labelled, figures,
        agreements({pair: by_name for pair, by_name in by_rater.items() if pair in here}),
        len(here), len(labels) - len(here),
    )  # fmt: skip
