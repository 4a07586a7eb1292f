"""Figures of a draw: how many users override the generic question, the first time and the tenth, by context."""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from skg_bench.core.grid import F64, Bool
from skg_bench.simulator.advice.levels import OVERRIDDEN
from skg_bench.skillbook.library.strategies import strategies
from skg_bench.study.guardian.lives import Draw, Life, Lives, life_means, mean, over_users
from skg_bench.study.guardian.mass_verdicts import figures

MOODS = {"own": "question_own", "fresh": "question_fresh"}
TENTH = 10


def measure(_draw: Draw, lives: Lives) -> Mapping[str, float]:
    """Figures of all arms of `experiment=generic`."""
    known: dict[str, float] = {}
    for mood, arm in MOODS.items():
        life = lives[arm]
        override = life.outcome == OVERRIDDEN
        first, tenth = (life_means(life, override, nth(life, n)) for n in (1, TENTH))
        known |= {f"first_{mood}": mean(first), f"tenth_{mood}": mean(tenth)}
        known |= figures(f"wear_{mood}", over_users(tenth - first))
        for part, mask in parts(life).items():
            for words, n in (("first", 1), ("tenth", TENTH)):
                at = nth(life, n) & mask
                known[f"{words}_{mood}:{part}"] = float(override[at].mean()) if at.any() else np.nan
    fresh, some = lives["question_fresh"], lives["strategies"]
    more = _overridden(fresh, fresh.spoken) - _overridden(some, some.spoken & (some.kind >= 0))
    return known | figures("beyond_strategies", over_users(more))


def nth(life: Life, n: int) -> Bool:
    """The turn at which a user is asked for the n-th time. `[U, T]`"""
    mask: Bool = life.spoken & (np.cumsum(life.spoken, axis=1) == n)
    return mask


def _overridden(life: Life, among: Bool) -> F64:
    return life_means(life, life.outcome == OVERRIDDEN, among)


@lru_cache
def names() -> tuple[str, ...]:
    """Categories and times of day, of which contexts are made."""
    table = strategies(None)
    return (*table.categories, *table.times)


def parts(life: Life) -> dict[str, Bool]:
    """Turns in each category, and at each time of day."""
    table = strategies(None)
    category, time = np.divmod(life.context, len(table.times))
    masks = [category == i for i in range(len(table.categories))] + [time == i for i in range(len(table.times))]
    return dict(zip(names(), masks, strict=True))
