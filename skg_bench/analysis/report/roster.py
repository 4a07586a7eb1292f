"""The list of users on the page: their figures over all of their turns, and a sparkline of weeks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup

from skg_bench.analysis.counts.joined import BlockTally, JoinedEvents, joined_events, joined_tally
from skg_bench.analysis.counts.log_counts import LOGGED_COLUMNS
from skg_bench.analysis.counts.metrics import Metric, Utility
from skg_bench.analysis.counts.outcomes import metrics_of, outcome_columns
from skg_bench.analysis.counts.tally import TALLY_COLUMNS, Tally, events, tallies
from skg_bench.analysis.counts.turn_logs import user_blocks
from skg_bench.analysis.report.people import Pick, logged_users, pick, picked_users
from skg_bench.analysis.report.typeset import DASH, typeset_value
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I64
from skg_bench.runfolder.hidden_hits import arms_without_hits
from skg_bench.runfolder.run import Run
from skg_bench.runfolder.telling import Telling

SPARK_WIDTH, SPARK_HEIGHT = 96, 22
WHY = {
    "best": "among the best by utility",
    "worst": "among the worst by utility",
    "median": "in the middle by utility",
    "drawn": "drawn by key, not chosen",
    "asked": "asked for",
}


@dataclass(frozen=True, slots=True)
class RosterRow:
    """One user in the list."""

    user: int
    logged: str  # as a replayed log names the user; empty: users are simulated
    why: str
    words: str  # said above the user's timeline
    rank: int  # by utility, 1 for the best
    turns: str
    hit_rate: str
    err_per_hit: str
    taken: str  # share of interactions
    skills: str
    utility: str
    beyond: str  # utility beyond the reference, same requests
    spark: Markup


def rosters(run: Run, learner: str, reference: str | None, users: Sequence[int] | None) -> dict[str, list[RosterRow]]:
    """Twelve users picked by their utility in `learner`, or the ones asked for: the same ones in every arm.

    Raises UsageError for a user that the run does not have.
    """
    requests, tally_of = _read(run)
    priced = metrics_of(run, Utility.of(run.config))["utility"]
    of_learner, other = tally_of[learner], None if reference is None else tally_of[reference]
    picks = _picked(run, requests, of_learner, priced, users)
    names = logged_users(run, [p.user for p in picks])
    against = utility_of(other, priced) if other is not None and other.judged else None
    rows, hidden = {}, arms_without_hits(run)
    for arm in run.arms:
        tally = tally_of[arm]
        utility = utility_of(tally, priced)
        beyond = None if against is None or arm == reference else utility - against
        made = [_row(run.telling, p, requests, tally, utility, beyond) for p in picks]
        if arm != learner:
            made = [replace(row, words=_words_elsewhere(row, arm, learner, tally, utility)) for row in made]
        if arm in hidden:
            made = [replace(row, hit_rate=DASH, err_per_hit=DASH) for row in made]
        rows[arm] = [replace(row, logged=names.get(row.user, "")) for row in made]
    return rows


def _read(run: Run, weeks: int = 0) -> tuple[JoinedEvents, dict[str, Tally]]:
    """Users and counts by week of all arms, from turns that are read block by block of users. `weeks`: of the run, at
    least.
    """
    parts, arms = list[JoinedEvents](), dict[str, list[BlockTally]]()
    columns = [*TALLY_COLUMNS, *outcome_columns(run), *(LOGGED_COLUMNS if run.manifest.get("log") else ())]
    for (block,) in user_blocks([run], columns):
        requests = events(block, None, weeks)
        parts.append(JoinedEvents.of(requests))
        for arm in run.arms:
            tally = tallies(block, arm, requests, digests=False)[0]
            known = {
                name: tally.by_cell[name] for name in ("wrong", "wrong_hit", "add")
            }  # nothing else is shown by intent
            arms.setdefault(arm, []).append(BlockTally.of(replace(tally, by_cell=known)))
        block.let_go()
    longest = max(part.weeks for part in parts)
    if any(part.weeks < longest for part in parts):
        return _read(run, longest)
    return joined_events(parts), {arm: joined_tally(of_arm) for arm, of_arm in arms.items()}


def _picked(
    run: Run, requests: JoinedEvents, tally: Tally, priced: Metric, users: Sequence[int] | None
) -> Sequence[Pick]:
    if users is None:
        if tally.judged:
            return pick(requests.users, utility_of(tally, priced), requests.seed)
        return picked_users(requests.users, requests.seed)
    unknown = [u for u in users if u not in set(requests.users.tolist())]
    if unknown:
        raise UsageError(
            f"user {unknown[0]} is not in {run.path}; it has users {requests.users[0]} to {requests.users[-1]}"
        )
    return [Pick(user, "asked") for user in dict.fromkeys(users)]


def _words_elsewhere(row: RosterRow, arm: str, learner: str, tally: Tally, utility: F64) -> str:
    """Reason why a user is on the page who was picked by another arm, and the user's place in this one."""
    if not tally.judged or row.why == "asked":
        return row.words
    return f"{WHY[row.why]} in {learner}; {row.rank:,} of {len(utility):,} in {arm}"


def utility_of(tally: Tally, utility: Metric) -> F64:
    """Mean utility of a turn, by user `[n]`."""
    total = sum(weight * tally.by_week[name].sum(axis=1) for name, weight in utility.count.items())
    return np.asarray(total / np.maximum(tally.by_week["turn"].sum(axis=1), 1.0), np.float64)


def _row(
    telling: Telling, p: Pick, requests: JoinedEvents, tally: Tally, utility: F64, beyond: F64 | None
) -> RosterRow:
    i = int(np.flatnonzero(requests.users == p.user)[0])
    turn, hit, wrong_hit = (tally.by_week[name][i].sum() for name in ("turn", "hit", "wrong_hit"))
    rank = 1 + int((utility > utility[i]).sum())
    return RosterRow(
        user=p.user,
        logged="",
        why=p.why,
        rank=rank,
        words=f"{WHY[p.why]} ({rank:,} of {len(utility):,})" if tally.judged else WHY[p.why],
        turns=f"{int(turn):,}",
        hit_rate=typeset_value(hit / turn, "share"),
        err_per_hit=typeset_value(wrong_hit / hit if hit else None, "share"),
        taken=typeset_value(_taken(telling, tally, i), "share"),
        skills="" if np.isnan(tally.book_end[i]) else f"{int(tally.book_end[i]):,}",
        utility=typeset_value(float(utility[i]), "utility"),
        beyond="" if beyond is None else typeset_value(float(beyond[i]), "utility", signed=True),
        spark=_spark(telling, tally, i),
    )


def _taken(telling: Telling, tally: Tally, i: int) -> float | None:
    """Share of interactions that the user took."""
    for names in telling.interactions:
        spoken = float(tally.by_week[names.spoken][i].sum())
        return float(tally.by_week[names.taken][i].sum()) / spoken if spoken else None
    return None


def _spark(telling: Telling, tally: Tally, i: int) -> Markup:
    """Bars by week, from below: right hits, wrong hits, right and wrong answers of the LLM, as far as that is known; of
    interactions those that were taken, refused, and neither.
    """
    turn, hit, wrong, wrong_hit = (tally.by_week[name][i] for name in ("turn", "hit", "wrong", "wrong_hit"))
    stack: list[tuple[str, F64 | I64]] = [
        ("hit right", hit - wrong_hit),
        ("hit wrong", wrong_hit),
        ("llm right", turn - hit - wrong + wrong_hit),
        ("llm wrong", wrong - wrong_hit),
    ]
    if "other" in tally.by_week:  # a log: that much of it is known
        other = np.nan_to_num(tally.by_week["other"][i])
        stack = [("hit unknown", hit - other), ("hit wrong", other), ("llm unknown", turn - hit)]
    for names in telling.interactions:
        taken, refused = (tally.by_week[name][i] for name in (names.taken, names.refused))
        stack = [("hit right", taken), ("llm wrong", refused), ("llm right", turn - taken - refused)]
    wide, most = SPARK_WIDTH / len(turn), max(float(turn.max()), 1.0)
    floor = np.full(len(turn), float(SPARK_HEIGHT))
    parts = []
    for css, counts in stack:
        tall = counts * (SPARK_HEIGHT / most)
        floor = floor - tall
        bars = "".join(
            f"M{w * wide:.1f} {floor[w]:.1f}h{wide * 0.86:.1f}v{tall[w]:.1f}h-{wide * 0.86:.1f}z"
            for w in np.flatnonzero(counts > 0)
        )
        parts.append(f'<path class="{css}" d="{bars}"/>')
    view = f"0 0 {SPARK_WIDTH} {SPARK_HEIGHT}"
    attributes = f'class="sparks" data-weeks="{len(turn)}" viewBox="{view}" aria-hidden="true"'
    return Markup(f"<svg {attributes}>{''.join(parts)}</svg>")  # noqa: S704  numbers only
