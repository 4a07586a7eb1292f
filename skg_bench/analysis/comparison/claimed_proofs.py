"""Three proofs that an assistant learns, as an article offers them, each beside arms in which nothing is learned.

The proofs are a rising acceptance, a pair of interactions, and two seeds. What a twin whose book stays as it began
shows as well, or a sham that learns at random, is no sign of learning. An *interaction* is a turn in which something
was said; its *acceptance* is that the user took it. The words of a domain say which turns those are
(runfolder/telling.py: Interactions).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skg_bench.analysis.counts.columns import coded, column
from skg_bench.analysis.counts.metrics import Utility
from skg_bench.analysis.counts.outcomes import PAID_COLUMNS, told_counts
from skg_bench.analysis.statistics.curves import Band, PackedSigns, bands, signs
from skg_bench.analysis.statistics.inference import PairedT, paired_t
from skg_bench.analysis.statistics.intervals import sums
from skg_bench.analysis.summary.figures import NO_BOUNDS
from skg_bench.core.grid import F64, I32, I64, Bool
from skg_bench.runfolder.run import Run

LOOK = 5  # interactions that are looked at together: the article's "after 5 interactions"
LOOKS = 3  # the first five, the next five, and the last five
WITHIN = 18  # a user's first triggers, in which a pair is looked for; about four weeks
LEAST_WITH_INTERVAL = 2  # users with an interval
_COLUMNS = (*PAID_COLUMNS, "skill", "book_size", "request_type")
_SHARE = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Trio:
    """An arm that learns, and two arms that differ from it in their curators only."""

    live: str
    frozen: str  # its book stays as it began
    sham: str  # it learns at random


@dataclass(frozen=True, slots=True)
class Arc:
    """Acceptance and utility over users' interactions."""

    acceptance: Band  # [P] by interactions
    utility: Band  # [P]
    looks: Sequence[PairedT]  # acceptance in users' first, next and last five interactions
    worth: Sequence[PairedT]  # utility of an interaction, in the same
    rise: PairedT  # acceptance, last five - first five
    gain: PairedT  # utility, the same
    climbs: float  # share of users whose acceptance is higher in each look than in the one before
    skills: tuple[float, float]  # in the book after five interactions, and at the end


@dataclass(frozen=True, slots=True)
class PairShares:
    """An override, and later, in the same context, another strategy and no override, in WITHIN triggers."""

    share: PairedT  # of users
    reverse: PairedT  # of users who have it the other way round: first no override, then one
    has: F64  # [n] 1: the user has it


@dataclass(frozen=True, slots=True)
class SeedContrast:
    """Two arms that differ in the skillbook that they begin with, and in nothing else."""

    arm: str
    reference: str
    seeds: tuple[str | None, str | None]  # of `arm` and of `reference`
    learns: bool
    acceptance: tuple[PairedT, PairedT, PairedT]  # of `arm`, of `reference`, and their difference; over the whole run
    utility: tuple[PairedT, PairedT, PairedT]  # the same, of a turn


@dataclass(frozen=True, slots=True)
class ClaimedProofs:
    """The three proofs of a run."""

    trios: Sequence[Trio]
    positions: Sequence[int]  # [P] a point holds a user's interactions since the point before it, up to this many
    users: int  # those with as many interactions as LOOKS looks take, whom the looks count
    arcs: Mapping[str, Arc]  # of the arms of the trios, in the order of the run
    pairs: Mapping[str, PairShares]
    beyond: Mapping[tuple[str, str], PairedT]  # utility of all interactions, live - frozen and live - sham
    found: Mapping[tuple[str, str], PairedT]  # share of users with the pair, the same
    seeds: Sequence[SeedContrast]


@dataclass(frozen=True, slots=True)
class _Turns:
    """An arm's turns, in the order (user, turn)."""

    row: I64  # [N] row of the user
    turn: I32  # [N] the user's how manieth trigger it is, from 0
    number: I64  # [N] the user's how manieth intervention it is, from 0; -1: nothing was said
    listened: Bool  # [N]
    overridden: Bool  # [N]
    utility: F64  # [N]
    context: I32  # [N]
    skill: I32  # [N] served, -1: the generic question, or nothing
    book: F64  # [N] active skills after the turn
    users: I64  # [n] ids


def claimed_proofs(run: Run) -> ClaimedProofs | None:
    """The three proofs for a run.

    None if the domain has no interactions, a learning arm lacks a control, or fewer than two users have enough of them.
    """
    sets = trios(run) if run.telling.interactions else []
    contrasts = seed_contrasts(run) if sets else []
    arms = [arm for arm in run.arms if any(arm in (s.live, s.frozen, s.sham) for s in sets)]
    if not arms:
        return None
    needed = list(dict.fromkeys([*arms, *(arm for pair in contrasts for arm in pair)]))
    prices = Utility.of(run.config)
    turns = {arm: _turns(run, arm, prices) for arm in needed}
    whole = [_lengths(turns[arm]) >= LOOK * LOOKS for arm in arms]
    enough = np.logical_and.reduce(whole)
    if int(enough.sum()) < LEAST_WITH_INTERVAL:
        return None
    points = _points(int(np.median(_lengths(turns[arms[0]]))))
    multipliers = signs(int(run.manifest["seed"]), turns[arms[0]].users)
    worth = {arm: _mean(turns[arm], turns[arm].number >= 0, turns[arm].utility) for arm in arms}
    pairs = {arm: _pair(turns[arm]) for arm in arms}
    controls = list(dict.fromkeys((s.live, control) for s in sets for control in (s.frozen, s.sham)))
    return ClaimedProofs(
        sets,
        points,
        int(enough.sum()),
        {arm: _arc(turns[arm], enough, points, multipliers) for arm in arms},
        pairs,
        {(live, control): _contrast(worth[live], worth[control])[2] for live, control in controls},
        {(live, control): paired_t(pairs[live].has - pairs[control].has) for live, control in controls},
        [_seeds(run, turns, arm, reference) for arm, reference in contrasts],
    )


# --------------------------------------------------------------------------------------------------------- arms


def trios(run: Run) -> list[Trio]:
    """Every arm that learns with its two controls: arms that are the same but for the curator, by what their curators
    are. How outcomes count (`signs`) may differ too, as a book that stays does not hear of it.
    """
    compositions = run.manifest.get("compositions") or {}
    sets: list[Trio] = []
    for live in run.arms:
        if _curator(compositions, live) in ("none", "sham"):
            continue
        twins = [arm for arm in run.arms if _same(compositions, live, arm, "curator", "signs")]
        frozen = [arm for arm in twins if _curator(compositions, arm) == "none"]
        sham = [arm for arm in twins if _curator(compositions, arm) == "sham"]
        if frozen and sham:
            sets.append(Trio(live, frozen[0], sham[0]))
    return sets


def seed_contrasts(run: Run) -> list[tuple[str, str]]:
    """Arms (arm, reference) that differ in their first skillbooks alone; those with books that stay come first."""
    compositions = run.manifest.get("compositions") or {}
    pairs = [
        (arm, reference)
        for n, arm in enumerate(run.arms)
        for reference in run.arms[:n]
        if compositions[arm].get("seeds") != compositions[reference].get("seeds")
        and _same(compositions, arm, reference, "seeds")
    ]
    return sorted(pairs, key=lambda pair: _curator(compositions, pair[0]) != "none")


def _curator(compositions: Mapping[str, Any], arm: str) -> str:
    """Name of the module of an arm's curator; empty for an assistant that has none."""
    curator = (compositions.get(arm) or {}).get("curator")
    parts = str(curator.get("_target_", "")).split(".") if isinstance(curator, Mapping) else []
    return parts[-2] if len(parts) > 1 else ""


def _same(compositions: Mapping[str, Any], arm: str, other: str, *apart: str) -> bool:
    mine, theirs = (compositions.get(name) or {} for name in (arm, other))
    return all(mine.get(key) == theirs.get(key) for key in {*mine, *theirs} - set(apart))


# -------------------------------------------------------------------------------------------------------- turns


def _turns(run: Run, arm: str, prices: Utility) -> _Turns:
    (names,), telling = run.telling.interactions, run.telling
    table = run.turns(arm, [*telling.columns, *_COLUMNS])
    counts = told_counts(run, table)
    users, row = np.unique(column(table, "user").astype(np.int64), return_inverse=True)
    spoken, listened, overridden = (
        np.asarray(counts[name], np.bool_) for name in (names.spoken, names.taken, names.refused)
    )
    before: I64 = np.cumsum(spoken) - spoken
    start = np.searchsorted(row, np.arange(len(users)))
    number = np.where(spoken, before - before[start][row], -1)
    return _Turns(
        row.astype(np.int64), column(table, "turn"), number, listened,
        overridden, column(table, telling.worth) - prices.paid(table), coded(table["request_type"])[0],
        column(table, "skill"), column(table, "book_size").astype(np.float64), users,
    )  # fmt: skip


def _lengths(turns: _Turns) -> I64:
    """How many interactions each user has, `[n]`."""
    return np.bincount(turns.row[turns.number >= 0], minlength=len(turns.users)).astype(np.int64)


# ---------------------------------------------------------------------------------------------------------- arc


def _points(half: int) -> list[int]:
    """5, 10, 20 and so on, twice as far each time, the last one at `half`: as far as half of the users go. Each point
    holds at least as many interactions as the one before it.
    """
    points = [LOOK]
    while 2 * points[-1] <= half:
        points.append(2 * points[-1])
    rest, before = half - points[-1], points[-1] // 2 if len(points) > 1 else LOOK
    return [*points, half] if rest >= before else [*points[:-1], half]


def _arc(turns: _Turns, enough: Bool, points: Sequence[int], multipliers: PackedSigns) -> Arc:
    spoken = turns.number >= 0
    point = np.where(spoken & (turns.number < points[-1]), np.searchsorted(points, turns.number, side="right"), -1)
    curves = [_by(turns, point, len(points), values) for values in (turns.listened, turns.utility)]
    acceptance, utility = bands(curves, multipliers, [_SHARE, NO_BOUNDS])
    length = _lengths(turns)[turns.row]
    look = np.select(
        [spoken & (turns.number < LOOK), spoken & (turns.number < 2 * LOOK), spoken & (turns.number >= length - LOOK)],
        [0, 1, 2],
        -1,
    )
    accepted, worth = (_by(turns, look, LOOKS, values)[enough] for values in (turns.listened, turns.utility))
    fifth, last = turns.number == LOOK - 1, np.append(np.diff(turns.row) > 0, True)
    return Arc(
        acceptance, utility,
        [paired_t(accepted[:, k]) for k in range(LOOKS)], [paired_t(worth[:, k]) for k in range(LOOKS)],
        paired_t(accepted[:, -1] - accepted[:, 0]), paired_t(worth[:, -1] - worth[:, 0]),
        float((np.diff(accepted, axis=1) > 0).all(axis=1).mean()),
        (float(turns.book[fifth].mean()), float(turns.book[last].mean())),
    )  # fmt: skip


def _by(turns: _Turns, part: I64, parts: int, values: Any) -> F64:
    """Means of users' interactions in each part `[n, parts]`; NaN where there are fewer than LOOK. -1: no part."""
    size, at = len(turns.users) * parts, part >= 0
    slot = turns.row[at] * parts + part[at]
    count, total = sums(slot, size), sums(slot, size, np.asarray(values, np.float64)[at])
    return np.where(count >= LOOK, total / np.maximum(count, 1.0), np.nan).reshape(len(turns.users), parts)


# --------------------------------------------------------------------------------------------------------- pair


def _pair(turns: _Turns) -> PairShares:
    has, reverse = _have(turns, turns.overridden, turns.listened), _have(turns, turns.listened, turns.overridden)
    return PairShares(paired_t(has), paired_t(reverse), has)


def _have(turns: _Turns, first: Bool, second: Bool) -> F64:
    """Users who have, in their first WITHIN triggers, a turn of `first`, and later one of `second` with the same
    context and another strategy; `[n]`, 0 or 1.
    """
    has, early = np.zeros(len(turns.users)), turns.turn < WITHIN
    for gap in range(1, WITHIN):
        a, b = slice(None, -gap), slice(gap, None)
        match = (
            first[a] & second[b] & early[b] & (turns.row[a] == turns.row[b])
            & (turns.context[a] == turns.context[b]) & (turns.skill[a] != turns.skill[b])
        )  # fmt: skip
        has[turns.row[a][match]] = 1.0
    return has


# -------------------------------------------------------------------------------------------------------- seeds


def _seeds(run: Run, turns: Mapping[str, _Turns], arm: str, reference: str) -> SeedContrast:
    compositions = run.manifest["compositions"]
    sides = turns[arm], turns[reference]
    heard = [_mean(side, side.number >= 0, side.listened) for side in sides]
    worth = [_mean(side, np.ones(len(side.row), np.bool_), side.utility) for side in sides]
    return SeedContrast(
        arm, reference, (compositions[arm].get("seeds"), compositions[reference].get("seeds")),
        _curator(compositions, arm) != "none", _contrast(*heard), _contrast(*worth),
    )  # fmt: skip


def _mean(turns: _Turns, some: Bool, values: Any) -> F64:
    """Mean of `values` over some turns of every user, `[n]`; NaN: the user has none."""
    n = len(turns.users)
    count, total = sums(turns.row[some], n), sums(turns.row[some], n, np.asarray(values, np.float64)[some])
    return np.where(count > 0, total / np.maximum(count, 1.0), np.nan)


def _contrast(mine: F64, theirs: F64) -> tuple[PairedT, PairedT, PairedT]:
    both = ~np.isnan(mine) & ~np.isnan(theirs)
    mine, theirs = mine[both], theirs[both]
    return paired_t(mine), paired_t(theirs), paired_t(mine - theirs)
