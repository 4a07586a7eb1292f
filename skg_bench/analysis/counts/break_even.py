"""How often an answer from the skillbook must be right to be worth more than asking the LLM.

A right answer is worth 1, a wrong one costs lambda (`utility.wrong`), and both cost money and waiting: c from the LLM,
c_hit from the skillbook. With the LLM right in r of the same requests and hits right in p of them, a hit is worth
    p - lambda (1 - p) - c_hit,        and the LLM's answer        r - lambda (1 - r) - c,
so that hits pay if and only if
    p >= p* = r - (c - c_hit) / (1 + lambda).
The formula is Elkan's threshold for cost-sensitive decisions (IJCAI 2001, equation 2) with the LLM's answer in place of
the other class. All terms are measured on the requests that the arm answered from its skillbook, and

    utility(arm) - utility(never) = (1 + lambda) (p - p*)        for each hit.
"""

from dataclasses import dataclass

import numpy as np

from skg_bench.analysis.counts.metrics import LOSS_COLUMNS, Utility
from skg_bench.analysis.counts.tally import LoggedEvents
from skg_bench.analysis.statistics.intervals import Cells, Estimate, estimates, sums
from skg_bench.core.grid import F64, I64, Bool
from skg_bench.runfolder.run import RunTables

HIT_SUMS = 6  # of `hit_sums`


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers to some requests, row by row."""

    right: Bool
    worth: F64  # utility

    @classmethod
    def read(cls, run: RunTables, arm: str, prices: Utility) -> "Answers":
        """All of an arm's."""
        table = run.turns(arm, LOSS_COLUMNS)
        return cls(table["answer_correct"].to_numpy(), 1.0 - prices.loss(table))

    def at(self, rows: I64) -> "Answers":
        """Answers to some of the requests."""
        return Answers(self.right[rows], self.worth[rows])

    def cost(self, wrong: float) -> F64:
        """Money, waiting and offers, in utility, where a wrong answer costs `wrong`."""
        price: F64 = (1.0 + wrong) * self.right - wrong - self.worth
        return price


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Means over users of what an arm's hits are, and what the LLM would have been in their place."""

    precision: Estimate  # p, share of hits that are right
    llm_right: Estimate  # r
    saved: Estimate  # c - c_hit, utility
    pays_from: Estimate  # p*
    margin: Estimate  # p - p*, paired: hits pay if it is above 0

    @property
    def margin_interval(self) -> tuple[float, float]:
        """Interval of p - p*, for new requests; p is a share."""
        return self.margin.interval(new=True, bounds=(-self.pays_from.mean, 1.0 - self.pays_from.mean))

    def at(self, wrong: float) -> float:
        """p* where a wrong answer costs `wrong`."""
        return self.llm_right.mean - self.saved.mean / (1.0 + wrong)


def hit_sums(requests: LoggedEvents, at: I64, hits: Answers, llm: Answers, wrong: float) -> list[F64]:
    """Sums by cell `[c]` from which `break_even_of` makes its figures."""
    cell, n = requests.cell[at], len(requests.cells.user)
    saved = llm.cost(wrong) - hits.cost(wrong)
    threshold = llm.right - saved / (1.0 + wrong)  # p* of single requests, whose mean is that of all
    values = (hits.right, llm.right, saved, threshold, hits.right - threshold)
    return [sums(cell, n), *(sums(cell, n, np.asarray(column, np.float64)) for column in values)]


def break_even_of(cells: Cells, count: F64, *values: F64) -> BreakEven:
    """Break-even from the sums by cell."""
    return BreakEven(*estimates(cells, [count], ([column] for column in values)))
