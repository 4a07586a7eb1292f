"""The learning effect over a grid: what was learned after turn s is worth at turn t, live minus frozen at s."""

from dataclasses import dataclass

import numpy as np

from skg_bench.analysis.comparison.turn_bins import BinTable, bin_table, by_bin, utility
from skg_bench.analysis.counts.metrics import Utility
from skg_bench.analysis.counts.roles import roles
from skg_bench.analysis.counts.tally import LoggedEvents, events
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run


@dataclass(frozen=True, slots=True)
class LearningEffect:
    """Live - frozen, utility of a request, on the same events with the same random draws."""

    live: str
    frozen: tuple[str, ...]  # [S] arms, by the turn at which they freeze
    since: tuple[int, ...]  # [S]
    edges: tuple[int, ...]  # [K] first turns of the bins
    effect: BinTable  # [S, K]; NaN before the freeze, where there is no difference


def learning_effect(run: Run, live: str | None = None) -> LearningEffect:
    """Effect of learning by all frozen twins of `live` (default: the live arm of the run), over the bins between turns.

    Raises UsageError when there is none.
    """
    role = roles(run)
    live = role.live if live is None else live
    since = {since: arm for arm, (original, since) in role.frozen.items() if original == live}
    if not since:
        raise UsageError(
            f"{run.path} has no arm that is {live} frozen at a turn; add '+arms.NAME=[freeze=all,freeze_at=TURN]'"
        )
    starts, requests, prices = sorted(since), events(run), Utility.of(run.config)
    edges = tuple(sorted({0, *starts, *_doubling(requests)}))
    alive = by_bin(utility(run, live, requests, prices), requests, edges)
    worth = np.stack([alive - by_bin(utility(run, since[s], requests, prices), requests, edges) for s in starts])
    worth[np.array(starts)[:, None, None] > np.array(edges) + np.zeros((len(starts), len(requests.users), 1))] = np.nan
    return LearningEffect(live, tuple(since[s] for s in starts), tuple(starts), edges, bin_table(worth, requests))


def _doubling(requests: LoggedEvents) -> list[int]:
    """50, 100, 200 and on, as far as half of the users go."""
    half, edges = float(np.median(np.bincount(requests.row, minlength=len(requests.users)))), [50]
    while edges[-1] < half:
        edges.append(edges[-1] * 2)
    return edges[:-1]
