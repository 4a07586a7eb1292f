"""A small neural net for each user: one hidden layer of rectified units (SKG paper, section 2.2: "later a small neural
net"), fitted listwise.

The candidates of a shortlist and the fallback compete in a softmax, the fallback with a logit of 0 (a multinomial
logit with an outside option; McFadden, 1974). A rating speaks of the served skill only: ok says that it was the one,
with loss ``-log p``; a miss that it was another or none, with ``-log(1 - p)``; a partial half of each. Nothing is said
of skills that were passed over. A logit is therefore the log-odds against the fallback, comparable between turns.

A refit goes on with `steps` steps of Adam (Kingma and Ba, ICLR 2015) over the user's last `window` rated turns. The
same bits come out whoever else is fitted, on any processor: features, weights, hidden units and gradients are rounded
to binary grids on which each sum of products is exact in float64, in any order and on any BLAS; the softmax reads its
exponentials from a table; all else is single IEEE operations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from math import exp
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from skg_bench.core.draws import Purpose, draw, key
from skg_bench.core.errors import UsageError, install_hint
from skg_bench.core.grid import F64, I64, UNIT, WEIGHT_UNIT, snap
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.types import Scorer, TrainingRows
from skg_bench.reranker.shared.feature_check import check_finite

Device = Literal["cpu", "cuda"]
Tensor = Any
_WEIGHT_MAX = 16.0
_UNIT_MAX = 4.0  # of a hidden unit, and of what flows back into it
_EXACT_ROWS = 1 << 17  # products of a feature (2**16 units) and what flows back (2**18) that sum below 2**53
_EXP_STEPS, _EXP_MAX = 1024, 10


@dataclass(frozen=True)
class MLPScorer:
    """The nets of B users."""

    hidden: F64  # [B, F, H] multiples of 2**-20
    out: F64  # [B, H] multiples of 2**-20

    def score(self, features: F64) -> F64:
        """Log-odds against the fallback, `[b, K]`, for features `[b, K, F]` of the first b users."""
        b = len(features)
        units = snap(np.ascontiguousarray(features) @ self.hidden[:b])
        np.clip(units, 0.0, _UNIT_MAX, out=units)
        logits: F64 = (units @ self.out[:b, :, None])[:, :, 0]
        return logits


@dataclass(frozen=True)
class MLP:
    """Scores by a small neural net for each user, fitted on that user's ratings.

    `l2` pulls to the net before anything is known, in units of rated turns. `seed` draws the weights into the hidden
    layer, the same for all users; those out of it begin at 0.
    """

    units: int
    steps: int
    rate: float
    l2: float
    window: int
    seed: int
    device: Device
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        for name in ("units", "steps", "window"):
            if getattr(self, name) < 1:
                raise UsageError(f"reranker.{name}={getattr(self, name)} must be at least 1")
        if not 0 < self.rate <= 1:
            raise UsageError(f"reranker.rate={self.rate} must be above 0 and at most 1")
        if not 0 <= self.l2 < 1e6:
            raise UsageError(f"reranker.l2={self.l2} must not be negative")
        if self.device not in get_args(Device):
            raise UsageError(f"reranker.device={self.device!r}, valid are {', '.join(get_args(Device))}")
        if find_spec("torch") is None:
            raise UsageError(f"reranker=mlp needs torch: {install_hint('torch')}")
        if self.device == "cuda" and not _torch().cuda.is_available():
            raise UsageError("reranker.device=cuda, but torch finds no GPU here; take reranker.device=cpu")

    def start(self, n_users: int, features: Sequence[str]) -> Scorer | None:
        """Every candidate scores 0.5."""
        return MLPScorer(np.tile(self._first(len(features)), (n_users, 1, 1)), np.zeros((n_users, self.units)))

    def _first(self, n_features: int) -> F64:
        """Weights into the hidden layer before anything is known, uniform in (-1, 1)."""
        u = draw(key(self.seed, 0), np.arange(n_features)[:, None], Purpose.WEIGHT, np.arange(self.units))
        return np.rint((2.0 * u - 1.0) / WEIGHT_UNIT) * WEIGHT_UNIT

    def fit(self, scorer: Scorer, rows: I64, training: TrainingRows) -> Scorer:
        """A new scorer in which users `rows` have gone on to learn from `training`.

        Raises UsageError for features that are not finite.
        """
        if not isinstance(scorer, MLPScorer):
            raise TypeError(f"reranker=mlp continues an MLPScorer, not a {type(scorer).__name__}")
        check_finite(training.features)
        hidden, out = scorer.hidden.copy(), scorer.out.copy()
        hidden[rows], out[rows] = self._train((hidden[rows], out[rows]), _lists(training))
        return MLPScorer(hidden, out)

    def _train(self, weights: tuple[F64, F64], lists: tuple[F64, ...]) -> tuple[F64, F64]:
        """Weights `[R, F, H]` and `[R, H]` after the steps; `lists` as `_lists` gives them."""
        torch = _torch()

        def tensor(array: F64) -> Tensor:
            return torch.from_numpy(array).to(self.device)

        net, table = [tensor(w) for w in weights], tensor(_exponentials())
        pull = [tensor(self._first(weights[0].shape[1])), torch.zeros_like(net[1])]
        each = max(1, _EXACT_ROWS // lists[0].shape[2])
        parts = list(zip(*(tensor(array).split(each, dim=1) for array in lists), strict=True))
        first, second = [torch.zeros_like(w) for w in net], [torch.zeros_like(w) for w in net]
        for step in range(1, self.steps + 1):
            slopes = [(w - w0) * self.l2 for w, w0 in zip(net, pull, strict=True)]
            for part in parts:  # one, unless a pool has more rated turns than sum exactly
                slopes = [s + more for s, more in zip(slopes, _slopes(net, table, part), strict=True)]
            for i, slope in enumerate(slopes):
                first[i] = first[i] * 0.9 + slope * 0.1
                second[i] = second[i] * 0.999 + slope * slope * 0.001
                size = (second[i] / (1.0 - 0.999**step)).sqrt() + 1e-8
                moved = net[i] - first[i] / (1.0 - 0.9**step) / size * self.rate
                net[i] = (moved.clamp(-_WEIGHT_MAX, _WEIGHT_MAX) / WEIGHT_UNIT).round() * WEIGHT_UNIT
        hidden, out = (w.cpu().numpy() for w in net)
        return hidden, out


def _slopes(net: list[Tensor], table: Tensor, lists: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    """Gradients of the summed loss by the weights of `net`; `lists` are in the order of `_lists`."""
    hidden, out = net
    features, mask, served, label, offset = lists
    x, most = features.flatten(1, 2), _UNIT_MAX / UNIT  # x: [R, N K, F]
    units = (x @ hidden).div_(UNIT).round_().clamp_(0.0, most)  # whole numbers, as all that follows in units of 2**-16
    logit = (units @ out[:, :, None]).mul_(UNIT).view(mask.shape).add_(offset)
    at = logit.mul_(_EXP_STEPS).round_().clamp_(-_EXP_MAX * _EXP_STEPS, _EXP_MAX * _EXP_STEPS)
    weight = table[at.add_(_EXP_MAX * _EXP_STEPS).long()] * mask
    total = weight.sum(dim=2, keepdim=True) + 1.0  # the fallback weighs 1
    chosen = (weight * served).sum(dim=2, keepdim=True)
    odds = chosen / (total - chosen)
    slope = (weight / total - served) * (label - (1.0 - label) * odds)
    slope = slope.div_(UNIT).round_().flatten(1)[:, :, None]
    back = (slope * out[:, None, :]).round_().clamp_(-most, most)
    back *= (units > 0.0) & (units < most)
    return (x.transpose(1, 2) @ back).mul_(UNIT), (units.transpose(1, 2) @ slope)[:, :, 0].mul_(UNIT * UNIT)


def _lists(training: TrainingRows) -> tuple[F64, ...]:
    """Rated turns as arrays with a row for each user, padded with turns that say nothing: features `[R, N, K, F]`; 1
    where a candidate stands, and where one was served, `[R, N, K]`; labels `[R, N, 1]`; offsets `[R, N, K]`.
    """
    n, k, _ = training.features.shape
    order = np.argsort(training.row, kind="stable")
    row = training.row[order]
    nth = np.arange(n) - np.searchsorted(row, row)
    served = np.arange(k) == training.place[:, None]
    mask = np.arange(k) < training.candidates[:, None]
    offset = np.zeros((n, k)) if training.offset is None else training.offset
    lists = []
    for column in (training.features, mask, served, training.label[:, None], offset):
        padded = np.zeros((int(row[-1]) + 1, int(nth.max()) + 1, *column.shape[1:]))
        padded[row, nth] = column[order]
        lists.append(padded)
    return tuple(lists)


@lru_cache(maxsize=1)
def _exponentials() -> F64:
    """Exponentials at multiples of 1/1024 in [-10, 10], multiples of 2**-32."""
    steps = range(-_EXP_MAX * _EXP_STEPS, _EXP_MAX * _EXP_STEPS + 1)
    return np.rint(np.array([exp(i / _EXP_STEPS) for i in steps]) * 2.0**32) * 2.0**-32


def _torch() -> Any:
    import torch

    return torch
