"""The recipe of `experiments/routing_quality` on a user's own book: kernel ridge regression on captured messages.

Kernel ridge regression (Saunders, Gammerman and Vovk 1998) of which skill an example belongs to, one against the rest,
with the Gaussian kernel on the sphere, ``k(x, y) = exp(width (x y - 1))``:

    v = (K + ridge W)^-1 k,        a skill's score = the sum of v over its examples,

K the kernel of the examples with one another, k that with the message, W diagonal: the number of examples of the
example's skill over the median number, so that skills weigh alike however often they were captured. Similarity is the
score on the scale of a cosine: the cosine to a skill's only example that gives this score, ``1 + log((1 + ridge) score)
/ width``. So a policy's threshold means what it means after MaxSim.

What the recipe chooses on labelled messages is a constant here, as a user's book has none to validate on: one width for
skill and score, one ridge, and no examples of what is out of scope. Only the `neighbours` examples nearest to the
message take part, so a route depends on the book as it is and nothing is fitted ahead.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, solve
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.types import Query, Shortlist, Skillbooks
from skg_bench.router.shared.neighbourhood import neighbourhood

_LEAST = 1e-300  # score whose similarity is 0 at any width
_FINE = 2.0**32  # kernels are rounded to multiples of 1 / _FINE: exp differs by a bit between kinds of CPU


@dataclass(frozen=True)
class Recipe:
    """The `top_k` skills with the highest scores among those that have a neighbour."""

    top_k: int
    neighbours: int
    width: float
    ridge: float
    sees_truth: ClassVar[bool] = False
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        for name in ("top_k", "neighbours"):
            if getattr(self, name) < 1:
                raise UsageError(f"router.{name}={getattr(self, name)} must be at least 1")
        if not 0 < self.width <= 100:
            raise UsageError(
                f"router.width={self.width} must lie in (0, 100]; 4 is the default, more is nearer to MaxSim"
            )
        if not 1e-3 <= self.ridge <= 1e3:
            raise UsageError(f"router.ridge={self.ridge} must lie in [0.001, 1000]; 0.3 is the default")

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        """The skills that the message belongs to most, best first; similarity in [0, 1]."""
        near = neighbourhood(query, books, self.neighbours)
        sizes = near.sums(books)
        weight = np.take_along_axis(sizes, near.skill, axis=1) / _median(sizes)[:, None]
        system = self._kernel(near.gram(query)) * (near.mask[:, :, None] & near.mask[:, None])
        n = near.mask.shape[1]
        system[:, np.arange(n), np.arange(n)] += self.ridge * np.where(near.mask, weight, 1.0)
        share = solve(system, np.where(near.mask, self._kernel(near.cosine), 0.0))
        score = (1.0 + self.ridge) * near.sums(books, share)
        return near.shortlist(books, 1.0 + np.log(np.maximum(score, _LEAST)) / self.width, self.top_k)

    def _kernel(self, cosines: F64) -> F64:
        kernel: F64 = np.rint(np.exp(self.width * (cosines - 1.0)) * _FINE) / _FINE
        return kernel


def _median(sizes: F64) -> F64:
    """Median of the positive values of each row, `[B]`; 1 where there is none."""
    n = (sizes > 0).sum(axis=1)
    ordered = np.sort(np.where(sizes > 0, sizes, np.inf), axis=1)
    row = np.arange(len(sizes))
    middle = (ordered[row, np.maximum(n - 1, 0) // 2] + ordered[row, n // 2]) / 2.0
    return np.where(n > 0, middle, 1.0)
