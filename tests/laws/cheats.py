"""Cheats: assistants that compute with all they are handed. Each gains in an engine that hands out too much."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skg_bench.core.assistant import Experience, FromBook, Message, Reply
from skg_bench.core.draws import Purpose, draw, fold, key, word
from skg_bench.core.feedback import AGREES, KnownFeedback
from skg_bench.core.grid import I32, I64, Bool
from skg_bench.core.types import Completions
from skg_bench.core.world import FALLBACK, STORED

SEEDS = range(40)  # that a cheat tries
PEOPLE = 64  # user ids that a cheat tries
ABILITY = 0.9  # probability that the model of the tests is right


@dataclass(frozen=True)
class Answers:
    """Of each user's messages, `[n, T]` each, by turn."""

    text: I32
    answer: I32  # id of the answer, -1: none
    sure: Bool  # it is known to be right


@dataclass(frozen=True, eq=False)
class Verbatim:
    """An honest assistant: it repeats its last answer to the same words."""

    sees_truth = False

    def start(self, n: int) -> Answers:
        none = np.full((n, 400), -1, np.int32)
        return Answers(none, none.copy(), np.zeros((n, 400), np.bool_))

    def matching(self, query: Message, state: Answers) -> Bool:
        """`[B, T]` which earlier turns had the same words."""
        n = len(query.text)
        same: Bool = (state.text[:n] == query.text[:, None]) & (state.answer[:n] >= 0)
        return same

    def usable(self, query: Message, state: Answers) -> Bool:
        """`[B, T]` which earlier answers may be given again."""
        return self.matching(query, state)

    def answer(self, query: Message, state: Answers) -> tuple[Answers, Reply]:
        n = len(query.text)
        usable = self.usable(query, state)
        found, turn = usable.any(axis=1), usable.shape[1] - 1 - usable[:, ::-1].argmax(axis=1)
        answer = np.where(found, state.answer[np.arange(n), turn], -1).astype(np.int32)
        return state, Reply(np.where(found, STORED, FALLBACK).astype(np.int32), answer)

    def learn(self, seen: Experience, feedback: KnownFeedback, state: Answers) -> Answers:
        n, t = len(seen.answer), seen.message.turn
        state.text[:n, t], state.answer[:n, t] = seen.message.text, seen.answer
        return state


@dataclass(frozen=True, eq=False)
class Seeing(Verbatim):
    """Knows the world's keys, once `seed_of` finds the seed, and repeats only answers that were right when given."""

    found: dict[str, Any] = field(default_factory=dict)

    def seed_of(self, query: Message) -> tuple[int, I64] | None:
        """The seed, and the id of each row's user; None: not found."""
        raise NotImplementedError

    def answer(self, query: Message, state: Answers) -> tuple[Answers, Reply]:
        if query.turn == 0:
            self.found.clear()
            if (seen := self.seed_of(query)) is not None:
                self.found["keys"] = key(seen[0], seen[1])
        return super().answer(query, state)

    def usable(self, query: Message, state: Answers) -> Bool:
        same = self.matching(query, state)
        return same & state.sure[: len(same)] if self.found else same

    def learn(self, seen: Experience, feedback: KnownFeedback, state: Answers) -> Answers:
        n, t = len(seen.answer), seen.message.turn
        if self.found:
            state.sure[:n, t] = draw(self.found["keys"][:n], seen.message.number, Purpose.LLM_RIGHT) < ABILITY
        return super().learn(seen, feedback, state)


@dataclass(frozen=True, eq=False)
class Keys(Seeing):
    """Tries small seeds until one gives the keys that it was handed."""

    def seed_of(self, query: Message) -> tuple[int, I64] | None:
        people = np.arange(PEOPLE)
        for seed in SEEDS:
            mine = fold(key(word(seed, b"arms"), people)[:, None], query.number[None])  # [people, B]
            hit = mine == query.event[None]
            if hit.any(axis=0).all():
                return seed, hit.argmax(axis=0)
        return None


@dataclass(frozen=True, eq=False)
class Seer(Seeing):
    """Tries small seeds until one gives the events that it sees; it has the simulator, which is public."""

    world: Any = None
    weeks: int = 1
    people: int = 24

    def seed_of(self, query: Message) -> tuple[int, I64] | None:
        users = np.arange(self.people, dtype=np.int32)
        for seed in range(10):
            first = self.world.events(self.world.begin(seed, users, self.weeks), 0).time
            hit = first[:, None] == query.time[None]
            if hit.any(axis=0).all():
                return seed, hit.argmax(axis=0)
        return None


@dataclass(frozen=True, eq=False)
class Paid(Verbatim):
    """Says that its work costs less than nothing, or no number."""

    usd: float = -0.01
    tokens: float = 0.0
    latency: float = 0.0

    def answer(self, query: Message, state: Answers) -> tuple[Answers, Reply]:
        state, reply = super().answer(query, state)
        n = len(query.text)
        tokens = np.full(n, self.tokens)
        tokens = tokens if np.isnan(self.tokens) else tokens.astype(np.int32)
        cost = Completions(tokens, np.zeros(n, np.int32), np.full(n, self.usd), np.full(n, self.latency))
        return state, replace(reply, case=replace(FromBook.blank(n), cost=cost))


@dataclass(frozen=True, eq=False)
class Verifier(Verbatim):
    """Repeats answers only once a judge has said that the model's next one said the same."""

    def usable(self, query: Message, state: Answers) -> Bool:
        return self.matching(query, state) & state.sure[: len(query.text)]

    def answer(self, query: Message, state: Answers) -> tuple[Answers, Reply]:
        state, reply = super().answer(query, state)
        same = self.matching(query, state)
        last = same.shape[1] - 1 - same[:, ::-1].argmax(axis=1)
        asks = same.any(axis=1) & (reply.how == FALLBACK)
        compared = np.where(asks, state.answer[np.arange(len(last)), last], -1).astype(np.int32)
        return state, replace(reply, case=replace(FromBook.blank(len(last)), compared=compared))

    def learn(self, seen: Experience, feedback: KnownFeedback, state: Answers) -> Answers:
        state = super().learn(seen, feedback, state)
        agreed = feedback.rows((feedback.kind == AGREES) & (feedback.value == 1))
        state.sure[agreed.row, seen.message.turn] = True
        return state


@dataclass(frozen=True, eq=False)
class Reader(Verbatim):
    """Reads what nobody has said: the first texts of the run, or a name; or compares them with what was said."""

    how: str = "read"

    def answer(self, query: Message, state: Answers) -> tuple[Answers, Reply]:
        n = len(query.text)
        ids = np.arange(n, dtype=np.int32)
        if self.how == "read":
            query.texts.read(ids)
        elif self.how == "row":
            query.texts.read(ids[:3], np.zeros(3, np.int64))
        elif self.how == "other":
            query.texts.read(query.text[::-1])
        elif self.how == "near":
            query.similarity.dots(query.text, np.tile(ids[:3], (n, 1)))
        elif self.how == "library":
            query.store.texts.read(ids)
        return super().answer(query, state)


@dataclass(frozen=True, eq=False)
class Inventing(Verbatim):
    """Gives, or has compared, an answer that its user was never given."""

    shift: int = 1
    compares: bool = False

    def answer(self, query: Message, state: Answers) -> tuple[Answers, Reply]:
        state, reply = super().answer(query, state)
        made = (query.number + self.shift).astype(np.int32)
        if self.compares:
            return state, replace(reply, case=replace(FromBook.blank(len(made)), compared=made))
        return state, replace(reply, how=np.full(len(made), STORED, np.int32), answer=made)


@dataclass(frozen=True, eq=False)
class Unfolding(Verbatim):
    """Undoes the folding of its keys: each step can be undone by whoever knows the field."""

    words: list[set[int]] = field(default_factory=list)

    def answer(self, query: Message, state: Answers) -> tuple[Answers, Reply]:
        if query.turn == 0:
            for event, number in zip(query.event.tolist(), query.number.tolist(), strict=True):
                user_key = unfolded(event, number)
                self.words.append({unfolded(unfolded(user_key, user), None) for user in range(len(query.event))})
        return super().answer(query, state)

    @property
    def word(self) -> int:
        """The word of the arms: the one that all keys lead to."""
        (found,) = set.intersection(*self.words)
        return found


_MASK = 2**64 - 1
_FIELD, _GOLDEN = 0xD6E8FEB86659FD93, 0x9E3779B97F4A7C15


def unfolded(h: int, field: int | None) -> int:
    """What `fold(x, field)` was made of; None: the field, where x is 0."""
    h ^= h >> 31 ^ h >> 62
    h = h * pow(0x94D049BB133111EB, -1, 2**64) & _MASK
    h ^= h >> 27 ^ h >> 54
    h = h * pow(0xBF58476D1CE4E5B9, -1, 2**64) & _MASK
    h ^= h >> 30 ^ h >> 60
    if field is None:
        return (h - _GOLDEN) & _MASK
    return (h - field - _GOLDEN) * pow(_FIELD, -1, 2**64) & _MASK
