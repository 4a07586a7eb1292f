"""A run's logs as counts per (user, week) and per (user, intent), read one arm at a time.

Sums go row by row in the order (user, turn), so that they are the same bits however the run was cut into shards.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skg_bench.analysis.counts.columns import Words, coded, column, distinct_keys, says, seconds
from skg_bench.analysis.counts.log_counts import LOGGED_COLUMNS, logged_counts, metered_counts
from skg_bench.analysis.counts.outcomes import outcome_columns, outcome_counts, told_counts
from skg_bench.analysis.statistics.intervals import Cells, sums, sums_by
from skg_bench.core.calendar import EPOCH, WEEK
from skg_bench.core.domain import domain_of
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I32, I64, Bool
from skg_bench.runfolder.run import RunTables
from skg_bench.runfolder.telling import telling_of

CEILINGS = (1, 2, 3)
UNCALLED = ("stored", "procedure", "silent")  # servings for which no LLM is called
EVENT_COLUMNS = ("time", "message", "intent", "request_type", "used_up", "answerable")
TALLY_COLUMNS = ("time", "fallback_to_llm", "answer_correct", "serving", "tokens_in", "tokens_out", "cost_usd",
                 "learning_cost_usd", "latency_ms", "offer", "book_size", "source_turn")  # fmt: skip

COUNTS = {
    "turn": "requests",
    "hit": "answered from memory",
    "wrong": "answered wrongly",
    "wrong_hit": "answered wrongly from memory",
    "call": "calls to the LLM: fallbacks and prompted hits",
    "tokens": "tokens in and out",
    "cost": "metered cost of answers, USD",
    "learning": "metered cost of learning, USD",
    "latency": "simulated wait, milliseconds",
    "offer": "offers to name a skill",
    "add": "skills added",
    "rated": "ratings known by the end of the run, at the turn that was rated",
    "ok": "of these, ok",
}


@dataclass(frozen=True, slots=True)
class LoggedEvents:
    """The events of a run, the same for all of its arms; N rows in the order (user, turn)."""

    users: I64  # [n] user ids, ascending
    weeks: int  # calendar weeks of the run, W
    spans: I64  # [n] weeks over which counts a week are spread: W; of a log those in which the user asked
    seed: int
    turn: I32  # [N]
    time: I64  # [N] seconds since 1970
    message: Words  # [M] all messages, sorted
    text: I32  # [N] index into `message`
    row: I64  # [N] row of the user
    cell: I64  # [N] (user, intent) cell
    slot: I64  # [N] row * W + week
    one_off: Bool  # [N]
    used_up: Bool  # [N] a repeat forced by the corpus
    judged: bool  # is it known whether answers are right? A log that is replayed does not say
    answers: bool  # do skills keep answers that are right or wrong (core/domain.py)?
    answerable: I32  # [N] earlier answers that still hold, -1: not known
    kind: I32  # [N] request type, -1: a one-off
    cells: Cells
    about: Words  # [n_intents] the intents' names; of a one-off its message
    named: int  # how many of these are intents; they come first

    def __len__(self) -> int:
        return len(self.turn)


class Requests(Protocol):
    """Users of a run and the cells of their requests."""

    @property
    def users(self) -> I64: ...

    @property
    def weeks(self) -> int: ...

    @property
    def spans(self) -> I64: ...

    @property
    def seed(self) -> int: ...

    @property
    def judged(self) -> bool: ...

    @property
    def answers(self) -> bool: ...

    @property
    def cells(self) -> Cells: ...

    @property
    def about(self) -> Words: ...

    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of one arm by the names of COUNTS (and LOGGED, or what the domain counts), and its book."""

    arm: str
    by_cell: Mapping[str, F64]  # [c]
    weeks: "WeekSlots"
    by_week: "MadeCounts[F64]"  # [n, W], held [s]
    book: F64  # [n, W] active skills at the user's last turn of the week, NaN: not there that week
    book_end: F64  # [n] at the user's last turn
    pending: int  # ratings given but not known by the end of the run
    digest: bytes  # of all that the arm did, turn by turn; empty: it is no arm of a run

    @property
    def judged(self) -> bool:
        """Is it known of all answers whether they were right? `wrong` and `wrong_hit` are NaN else."""
        return not np.isnan(self.by_cell["wrong"]).any()


@dataclass(frozen=True, slots=True)
class WeekSlots:
    """Weeks in which users were there. Counts are held for these: of 100,000 users with a turn each one in 26."""

    shape: tuple[int, int]  # n, W
    slots: I64  # [s] row * W + week, ascending

    def spread(self, held: F64) -> F64:
        """Counts `[s]` as `[n, W]`, 0 where a user was not there."""
        counts = np.zeros(self.shape)
        counts.reshape(-1)[self.slots] = held
        return counts


H = TypeVar("H")


@dataclass(frozen=True, slots=True)
class MadeCounts(Mapping[str, F64], Generic[H]):
    """Counts by name that are held in less room, and made when they are asked for."""

    held: Mapping[str, H]
    made: Callable[[H], F64]

    def __getitem__(self, name: str) -> F64:
        return self.made(self.held[name])

    def __contains__(self, name: object) -> bool:
        return name in self.held

    def __iter__(self) -> Iterator[str]:
        return iter(self.held)

    def __len__(self) -> int:
        return len(self.held)


def needs_truth(run: RunTables, what: str) -> None:
    """Raises UsageError where `what` would need to know whether answers were right, and the run replays a log or has no
    answers.
    """
    if run.manifest.get("log"):
        raise UsageError(f"{run.path} replays a log, which does not say whether answers were right: {what} needs that")
    needs_answers(run, what)


def needs_answers(run: RunTables, what: str) -> None:
    """Raises UsageError where `what` is about answers, and the run has none."""
    if not domain_of(run.manifest).answers:
        raise UsageError(
            f"{run.path} is of a world in which skills keep no answers: {what} is about answers; "
            "hold its arms against one another with `skg-bench compare`"
        )


def events(run: RunTables, keep: Sequence[tuple[int, int]] | None = None, weeks: int = 0) -> LoggedEvents:
    """The run's events, from its first arm. `keep`: (user id, number of first turns), ascending; None: all. `weeks`:
    those of the run, at least.

    Raises UsageError when a user's turns have a gap (rows were lost).
    """
    table = kept(run.turns(run.arms[0], EVENT_COLUMNS), keep)
    user, turn = column(table, "user").astype(np.int64), column(table, "turn").astype(np.int32)
    if user.size == 0:
        raise UsageError(f"{run.path} holds no turns; run it with users >= 1 and weeks >= 1")
    start = np.flatnonzero(np.diff(user, prepend=user[0] - 1))
    users, n = user[start], np.diff(start, append=len(user))
    row = np.repeat(np.arange(len(users)), n)
    wrong = (turn != np.arange(len(turn)) - np.repeat(start, n)) | (np.diff(user, prepend=user[0]) < 0)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise UsageError(
            f"{run.path}: arm {run.arms[0]!r} has rows missing or twice at user {user[at]}, turn {turn[at]}; "
            "delete its shards and run again"
        )
    text, messages = coded(table["message"])
    intent, intents = coded(table["intent"])
    kind, _ = coded(table["request_type"])
    time = seconds(table, "time")
    week = (time - EPOCH) // WEEK
    weeks = max(weeks, int(run.manifest["weeks"]), int(week.max()) + 1)
    about = np.where(intent >= 0, intent, text + np.int32(len(intents)))
    width = len(intents) + len(messages)
    pairs, cell = distinct_keys(row * width + about, len(users) * width)
    topics, intent_of = distinct_keys(pairs % width, width)
    slot, comes_and_goes = row * weeks + week, bool(run.manifest.get("log"))  # a log's users do
    spans = np.bincount(np.unique(slot) // weeks) if comes_and_goes else np.full(len(users), weeks)
    return LoggedEvents(
        users=users, weeks=weeks, spans=spans, seed=int(run.manifest["seed"]), turn=turn, time=time, message=messages,
        text=text, row=row, cell=cell, slot=slot, one_off=kind < 0,
        used_up=column(table, "used_up"), kind=kind, judged=table["answerable"].null_count == 0,
        answers=domain_of(run.manifest).answers,
        answerable=table["answerable"].fill_null(-1).to_numpy().astype(np.int32),
        cells=Cells(pairs // width, intent_of, len(users), len(topics)),
        about=np.concatenate([intents, messages])[topics], named=int((topics < len(intents)).sum()),
    )  # fmt: skip


def tallies(
    run: RunTables,
    arm: str,
    requests: LoggedEvents,
    since: Sequence[int] = (0,),
    keep: Sequence[tuple[int, int]] | None = None,
    *,
    digests: bool = True,
    weeks: bool = True,
) -> dict[int, Tally]:
    """Counts of one arm over the turns from each of `since` on. `digests`: with them; they take a third of the time.
    `weeks`: with counts by week, which take a fourth.

    Raises UsageError when the arm's events are not `requests`: it is unfinished, or was run on something else.
    """
    more = () if requests.judged else LOGGED_COLUMNS
    table = kept(run.turns(arm, [*TALLY_COLUMNS, *more, *outcome_columns(run)]), keep)
    time = seconds(table, "time")
    user, turn = column(table, "user").astype(np.int64), column(table, "turn")
    if len(time) != len(requests) or not (
        np.array_equal(time, requests.time) and np.array_equal(user, requests.users[requests.row])
    ):
        raise UsageError(
            f"{run.path}: arm {arm!r} has {len(time)} turns of {len(np.unique(user))} users, which are not the "
            f"{len(requests)} events of the first arm; finish the run with `skg-bench run` or delete it and run again"
        )
    del time, user
    hit = ~column(table, "fallback_to_llm")
    wrong = ~table["answer_correct"].fill_null(True).to_numpy()  # known to be
    judged, bookless = table["answer_correct"].null_count == 0, table["book_size"].null_count > 0
    nan = np.full(len(requests), np.nan)
    unknown = None if requests.judged and judged else nan
    heard, pending = _heard(run, arm, requests)
    counts: dict[str, npt.NDArray[Any] | None] = {
        "turn": None, "hit": hit, "wrong": wrong if unknown is None else unknown,
        "wrong_hit": hit & wrong if unknown is None else unknown, "call": ~says(table["serving"], *UNCALLED),
        "tokens": (column(table, "tokens_in").astype(np.int64) + column(table, "tokens_out")).astype(np.float64),
        "cost": column(table, "cost_usd"), "learning": column(table, "learning_cost_usd"),
        "latency": column(table, "latency_ms"),
        "offer": coded(table["offer"])[0] >= 0, **(heard if requests.answers else {}),
        "add": nan if bookless else _added(run, arm, requests),
    }  # fmt: skip
    if not requests.judged:
        missed = _said(run, arm, requests, "rating", "miss")[1] > 0
        knows = run.manifest["log"]["knows"]
        counts |= logged_counts(table, hit & wrong, (heard["rated"] > heard["ok"], missed), knows)
        counts |= metered_counts(counts, knows)
    counts |= told_counts(run, table) | ({} if requests.answers else heard) | outcome_counts(run, table)
    book, source = column(table, "book_size").astype(np.float64), column(table, "source_turn")
    del table
    done = [book, source, *(values for values in counts.values() if values is not None)]
    parts = {s: None if s == 0 else turn >= s for s in since}
    made: dict[int, Tally] = {}
    with ThreadPoolExecutor(1) as beside:  # hashing lets other threads go on
        hashed = {s: beside.submit(_digest, done, some) for s, some in parts.items() if digests}
        for s, some in parts.items():
            made[s] = _by_cell(arm, requests, counts, book, pending, some)
            if weeks:
                present, by_week, at_end = _in_weeks(requests, counts, book, some)
                made[s] = replace(made[s], weeks=present, by_week=by_week, book=at_end)
    return {s: replace(tally, digest=hashed[s].result()) if digests else tally for s, tally in made.items()}


def _digest(columns: Iterable[npt.NDArray[Any]], some: Bool | None) -> bytes:
    """Equal for two arms only if every one of these columns is, row by row."""
    digest = blake2b(digest_size=16)
    for values in columns:
        digest.update(np.ascontiguousarray(values if some is None else values[some]).data)
    return digest.digest()


def _by_cell(
    arm: str,
    requests: LoggedEvents,
    counts: Mapping[str, npt.NDArray[Any] | None],
    book: F64,
    pending: int,
    some: Bool | None,
) -> Tally:
    """Sums by cell, without weeks and digest."""
    cells, cell = len(requests.cells.user), requests.cell if some is None else requests.cell[some]

    def summed(values: npt.NDArray[Any] | None) -> F64:
        if values is None:
            return sums(cell, cells)
        values = values if some is None else values[some]
        index, weights = (cell[values], None) if values.dtype == np.bool_ else (cell, values)  # twice as fast without
        return sums(index, cells, weights)

    ends = np.flatnonzero(np.diff(requests.row, append=len(requests.users)))
    nowhere = WeekSlots((len(requests.users), requests.weeks), np.zeros(0, np.int64))
    return Tally(
        arm=arm,
        by_cell={name: summed(values) for name, values in counts.items()},
        weeks=nowhere,
        by_week=MadeCounts({}, nowhere.spread),
        book=np.zeros((len(requests.users), 0)),
        book_end=book[ends],
        pending=pending,
        digest=b"",
    )


def _in_weeks(
    requests: LoggedEvents, counts: Mapping[str, npt.NDArray[Any] | None], book: F64, some: Bool | None
) -> tuple[WeekSlots, MadeCounts[F64], F64]:
    """Sums by user and week, and the book at the end of the week, `[n, W]`."""
    n, slots = len(requests.users), len(requests.users) * requests.weeks
    last = np.full(slots, -1, np.int64)
    last[requests.slot] = np.arange(len(requests))  # rows ascend: the last one stays
    used = np.flatnonzero(last >= 0)
    slot = requests.slot if some is None else requests.slot[some]
    in_week = sums_by(slot, slots)
    ones = np.ones(len(requests), np.bool_)

    def summed(values: npt.NDArray[Any] | None) -> F64:
        """Sums of weeks in which a user was there, `[s]`."""
        values = ones if values is None else values
        return in_week(values if some is None else values[some])[used]

    present = WeekSlots((n, requests.weeks), used)
    by_week = MadeCounts({name: summed(values) for name, values in counts.items()}, present.spread)
    return present, by_week, np.where(last < 0, np.nan, book[last]).reshape(n, requests.weeks)


def _heard(run: RunTables, arm: str, requests: LoggedEvents) -> tuple[dict[str, F64], int]:
    """Counts of feedback by name, `[N]`: ratings where there are answers, and what the domain counts; and how much of
    it is still pending.
    """
    counts, late = {}, {}
    if requests.answers:
        counts["rated"], counts["ok"], late["rating"] = _said(run, arm, requests, "rating", "ok")
    for each in telling_of(run.manifest).heard:
        _, counts[each.name], late[each.kind] = _said(run, arm, requests, each.kind, *each.levels)
    return counts, sum(late.values())


def _said(run: RunTables, arm: str, requests: LoggedEvents, kind: str, *levels: str) -> tuple[F64, F64, int]:
    """Feedback of a kind `[N]` known by the end, what of it says one of `levels`, and how many are still pending."""
    table = run.feedback(arm, ["known_at", "kind", "value"])
    table = table.filter(pa.array(says(table["kind"], kind)))
    at = _rows_of(table, requests)
    known = (at >= 0) & (seconds(table, "known_at") < EPOCH + requests.weeks * WEEK)
    ok = known & says(table["value"], *levels)
    return sums(at[known], len(requests)), sums(at[ok], len(requests)), int(((at >= 0) & ~known).sum())


def _added(run: RunTables, arm: str, requests: LoggedEvents) -> F64:
    """Skills added at each turn, `[N]`."""
    table = run.updates(arm, ["op"])
    at = _rows_of(table, requests)
    return sums(at[(at >= 0) & says(table["op"], "ADD")], len(requests))


def _rows_of(table: pa.Table, requests: LoggedEvents) -> I64:
    """Row of each (user, turn) among the events, -1: it is not among them; nor is a book that was given before."""
    user, turn = column(table, "user").astype(np.int64), column(table, "turn").astype(np.int64)
    start = np.searchsorted(requests.row, np.arange(len(requests.users) + 1))
    row = np.minimum(np.searchsorted(requests.users, user), len(requests.users) - 1)
    mask = (requests.users[row] == user) & (turn >= 0) & (turn < start[row + 1] - start[row])
    return np.where(mask, start[row] + turn, -1)


def kept(table: pa.Table, keep: Sequence[tuple[int, int]] | None) -> pa.Table:
    """The first turns of some users."""
    if keep is None:
        return table
    ids = np.array([user for user, _ in keep], np.int64)
    limit = np.array([turns for _, turns in keep], np.int64)
    user = column(table, "user").astype(np.int64)
    row = np.minimum(np.searchsorted(ids, user), len(ids) - 1)
    return table.filter(pa.array((ids[row] == user) & (column(table, "turn") < limit[row])))
