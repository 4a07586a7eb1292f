"""Mean lift of all skills: the first order of all, corrected by the exact lift of some.

Exact lifts are dear. Some skills have one for certain, as they are worth a look (`look`), and a simple random sample of
the others has one too. With d = exact - first order, M others of which m are drawn, and S skills in all,

    mean = mean of first orders + (sum of d over the certain ones + M mean of d over the drawn ones) / S,
    variance = (M / S)^2 (1 - m / M) s_d^2 / m,

the difference estimator (Cochran, Sampling Techniques, 3rd edition, 1977, section 7.3 with slope 1), which is unbiased
whatever first orders are worth. The interval is over samples of these skills, Student's with m - 1 degrees of freedom.
"""

from dataclasses import dataclass

import numpy as np

from skg_bench.analysis.lift.first_order import Lifts
from skg_bench.analysis.statistics.intervals import ALPHA, t_quantile
from skg_bench.core.draws import Purpose, draw, key, word
from skg_bench.core.grid import F64, I64, Bool

DRAWN = 4  # skills drawn at random for each one that is the worst, the best or the most served


@dataclass(frozen=True)
class PlayedSkills:
    """Skills whose lift is computed exactly, `[S]`."""

    certain: Bool
    drawn: Bool  # a simple random sample of those that are not certain

    @property
    def rows(self) -> I64:
        """Rows of both."""
        return np.flatnonzero(self.certain | self.drawn)


def look(lifts: Lifts, n: int | None, seed: int) -> PlayedSkills:
    """The n worst, the n best and the n most served skills, and DRAWN times n of the others at random; None: all.

    `seed`: that of the run, with its salt.
    """
    first, size = lifts.total, len(lifts.skill)
    if n is None:
        return PlayedSkills(np.ones(size, np.bool_), np.zeros(size, np.bool_))
    certain, drawn = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    for value in (first, -first, -lifts.served.sum(axis=1)):
        certain[np.argsort(value, kind="stable")[:n]] = True
    keys = key(word(seed, b"exact"), lifts.users[lifts.user])
    others = np.flatnonzero(~certain)
    order = np.argsort(draw(keys, lifts.skill, Purpose.SAMPLE)[others], kind="stable")
    drawn[others[order[: DRAWN * n]]] = True
    return PlayedSkills(certain, drawn)


@dataclass(frozen=True)
class MeanLift:
    """A mean over all skills, with its 95 % interval over samples; NaN where fewer than two were drawn of several."""

    mean: float
    low: float
    high: float


def corrected(first: F64, exact: F64, choice: PlayedSkills) -> MeanLift:
    """Mean of exact lifts; `exact` `[S]` is read where it was chosen."""
    size, certain = len(first), choice.certain
    others, drawn = int((~certain).sum()), int(choice.drawn.sum())
    d = (exact - first)[choice.drawn]
    mean = float(first.mean()) + float((exact - first)[certain].sum()) / size
    if drawn:
        mean += others / size * float(d.mean())
    if drawn == others:
        return MeanLift(mean, mean, mean)
    if drawn < 2:
        return MeanLift(mean, float("nan"), float("nan"))
    se = others / size * float(np.sqrt((1 - drawn / others) * d.var(ddof=1) / drawn))
    half = t_quantile(1 - ALPHA / 2, drawn - 1) * se
    return MeanLift(mean, mean - half, mean + half)


@dataclass(frozen=True)
class Agreement:
    """How well the first order of served skills tells their exact lift."""

    skills: int
    equal: float  # share, to 1e-9
    sign: float  # share of the same sign
    rank: float  # Spearman's correlation; NaN with fewer than three, or where all are alike


def agreement(first: F64, exact: F64) -> Agreement:
    """Agreement of first orders and exact lifts of the same skills."""
    from scipy.stats import rankdata  # costs 0.3 s: not at import

    n = len(first)
    if not n:
        return Agreement(0, float("nan"), float("nan"), float("nan"))
    equal = np.isclose(first, exact, rtol=0, atol=1e-9)
    sign = equal | (np.sign(first) == np.sign(exact))
    ranks = rankdata(first), rankdata(exact)
    varied = n > 2 and all(rank.std() > 0 for rank in ranks)
    rank = float(np.corrcoef(*ranks)[0, 1]) if varied else float("nan")
    return Agreement(n, float(equal.mean()), float(sign.mean()), rank)
