"""Losses of utility by cause, where answers are right or wrong: from the ceiling down to what was reached.

The ceiling is a right answer to every request, for nothing and at once: utility 1. What a turn is worth less is booked
whole to its `cause` (`assistant/pipeline/cause.py`), so that a user's losses sum to ceiling - reached. A turn that the
LLM answered is thus booked, with the LLM's price, wait and errors, to what made it fall back; `none` is what right
skills themselves cost.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from skg_bench.analysis.counts.columns import coded
from skg_bench.analysis.counts.joined import Packed, PackedRows
from skg_bench.analysis.counts.metrics import LOSS_COLUMNS, Utility
from skg_bench.analysis.counts.tally import LoggedEvents, Requests
from skg_bench.analysis.statistics.intervals import estimates, sums
from skg_bench.analysis.summary.document import Waterfall
from skg_bench.analysis.summary.figures import Figure
from skg_bench.core.grid import F64, I64
from skg_bench.core.types import CAUSES
from skg_bench.runfolder.run import RunTables

CEILING = 1.0
ORDER = (
    "novelty", "capture", "wrong_source", "staleness", "generality", "routing", "score", "threshold", "slot", "tool",
    "none",
)  # fmt: skip
"""Causes as the chain has them: learning, the stored answer, finding it, choosing it, its own price."""
POLICY = ("score", "threshold")
CAUSE_COLUMNS = (*LOSS_COLUMNS, "cause")


@dataclass(frozen=True, slots=True)
class Losses:
    """One arm's, by index into CAUSES."""

    by_cell: F64 | PackedRows  # [causes, c] utility lost in a (user, intent) cell
    turns: I64  # [causes] turns booked

    def by_user(self, requests: LoggedEvents) -> F64:
        """Mean loss of a request, `[causes, n]`."""
        turn = sums(requests.row, len(requests.users))
        return np.stack([sums(requests.cells.user, len(requests.users), loss) for loss in self.by_cell]) / turn

    def of(self, causes: tuple[str, ...]) -> F64:
        """Losses of some causes together, `[c]`."""
        first, *rest = (self.by_cell[CAUSES.index(cause)] for cause in causes)
        total: F64 = sum(rest, start=first)
        return total


@dataclass(frozen=True, slots=True)
class PackedLosses:
    """One arm's in a block."""

    rows: Sequence[Packed]
    turns: I64

    @classmethod
    def of(cls, lost: Losses) -> "PackedLosses":
        """The losses in less room."""
        return cls([Packed.of(row) for row in lost.by_cell], lost.turns)


def joined_losses(blocks: Sequence[PackedLosses]) -> Losses:
    """Losses of users who come block by block."""
    return Losses(PackedRows([block.rows for block in blocks]), np.sum([block.turns for block in blocks], axis=0))


def losses(run: RunTables, arm: str, requests: LoggedEvents, prices: Utility) -> Losses | None:
    """Losses of an arm whose turns are the events `requests`; None for an assistant that says nothing of causes."""
    table = run.turns(arm, CAUSE_COLUMNS)
    if table["cause"].null_count:
        return None
    code, vocabulary = coded(table["cause"])
    cause = np.array([CAUSES.index(word) for word in vocabulary], np.int64)[code]
    cells = len(requests.cells.user)
    by_cell = sums(cause * cells + requests.cell, len(CAUSES) * cells, prices.loss(table)).reshape(len(CAUSES), cells)
    return Losses(by_cell, np.bincount(cause, minlength=len(CAUSES)))


def waterfall(arm_losses: Losses, reference: Losses | None, requests: Requests, turn: F64) -> Waterfall:
    """Waterfall of an arm, beside that of the reference. `turn`: requests by cell `[c]`."""
    bars = {cause: (cause,) for cause in ORDER} | {"policy": POLICY}
    n = {bar: int(sum(arm_losses.turns[CAUSES.index(cause)] for cause in causes)) for bar, causes in bars.items()}

    def figures(counts: Iterable[F64]) -> dict[str, Figure]:
        results = estimates(requests.cells, [turn], ([count] for count in counts))
        return {bar: Figure.of(e, n[bar]) for bar, e in zip(bars, results, strict=True)}

    bare = figures(arm_losses.of(causes) for causes in bars.values())
    if reference is None:
        return Waterfall(CEILING, bare, None)
    return Waterfall(CEILING, bare, figures(arm_losses.of(causes) - reference.of(causes) for causes in bars.values()))
