"""Worlds of the real closed loop in which it is known what learning is worth.

Users are independent given the corpus, so a population is cut into groups of a few users, and each group is a
replication. The effect measured is that of the reports: live - frozen over the turns from the freeze on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

import skg_bench
from skg_bench.analysis.counts.tally import Tally, events, tallies
from skg_bench.analysis.statistics.intervals import Cells, Estimate, estimates
from skg_bench.core.grid import F64
from skg_bench.runfolder.run import Run

SINCE = 40  # the user's turn at which the frozen arm stops learning
NOISE = tuple(f"simulator.rating_if_{it}=[0.5,0,0.5]" for it in ("right", "near", "wrong"))
LEARNERS = f"arms={{live: [], frozen: [freeze=all, freeze_at={SINCE}]}}"
# Users who say more and teach more than usual: an effect of a handful of turns would test nothing.
EAGER = ("simulator.rated_share=0.9", "simulator.accept=1", "simulator.fatigue=0", "simulator.one_off_share=0.1")
# What is found is of the right type, and its prompt goes to the LLM: a hit is right with `llm.right_with_skill`.
PROMPTED = (*EAGER, "serving=prompted", "router=oracle", "reranker=identity", "curator.offer_after=answer")


@dataclass(frozen=True)
class Loop:
    """A world as overrides of `skg-bench run`; the last arm is compared with the first, on right answers."""

    name: str
    overrides: tuple[str, ...]
    arms: tuple[str, str] = ("frozen", "live")
    since: int = SINCE
    gain: float = float("nan")  # what each hit more adds to right answers; NaN: unknown
    constant: float = 0.0  # what every request gains


CANNOT_HELP = (
    Loop("answers are stale at once", (*EAGER, "simulator.answers_stale_hours=0.001", LEARNERS)),
    Loop("feedback is pure noise", (*EAGER, *NOISE, LEARNERS)),
)
NULL = Loop(
    "feedback is noise, a skill no better than the LLM",
    (*NOISE, *PROMPTED, "llm.right=0.8", "llm.right_with_skill=0.8", LEARNERS),
    gain=0.0,
)
INJECTED = (
    Loop("a skill makes the LLM right", (*PROMPTED, "llm.right=0.8", "llm.right_with_skill=1.0", LEARNERS), gain=0.2),
    Loop(
        "one LLM right in 80 %, the other in 90 %",
        ("arms={worse: [policy=never, llm.right=0.8], better: [policy=never, llm.right=0.9]}",),
        arms=("worse", "better"),
        since=0,
        gain=0.0,
        constant=0.1,
    ),
)


def play(loop: Loop, out: Path, users: int, weeks: int, seed: int, workers: int = 1) -> Run:
    """Run a world into folder `out`."""
    size = [f"users={users}", f"weeks={weeks}", f"seed={seed}", "cohort=1024", f"workers={workers}"]
    return skg_bench.run([*loop.overrides, *size, f"out={out}", f"reference={loop.arms[0]}"], progress=False)


def replications(loop: Loop, run: Run, size: int) -> Iterator[tuple[Estimate, float, float]]:
    """(estimate, truth for these requests, truth for new requests) of each group of `size` users; NaN: unknown.

    The truth follows from how many hits more the learning arm had over the whole population, whatever became of them.
    With another corpus it would have had others: for new requests it is known only where every request gains the same.
    """
    requests = events(run)
    base, other = (tallies(run, arm, requests, (loop.since,))[loop.since] for arm in loop.arms)
    turn = base.by_cell["turn"]
    (more_hits,) = estimates(requests.cells, [turn], [[other.by_cell["hit"] - base.by_cell["hit"]]])
    these = loop.constant + loop.gain * more_hits.mean
    new = loop.constant if loop.gain == 0 else float("nan")
    for estimate in _groups(requests.cells, turn, _right(other) - _right(base), size):
        yield estimate, these, new


def _right(tally: Tally) -> F64:
    return tally.by_cell["turn"] - tally.by_cell["wrong"]


def _groups(cells: Cells, over: F64, count: F64, size: int) -> Iterator[Estimate]:
    """The estimate in every full group; cells are in order of users."""
    edges: Sequence[int] = np.searchsorted(cells.user, np.arange(0, cells.n_users + 1, size)).tolist()
    for group, (start, end) in enumerate(pairwise(edges)):
        part = slice(start, end)
        group_cells = Cells(cells.user[part] - group * size, cells.intent[part], size, cells.n_intents)
        (estimate,) = estimates(group_cells, [over[part]], [[count[part]]])
        if estimate.n_users > 1:
            yield estimate
