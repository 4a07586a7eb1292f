"""Turns that people judge next.

The next turn is always the first unjudged one, by its permanent random number, of the stratum of an arm in which one
more label takes most off the variance of a share: N^2 s^2 / ((m + 1) (m + 2)) for a stratum of N hits, m of them
judged, whose values have the variance s^2 (Neyman 1934, one label at a time).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from skg_bench.analysis.labels.hit_pairs import SAME_TEXT, STRATA, ArmHits, HitPairs
from skg_bench.analysis.labels.label_shares import PairLabel, judged_prefix, unit_variance
from skg_bench.core.grid import I64

Labelled = tuple[I64, I64]  # labels of an arm's stored answers and of the log's own, [H] each


@dataclass(slots=True)
class _Cell:
    """A stratum of an arm."""

    hits: ArmHits
    rows: I64  # of its hits
    variance: float  # of a hit's value
    judged: int = 0

    @property
    def gain(self) -> float:
        """Variance of the sum over the stratum that one more label takes off."""
        n = len(self.rows)
        return n**2 * self.variance / ((self.judged + 1) * (self.judged + 2)) if self.judged < n else 0.0

    def advance(self, covered: set[int]) -> None:
        """Count the hits whose pairs are covered by labels, up to the first that is not."""
        while self.judged < len(self.rows) and covered.issuperset(_pairs(self.hits, self.rows[self.judged])):
            self.judged += 1


def next_turns(hit_pairs: HitPairs, labelled: Sequence[Labelled], n: int, *, decides: bool) -> list[int]:
    """Rows of at most `n` turns to be judged next; labels so far by arm. `decides`: only labels that tell about wrong
    answers beyond those of the log, so none of hits that are the log's own text.
    """
    covered, cells = set[int](), list[_Cell]()
    for hits, labels in zip(hit_pairs.arms, labelled, strict=True):
        for pairs, values in zip((hits.pair, hits.logged), labels, strict=True):
            covered.update(pairs[values != PairLabel.UNJUDGED].tolist())
        cells += _cells(hits, labels, decides=decides)
    turns = list[int]()
    while len(turns) < n:
        for cell in cells:
            cell.advance(covered)
        best = max(cells, key=lambda cell: cell.gain, default=None)
        if best is None or best.gain <= 0:
            break
        turn = int(best.hits.turn[best.rows[best.judged]])
        turns.append(turn)
        for hits in hit_pairs.arms:
            for row in np.flatnonzero(hits.turn == turn):
                covered.update(_pairs(hits, row))
    return turns


def _pairs(hits: ArmHits, row: np.int64) -> tuple[int, int]:
    return int(hits.pair[row]), int(hits.logged[row])


def _cells(hits: ArmHits, labels: Labelled, *, decides: bool) -> Iterator[_Cell]:
    judged = judged_prefix(hits, *labels)
    wrong, logged_wrong = ((values == PairLabel.WRONG).astype(np.int64) for values in labels)
    for stratum in range(len(STRATA)):
        rows = np.flatnonzero(hits.stratum == stratum)
        sample = rows[judged[rows]]
        same = stratum == SAME_TEXT
        excess = np.bincount(wrong[sample] - logged_wrong[sample] + 1, minlength=3).astype(np.float64)
        variance = 0.0 if same else unit_variance(excess, range(-1, 2))
        if not decides:
            variance += unit_variance(np.bincount(wrong[sample], minlength=2).astype(np.float64), range(2))
        if len(rows) and variance > 0:
            yield _Cell(hits, rows, variance)
