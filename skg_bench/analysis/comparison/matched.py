"""Arms at one error rate: what would be left of each if it were as careful as the more careful one?

A lower threshold buys hits with errors, so two arms at their set thresholds differ in both. Here the arm that errs more
is held to a higher threshold, until both give equally many wrong answers from the skillbook per request (the error rate
that vCache bounds: Schroeder et al. 2025, arXiv:2502.03771); then hits are compared. What a log can answer:

* A threshold can only be raised. Of a turn that fell back, the log does not know whether the skill would have been
  right; of a hit, it knows the score, and a hit below the raised threshold becomes a fallback.
* What the LLM would have answered there is known where another arm with the same LLM fell back on the same event, as
  draws are keyed by the event and not by the arm: an arm `never` knows it all. Where some of it is not known, only hits
  are compared.
* Skillbooks and scores stay as they were logged. A run at that threshold would also have learned otherwise; whether it
  would can be seen by running it (`policy.threshold=...`).

The error rate falls in steps (LEVELS quantiles of the scores of hits), between which hits and errors are taken in
proportion, as if a share of the hits of the last step fell back. Each resample of the users is matched anew, so that
the intervals hold what matching adds. They are for *these requests*.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from skg_bench.analysis.counts.metrics import LOSS_COLUMNS, Utility
from skg_bench.analysis.counts.tally import LoggedEvents, kept
from skg_bench.analysis.statistics.inference import percentile, resampled_means
from skg_bench.analysis.statistics.intervals import LEVEL, sums
from skg_bench.core.grid import F64, I64, Bool
from skg_bench.runfolder.run import RunTables

LEVELS = 128
MATCHED_RESAMPLES = 2000
MATCHED = ("hit_rate", "correct", "utility")  # by the names of `metrics`
HIT_COLUMNS = ("fallback_to_llm", "skill_score", *LOSS_COLUMNS)


@dataclass(frozen=True, slots=True)
class Hits:
    """The hits of an arm, h rows, and what its users got altogether."""

    at: I64  # [h] row of the event
    score: F64  # [h] combined score, NaN: not known
    right: Bool  # [h]
    worth: F64  # [h] utility
    correct: F64  # [n] right answers of each user
    utility: F64  # [n] sum of utility of each user


@dataclass(frozen=True, slots=True)
class Fallbacks:
    """Answers of the LLM to each event, as far as any arm that uses it has asked."""

    known: Bool  # [N]
    right: Bool  # [N]
    worth: F64  # [N] utility

    @classmethod
    def of(cls, requests: LoggedEvents) -> "Fallbacks":
        """Fallbacks of which none is known yet."""
        n = len(requests)
        return cls(np.zeros(n, np.bool_), np.zeros(n, np.bool_), np.zeros(n))


@dataclass(frozen=True, slots=True)
class ServedHits:
    """The hits of an arm, each beside what the LLM would have answered, and what its users got altogether."""

    row: I64  # [h] row of the user
    score: F64  # [h]
    right: Bool  # [h]
    worth: F64  # [h]
    known: Bool  # [h] is it known what the LLM would have answered?
    llm_right: Bool  # [h]
    llm_worth: F64  # [h]
    correct: F64  # [n]
    utility: F64  # [n]
    turns: F64  # [n]

    @classmethod
    def of(cls, arm_hits: Hits, fallbacks: Fallbacks, requests: LoggedEvents) -> "ServedHits":
        """Hits among events of which it is known what `fallbacks` says."""
        at = arm_hits.at
        return cls(
            requests.row[at], arm_hits.score, arm_hits.right, arm_hits.worth, fallbacks.known[at], fallbacks.right[at],
            fallbacks.worth[at], arm_hits.correct, arm_hits.utility, sums(requests.row, len(requests.users)),
        )  # fmt: skip

    @classmethod
    def joined(cls, blocks: "Sequence[ServedHits]") -> "ServedHits":
        """Hits of users who come block by block."""
        rows = np.cumsum([0, *(len(block.turns) for block in blocks)])
        row = np.concatenate([block.row + start for block, start in zip(blocks, rows, strict=False)])
        others = [field.name for field in fields(cls) if field.name != "row"]
        joined = {name: np.concatenate([attrgetter(name)(block) for block in blocks]) for name in others}
        return cls(row, **joined)


@dataclass(frozen=True, slots=True)
class Ladder:
    """An arm at ever higher thresholds: level 0 as it was run, the last one without any hit."""

    threshold: F64  # [L] score that a hit needs; infinite at the last level
    wrong: F64  # [n, L] wrong hits per request
    figures: Mapping[str, F64]  # of MATCHED, what is known: [n, L] per request
    unknown: int  # hits of which it is not known what the LLM would have answered


@dataclass(frozen=True, slots=True)
class Pair:
    """One figure of an arm and of the reference, both at the same error rate."""

    arm: float
    reference: float
    difference: float
    low: float  # 95 % interval, these requests
    high: float


@dataclass(frozen=True, slots=True)
class Matched:
    """An arm against the reference at the lower of their two error rates."""

    arm: str
    wrong: float  # wrong hits per request, of both
    threshold: float | None  # of the arm, None: as it was run
    reference_threshold: float | None
    figures: Mapping[str, Pair]  # of MATCHED, what is known
    unknown: int  # hits of the arm that is held to a higher threshold of which the LLM's answer is not known


def hits(
    run: RunTables,
    arm: str,
    requests: LoggedEvents,
    price: Utility,
    fallbacks: Fallbacks,
    keep: Sequence[tuple[int, int]] | None = None,
) -> Hits:
    """Read an arm's hits, and note in `fallbacks` what the LLM answered where it fell back."""
    table = kept(run.turns(arm, HIT_COLUMNS), keep)
    fallback, right, score = (_column(table, name) for name in ("fallback_to_llm", "answer_correct", "skill_score"))
    worth = 1.0 - price.loss(table)
    np.copyto(fallbacks.right, right, where=fallback)
    offered = table["offer"].is_valid().to_numpy()
    np.copyto(fallbacks.worth, worth + price.offer * offered, where=fallback)  # whether to ask is each arm's own choice
    np.logical_or(fallbacks.known, fallback, out=fallbacks.known)
    at, n = np.flatnonzero(~fallback), len(requests.users)
    return Hits(
        at,
        score[at].astype(np.float64),
        right[at],
        worth[at],
        sums(requests.row, n, right),
        sums(requests.row, n, worth),
    )


def ladder(arm_hits: Hits, fallbacks: Fallbacks, requests: LoggedEvents) -> Ladder:
    """An arm, with hits, at the thresholds between which they are equally many."""
    return ladder_of(ServedHits.of(arm_hits, fallbacks, requests))


def ladder_of(served: ServedHits) -> Ladder:
    """The same, from hits beside what the LLM would have answered."""
    n, turns = len(served.turns), served.turns
    threshold = np.append(np.unique(np.quantile(served.score, np.arange(LEVELS) / LEVELS, method="lower")), np.inf)
    level = np.searchsorted(threshold, served.score, side="right") - 1  # the highest at which it is still a hit
    cell = served.row * len(threshold) + level

    def above(values: F64 | None) -> F64:
        """Sums over the hits that are left at each level, `[n, L]` per request."""
        each = sums(cell, n * len(threshold), values).reshape(n, -1)
        left: F64 = each[:, ::-1].cumsum(axis=1)[:, ::-1] / turns[:, None]
        return left

    figures = {"hit_rate": above(None)}
    unknown = int(np.sum(~served.known))
    if not unknown:
        for name, total, of_hit, of_llm in (
            ("correct", served.correct, served.right, served.llm_right),
            ("utility", served.utility, served.worth, served.llm_worth),
        ):
            lost = above(of_hit.astype(np.float64) - of_llm)  # of hits over what the LLM would have given
            figures[name] = (total / turns)[:, None] + lost - lost[:, :1]
    return Ladder(threshold, above((~served.right).astype(np.float64)), figures, unknown)


def matched(arm: str, arm_ladder: Ladder, base: Ladder, seed: int) -> Matched:
    """Both at the lower of the two error rates."""
    figures = [name for name in MATCHED if name in arm_ladder.figures and name in base.figures]
    drawn = [_Resampled.of(side, figures, seed) for side in (arm_ladder, base)]
    target = np.minimum(*(resample.wrong[:, 0] for resample in drawn))
    a, b = (resample.at(target) for resample in drawn)
    pairs = {}
    for name in figures:
        difference = a.figures[name] - b.figures[name]
        tail = (1.0 - LEVEL) / 2
        low, high = (float(percentile(difference[1:, None], p)[0]) for p in (tail, 1.0 - tail))
        pairs[name] = Pair(float(a.figures[name][0]), float(b.figures[name][0]), float(difference[0]), low, high)
    raised, base_raised = (
        float(side.threshold[at.level[0]]) if at.level[0] else None for side, at in ((arm_ladder, a), (base, b))
    )
    unknown = base.unknown if raised is None else arm_ladder.unknown
    return Matched(arm, float(target[0]), raised, base_raised, pairs, unknown)


@dataclass(frozen=True, slots=True)
class _At:
    """Figures at a wanted error rate, by resample."""

    level: I64  # [R] the first that errs no more
    figures: Mapping[str, F64]  # [R]


@dataclass(frozen=True, slots=True)
class _Resampled:
    """Means over users by resample and level; the first row is all users once."""

    wrong: F64  # [R, L] falling
    figures: Mapping[str, F64]  # [R, L]

    @classmethod
    def of(cls, source: Ladder, figures: list[str], seed: int) -> "_Resampled":
        values = np.concatenate([source.wrong, *(source.figures[name] for name in figures)], axis=1)
        means = np.vstack([values.mean(axis=0), resampled_means(values, seed, MATCHED_RESAMPLES)])
        wrong, *rest = np.split(means, 1 + len(figures), axis=1)
        return cls(wrong, dict(zip(figures, rest, strict=True)))

    def at(self, target: F64) -> _At:
        """Interpolates between the last level that errs more than `target` `[R]` and the first that does not."""
        row = np.arange(len(target))
        level = np.argmax(self.wrong <= target[:, None], axis=1)
        before = np.maximum(level - 1, 0)
        more, less = self.wrong[row, before], self.wrong[row, level]
        share = np.where(more > less, (more - target) / np.where(more > less, more - less, 1.0), 0.0)
        share = np.where(level == 0, 0.0, share)
        values = {
            n: means[row, before] + share * (means[row, level] - means[row, before])
            for n, means in self.figures.items()
        }
        return _At(level, values)


def _column(table: pa.Table, name: str) -> Any:
    return table[name].to_numpy()
