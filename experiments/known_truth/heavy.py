"""Worlds of heavy tails whose truth is exact: a few users, or a few intents, carry what an arm gains or loses.

A request of user u about intent i gains e_ui on average, and what a cell of N requests gains scatters by noise N^1/2:
    e_ui = a_u + b_i + h_u d_i.
Users have heavy-tailed volumes, intents a popularity that falls with rank to the power -`zipf`. All effects are drawn
anew in each experiment, for users and for intents. WORLDS are those that the method was chosen on, LATER ones were
written after it was fixed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from skg_bench.analysis.statistics.intervals import ALPHA, Cells
from skg_bench.core.grid import F64

Draw = Callable[[np.random.Generator, int], F64] | None  # None: no effect
VOLUME = 40.0  # median requests of a user
HARMED = 22 / 120  # of intents, as where skg is held against never


def some(rng: np.random.Generator, n: int, share: float, size: str, sign: float = -1.0, others: float = 0.0) -> F64:
    """A `share` of n gains or loses: `size` 1 or exponential, sign 0: either; the others gain a little."""
    sizes = np.ones(n) if size == "one" else rng.exponential(1.0, n)
    signs = rng.choice([-1.0, 1.0], n) if sign == 0 else np.full(n, sign)
    return others + np.where(rng.random(n) < share, sizes * signs, 0.0)


@dataclass(frozen=True)
class HeavyWorld:
    """A population of users and intents; `truth`: its mean."""

    name: str
    truth: float
    a: Draw = None  # of users
    b: Draw = None  # of intents
    d: Draw = None  # of intents, as large as the user is exposed to it
    noise: float = 0.1
    zipf: float = 0.3
    users: float = 1.0  # share of users, and of intents, that carry the effect
    intents: float = 1.0
    rare: float = 0.0  # share of requests that lose 1, whoever and whatever they are

    def seen(self, users: int, intents: int) -> bool:
        """Do 95 % of samples hold one of those who carry the effect, so that an interval is promised?"""
        effective = intents if self.zipf == 0 else 1.0 / float((popularity(self.zipf, intents) ** 2).sum())
        least = [1.0 - ALPHA ** (1.0 / n) for n in (users, effective)]
        return bool(self.users >= least[0] and self.intents >= least[1])


def popularity(exponent: float, intents: int) -> F64:
    """Shares of requests by rank."""
    weight = np.arange(1, intents + 1) ** -exponent
    shares: F64 = weight / weight.sum()
    return shares


def sampled(world: HeavyWorld, users: int, intents: int, rng: np.random.Generator) -> tuple[Cells, F64, F64]:
    """One experiment: cells, requests and what they gained."""
    volume = VOLUME * rng.lognormal(0.0, 0.9, users)
    requests = rng.poisson(volume[:, None] * popularity(world.zipf, intents))
    requests[:, 0] += requests.sum(axis=1) == 0
    user, intent = np.nonzero(requests)
    n = requests[user, intent].astype(np.float64)
    pairs = ((world.a, users), (world.b, intents), (world.d, intents))
    a, b, d = (np.zeros(size) if draw is None else draw(rng, size) for draw, size in pairs)
    gained = n * (a[user] + b[intent] + rng.gamma(2.0, 0.5, users)[user] * d[intent])
    gained += world.noise * n**0.5 * rng.standard_normal(len(n))
    if world.rare:
        gained -= rng.binomial(n.astype(np.int64), world.rare)
    return Cells(user, intent, users, intents), n, gained


def _normal(rng: np.random.Generator, n: int, sd: float) -> F64:
    return rng.normal(0.0, sd, n)


def _student(rng: np.random.Generator, n: int, df: float, scale: float = 1.0) -> F64:
    return scale * rng.standard_t(df, n)


def _lognormal(rng: np.random.Generator, n: int, share: float) -> F64:
    return np.where(rng.random(n) < share, -rng.lognormal(0.0, 0.8, n), 0.0)


def _split(rng: np.random.Generator, n: int, share: float) -> F64:
    """A share gains, as large a one loses."""
    u = rng.random(n)
    return np.where(u < share, 0.5, np.where(u > 1 - share, -0.5, 0.0))


GAIN = 0.03  # of most, where a few lose 1
WORLDS = (
    HeavyWorld("effects of light tails", 0.0, partial(_normal, sd=0.05), partial(_normal, sd=0.1), noise=0.6),
    HeavyWorld("intents of both signs", 0.0, d=partial(some, share=HARMED, size="exponential", sign=0),
               intents=HARMED),
    HeavyWorld("intents of both signs, Student's t", 0.0, partial(_student, df=3, scale=0.3),
               partial(_student, df=2.5), noise=0.3),
    HeavyWorld("users of both signs", 0.0, partial(some, share=0.15, size="exponential", sign=0), noise=0.3,
               users=0.15),
    HeavyWorld("22 of 120 intents carry anything", -HARMED, d=partial(some, share=HARMED, size="exponential"),
               intents=HARMED),
    HeavyWorld("every intent harms, few much", -1.0, partial(_normal, sd=0.2),
               partial(some, share=1.0, size="exponential"), noise=0.3),
    HeavyWorld("5 % of users bear all harm", -0.05, partial(some, share=0.05, size="one"), users=0.05),
    HeavyWorld("3 % of intents a catastrophe", -0.03, b=partial(some, share=0.03, size="one"), zipf=0.0,
               intents=0.03),
    HeavyWorld("small gain, 6 % of intents a catastrophe", GAIN - 0.06,
               b=partial(some, share=0.06, size="one", others=GAIN), zipf=0.0, intents=0.06),
    HeavyWorld("small gain, 6 % of users a catastrophe", GAIN - 0.06,
               partial(some, share=0.06, size="one", others=GAIN), users=0.06),
)  # fmt: skip
LATER = (
    HeavyWorld("a third of intents harm, lognormal", -0.3 * float(np.exp(0.32)), partial(_normal, sd=0.1),
               partial(_lognormal, share=0.3), intents=0.3),
    HeavyWorld("a tenth of users gains, a tenth loses", 0.0, partial(_split, share=0.1),
               partial(_normal, sd=0.05), users=0.2),
    HeavyWorld("one request in fifty a catastrophe", -0.02, rare=0.02, noise=0.0),
    HeavyWorld("a tenth of users harmed, a fifth of intents helps", 0.2 - 0.1,
               partial(some, share=0.1, size="exponential"),
               partial(some, share=0.2, size="exponential", sign=1.0), users=0.1, intents=0.2),
)  # fmt: skip
