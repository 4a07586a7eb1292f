"""Users who are given advice, without a world: a test says what each of them does about it, and what they say later."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from skg_bench.assistant.pipeline.ensemble import Pipelines
from skg_bench.core.arms import Arm
from skg_bench.core.assistant import Experience, FromBook, GroundTruth, Library, Message, Reply, Worth, no_worth
from skg_bench.core.batch import ADD, NO_ROWS, Batch, blank
from skg_bench.core.content import Content
from skg_bench.core.feedback import Feedback, KnownFeedback, feedback, joined_rows
from skg_bench.core.grid import I32, I64, Bool
from skg_bench.core.texts import Texts
from skg_bench.core.types import Observation, Skillbooks
from skg_bench.core.world import Reaction, Supposing
from skg_bench.engine.pending import Pending
from skg_bench.engine.vectors import Rows
from skg_bench.simulator.advice.outcome import advice
from tests.core import samples

MESSAGES = [f"message {i}" for i in range(30)]
VECTORS = samples.vectors(np.random.default_rng(0), len(MESSAGES), 384)
DAY = 86_400


class Play:
    """The turns of `n` users under the arms of a stack, a day apart, each user with the same message at every turn."""

    def __init__(self, arms: Sequence[Arm], n: int) -> None:
        self.assistant, self.pending, self.t = Pipelines(arms), Pending(n), -1
        self.texts, self.similarity = Texts(MESSAGES, ["nobody named it"], None), Rows(VECTORS)
        self.state, self.reply = self.assistant.start(n), Reply(np.zeros(0, np.int32), np.zeros(0, np.int32))
        self.known = KnownFeedback(*np.zeros((5, 0), np.int32))  # what the last turn was taught

    def answered(self, n: int, worth: Worth | None = None) -> Reply:
        """What is done for the first `n` users at the next turn; `worth` of contents, for oracles."""
        self.t += 1
        self.message = _message(self, n, worth)
        self.state, self.reply = self.assistant.answer(self.message, self.state)
        return self.reply

    def learned(self, given: Feedback, failed: Bool | None = None, right: Bool | None = None) -> None:
        """The turn is over: users say so much of it, and where `failed` nothing was said to them."""
        message, n = self.message, len(self.message.text)
        late, since, contexts = self.pending.due(message.time)
        assert isinstance(self.reply.case, FromBook)
        unserved = np.zeros(n, np.bool_) if failed is None else failed
        skill = np.where(unserved, -1, self.reply.case.skill).astype(np.int32)
        waits = given.delay > 0
        self.pending.add(given.rows(waits), self.t, message.time, skill, self.reply.context)
        now = given.rows(~waits)
        self.known = joined_rows([late, feedback(now.row, self.t, now.kind, now.value, skill[now.row])])
        none = np.full(n, -1, np.int32)
        seen = Experience(
            message, self.reply, np.full(n, self.t, np.int32), none, contexts, lambda _: Reaction(none, none, none),
            lambda _rows, _earlier: None, list, np.zeros(n, np.bool_) if right is None else right, unserved,
            np.concatenate([since, message.time[now.row]]),
        )  # fmt: skip
        self.state = self.assistant.learn(seen, self.known, self.state)


def rows(*said: tuple[int, int, int, int]) -> Feedback:
    """Feedback: row, kind, value, and after how many days it is known."""
    row, kind, value, days = (np.array(column, np.int32) for column in zip(*said, strict=True))
    return Feedback(row.astype(np.int64), kind, value, days.astype(np.int64) * DAY)


NOTHING_SAID = Feedback(np.zeros(0, np.int64), NO_ROWS, NO_ROWS, np.zeros(0, np.int64))


def _message(play: Play, n: int, worth: Worth | None) -> Message:
    time: I64 = samples.NOW + DAY * np.full(n, play.t, np.int64)
    none: I32 = np.full(n, -1, np.int32)
    truth = GroundTruth(_unknown, none, none, np.zeros(n, np.bool_), worth or no_worth)
    gap = np.full(n, DAY if play.t else np.iinfo(np.int64).max)
    return Message(
        play.t, none * 0 + play.t, time, time, np.arange(n, dtype=np.int32), gap,
        np.arange(n, dtype=np.uint64) + np.uint64(1000 * play.t), np.arange(n, dtype=np.uint64), play.texts,
        play.similarity, truth, Library(play.texts, play.similarity), advice(["delay"]),
    )  # fmt: skip


@dataclass(frozen=True)
class Advising:
    """Adds a skill with advice at each user's first turn, and then does nothing; it keeps what it was shown."""

    sees_truth: bool = False
    seen: list[Observation] = field(default_factory=list, compare=False)
    known: list[KnownFeedback] = field(default_factory=list, compare=False)
    reasons: ClassVar[Sequence[str]] = ("advice",)

    def start(self, n: int) -> None:
        return None

    def offers(self, seen: Observation, state: None) -> Bool:
        return np.zeros(len(seen.text), np.bool_)

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: None
    ) -> tuple[None, Batch]:
        self.seen.append(seen)
        self.known.append(known)
        batch = blank(len(seen.text) if seen.turn == 0 else 0)
        batch.row[:], batch.op[:], batch.reason[:] = np.arange(len(batch.row)), ADD, 0
        batch.text[:], batch.source[:] = seen.text[: len(batch.row)], 0
        batch.content[:] = [seen.context.texts.contents.add(advice_of(row)) for row in batch.row.tolist()]
        return None, batch


def advice_of(row: int) -> Content:
    """What the skill of a user says."""
    return Content("context", f"user {row} is about to buy", "sleep over it")


def _unknown(row: I64, answer: I32, supposing: Supposing = "as given") -> I32:
    return np.full(np.broadcast(row, answer).shape, -1, np.int32)
