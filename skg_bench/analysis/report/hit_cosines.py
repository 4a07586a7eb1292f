"""Cosines of hits: how near a message was to the one whose answer it got, by the run's embedder, on one scale for all.

Thresholds of two systems are two scales: one calls 0.8 what another one calls 0.6.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pyarrow as pa

from skg_bench.analysis.report.sentences import Sentence, code
from skg_bench.core.grid import F64
from skg_bench.runfolder.run import Run
from skg_bench.runfolder.worded_arms import arms_in_words

COSINE_HEADINGS = ("Hits", "Least cosine", "10 %", "Median", "90 %")
_QUANTILES = (0.1, 0.5, 0.9)
_SAME_TEXT = 0.998  # least cosine of a text to itself, on the grid of vectors
_COLUMNS = ("serving", "answer_correct", "skill_score")
_KINDS = {True: "right", False: "wrong", None: "not judged"}


@dataclass(frozen=True, slots=True)
class HitCosines:
    """Cosines of some hits of an arm."""

    arm: str
    kind: str  # of _KINDS
    cosines: F64  # [h], at least one

    @property
    def cells(self) -> list[str]:
        """Texts for the columns of COSINE_HEADINGS."""
        figures = [self.cosines.min(), *np.quantile(self.cosines, _QUANTILES)]
        return [f"{len(self.cosines):,}", *(f"{figure:.3f}" for figure in figures)]


def hit_cosines(run: Run) -> list[HitCosines]:
    """Cosines of the hits of each arm that answers in words: of right ones, of wrong ones, and of those that nobody can
    judge, as far as there are any. A leak has none.
    """
    return [each for arm in arms_in_words(run) for each in _of_arm(arm, run.turns(arm, _COLUMNS))]


def _of_arm(arm: str, table: pa.Table) -> Iterator[HitCosines]:
    cosines = table["skill_score"].to_numpy().astype(np.float64)
    kinds = np.array([_KINDS[right] for right in table["answer_correct"].to_pylist()])
    for kind in _KINDS.values():
        if len(some := cosines[(kinds == kind) & ~np.isnan(cosines)]):
            yield HitCosines(arm, kind, some)


def cosine_sentences(run: Run) -> list[Sentence]:
    """A sentence for each arm in words that has hits; none where all of these are of one text said again, as of a
    cache.
    """
    arms = [(arm, list(rows)) for arm, rows in groupby(hit_cosines(run), lambda each: each.arm)]
    return [_sentence(arm, rows) for arm, rows in arms if _least(rows) < _SAME_TEXT]


def _least(rows: Sequence[HitCosines]) -> float:
    return min(float(each.cosines.min()) for each in rows)


def _sentence(arm: str, rows: Sequence[HitCosines]) -> Sentence:
    middle = ", ".join(f"{np.median(each.cosines):.2f} of {each.kind} ones" for each in rows)
    far = f"The farthest message that {code(arm)} answered from memory has a cosine of {_least(rows):.3f}"
    to = "to an earlier one, by the run's embedder"
    return Sentence(f"{far} {to}. Medians of such cosines: {middle}.", "plain")
