"""Worth that composite skills could have: the next request, anticipated from the user's own history.

A rule that needs no model: after an intent the user has asked for another one next, at least three times and in at
least half of the cases. Where it is right, a composite skill could have answered before it was asked. The most that
this can be worth is what a turn of the LLM alone is short of a right answer for nothing and at once.
"""

from collections import Counter, defaultdict

import numpy as np

from skg_bench.analysis.counts.columns import coded
from skg_bench.analysis.counts.metrics import LOSS_COLUMNS, Utility
from skg_bench.analysis.counts.tally import LoggedEvents
from skg_bench.analysis.statistics.intervals import Estimate, estimates, sums
from skg_bench.core.grid import F64, I32, I64, Bool
from skg_bench.runfolder.run import Run

LEAST, SHARE = 3, 0.5  # times, and of the cases


def anticipated(row: I64, intent: I32) -> tuple[Bool, Bool]:
    """Masks of where the rule names a next request, and where it is right, `[N]`; rows ascend in user and turn."""
    fires, right = np.zeros(len(row), np.bool_), np.zeros(len(row), np.bool_)
    after: dict[int, Counter[int]] = defaultdict(Counter)
    for i in range(1, len(row)):
        if row[i] != row[i - 1]:
            after.clear()
            continue
        before, now = int(intent[i - 1]), int(intent[i])
        if before < 0:
            continue
        history = after[before]
        if history:
            named, times = history.most_common(1)[0]
            fires[i] = times >= LEAST and times >= SHARE * history.total() and named >= 0
            right[i] = fires[i] and named == now
        history[now] += 1
    return fires, right


def worth(run: Run, requests: LoggedEvents, arm: str) -> dict[str, Estimate]:
    """Shares of requests for which the rule fires, and is right; and the most that this could be worth in utility."""
    table = run.turns(arm, ["intent", *LOSS_COLUMNS])
    fires, right = anticipated(requests.row, coded(table["intent"])[0])
    loss: F64 = Utility.of(run.config).loss(table)
    n = len(requests.cells.user)
    turn = sums(requests.cell, n)
    counts = [
        sums(requests.cell, n, each) for each in (fires.astype(np.float64), right.astype(np.float64), right * loss)
    ]
    made = estimates(requests.cells, [turn], [[count] for count in counts])
    return dict(zip(("fires", "right", "at most"), made, strict=True))
