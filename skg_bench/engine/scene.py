"""Values of a turn, and what a cohort remembers between turns: what engine/step.py and engine/worded.py pass around."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np

from skg_bench.core.arms import Arm
from skg_bench.core.assistant import Ensemble, GroundTruth, Library, Message, Reply
from skg_bench.core.draws import Purpose, fold, uniform
from skg_bench.core.grid import I32, I64, U64, Bool
from skg_bench.core.texts import Texts
from skg_bench.core.types import Completions, Similarity
from skg_bench.core.world import Draws, Event, Response, World
from skg_bench.engine.agreement_judge import JUDGE, AgreementJudge
from skg_bench.engine.pending import Pending
from skg_bench.engine.reading import Reading
from skg_bench.engine.references import Spoken
from skg_bench.engine.text_view import Heard

_TURN_PURPOSES = (
    Purpose.LLM_RIGHT, Purpose.SKILL_RIGHT, Purpose.LATENCY, Purpose.LENGTH, Purpose.RATING, Purpose.RATED,
    Purpose.LATE, Purpose.DELAY, Purpose.ACCEPT, Purpose.NAME,
)  # fmt: skip
_PURPOSES = np.array([int(p) for p in _TURN_PURPOSES], np.uint64)[:, None]
_NAMES = [purpose.name.lower() for purpose in _TURN_PURPOSES]


@dataclass(frozen=True)
class Keys:
    """Keys of the users, `[B]` each."""

    world: U64  # for the world's draws
    arms: U64  # for the draws of arms, and for the event keys that they see

    @cached_property
    def users(self) -> U64:
        """Pseudonyms of the users, for arms."""
        return fold(self.arms, -1)


@dataclass(frozen=True, slots=True)
class Scene:
    """Parts that all turns of a cohort share."""

    world: World[Any]
    similarity: Similarity
    keys: Keys
    texts: Texts
    type_names: I32  # text id of the name of each request type; -1 at the end, for one-offs
    assistant: Ensemble[Any]
    reading: Reading | None = None  # where the world reads what skills say
    users: I32 | None = None  # [B] ids, for errors
    arms: Sequence[str] = ("",)  # of row `u * A + j`: number j
    comparison: AgreementJudge = JUDGE

    @property
    def library(self) -> Library:
        """All texts, for the ensemble."""
        return Library(self.texts, self.similarity)


@dataclass(slots=True)
class CohortState:
    """Memory of a cohort from turn to turn."""

    arm: Arm  # that is in force: its model answers
    users: Any  # what the users themselves remember: the world's
    memory: Any  # the assistant's
    time: np.ndarray[Any, np.dtype[np.int64]]  # [B] of the last turn
    pending: Pending
    asked: Bool  # [B, intents + 1] what users have asked before; the last, which index -1 finds, is for one-offs
    heard: Heard  # the texts that each user has met
    given: I32  # [B, W] the turn at which the assistant had each answer, by handle, -1: never

    def mint(self, turn: int, answer: I32) -> None:
        """The assistant has answers `[B]` (handles, -1: none) from a turn on, or had them before."""
        rows = (answer >= 0).nonzero()[0]
        before = self.given[rows, answer[rows]]
        self.given[rows, answer[rows]] = np.where(before < 0, turn, before)


@dataclass(frozen=True, slots=True)
class Said:
    """Words that users were told, `[B]` each."""

    words: Sequence[str]  # empty where nothing came
    text: I32  # text ids of them; -1 where nothing came


@dataclass(slots=True)
class OwnAsks:
    """Asks of one turn that assistants make themselves. Equal ones of a user are made once."""

    say: Callable[[int, str], tuple[str, Completions]]  # a prompt of the user of a row; words, and costs `[1]`
    made: dict[tuple[int, str], tuple[str, Completions]] = field(default_factory=dict)
    _one: Any = field(default_factory=Lock)  # any thread may ask

    def __call__(self, row: int, prompt: str) -> str:
        """Words of the model for the user of a row."""
        with self._one:
            if (row, prompt) not in self.made:
                self.made[row, prompt] = self.say(row, prompt)
            return self.made[row, prompt][0]


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the users who are still there, before it is decided; `[B]` each."""

    t: int
    event: Event  # the world's
    draws: Draws  # the world's
    message: Message
    truth: GroundTruth
    asks: OwnAsks | None = None  # of assistants that ask a model in words themselves; None: it says none

    @property
    def rows(self) -> I64:
        """0 to B - 1."""
        return np.arange(len(self.event.text))


@dataclass(frozen=True, slots=True)
class Answered:
    """Consequences of the decisions, `[B]` each."""

    reply: Reply
    spoken: Spoken | None  # words of the assistant's own; None: it has none
    how: I32  # FALLBACK, STORED, PROMPTED, PROCEDURE, FAILED or SILENT
    cost: Completions
    response: Response
    columns: Mapping[str, np.ndarray]  # of the domain's outcome
    said: Said | None = None  # None: answers are in no words


@dataclass(frozen=True, slots=True)
class Lesson:
    """Feedback and offers of a turn, `[B]` each."""

    rating: I32  # as known with the turn, -1: none
    offer: I32  # code in OFFERS, -1: none was made


def draws_of(keys: U64, number: I32) -> Draws:
    """The world's draws at events `number` `[B]` of users with these keys."""
    event = fold(keys, number)
    u = uniform(fold(fold(fold(event[None], _PURPOSES), 0), 0))
    return Draws(event=event, **dict(zip(_NAMES, u, strict=True)))
