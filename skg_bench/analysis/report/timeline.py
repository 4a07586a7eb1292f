"""Turns of one user as the page holds them: columns by turn, that `users.js` and `outcome.js` read by these names.

Texts are indices into `words`, -1 for none. Rows inside of a turn are short lists, the fields of a NamedTuple in order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

Course = Sequence[float]  # of a learning job, as `outcome_turns` says


class ListedSkill(NamedTuple):
    """A place of the shortlist; figures in thousandths."""

    name: int
    similarity: int | None
    preference: int | None
    score: int | None
    combined: int | None
    chosen: int  # 0 or 1


class LearnedOperation(NamedTuple):
    """An operation on the skillbook of a user who is answered."""

    turn: int
    op: str
    skill: int
    example: int
    rating: int  # index into TAG_RATINGS, -1: none
    uses: int
    why: int


@dataclass(frozen=True, slots=True)
class LoggedTurns:
    """Columns of a replayed log, beside what an arm did."""

    user: str
    row: list[int]
    id: list[str | None]
    cost_usd: list[float | None]
    latency_ms: list[float | None]
    same_answer: list[bool | None]
    same_intent: list[bool | None]
    logged_answer: list[int]
    stored_answer: list[int]


@dataclass(frozen=True, slots=True)
class AnswerTimeline:
    """Turns of a user who is answered."""

    n: int  # turns in all; those of the columns may be fewer
    start: str  # time of the first one, by the user's clock
    turn: list[int]
    time: list[int]  # seconds since `start`
    message: list[int]
    said: list[int]  # words that the user was told; empty where answers are in no words
    hit: list[int]
    skill: list[int]
    source_turn: list[int | None]
    source: list[int]
    served: list[int]  # index of the serving
    max_sim: list[int | None]  # thousandths, as all figures
    score: list[int | None]
    propensity: list[int | None]
    explored: list[int]
    rating: list[int]  # index into RATINGS, -1: none
    late: list[int]  # after how many seconds it was known
    offer: list[int]  # index into OFFERS, -1: none was made
    shortlist: list[list[ListedSkill]]
    correct: list[int | None]
    intent: list[int]
    type: list[int]
    answerable: list[int | None]
    arms: Mapping[str, str]  # a letter a turn, by arm: who answered, and how well
    causes: Mapping[str, str]  # a digit a turn, by arm: why no right skill answered
    updates: list[LearnedOperation]
    log: LoggedTurns | None
    words: list[str]


class ShownSkill(NamedTuple):
    """A skill that could be chosen."""

    text: int
    combined: int | None
    chosen: int  # 0 or 1


class LaterAnswer(NamedTuple):
    """A later answer of the user."""

    turn: int
    answer: int  # index into the levels of its kind
    seconds: int  # after the turn


class JobOnTimeline(NamedTuple):
    """A job that learned."""

    turn: int
    about: int
    channel: int
    value: int
    result: int
    analysis: int
    helpful: list[int]
    harmful: list[int]
    learnings: int
    course: Course | None  # None: learning takes no time


class WrittenOperation(NamedTuple):
    """An operation on the skillbook of a user whose turns have outcomes."""

    turn: int
    op: str
    text: int
    section: int
    rating: int
    uses: int
    why: int
    about: int
    book_version: int


@dataclass(frozen=True, slots=True)
class OutcomeTimeline:
    """Turns of a user in a domain whose turns have outcomes."""

    n: int  # turns in all; those of the columns may be fewer
    start: str  # time of the first one, by the user's clock
    turn: list[int]
    time: list[int]  # seconds since `start`
    message: list[int]
    who: list[int]  # indices into the levels that `settings.outcome` has
    did: list[int]
    served: list[int]  # 0 nothing of the skillbook, 1 a skill, 2 nothing at all
    skill: list[int]
    propensity: list[int | None]  # thousandths, as all figures
    shown: list[list[ShownSkill]]
    correct: list[int]
    wanted: list[int]
    kind: list[int]
    worths: list[list[int | None]]  # by worth that the panel names
    later: list[LaterAnswer]
    jobs: list[JobOnTimeline]
    updates: list[WrittenOperation]
    arms: Mapping[str, str]  # a digit a turn, by arm: index into the levels of `did`
    causes: Mapping[str, str]  # none: skills are no answers
    words: list[str]


def as_json(timeline: AnswerTimeline | OutcomeTimeline | LoggedTurns) -> dict[str, Any]:
    """Columns by name, ready for json."""
    values = {f.name: getattr(timeline, f.name) for f in fields(timeline)}
    return {name: as_json(value) if isinstance(value, LoggedTurns) else value for name, value in values.items()}
