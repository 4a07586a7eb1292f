"""The users that a reader can look into: who they are, and their turns packed for the page.

A turn is a handful of small integers, columns instead of records, texts once: a user of 1,500 turns takes about
150 kB of the page and is unpacked only when opened.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from skg_bench.analysis.report.timeline import AnswerTimeline, LearnedOperation, ListedSkill, LoggedTurns
from skg_bench.core import draws
from skg_bench.core.batch import TAG_RATINGS
from skg_bench.core.calendar import FIRST_MONDAY, local_time, offsets_of
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I64
from skg_bench.core.types import CAUSES, RATINGS
from skg_bench.core.world import OFFERS
from skg_bench.runfolder.run import Run, ratings
from skg_bench.runfolder.schema import REPLAYED_COLUMNS

CAP = 1500  # turns of a user on a page of many users; a user asked for by number is shown in full
PLACES = 5  # of the shortlist, by combined score
THOUSANDTHS = 1000
FALLBACKS = ("llm", "procedure_failed")  # servings in which the LLM answered, without a skill
SERVED = {"llm": 0, "stored": 1, "prompted": 2, "procedure": 3, "procedure_failed": 4, "leaked": 5}  # codes of the page
DECISION = [
    "time", "message", "max_sim", "skill_score", "user_satisfaction", "skill", "source_turn", "propensity",
    "explored", "serving", "offer", "shortlist", "similarity", "preference", "score",
    "combined", "answer_correct", "intent", "request_type", "answerable",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pick:
    """A user on the page, and why this one."""

    user: int
    why: str


def pick(users: I64, utility: F64, seed: int) -> list[Pick]:
    """Twelve users: two best, two worst, two in the middle by `utility` `[n]`, six drawn by key from the rest.

    The drawn ones are the fair sample; the others are extremes by choice. Fewer users than twelve: all of them.
    """
    by_utility = [int(users[i]) for i in np.lexsort((users, -utility))]
    middle = len(by_utility) // 2
    chosen: dict[int, str] = {}
    for why, some in (
        ("best", by_utility[:2]),
        ("worst", by_utility[:-3:-1]),
        ("median", by_utility[max(middle - 1, 0) : middle + 1]),
        ("drawn", _drawn(users, seed)),
    ):
        room = 6 if why == "drawn" else 2
        for user in [u for u in some if u not in chosen][:room]:
            chosen[user] = why
    return [Pick(user, why) for user, why in chosen.items()]


def picked_users(users: I64, seed: int) -> list[Pick]:
    """Twelve users by key, or all."""
    return [Pick(user, "drawn") for user in _drawn(users, seed)[:12]]


def _drawn(users: I64, seed: int) -> list[int]:
    uniform = draws.draw(draws.key(seed, users), 0, draws.Purpose.SAMPLE)
    return [int(u) for u in users[np.argsort(uniform, kind="stable")]]


class Words:
    """Texts by index, each once."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._index: dict[str, int] = {}

    def __call__(self, text: str | None) -> int:
        """Index of `text`, -1 for None."""
        if text is None:
            return -1
        if text not in self._index:
            self._index[text] = len(self.texts)
            self.texts.append(text)
        return self._index[text]


def fitting_turns(n: int, cap: int) -> list[int]:
    """Turns of n that fit the page: all, or the first and the last `cap / 2`."""
    return list(range(n)) if n <= cap else [*range(cap // 2), *range(n - (cap - cap // 2), n)]


Answers = Mapping[str, Mapping[int, Mapping[str, list[Any]]]]  # arm -> user -> column


def answers(run: Run, users: Sequence[int]) -> Answers:
    """Answers to these users' turns in every arm: who gave them, and how well."""
    columns = ["fallback_to_llm", "answer_correct", "cause", "same_answer"]
    return {arm: columns_by_user(run.turns(arm, columns, users)) for arm in run.arms}


def timelines(
    run: Run, arm: str, users: Sequence[int], cap: int, of_all: Answers | None = None
) -> dict[int, AnswerTimeline]:
    """Turns of these users in `arm` as the page needs them, by user id.

    `of_all`: `answers` of these users, which are read if not given.
    """
    logged = [field.name for field in REPLAYED_COLUMNS] if run.manifest.get("log") else []
    worded = ["said"] if run.domain.in_words else []
    turns = columns_by_user(run.turns(arm, [*DECISION, *logged, *worded], users))
    for columns in turns.values():
        columns["clock"] = columns["logged_time"] if logged else local_times(run, columns["time"])
    updates = columns_by_user(run.updates(arm, None, users))
    feedback = columns_by_user(ratings(run.feedback(arm, None, users)))
    outcome = answers(run, users) if of_all is None else of_all
    nothing: dict[str, list[Any]] = {}
    return {
        user: _timeline(
            turns[user],
            updates.get(user, nothing),
            feedback.get(user, nothing),
            {other: by_arm[user] for other, by_arm in outcome.items() if user in by_arm},
            cap,
        )
        for user in users
        if user in turns
    }


def local_times(run: Run, times: Sequence[datetime]) -> list[datetime]:
    """Times that the user's clock showed at these times of a run."""
    since = np.array([(time - FIRST_MONDAY) // timedelta(seconds=1) for time in times], np.int64)
    ahead: list[int] = (local_time(offsets_of(run.manifest), since) - since).tolist()
    return [time + timedelta(seconds=by) for time, by in zip(times, ahead, strict=True)]


def logged_users(run: Run, users: Sequence[int] | None = None) -> dict[int, str]:
    """Names of the users in a replayed log; empty where users are simulated."""
    if not run.manifest.get("log"):
        return {}
    table = run.turns(run.arms[0], ["logged_user"], users)
    number, first = np.unique(table["user"].to_numpy(), return_index=True)
    names = table["logged_user"].take(pa.array(first)).to_pylist()
    return dict(zip(number.tolist(), names, strict=True))


def numbered(run: Run, users: Sequence[str]) -> list[int]:
    """Users who are named by their number in the run, or as a replayed log names them.

    Raises UsageError for a name that the log does not have.
    """
    names: dict[str, int] = {}
    numbers = []
    for user in users:
        if user.isdecimal() and int(user) < int(run.manifest["users"]):
            numbers.append(int(user))
            continue
        names = names or {name: number for number, name in logged_users(run).items()}
        if user not in names:
            known = f", or as the log names them, such as {next(iter(names))}" if names else ""
            raise UsageError(
                f"user {user} is not in {run.path}; it has users 0 to {int(run.manifest['users']) - 1}{known}"
            )
        numbers.append(names[user])
    return numbers


def columns_by_user(table: pa.Table) -> dict[int, dict[str, list[Any]]]:
    """Columns of a log by user."""
    users = table["user"].to_numpy()
    edges = [0, *(np.flatnonzero(np.diff(users)) + 1).tolist(), len(users)] if len(users) else []
    return {
        int(users[start]): {name: table[name].slice(start, end - start).to_pylist() for name in table.column_names}
        for start, end in pairwise(edges)
    }


def _timeline(
    turns: Mapping[str, list[Any]],
    updates: Mapping[str, list[Any]],
    feedback: Mapping[str, list[Any]],
    arms: Mapping[str, Mapping[str, list[Any]]],
    cap: int,
) -> AnswerTimeline:
    n = len(turns["turn"])
    keep = fitting_turns(n, cap)
    words = Words()
    position = {turn: i for i, turn in enumerate(turns["turn"])}
    named: dict[int, str] = {}
    for op, skill, name in zip(updates.get("op", ()), updates.get("skill", ()), updates.get("name", ()), strict=True):
        if op == "ADD":
            named[skill] = name or f"skill {skill}"
    ratings, late = _ratings(turns, feedback, position)

    def title(skill: int) -> int:
        return words(named.get(skill, f"skill {skill}" if skill >= 0 else "an earlier answer"))

    def source(i: int) -> int:
        where = position.get(turns["source_turn"][i])
        return -1 if where is None else words(turns["message"][where])

    start = turns["clock"][0]
    return AnswerTimeline(
        n=n,
        start=start.isoformat(),
        turn=[turns["turn"][i] for i in keep],
        time=[int((turns["clock"][i] - start).total_seconds()) for i in keep],
        message=[words(turns["message"][i]) for i in keep],
        said=[words(turns["said"][i]) for i in keep] if "said" in turns else [],
        hit=[int(turns["serving"][i] not in FALLBACKS) for i in keep],
        skill=[title(turns["skill"][i]) if turns["serving"][i] not in FALLBACKS else -1 for i in keep],
        source_turn=[turns["source_turn"][i] for i in keep],
        source=[source(i) for i in keep],
        served=[SERVED.get(turns["serving"][i], 0) for i in keep],
        max_sim=thousandths(turns["max_sim"][i] for i in keep),
        score=thousandths(turns["skill_score"][i] for i in keep),
        propensity=thousandths(turns["propensity"][i] for i in keep),
        explored=[int(turns["explored"][i]) for i in keep],
        rating=[ratings[i] for i in keep],
        late=[late[i] for i in keep],
        offer=[-1 if turns["offer"][i] is None else OFFERS.index(turns["offer"][i]) for i in keep],
        shortlist=[_shortlist(turns, i, title) for i in keep],
        correct=[None if turns["answer_correct"][i] is None else int(turns["answer_correct"][i]) for i in keep],
        intent=[words(turns["intent"][i]) for i in keep],
        type=[words(turns["request_type"][i]) for i in keep],
        answerable=[turns["answerable"][i] for i in keep],
        arms={arm: "".join(_glyph(answers, i) for i in keep) for arm, answers in arms.items()},
        causes={arm: "".join(_cause(answers, i) for i in keep) for arm, answers in arms.items()},
        updates=_updates(updates, words, title, {turns["turn"][i] for i in keep}),
        log=_logged(turns, keep, words) if "logged_row" in turns else None,
        words=words.texts,
    )


def _logged(turns: Mapping[str, list[Any]], keep: Sequence[int], words: Words) -> LoggedTurns:
    """Columns of a replayed log for the turns; the answers are words, those that were stored too."""
    row, id_, cost, latency, same_answer, same_intent = (
        [turns[name][i] for i in keep]
        for name in ("logged_row", "logged_id", "logged_cost_usd", "logged_latency_ms", "same_answer", "same_intent")
    )
    logged, stored = ([words(turns[name][i]) for i in keep] for name in ("logged_answer", "stored_answer"))
    return LoggedTurns(turns["logged_user"][0], row, id_, cost, latency, same_answer, same_intent, logged, stored)


def thousandth(value: float | None) -> int | None:
    """A value as the page has it."""
    return None if value is None or math.isnan(value) else round(value * THOUSANDTHS)


def thousandths(values: Iterable[float | None]) -> list[int | None]:
    """Values as the page has them."""
    return [thousandth(value) for value in values]


def _ratings(
    turns: Mapping[str, list[Any]], feedback: Mapping[str, list[Any]], position: Mapping[int, int]
) -> tuple[list[int], list[int]]:
    """Codes of the ratings, -1 for none, and after how many seconds each became known."""
    codes = [-1 if r is None else RATINGS.index(r) for r in turns["user_satisfaction"]]
    late = [0] * len(codes)
    columns = (feedback.get(c, ()) for c in ("turn", "time", "known_at", "rating"))
    for turn, time, known_at, rating in zip(*columns, strict=True):
        if turn in position:
            codes[position[turn]] = RATINGS.index(rating)
            late[position[turn]] = int((known_at - time).total_seconds())
    return codes, late


def _shortlist(turns: Mapping[str, list[Any]], i: int, title: Callable[[int], int]) -> list[ListedSkill]:
    """Best places by combined score."""
    skills = turns["shortlist"][i]
    places = [k for k, skill in enumerate(skills) if skill is not None and skill >= 0]
    combined = turns["combined"][i]
    places.sort(key=lambda k: (-combined[k], k))
    best = places[:PLACES]
    best += [k for k in places[PLACES:] if skills[k] == turns["skill"][i]]
    columns = [turns[name][i] for name in ("similarity", "preference", "score", "combined")]

    def listed(k: int) -> ListedSkill:
        similarity, preference, score, total = (thousandth(column[k]) for column in columns)
        chosen = int(skills[k] == turns["skill"][i])
        return ListedSkill(title(skills[k]), similarity, preference, score, total, chosen)

    return [listed(k) for k in best]


def _glyph(turns: Mapping[str, list[Any]], i: int) -> str:
    """H a right hit, h a wrong one, L a right answer of the LLM, l a wrong one; X a hit and x an answer of the LLM of
    which that is not known; of these, S a hit with the very text of a replayed log and O one with another; `.` nothing.
    """
    if i >= len(turns["turn"]):
        return "."
    if turns["answer_correct"][i] is None:
        same = turns["same_answer"][i]
        return "x" if turns["fallback_to_llm"][i] else "X" if same is None else "S" if same else "O"
    letter = "l" if turns["fallback_to_llm"][i] else "h"
    return letter.upper() if turns["answer_correct"][i] else letter


def _cause(turns: Mapping[str, list[Any]], i: int) -> str:
    """Index into CAUSES of the link of the chain that failed, `.` where there is no turn or no cause is known."""
    cause = turns["cause"][i] if i < len(turns["turn"]) else None
    return "." if cause is None else str(CAUSES.index(cause))


def _rating(rating: str | None) -> int:
    """Code of a rating of a TAG; -1: none."""
    return -1 if rating is None else TAG_RATINGS.index(rating)


def _updates(
    updates: Mapping[str, list[Any]], words: Words, title: Callable[[int], int], keep: set[int]
) -> list[LearnedOperation]:
    """Operations at the turns shown."""
    columns = (updates.get(c, ()) for c in ("turn", "op", "skill", "message", "rating", "uses", "reason"))
    return [
        LearnedOperation(turn, op, title(skill), words(message), _rating(rating), uses, words(reason))
        for turn, op, skill, message, rating, uses, reason in zip(*columns, strict=True)
        if turn in keep
    ]
