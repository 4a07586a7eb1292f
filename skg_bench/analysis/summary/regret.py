"""Losses of utility by link, where a domain declares links (runfolder/telling.py).

Each link is a mean over turns of a difference of two columns of worth, so that a user's links sum to ceiling - utility.
The last one is money, waiting and offers. A link can be below 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skg_bench.analysis.counts.columns import column
from skg_bench.analysis.counts.metrics import Utility
from skg_bench.analysis.counts.outcomes import PAID_COLUMNS
from skg_bench.analysis.counts.tally import LoggedEvents
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
    by_cell: F64  # [links, c] what is lost from one link to the next
    turns: I64  # [links] turns at which something is lost or won there

    def by_user(self, requests: LoggedEvents) -> F64:
        """Mean of a turn, `[links, n]`."""
        turn = sums(requests.row, len(requests.users))
        return np.stack([sums(requests.cells.user, len(requests.users), lost) for lost in self.by_cell]) / turn


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


def regret_waterfall(arm: Regret, reference: Regret | None, requests: LoggedEvents) -> Waterfall:
    """Waterfall of an arm, beside that of the reference."""
    turn = sums(requests.cell, len(requests.cells.user))

    def figures(counts: F64) -> dict[str, Figure]:
        results = estimates(requests.cells, [turn], [[count] for count in counts])
        return {link: Figure.of(e, int(n)) for link, e, n in zip(arm.links, results, arm.turns, strict=True)}

    (ceiling,) = estimates(requests.cells, [turn], [[arm.best]])
    return Waterfall(
        digits(ceiling.mean) or 0.0,
        figures(arm.by_cell),
        None if reference is None else figures(arm.by_cell - reference.by_cell),
    )
