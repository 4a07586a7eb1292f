"""The default users, and a corpus of four intents."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from skg_bench.core.feedback import RATING
from skg_bench.core.grid import F64, I32, I64, Bool
from skg_bench.core.package import CONF
from skg_bench.core.world import Draws, Event, Events, Ledger, Supposing, Truth
from skg_bench.simulator.answers.judging import Users
from skg_bench.simulator.answers.reactions import Reactions
from skg_bench.simulator.answers.world import AssistantUsers
from tests.simulator.answers.test_bad_corpora import write

HOUR, DAY, WEEK = 3600, 86_400, 7 * 86_400
NOW = 1000 * DAY


def assistant(**changes: Any) -> AssistantUsers:
    """The simulator of `conf/simulator/assistant.yaml`."""
    node = yaml.safe_load((CONF / "simulator" / "assistant.yaml").read_text("utf-8"))
    assert node.pop("_target_") == "skg_bench.simulator.answers.world.AssistantUsers"
    return replace(AssistantUsers(**node), **changes)


@lru_cache(maxsize=4)
def events(users: int, weeks: int, seed: int = 0) -> Events:
    """Events of the default users."""
    return assistant().population(seed, np.arange(users, dtype=np.int32), weeks)


def real(some: Events) -> np.ndarray:
    """Which places of `[B, T]` hold an event."""
    return np.arange(some.time.shape[1])[None] < some.n[:, None]


def small_corpus(folder: Path) -> str:
    """Types 0 stable, 1 and 2 slot values, 3 and 4 stale for three hours, 5 stale for ever shorter."""
    plain: dict[str, Any] = {"hours": {}, "weekdays": "any", "follows": [], "answer": "So."}
    slot = {"slot": {"city": ["Paris", "Osaka"]}}
    return write(
        folder,
        plain | {"intent": "egg", "kind": "stable", "wordings": ["egg time", "eggs?", "boil egg"]},
        plain | slot | {"intent": "zone", "kind": "slot", "wordings": ["time in {city}", "{city} time"]},
        plain | slot | {"intent": "rain", "kind": "stale", "ttl_hours": 3, "wordings": ["rain in {city}"]},
        plain | {"intent": "news", "kind": "stale", "ttl_hours": 0.5, "wordings": ["news", "headlines"]},
        one_offs="a penny\nmy cockatiel\na limerick\n",
    )


# ----------------------------------------------------------------------------------------------------- turns


def moment(type_: I32, text: int = 0, number: int = 0) -> Event:
    """Users who bring requests of these types now, at `NOW`."""
    b = len(type_)
    now, none = np.full(b, NOW), np.zeros(b, np.int32)
    return Event(none + np.int32(number), now, now, none + np.int32(text), type_, none, none, np.zeros(b, np.bool_))


def at(event: Event, ledger: Ledger, fatigue: F64 | None = None, idle: I64 | None = None) -> Users:
    """The users of that event, with these answers behind them; the last offer was `idle` seconds ago."""
    b = len(event.time)
    truth = Truth(event.type[:, None], event.intent[:, None], event.answerable[:, None], event.used_up[:, None])
    one = Events(
        np.arange(b, dtype=np.int32), np.ones(b, np.int32), event.number[:, None], event.time[:, None],
        event.text[:, None], truth,
    )  # fmt: skip
    since = np.zeros(b, np.int64) if idle is None else idle
    return Users(one, np.zeros(b) if fatigue is None else fatigue, NOW - since, ledger)


def earlier_answers(
    b: int, type_: I32, right: Bool, age: I64, text: I32 | None = None, general: Bool | None = None
) -> Ledger:
    """Answers that each of `b` users was given, `[W]` each: to what, whether rightly, how long ago, to which text, and
    whether a procedure made of it would be general.
    """
    said = np.full(len(type_), -1, np.int32) if text is None else text
    rows = (b, 1)
    some = np.zeros(len(type_), np.bool_) if general is None else general
    return Ledger(
        np.tile(type_, rows), np.tile(said, rows), np.tile(right, rows), np.tile(some, rows), np.tile(NOW - age, rows),
        np.full((b, len(type_)), -1, np.int32),
    )  # fmt: skip


def judged(
    world: AssistantUsers, asked: I32, type_: I32, right: Bool, age: I64, supposing: Supposing = "as given"
) -> I32:
    """Quality of each of these answers to each request, `[B, W]`."""
    event, b = moment(asked), len(asked)
    users = at(event, earlier_answers(b, type_, right, age))
    return world.judge(users, event, np.arange(b)[:, None], np.arange(len(type_), dtype=np.int32), supposing)


def rated(reactions: Reactions, quality: I32, draws: Draws) -> tuple[I32, I64]:
    """What each user says of an answer of this quality, -1: nothing; and after how many seconds, 0 for nothing."""
    b, said = len(quality), reactions.rate(quality, draws)
    rating, delay = np.full(b, -1, np.int32), np.zeros(b, np.int64)
    assert (said.kind == RATING).all()
    assert len(np.unique(said.row)) == len(said.row)
    rating[said.row], delay[said.row] = said.value, said.delay
    return rating, delay
