"""Moments of simulated requests, and of what their users say of answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.moments.outside import of_wordings
from skg_bench.core.calendar import DAY, WEEK
from skg_bench.core.draws import Purpose, draw, key
from skg_bench.core.grid import F64, I16, I32, I64, U64, Bool
from skg_bench.core.world import RIGHT, WRONG, Draws
from skg_bench.simulator.answers.corpus import Corpus
from skg_bench.simulator.answers.world import AssistantUsers

HOUR = 3600
PAUSE = HOUR // 2  # a longer one ends a conversation, as in studies of search logs
_OK, _MISS = 0, 2  # ratings


@dataclass(frozen=True)
class Stream:
    """Requests in order of user and time, `[N]` each."""

    key: U64  # of the user
    user: I64
    number: I64  # of the user's request
    time: I64  # seconds
    text: I64
    about: I64  # request type; of a one-off, its text beyond all types
    intent: I64  # -1: a one-off
    days: int  # of the run
    users: int

    @property
    def conversation(self) -> I64:
        """Number of the conversation."""
        after = np.diff(self.time, prepend=self.time[0])
        return np.cumsum(_first(self.user) | (after >= PAUSE)) - 1


def stream(world: AssistantUsers, users: int, weeks: int, seed: int = 0) -> Stream:
    """Requests of so many users."""
    events = world.population(seed, np.arange(users, dtype=np.int32), weeks)
    row, col = np.nonzero(np.arange(events.time.shape[1])[None] < events.n[:, None])
    type_, text = (values[row, col].astype(np.int64) for values in (events.truth.type, events.text))
    return Stream(
        key(seed, np.arange(users, dtype=np.int32))[row], row, col, events.time[row, col], text,
        np.where(type_ >= 0, type_, len(world.types) + text), events.truth.intent[row, col].astype(np.int64),
        weeks * 7, users,
    )  # fmt: skip


def simulated(
    world: AssistantUsers, corpus: Corpus, embed: Callable[[Sequence[str]], I16], requests: Stream, right: float
) -> dict[str, float]:
    """All moments by name. `right`: the probability that an answer is right, `llm.right`."""
    return {
        **of_repeats(requests),
        **of_volumes(requests),
        **of_conversations(requests),
        **of_ratings(world, requests, right),
        **of_wordings(first_wordings(corpus), embed),
    }


def of_repeats(requests: Stream) -> dict[str, float]:
    """Moments of what comes again: how much, in which words, after how long."""
    again, verbatim = (_before(requests.user, values) for values in (requests.about, requests.text))
    order = np.lexsort((requests.time, requests.about, requests.user))
    same = ~_first(requests.user[order], requests.about[order])
    back = np.diff(requests.time[order], prepend=0)[same]
    later = back[back >= HOUR]
    return {
        "again": _share(again),
        "verbatim": _share(verbatim),
        "own_words": _share(verbatim[again]),
        "within_a_day": _share(later < DAY),
        "after_a_week": _share(later >= WEEK),
    }


def of_volumes(requests: Stream) -> dict[str, float]:
    """Moments of volumes: messages of a day and a week, and days with any."""
    day = requests.time // DAY
    a_day = np.unique(np.stack([requests.user, day]), axis=1, return_counts=True)[1]
    a_week = np.unique(np.stack([requests.user, day // 7]), axis=1, return_counts=True)[1]
    weekend = int((day % 7 >= 5).sum())
    return {
        "a_day": float(np.median(a_day)),
        "skew": float(a_day.mean() / np.median(a_day)),
        "active": len(a_day) / (requests.users * requests.days),
        "a_week": float(a_week.mean()),
        "weekend": weekend / 2 / ((len(day) - weekend) / 5),
    }


def of_conversations(requests: Stream) -> dict[str, float]:
    """Moments of conversations: length, duration, and values that change."""
    talk = requests.conversation
    first, turns = np.unique(talk, return_index=True, return_counts=True)[1:]
    seconds = requests.time[first + turns - 1] - requests.time[first]
    order = np.lexsort((np.arange(len(talk)), requests.intent, talk))
    other = np.diff(requests.about[order], prepend=-1) != 0
    changed = other & ~_first(talk[order], requests.intent[order]) & (requests.intent[order] >= 0)
    return {"turns": float(turns.mean()), "five_minutes": _share(seconds <= 300), "changed": _share(changed)}


def of_ratings(world: AssistantUsers, requests: Stream, right: float) -> dict[str, float]:
    """Moments of ratings of answers, of which this share is right: of those given, and of what all would say."""
    u = {
        purpose: draw(requests.key, requests.number, purpose)
        for purpose in (Purpose.LLM_RIGHT, Purpose.RATING, Purpose.RATED, Purpose.LATE, Purpose.DELAY)
    }
    quality: I32 = np.where(u[Purpose.LLM_RIGHT] < right, RIGHT, WRONG).astype(np.int32)
    none: F64 = np.zeros(len(quality))
    draws = Draws(
        none, none, none, none, u[Purpose.RATING], u[Purpose.RATED], u[Purpose.LATE], u[Purpose.DELAY], none, none,
        requests.key,
    )  # fmt: skip
    rated = np.zeros(len(quality), np.bool_)
    rated[world.reactions.rate(quality, draws).row] = True
    opinions = replace(world.reactions, said=np.ones(3)).rate(quality, draws)
    opinion = np.empty(len(quality), np.int64)
    opinion[opinions.row] = opinions.value
    return {
        "feedback": _share(np.bincount(requests.conversation, rated) > 0),
        "miss_if_right": _share(opinion[quality == RIGHT] == _MISS),
        "ok_if_wrong": _share(opinion[quality == WRONG] == _OK),
    }


def first_wordings(corpus: Corpus) -> list[list[str]]:
    """Wordings of each intent, with its first slot value."""
    types = np.unique(corpus.intent, return_index=True)[1]
    return [[corpus.messages[text] for text in corpus.wordings[t, : corpus.n_wordings[t]]] for t in types]


def _first(*keys: I64) -> Bool:
    """Places where a sorted sequence of keys begins anew."""
    begins = np.ones(len(keys[0]), np.bool_)
    begins[1:] = np.any([np.diff(values) != 0 for values in keys], axis=0)
    return begins


def _before(user: I64, value: I64) -> Bool:
    """Repeats: the same user had this value before."""
    before = np.ones(len(user), np.bool_)
    before[np.unique(np.stack([user, value]), axis=1, return_index=True)[1]] = False
    return before


def _share(values: Bool) -> float:
    """Share of true ones; NaN of none."""
    return float(values.mean()) if len(values) else float("nan")
