"""Figures of a router on labelled messages, their intervals, and the threshold that a validation set asks for.

Every message has a skill or is out of scope. A router names a skill and a score; at a threshold it answers or leaves
the message to the LLM. Out of scope is the positive class; an in-scope message that is left to the LLM counts as wrong.
"""

from dataclasses import dataclass

import numpy as np

from skg_bench.core.draws import Purpose, draw, key
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I32, Bool

FIGURES = ("acc in", "acc all", "OOS recall", "OOS precision", "OOS F1", "AUROC")
RESAMPLES = 2000
_BLOCK = 250  # resamples held at a time


@dataclass(frozen=True)
class Scored:
    """n messages as a router sees them, and what they are."""

    skill: I32  # [n] the skill that it would answer with
    score: F64  # [n] the higher, the surer that this is right
    truth: I32  # [n] skill of the message, -1: out of scope

    def __post_init__(self) -> None:
        if bad := int(np.count_nonzero(~np.isfinite(self.score))):
            raise UsageError(f"{bad} of {len(self.score)} scores are NaN or infinite; no threshold can part them")

    @property
    def out(self) -> Bool:
        """Out of scope, `[n]`."""
        return self.truth < 0

    @property
    def right(self) -> Bool:
        """An answer would be right, `[n]`."""
        right: Bool = (self.skill == self.truth) & ~self.out
        return right


def best_threshold(scored: Scored, share: float) -> float:
    """The threshold of highest accuracy where a share of the messages is out of scope, from all that make a difference.

    In-scope and out-of-scope messages are weighted to that share, whatever theirs is here. Answered is what scores at
    least the threshold, which lies half-way between two scores. Of equally good ones the highest is taken: the LLM
    rather than a wrong answer. With all scores equal it is to answer all, or none (infinity).

    Raises UsageError if either kind of message is missing, or `share` is not inside (0, 1).
    """
    if not 0 < share < 1:
        raise UsageError(f"share={share} of out-of-scope messages must lie inside (0, 1)")
    out, right = scored.out, scored.right
    if out.all() or not out.any():
        kind = "in-scope" if out.all() else "out-of-scope"
        raise UsageError(f"no {kind} message among {len(out)}; a threshold needs messages of both kinds")
    order = np.argsort(-scored.score, kind="stable")
    gain = np.where(right, (1.0 - share) / (~out).sum(), 0.0) - np.where(out, share / out.sum(), 0.0)
    accuracy = np.concatenate([[0.0], np.cumsum(gain[order])])  # with the first 0, 1, ... answered, less a constant
    ordered = scored.score[order]
    apart = np.concatenate([[True], ordered[1:] < ordered[:-1], [True]])  # equal scores are answered together
    first = int(np.argmax(np.where(apart, np.rint(accuracy * 2.0**40), -np.inf)))
    if first == 0:
        return np.inf
    if first == len(ordered):
        return float(ordered[-1])
    return float(ordered[first - 1] + ordered[first]) / 2.0


def figures(scored: Scored, threshold: float, weights: F64 | None = None) -> F64:
    """FIGURES `[R, 6]` in percent, where each message counts as often as `weights` `[R, n]` say; None: once, R = 1.

    An undefined ratio (nothing is left to the LLM) is NaN.
    """
    w = np.ones((1, len(scored.score))) if weights is None else weights
    out, left = scored.out, scored.score < threshold
    ins, outs, caught = w @ ~out, w @ out, w @ (out & left)
    answered = w @ (scored.right & ~left)
    with np.errstate(invalid="ignore", divide="ignore"):
        recall, precision = caught / outs, caught / (w @ left)
        f1 = 2.0 * caught / (outs + w @ left)
        columns = [answered / ins, (answered + caught) / (ins + outs), recall, precision, f1]
    return 100.0 * np.stack([*columns, _auroc(scored, w)], axis=1)


def _auroc(scored: Scored, weights: F64) -> F64:
    """Probability that an out-of-scope message scores below an in-scope one, ties counting half, `[R]`."""
    order = np.argsort(scored.score, kind="stable")
    ordered = scored.score[order]
    groups = np.flatnonzero(np.concatenate([[True], ordered[1:] > ordered[:-1]]))
    w = weights[:, order]
    outs = np.add.reduceat(w * scored.out[order], groups, axis=1)
    ins = np.add.reduceat(w * ~scored.out[order], groups, axis=1)
    below = np.cumsum(outs, axis=1) - outs / 2.0
    with np.errstate(invalid="ignore"):
        area: F64 = (ins * below).sum(axis=1) / (ins.sum(axis=1) * outs.sum(axis=1))
    return area


def bootstrap(scored: list[tuple[Scored, float]], seed: int = 0, resamples: int = RESAMPLES) -> F64:
    """FIGURES of several routers on the same resampled messages, `[routers, resamples, 6]`.

    In-scope and out-of-scope messages are drawn apart, so that the share of the latter stays what it is.
    """
    truth = scored[0][0].truth
    if any(not np.array_equal(router.truth, truth) for router, _ in scored):
        raise ValueError("routers are compared on the same messages")
    made = np.empty((len(scored), resamples, len(FIGURES)))
    base = key(seed, 0)
    for first in range(0, resamples, _BLOCK):
        rows = np.arange(first, min(first + _BLOCK, resamples))
        weights = np.zeros((len(rows), len(truth)))
        for kind in (truth < 0, truth >= 0):
            group = np.flatnonzero(kind)
            u = draw(base, rows[:, None], Purpose.RESAMPLE, group[None])
            picked = group[(u * len(group)).astype(np.int64)]
            np.add.at(weights, (np.arange(len(rows))[:, None], picked), 1.0)
        for i, (router, threshold) in enumerate(scored):
            made[i, rows] = figures(router, threshold, weights)
    return made


def interval(values: F64) -> tuple[float, float]:
    """Percentile interval, 95 %; NaN where too often undefined."""
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)
