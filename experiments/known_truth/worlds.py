"""Worlds without an assistant, whose truth is exact: answers of users to intents, drawn from a hierarchical model.

A request of user u about intent i is answered rightly with probability ``p = mean + a_u + b_i + c_ui``, where a, b, c
are uniform with the given standard deviations, so that p stays inside (0, 1) and the truths are exact:

* new requests: the mean over users and intents is `mean`;
* these requests: given the intents' b, it is ``mean + sum_i share_i b_i``.

Users have heavy-tailed volumes, tastes of their own (Dirichlet around the intents' common popularity) and one-off
messages out of a common pool, each an intent of its own. A second arm adds ``effect`` and a, b, c of its own, half as
large.
"""

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from skg_bench.analysis.statistics.curves import bands, signs
from skg_bench.analysis.statistics.intervals import Cells, Estimate, estimates
from skg_bench.core.grid import F64, I64
from skg_bench.study.replications import generator


@dataclass(frozen=True)
class World:
    """A population; rates and standard deviations as probabilities."""

    name: str
    users: int = 100
    intents: int = 120
    popularity: float = 0.8  # exponent of the intents' Zipf law
    one_offs: float = 0.25  # share of requests
    pool: int = 1500  # one-off messages
    volume: float = 40.0  # median requests of a user
    taste: float = 30.0  # concentration of users' tastes: small is narrow
    mean: float = 0.5
    user: float = 0.05  # standard deviation between users
    intent: float = 0.1  # between intents
    both: float = 0.02  # interaction
    effect: float = 0.0  # of the second arm
    own_requests: bool = False  # the second arm answers a part of its own (ratios with denominators of their own)


@dataclass(frozen=True)
class Sample:
    """One experiment in a world."""

    cells: Cells
    over: tuple[F64, F64]  # [c] requests of either arm
    right: tuple[F64, F64]  # [c] right answers
    these: tuple[float, float]  # what these requests are worth in either arm, over all users that could have been drawn
    new: tuple[float, float]  # over all intents too


def sample(world: World, rng: np.random.Generator) -> Sample:
    """Draw users, intents and answers of two arms."""
    popular = np.arange(1, world.intents + 1) ** -world.popularity
    popular /= popular.sum()
    volume = rng.poisson(world.volume * rng.lognormal(0.0, 0.9, world.users))
    single = rng.binomial(volume, world.one_offs)
    taste = rng.gamma(world.taste * popular, 1.0, (world.users, world.intents)) + 1e-12
    intent_counts = rng.multinomial(volume - single, taste / taste.sum(1, keepdims=True))
    user, intent = np.nonzero(intent_counts)
    single_user = np.repeat(np.arange(world.users), single)
    single_text, single_count = _pairs(single_user, rng.integers(0, world.pool, single_user.size), world.pool)
    user = np.concatenate([user, single_text // world.pool])
    about = np.concatenate([intent, world.intents + single_text % world.pool])
    requests = np.concatenate([intent_counts[intent_counts > 0], single_count]).astype(np.float64)
    share = np.concatenate([(1 - world.one_offs) * popular, np.full(world.pool, world.one_offs / world.pool)])
    cells = Cells(user, about, world.users, len(share))
    chance = [np.full(len(user), world.mean), np.zeros(len(user))]
    shift = [0.0, 0.0]
    for arm, size in ((0, 1.0), (1, 0.5)):
        b = _spread(rng, size * world.intent, len(share))
        a, c = _spread(rng, size * world.user, world.users), _spread(rng, size * world.both, len(user))
        chance[arm] = chance[arm] + a[user] + b[about] + c
        shift[arm] = float((share * b).sum())
    second = chance[0] + chance[1] + world.effect
    over = (requests, requests)
    if world.own_requests:
        over = (
            rng.binomial(requests.astype(int), 0.7).astype(float),
            rng.binomial(requests.astype(int), 0.5).astype(float),
        )
    right = tuple(rng.binomial(n.astype(int), p).astype(float) for n, p in zip(over, (chance[0], second), strict=True))
    these = (world.mean + shift[0], world.mean + shift[0] + shift[1] + world.effect)
    return Sample(cells, over, (right[0], right[1]), these, (world.mean, world.mean + world.effect))


def figure(drawn: Sample) -> tuple[Estimate, float, float]:
    """The first arm's share of right answers; its truth for these and for new requests."""
    (estimate,) = estimates(drawn.cells, drawn.over[:1], [drawn.right[:1]])
    return estimate, drawn.these[0], drawn.new[0]


def difference(drawn: Sample) -> tuple[Estimate, float, float]:
    """Second arm - first arm, paired; its truths."""
    (estimate,) = estimates(drawn.cells, drawn.over[::-1], [drawn.right[::-1]])
    return estimate, drawn.these[1] - drawn.these[0], drawn.new[1] - drawn.new[0]


WORLDS = (
    World("few users"),
    World("many users", users=400),
    World("few intents", users=100, intents=20, popularity=1.0, one_offs=0.0, taste=10.0),
    World("users differ most", user=0.12, intent=0.02, both=0.0),
    World("narrow tastes", popularity=1.2, one_offs=0.2, taste=5.0, user=0.06, intent=0.06, both=0.05),
)
EFFECT = 0.05
NULLS = (
    World("nothing differs", user=0.0, intent=0.0, both=0.0),
    World("users differ, mean 0", user=0.1, intent=0.0, both=0.0),
    World("intents differ, mean 0", user=0.05, intent=0.1, both=0.03),
)


def injected(world: World) -> World:
    """The same world with an effect, arms with denominators of their own."""
    return replace(world, effect=EFFECT, own_requests=True)


def bands_hold(users: int, weeks: int, replications: int, seed: int = 0) -> float:
    """Share of simultaneous bands that hold the whole curve; users come late, are away, and persist in their level."""
    multipliers = signs(seed, np.arange(users, dtype=np.int64))
    truth = 0.4 - 0.3 * np.exp(-np.arange(weeks) / 6)
    held = 0
    for r in range(replications):
        rng = generator(seed + 1, r)
        level = rng.normal(0, 0.08, (users, 1)) + np.cumsum(rng.normal(0, 0.02, (users, weeks)), axis=1)
        values = truth + level + rng.exponential(0.08, (users, weeks)) - 0.08  # skewed, as shares of few requests are
        values[rng.random((users, weeks)) < 0.2] = np.nan
        (band,) = bands([values], multipliers, [(-np.inf, np.inf)])
        held += bool(((band.low <= truth) & (truth <= band.high)).all())
    return held / replications


def _spread(rng: np.random.Generator, deviation: float, n: int) -> F64:
    """Uniform around 0 with this standard deviation."""
    return rng.uniform(-1.0, 1.0, n) * (deviation * sqrt(3.0))


def _pairs(user: I64, text: I64, pool: int) -> tuple[I64, I64]:
    """Distinct (user, text) as one number, and how often each occurs."""
    keys, count = np.unique(user * pool + text, return_counts=True)
    return keys, count
