"""Answers of worlds, which are checked: events that are each user's own, and responses that mean something."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from skg_bench.core.domain import Domain, OutcomeField, StoredAs
from skg_bench.core.errors import RowError, UsageError
from skg_bench.core.grid import Bool, kind_in_words
from skg_bench.core.world import AS_LOGGED, RIGHT, Response
from skg_bench.engine.plan import Plan

_KINDS: Mapping[StoredAs, str] = {"words": "iu", "bool": "b", "int": "iu", "float": "fiu"}  # of numpy's dtypes
_SAYS: Mapping[StoredAs, str] = {
    "words": "codes of its levels, -1: none", "bool": "true and false", "int": "whole numbers", "float": "numbers",
}  # fmt: skip
_FIELDS = ("number", "time", "text")  # what arms see; what is meant may be drawn anew in a test of their blindness
_USERS, _TURNS = 30, 30  # of whom two are looked at, and of these as many turns


def check_events(plan: Plan) -> None:
    """Hold the world of a plan to events that follow from the seed and the user alone: those of one user, begun beside
    another one and alone.

    Raises UsageError where they differ: arms of different stacks would meet different events, and be held against one
    another all the same.
    """
    world, seed, weeks = plan.simulator, plan.salted, plan.weeks
    some = np.arange(min(plan.users, _USERS), dtype=np.int32)
    counts = world.count(seed, some, weeks)
    users = some[np.argsort(-counts, kind="stable")][: int((counts > 0).sum())][-2:]
    if len(users) < 2:
        return
    turns = min(int(counts[users[1]]), _TURNS)
    beside, alone = world.begin(seed, users, weeks), world.begin(seed, users[1:], weeks)
    who, numbers = f"the world of domain {world.domain.name!r}: user {users[1]}", set[int]()
    for turn in range(turns):
        first, second = world.events(beside, turn), world.events(alone, turn)
        if (number := int(second.number[0])) in numbers:
            why = "each event of a user has a number of its own, under which its answer is kept"
            raise UsageError(f"{who} has the event number {number} twice, at turn {turn} again; {why}")
        numbers.add(number)
        for name in _FIELDS:
            given, again = getattr(first, name)[1], getattr(second, name)[0]
            if given != again:
                raise UsageError(
                    f"{who} has another event at turn {turn} if begun alone ({name} {again}) than beside user "
                    f"{users[0]} ({name} {given}). Events have to follow from seed, user and weeks: draw by key(seed, "
                    "users) (core/draws.py), use no other random numbers, and read no other row"
                )


def check_world_response(domain: Domain, response: Response, width: int, n: int) -> None:
    """Hold the response of a world to `n` users, whose answers have handles below `width`, to what it may say.

    Raises RowError for the first user for whom it says something else, and UsageError for what is no response.
    """
    quality, answer, who = response.quality, response.answer, f"the world of domain {domain.name!r}"
    try:
        whole = quality.dtype.kind == "i" and answer.dtype.kind == "i" and quality.shape == answer.shape == (n,)
    except AttributeError:
        whole = False
    if not whole:
        given = ", ".join(f"{name}: {kind_in_words(each)}" for name, each in (("quality", quality), ("answer", answer)))
        valid = f"arrays of whole numbers [{n}], with quality WRONG, NEAR or RIGHT (core/world.py)"
        raise UsageError(f"{who}: Response has {given}; valid are {valid}")
    sound = (quality >= AS_LOGGED) & (quality <= RIGHT) & (answer >= -1) & (answer < width)
    if not np.logical_and.reduce(sound):
        row = _first(~sound)
        valid = f"{AS_LOGGED} to {RIGHT} (WRONG to RIGHT, UNKNOWN, AS_LOGGED), and handles up to {width - 1}, or -1"
        raise RowError(row, f"Response has quality {quality[row]} and answer {answer[row]}; valid are {valid}", who)
    if domain.outcome and response.outcome is None:
        names = ", ".join(each.name for each in domain.outcome)
        raise UsageError(
            f"{who}: Response.outcome is None, and the domain has {names}; give one with these fields at each turn, as "
            "metrics would count it as if nothing of it had happened"
        )
    for each in domain.outcome:
        _check_outcome(each, response.outcome, n, who)
    rows, delay = response.feedback.row, response.feedback.delay
    if len(rows) and not np.logical_and.reduce(sound := (rows >= 0) & (rows < n) & (delay >= 0)):
        at = _first(~sound)
        given, valid = f"row {rows[at]} and delay {delay[at]}", f"rows from 0 to {n - 1}, and seconds from 0 on"
        raise UsageError(f"{who}: Response.feedback has {given}; valid are {valid}")


def _check_outcome(field: OutcomeField, outcome: Any, n: int, who: str) -> None:
    try:
        column: Any = getattr(outcome, field.name)
    except AttributeError:
        column = None
    valid = f"an array [{n}] of {_SAYS[field.stored]}"
    if not isinstance(column, np.ndarray) or column.dtype.kind not in _KINDS[field.stored] or column.shape != (n,):
        raise UsageError(f"{who}: outcome.{field.name} is {kind_in_words(column)}; valid is {valid}")
    if field.stored == "float" and np.logical_or.reduce(endless := np.isinf(column)):
        raise RowError(_first(endless), f"outcome.{field.name} is infinite; valid are numbers, and NaN: none", who)


def _first(mask: Bool) -> int:
    return int(mask.nonzero()[0][0])
