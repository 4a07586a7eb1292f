"""First-order lift of skills: what users had of each turn at which one was served, beyond the model alone.

The arm `never` meets the same events with the same draws, so that the difference at a turn is that of the serving. The
lifts of an arm's skills and the rest (turns without a skill, which can differ by an offer) add up to its whole
difference from `never`. What a skill kept others from being captured is no part of its lift.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skg_bench.analysis.counts.columns import column, seconds
from skg_bench.analysis.counts.metrics import Utility
from skg_bench.analysis.counts.outcomes import worth_of
from skg_bench.analysis.counts.turn_logs import user_blocks
from skg_bench.analysis.statistics.intervals import ALPHA, Cells, Estimate, estimates
from skg_bench.core.batch import TAG_RATINGS, TAKEN_BACK
from skg_bench.core.calendar import EPOCH, WEEK
from skg_bench.core.domain import domain_of
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I32, I64
from skg_bench.runfolder.run import RunTables

LEAST_SERVINGS = 5  # of a skill, for an interval
_COLUMNS = ("skill", "time", "answer_correct", "source_turn")
_UNNAMED = "unnamed"  # name of skills that nobody named


@dataclass(frozen=True)
class Lifts:
    """All skills of an arm, S of them, by user and id; amounts of utility, summed over turns."""

    noun: str  # what they are, in the plural
    users: I32  # [n] ids of all users
    turns: I64  # [n, 2] turns of each, in the first and the second half of the weeks
    user: I32  # [S] row of the user
    skill: I32  # [S] id in the user's book
    born: I64  # [S] turn of the user at which it was added
    name: list[str]  # [S] what it says
    served: I64  # [S, 2] turns at which it was served, in each half
    right: I64  # [S] of them answered rightly
    lift: F64  # [S, 2] in each half
    squares: F64  # [S] sum of squares of the amounts that add up to it, one a turn at which it was served
    decisive: I64  # [S] of these turns the one that weighs most in the direction of the lift; -1: it was never served
    rest: float  # of turns without a skill
    ratings: I64  # [S, 2] ratings known by the middle of the weeks: ok, and all; by counters where no answers are kept

    @property
    def total(self) -> F64:
        """Lift of each skill `[S]`."""
        total: F64 = self.lift.sum(axis=1)
        return total

    @property
    def whole(self) -> float:
        """Difference of the arm from `never`, over all turns."""
        return float(self.total.sum() + self.rest)

    def quantiles(self, *levels: float) -> tuple[float, ...]:
        """Quantiles of the lifts of served skills, of which there is one."""
        return tuple(np.quantile(self.total[self.served.sum(axis=1) > 0], levels).tolist())

    def intervals(self) -> tuple[F64, F64]:
        """Ends of 95 % intervals of the lifts `[S]`, over servings: Student's t at the level of Bonferroni, so that all
        served skills are held at once. NaN for fewer servings than LEAST_SERVINGS.
        """
        from scipy import special  # costs 0.1 s: not at import

        n, total = self.served.sum(axis=1), self.total
        known = n >= LEAST_SERVINGS
        half, df = np.full(len(n), np.nan), n[known] - 1
        variance = np.maximum(self.squares[known] - total[known] ** 2 / n[known], 0.0) / df
        half[known] = special.stdtrit(df, 1 - ALPHA / 2 / max(int((n > 0).sum()), 1)) * np.sqrt(n[known] * variance)
        return total - half, total + half

    def per_turn(self, amounts: F64, half: int) -> Estimate:
        """Mean over users of amounts `[S]` of their skills, per turn of theirs in a half."""
        cells = Cells(np.arange(len(self.users)), np.zeros(len(self.users), np.int64), len(self.users), 1)
        by_user = np.bincount(self.user, amounts, len(self.users)).astype(np.float64)
        (estimate,) = estimates(cells, [self.turns[:, half].astype(np.float64)], [[by_user]])
        return estimate

    def share_that_hurts(self) -> Estimate:
        """Mean over users of the share of their served skills whose lift is below 0."""
        cells = Cells(np.arange(len(self.users)), np.zeros(len(self.users), np.int64), len(self.users), 1)
        served = self.served.sum(axis=1) > 0
        hurts, known = (
            np.bincount(self.user[mask], minlength=len(self.users)).astype(np.float64)
            for mask in (served & (self.total < 0), served)
        )
        (estimate,) = estimates(cells, [known], [[hurts]])
        return estimate


def first_order(run: RunTables, arm: str, never: str) -> Lifts:
    """Lifts of the skills of an arm, whose turns are read block by block of users.

    Raises UsageError for arms that did not meet the same events, and where nobody knows what was right.
    """
    parts = [_of_block(block, arm, never, again=False) for (block,) in user_blocks([run])]
    if not any(len(part.skill) for part in parts) and any(part.came_back for part in parts):
        parts = [_of_block(block, arm, never, again=True) for (block,) in user_blocks([run])]
    rows = np.cumsum([0, *(len(part.users) for part in parts)])
    return Lifts(
        noun=parts[0].noun,
        user=np.concatenate([part.user + row for part, row in zip(parts, rows, strict=False)]).astype(np.int32),
        name=[name for part in parts for name in part.name],
        rest=float(np.concatenate([part.rest for part in parts]).sum()),
        users=np.concatenate([part.users for part in parts]),
        turns=np.concatenate([part.turns for part in parts]),
        skill=np.concatenate([part.skill for part in parts]),
        born=np.concatenate([part.born for part in parts]),
        served=np.concatenate([part.served for part in parts]),
        right=np.concatenate([part.right for part in parts]),
        lift=np.concatenate([part.lift for part in parts]),
        squares=np.concatenate([part.squares for part in parts]),
        decisive=np.concatenate([part.decisive for part in parts]),
        ratings=np.concatenate([part.ratings for part in parts]),
    )


@dataclass(frozen=True)
class _BlockLifts:
    """Fields of Lifts for the users of a block."""

    noun: str
    came_back: bool  # was an earlier answer given again?
    users: I32
    turns: I64
    user: I32
    skill: I32
    born: I64
    name: list[str]
    served: I64
    right: I64
    lift: F64
    squares: F64
    decisive: I64
    rest: F64  # at each turn without a skill
    ratings: I64


def _of_block(run: RunTables, arm: str, never: str, *, again: bool) -> _BlockLifts:
    """Lifts of a block's skills; `again`: of the answers that came back, as there are no skills."""
    prices, more = Utility.of(run.manifest["config"]), run.turns(arm, _COLUMNS)
    if more["answer_correct"].null_count:
        raise UsageError(
            f"{run.path}: nobody knows which answers of arm {arm!r} were right, so the worth of its skills is not "
            "known; `skg-bench report` shows bounds"
        )
    mine, alone = worth_of(run, arm, prices), worth_of(run, never, prices)
    if not mine.select(["user", "turn"]).equals(alone.select(["user", "turn"])):
        raise UsageError(f"{run.path}: arms {arm!r} and {never!r} have other turns; finish it with `skg-bench run`")
    gain: F64 = column(mine, "utility") - column(alone, "utility")
    users, row = np.unique(column(more, "user"), return_inverse=True)
    late = ((seconds(more, "time") - EPOCH) // WEEK >= (int(run.manifest["weeks"]) + 1) // 2).astype(np.int64)
    source = column(more, "source_turn")
    added, skill = (_given_again(run, arm), source) if again else (_added(run, arm), column(more, "skill"))
    places = _places(added, users, row, skill)
    n, kept = len(added), places >= 0

    def by_half(weights: F64 | None) -> F64:
        flat = places[kept] * 2 + late[kept]
        counts = np.bincount(flat, None if weights is None else weights[kept], 2 * n)
        return counts.reshape(n, 2).astype(np.float64)

    right = more["answer_correct"].to_numpy()
    return _BlockLifts(
        noun="answers that came back" if again else "skills",
        came_back=bool((source >= 0).any()),
        users=users.astype(np.int32),
        turns=np.bincount(row * 2 + late, minlength=2 * len(users)).reshape(-1, 2),
        user=np.searchsorted(users, column(added, "user")).astype(np.int32),
        skill=column(added, "skill"),
        born=column(added, "turn").astype(np.int64),
        name=_names(added),
        served=by_half(None).astype(np.int64),
        right=np.bincount(places[kept], right[kept], n).astype(np.int64),
        lift=by_half(gain),
        squares=np.bincount(places[kept], gain[kept] ** 2, n).astype(np.float64),
        decisive=_decisive(places[kept], gain[kept], column(more, "turn")[kept], n),
        rest=gain[~kept],
        ratings=_ratings(run, arm, column(more, "user"), places, n)
        if domain_of(run.manifest).answers
        else _counted(run, arm, added, users),
    )


def _added(run: RunTables, arm: str) -> pa.Table:
    """A row for each skill, by user and id."""
    updates = run.updates(arm, ["user", "turn", "op", "skill", "name", "message"])
    added = updates.filter(pa.compute.equal(updates["op"].cast(pa.string()), "ADD"))
    return added.sort_by([("user", "ascending"), ("skill", "ascending")])


def _given_again(run: RunTables, arm: str) -> pa.Table:
    """A row for each answer that an assistant without a skillbook gave again, by user and turn, as `_added` has it."""
    turns = run.turns(arm, ["source_turn", "message"])
    user, source = column(turns, "user"), column(turns, "source_turn")
    at = np.unique((np.searchsorted(user, user) + source)[source >= 0])
    turn, message = column(turns, "turn")[at], turns["message"].take(pa.array(at))
    return pa.table({"user": user[at], "turn": turn, "skill": turn, "name": pa.nulls(len(at)), "message": message})


def _names(added: pa.Table) -> list[str]:
    """Name of each skill, or the message that it was made from."""
    pairs = zip(*(added[column].cast(pa.string()).to_pylist() for column in ("name", "message")), strict=True)
    return [message or "" if name in (None, _UNNAMED) else name for name, message in pairs]


def _places(added: pa.Table, users: I32, row: I64, skill: I32) -> I64:
    """Row of `added` for the skill of each turn, -1: none was served."""
    width = int(max(skill.max(initial=0), column(added, "skill").max(initial=0))) + 1
    known = np.searchsorted(users, column(added, "user")) * width + column(added, "skill")
    wanted = row * width + np.maximum(skill, 0)
    at = np.searchsorted(known, wanted)
    at = np.minimum(at, max(len(known) - 1, 0))
    given = (skill >= 0) & (len(known) > 0)
    if given.any() and not (known[at[given]] == wanted[given]).all():
        raise UsageError("a skill was served that was never added: a book that began with seeds has no lift by skill")
    return np.where(given, at, -1)


def _decisive(place: I64, gain: F64, turn: I32, n: int) -> I64:
    """Turn of each of n skills at which it gained most, or lost most if it lost in all; the first of equal ones."""
    weight = gain * np.where(np.bincount(place, gain, n) < 0, -1.0, 1.0)[place]
    order = np.lexsort((turn, -weight, place))
    skill, first = np.unique(place[order], return_index=True)
    decisive = np.full(n, -1, np.int64)
    decisive[skill] = turn[order][first]
    return decisive


def _ratings(run: RunTables, arm: str, user: I32, places: I64, n: int) -> I64:
    """Ratings `[n, 2]` of what n skills answered, known by the middle of the weeks: ok, and all. `user` and `places`
    are those of all turns, as the log has them.
    """
    feedback = run.feedback(arm, ["user", "turn", "kind", "value", "known_at"])
    rated = feedback.filter(pa.compute.equal(feedback["kind"].cast(pa.string()), "rating"))
    middle = (int(run.manifest["weeks"]) + 1) // 2
    rated = rated.filter(pa.array((seconds(rated, "known_at") - EPOCH) // WEEK < middle))
    about = places[np.searchsorted(user, column(rated, "user")) + column(rated, "turn")]
    ok = pa.compute.equal(rated["value"].cast(pa.string()), "ok").to_numpy()[about >= 0]
    about = about[about >= 0]
    return np.stack([np.bincount(about, ok, n), np.bincount(about, minlength=n)], axis=1).astype(np.int64)


def _counted(run: RunTables, arm: str, added: pa.Table, users: I32) -> I64:
    """Counters `[S, 2]` of skills in the middle of the weeks, where users rate no answers: ok, and all."""
    updates = run.updates(arm, ["user", "skill", "op", "rating", "time"])
    early = (seconds(updates, "time") - EPOCH) // WEEK < (int(run.manifest["weeks"]) + 1) // 2
    tagged = (
        pa.compute.equal(updates["op"].cast(pa.string()), "TAG").to_numpy() & updates["rating"].is_valid().to_numpy()
    )
    tags = updates.filter(pa.array(tagged & early))
    places = _places(added, users, np.searchsorted(users, column(tags, "user")), column(tags, "skill"))
    rating = tags["rating"].cast(pa.string())
    ok = pa.compute.starts_with(rating, TAG_RATINGS[0]).to_numpy()
    sign = np.where(pa.compute.is_in(rating, pa.array(TAG_RATINGS[TAKEN_BACK:])).to_numpy(), -1.0, 1.0)
    n = len(added)
    return np.stack([np.bincount(places, sign * ok, n), np.bincount(places, sign, n)], axis=1).astype(np.int64)


# ---------------------------------------------------------------------------------------------------- removing


@dataclass(frozen=True)
class Removal:
    """Utility per turn in the second half of the weeks, had some skills been removed in the middle."""

    skills: int
    by_lift: Estimate
    by_ratings: Estimate  # as many of each user, those with the lowest share of ok ratings
    by_coin: Estimate  # as many of each user: the mean over all choices


def removal(lifts: Lifts) -> Removal:
    """Worth of removing the skills whose lift was below 0 in the first half, by their lift in the second.

    The share of ok is that of Laplace, (ok + 1) / (all + 2); of equal ones the oldest goes.
    """
    candidates = lifts.served[:, 0] > 0
    worst = candidates & (lifts.lift[:, 0] < 0)
    share = (lifts.ratings[:, 0] + 1) / (lifts.ratings[:, 1] + 2)
    order = np.lexsort((lifts.born, share, ~candidates, lifts.user))
    many = np.bincount(lifts.user[worst], minlength=len(lifts.users))
    first = np.searchsorted(lifts.user, np.arange(len(lifts.users)))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    lowest = rank - first[lifts.user] < many[lifts.user]
    among = np.bincount(lifts.user[candidates], minlength=len(lifts.users))
    chance = np.where(candidates, many[lifts.user] / np.maximum(among[lifts.user], 1), 0.0)
    chosen = (worst.astype(np.float64), lowest.astype(np.float64), chance)
    return Removal(int(worst.sum()), *(lifts.per_turn(-part * lifts.lift[:, 1], 1) for part in chosen))
