"""A small table of strategies, shoppers with the parameters of `conf/`, and what comes of advice given to them."""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import yaml

from skg_bench.core.content import Content
from skg_bench.core.draws import key
from skg_bench.core.grid import I32, Bool
from skg_bench.core.package import CONF
from skg_bench.core.world import FALLBACK, PROMPTED, Draws, Response, Served, SkillsSaid
from skg_bench.engine.scene import draws_of
from skg_bench.simulator.advice.guardian import Guardian
from skg_bench.simulator.advice.people import Shoppers
from skg_bench.skillbook.library.strategies import Strategies, Triggers

CATEGORIES, TIMES, BANDS = ("coffee", "electronics"), ("morning", "midday", "evening", "late at night"), 6
KINDS = ("generic", "framing", "waiting")
PRICES = (10, 30, 60, 120, 300, 600)


@lru_cache(maxsize=1)
def table() -> Strategies:
    """Three kinds in eight contexts, two triggers a cell."""
    cells = [(c, t, b, n) for c in range(2) for t in range(4) for b in range(BANDS) for n in range(2)]
    category, time, band, _ = (np.array(column, np.int32) for column in zip(*cells, strict=True))
    text = tuple(f"{TIMES[t]}, {CATEGORIES[c]}: thing {n} for ${PRICES[b]}" for c, t, b, n in cells)
    fit = np.random.default_rng(0).normal(size=(3, 8))
    fit = (fit - fit.mean()) / fit.std()
    contents = tuple(Content("against impulses", f"{kind} {n}") for kind in KINDS for n in range(4))
    return Strategies(
        KINDS, CATEGORIES, TIMES, np.array([-0.5, 0.1, 0.4]), np.array([0.0, 1.0, 0.3]), fit, contents,
        np.repeat(np.arange(3, dtype=np.int32), 4), np.tile([True, True, True, False], 3),
        Triggers(text, category, time, band, np.array(PRICES, np.int32)[band]), "small",
    )  # fmt: skip


class Small(Guardian):
    """Shoppers of the small table."""

    table = table()


def guardian(**changes: Any) -> Guardian:
    """The simulator of `conf/simulator/guardian.yaml` with the small table."""
    node = yaml.safe_load((CONF / "simulator" / "guardian.yaml").read_text("utf-8"))
    del node["_target_"], node["_with_"]
    return replace(Small(**node), **changes)


def shoppers(world: Guardian, users: int, weeks: int = 12, seed: int = 0) -> Shoppers:
    """Before their first trigger."""
    return world.begin(seed, np.arange(users, dtype=np.int32), weeks)


def advised(
    world: Guardian, state: Shoppers, turn: int, about: int | I32, *, sound: bool | Bool = True, fresh: bool = False
) -> tuple[Response, Draws]:
    """What comes of advice of these kinds at the users' turn `turn`; -1 is the generic question."""
    event = world.events(state, turn)
    n = len(event.time)
    kinds = np.broadcast_to(np.asarray(about, np.int32), n).astype(np.int32)
    nothing, blank = np.full(n, -1, np.int32), np.full(n, np.nan)
    how = np.where(kinds < 0, FALLBACK, PROMPTED).astype(np.int32)
    made = np.broadcast_to(np.asarray(sound), n)
    draws = draws_of(key(0, state.events.user), event.number)
    _, response = world.respond(
        state,
        event,
        Served(how, nothing, blank, blank, nothing, SkillsSaid(kinds, made, fresh), nothing[:, None]),
        draws,
    )
    return response, draws
