"""The one place where an arm's decision is drawn: policies state distributions, the engine samples them."""

import numpy as np

from skg_bench.core.draws import Purpose, fold, gumbel, uniform
from skg_bench.core.grid import F64, I32, I64, U64

_FALLBACK = np.int64(-1)


def sample(share: F64, lineage: I64, event: U64) -> tuple[I32, F64]:
    """Places `[B]` (-1: the fallback) drawn from distributions `[B, 1 + K]`, and the probability of each.

    One Gumbel draw an action (the largest of `log p + g` is a draw from p), keyed by the event and the `lineage`
    `[B, K]` of the skill, so that neither its id nor its position matters; no draw where one action is certain.
    Probabilities are rounded to float32: numpy's exp and log differ in the last place between CPU types.
    """
    action, rows = share.argmax(axis=1), np.arange(len(share))
    if np.logical_and.reduce(share[rows, action] == 1.0):
        return (action - 1).astype(np.int32), np.ones(len(share))
    share = np.minimum(share, 1.0).astype(np.float32).astype(np.float64)
    open_ = (share[rows, action] < 1.0).nonzero()[0]
    if len(open_):
        item = np.concatenate([np.full((len(open_), 1), _FALLBACK), lineage[open_]], axis=1)
        base = fold(event[open_], int(Purpose.POLICY_ITEM))[:, None]
        noise = gumbel(uniform(fold(fold(base, item), 0)))
        with np.errstate(divide="ignore"):
            action[open_] = np.argmax(np.log(share[open_]) + noise, axis=1)
    return (action - 1).astype(np.int32), share[rows, action]
