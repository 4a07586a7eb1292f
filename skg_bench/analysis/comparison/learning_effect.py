"""The learning effect over a grid: what was learned after turn s is worth at turn t, live minus frozen at s."""

from dataclasses import dataclass

import numpy as np

from skg_bench.analysis.comparison.turn_bins import BinTable, bin_table, binned_arms
from skg_bench.analysis.counts.columns import column
from skg_bench.analysis.counts.metrics import Utility
from skg_bench.analysis.counts.roles import roles
from skg_bench.analysis.counts.turn_logs import user_blocks
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I64
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
    starts, frozen = sorted(since), tuple(since[s] for s in sorted(since))
    edges = tuple(sorted({0, *starts, *_doubling(_turns(run))}))
    binned = binned_arms(run, [live, *frozen], edges, Utility.of(run.config))
    worth = binned.values[:1] - binned.values[1:]
    worth[np.array(starts)[:, None, None] > np.array(edges) + np.zeros((len(starts), len(binned.users), 1))] = np.nan
    return LearningEffect(live, frozen, tuple(starts), edges, bin_table(worth, binned))


def _turns(run: Run) -> I64:
    """Turns of each user."""
    users = (column(block.turns(run.arms[0], ["turn"]), "user") for (block,) in user_blocks([run]))
    return np.concatenate([np.unique(of_block, return_counts=True)[1] for of_block in users])


def _doubling(turns: I64) -> list[int]:
    """50, 100, 200 and on, as far as half of the users go."""
    half, edges = float(np.median(turns)) if turns.size else 0.0, [50]
    while edges[-1] < half:
        edges.append(edges[-1] * 2)
    return edges[:-1]
