"""Asked again: what a sign of wrong answers in the log's own conversations is worth, by labels of people.

The sign is about the log's answer: the user's next message asks the same. Its precision is the share of judged answers
with the sign that are wrong; an answer counts once, however many arms have a hit at its turn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skg_bench.analysis.counts.wording import interval, number
from skg_bench.analysis.labels.hit_pairs import HitPairs
from skg_bench.analysis.labels.label_shares import PairLabel
from skg_bench.analysis.statistics.binomial import exact_share
from skg_bench.core.grid import I64

NO_CONVERSATIONS = "asked again: not known, as the log names no conversations (simulator.columns.session=COLUMN)"


@dataclass(frozen=True, slots=True)
class AskedAgain:
    """Counts of a log's answers in conversations."""

    answers: int  # turns
    again: int  # of these
    wrong: tuple[int, int]  # judged pairs that are wrong: with the sign, and without it
    judged: tuple[int, int]

    @property
    def words(self) -> str:
        """Sentences without the last end."""
        share = number(self.again / self.answers, "share")
        text = (
            f"asked again: {self.again:,} of {self.answers:,} answers in conversations ({share}), a sign and no rating"
        )
        if not self.judged[0]:
            return f"{text}. People judged none of these"
        signed, others = (count_share(wrong, judged) for wrong, judged in zip(self.wrong, self.judged, strict=True))
        return f"{text}. Of judged answers of the log, {signed} with the sign are wrong, and {others} without it"


def asked_again(pairs: HitPairs, labelled: Sequence[tuple[I64, I64]]) -> AskedAgain | None:
    """Counts under labels of the log's own answers, by arm as in `pairs`; None: the log names no conversations."""
    sign = pairs.table["asked_again"].to_numpy()
    known = pairs.table["asked_again"].is_valid().to_numpy()
    if not known.any():
        return None
    by_pair = dict[int, tuple[bool, int]]()
    for hits, (_, labels) in zip(pairs.arms, labelled, strict=True):
        judged = np.flatnonzero((labels < PairLabel.UNKNOWN) & known[hits.turn])
        columns = (hits.logged[judged].tolist(), sign[hits.turn[judged]].tolist(), labels[judged].tolist())
        for pair, signed, label in zip(*columns, strict=True):
            by_pair[pair] = (bool(signed) or by_pair.get(pair, (False, 0))[0], label)
    counts = _counts(by_pair)
    return AskedAgain(int(known.sum()), int(sign[known].astype(np.bool_).sum()), *counts)


def _counts(by_pair: Mapping[int, tuple[bool, int]]) -> tuple[tuple[int, int], tuple[int, int]]:
    wrong, judged = [0, 0], [0, 0]
    for signed, label in by_pair.values():
        place = 0 if signed else 1
        judged[place] += 1
        wrong[place] += label == PairLabel.WRONG
    return (wrong[0], wrong[1]), (judged[0], judged[1])


def count_share(some: int, every: int) -> str:
    """Count of a count, with the exact interval of its share (Clopper and Pearson 1934)."""
    if not every:
        return "0 of 0"
    low, high = exact_share(some, every)
    return f"{some:,} of {every:,} ({interval(low, high, 'share')})"
