"""Losses of utility by link, where a domain declares links (runfolder/telling.py).

Each link is a mean over turns of a difference of two columns of worth, so that a user's links sum to ceiling - utility.
The last one is money, waiting and offers. A link can be below 0.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from skg_bench.analysis.counts.columns import column
from skg_bench.analysis.counts.joined import Packed, PackedRows, unpacked
from skg_bench.analysis.counts.metrics import Utility
from skg_bench.analysis.counts.outcomes import PAID_COLUMNS
from skg_bench.analysis.counts.tally import LoggedEvents, Requests
from skg_bench.analysis.statistics.intervals import estimates, sums
from skg_bench.analysis.summary.document import Waterfall
from skg_bench.analysis.summary.figures import Figure, digits
from skg_bench.core.grid import F64, I64
from skg_bench.runfolder.run import RunTables
from skg_bench.runfolder.telling import telling_of


@dataclass(frozen=True, slots=True)
class Regret:
    """One arm's, link by link."""

    links: Sequence[str]  # names
    best: F64  # [c] worth of the best that can be said, in a (user, intent) cell
    by_cell: F64 | PackedRows  # [links, c] what is lost from one link to the next
    turns: I64  # [links] turns at which something is lost or won there

    def by_user(self, requests: LoggedEvents) -> F64:
        """Mean of a turn, `[links, n]`."""
        turn = sums(requests.row, len(requests.users))
        return np.stack([sums(requests.cells.user, len(requests.users), lost) for lost in self.by_cell]) / turn


@dataclass(frozen=True, slots=True)
class PackedRegret:
    """One arm's in a block."""

    links: Sequence[str]
    rows: Sequence[Packed]  # the best, and then the links
    turns: I64

    @classmethod
    def of(cls, lost: Regret) -> "PackedRegret":
        """The regret in less room."""
        return cls(lost.links, [Packed.of(row) for row in (lost.best, *lost.by_cell)], lost.turns)


def joined_regret(blocks: Sequence[PackedRegret]) -> Regret:
    """Regret of users who come block by block."""
    best = unpacked([block.rows[0] for block in blocks])
    turns = np.sum([block.turns for block in blocks], axis=0)
    return Regret(blocks[0].links, best, PackedRows([block.rows[1:] for block in blocks]), turns)


def regret(run: RunTables, arm: str, requests: LoggedEvents, prices: Utility) -> Regret | None:
    """Regret of an arm whose turns are the events `requests`; None where a domain has no links, and for an assistant
    whose skillbook is not known.
    """
    links = telling_of(run.manifest).links
    if not links:
        return None
    worths = list(dict.fromkeys(name for link in links for name in (link.above, link.below) if name))
    table = run.turns(arm, [*worths, *PAID_COLUMNS])
    if any(table[name].null_count for name in worths):
        return None
    lost = [
        column(table, link.above) - column(table, link.below) if link.above else prices.paid(table) for link in links
    ]
    cells = len(requests.cells.user)
    return Regret(
        [link.name for link in links],
        sums(requests.cell, cells, column(table, worths[0])),
        np.stack([sums(requests.cell, cells, link) for link in lost]),
        np.array([np.count_nonzero(link) for link in lost], np.int64),
    )


def regret_waterfall(arm: Regret, reference: Regret | None, requests: Requests, turn: F64) -> Waterfall:
    """Waterfall of an arm, beside that of the reference. `turn`: requests by cell `[c]`."""
    each = range(len(arm.links))

    def figures(counts: Iterable[F64]) -> dict[str, Figure]:
        results = estimates(requests.cells, [turn], ([count] for count in counts))
        return {link: Figure.of(e, int(n)) for link, e, n in zip(arm.links, results, arm.turns, strict=True)}

    (ceiling,) = estimates(requests.cells, [turn], [[arm.best]])
    return Waterfall(
        digits(ceiling.mean) or 0.0,
        figures(arm.by_cell[i] for i in each),
        None if reference is None else figures(arm.by_cell[i] - reference.by_cell[i] for i in each),
    )
