"""Regret where skills are advice: from the best that can be said to the utility that was reached.

Each link is a mean over turns of a difference, so that a user's links sum to ceiling - utility:

    curation  best that can be said - best in the user's book      both on average, to a user without a mood
    choice    best in the user's book - what was done           both on average, to a user without a mood
    wear      what was done, to a user without a mood - to this user in the mood that earlier turns left
    luck      what was done, on average - as it came out
    paid      money, waiting and offers

A link can be below 0: a mood may help, and luck may be good.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from skg_bench.analysis.counts.advice import ADVICE_COLUMNS, PAID_COLUMNS
from skg_bench.analysis.counts.columns import column
from skg_bench.analysis.counts.metrics import Utility
from skg_bench.analysis.counts.tally import LoggedEvents
from skg_bench.analysis.statistics.intervals import estimates, sums
from skg_bench.analysis.summary.content import Waterfall
from skg_bench.analysis.summary.figures import Figure, digits
from skg_bench.core.grid import F64, I64
from skg_bench.runfolder.run import RunTables

LINKS = ("curation", "choice", "wear", "luck", "paid")
_CHAIN = ("worth_best", "worth_book", "worth_fresh", "worth_expected", "worth")


@dataclass(frozen=True, slots=True)
class Regret:
    """One arm's, in the order of LINKS."""

    best: F64  # [c] worth of the best that can be said, in a (user, intent) cell
    by_cell: F64  # [links, c] what is lost from one link to the next
    turns: I64  # [links] turns at which something is lost or won there

    def by_user(self, requests: LoggedEvents) -> F64:
        """Mean of a turn, `[links, n]`."""
        turn = sums(requests.row, len(requests.users))
        return np.stack([sums(requests.cells.user, len(requests.users), lost) for lost in self.by_cell]) / turn


def regret(run: RunTables, arm: str, requests: LoggedEvents, prices: Utility) -> Regret | None:
    """Regret of an arm whose turns are the events `requests`; None for an assistant whose skillbook is not known."""
    table = run.turns(arm, [*ADVICE_COLUMNS, *PAID_COLUMNS])
    if table["worth_book"].null_count:
        return None
    chain = [column(table, name) for name in _CHAIN]
    lost = [*(a - b for a, b in pairwise(chain)), prices.paid(table)]
    cells = len(requests.cells.user)
    return Regret(
        sums(requests.cell, cells, chain[0]),
        np.stack([sums(requests.cell, cells, link) for link in lost]),
        np.array([np.count_nonzero(link) for link in lost], np.int64),
    )


def regret_waterfall(arm: Regret, reference: Regret | None, requests: LoggedEvents) -> Waterfall:
    """Waterfall of an arm, beside that of the reference."""
    turn = sums(requests.cell, len(requests.cells.user))

    def figures(counts: F64) -> dict[str, Figure]:
        results = estimates(requests.cells, [turn], [[count] for count in counts])
        return {link: Figure.of(e, int(n)) for link, e, n in zip(LINKS, results, arm.turns, strict=True)}

    (ceiling,) = estimates(requests.cells, [turn], [[arm.best]])
    return Waterfall(
        digits(ceiling.mean) or 0.0,
        figures(arm.by_cell),
        None if reference is None else figures(arm.by_cell - reference.by_cell),
    )
