"""The Protocol of assistants, which answer and learn, and the values that cross it.

An assistant answers the messages of B users at once and learns from what they say. The engine keeps the clock, the
world, the logs and the order of a turn; everything else is the assistant's. Arrays carry the user axis first.

A class with `answer(user, time, message, model) -> str` needs nothing of this file: `assistant=python`. Who writes an
assistant in arrays can stop reading at the line "more than answer and learn".
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from skg_bench.core.batch import Batch
from skg_bench.core.domain import ANSWERS, Domain
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import F64, I32, I64, U64, Bool
from skg_bench.core.learning_jobs import Course, Jobs
from skg_bench.core.sharing import Shares
from skg_bench.core.spoken import unasked
from skg_bench.core.texts import Texts
from skg_bench.core.types import FREE, Completions, Similarity, WrittenTexts
from skg_bench.core.world import Reaction, Supposing, World

S = TypeVar("S")  # what an assistant remembers of its users
EnsembleColumns = Mapping[str, npt.NDArray[Any]]  # of a log, by name; a row for each user


class Judge(Protocol):
    """A world's `judge` with what the users remember and the events given."""

    def __call__(self, row: I64, answer: I32, supposing: Supposing = "as given") -> I32: ...


Worth = Callable[[U64], F64]


def no_worth(keys: U64) -> F64:
    """The worth of contents in a domain in which skills keep answers: `[B, 0]`."""
    return np.zeros((len(keys), 0))


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """Truth about a turn: for oracles, and for the log."""

    judge: Judge
    type: I32  # [B] the request type, by the text id of its name; -1: a one-off
    answerable: I32  # [B] earlier answers of this user that still hold for this event, -1: not known
    familiar: Bool  # [B] did the user ask for the same intent before, or a one-off in the same words?
    worth: (
        Worth  # by content keys `[B, S]` (0: what is said without a skill): expected worth `[B, S]` to a user without
    )
    # a mood; `[B, 0]` where skills keep answers


@dataclass(frozen=True, slots=True)
class Library:
    """All texts of the run, also those that nobody has said yet."""

    texts: Texts
    similarity: Similarity


@dataclass(frozen=True, slots=True)
class Message:
    """Messages of users at one turn, as an assistant may see them, `[B]` each. Row i is the same user at every turn."""

    turn: int  # how many messages each of them sent before
    number: I32  # of the event; differs from `turn` where events were permuted or left out
    time: I64  # seconds since Monday 00:00 of the first week
    local: I64  # what the user's clock shows
    text: I32  # text id; `texts.read(text)` gives the words, `texts.read(text[row], row)` those of some users
    gap: I64  # seconds since the user's previous message; the largest int64 before the first
    event: U64  # key of the event, for draws of the assistant's own (core/draws.py: fold, uniform)
    user: U64  # pseudonym of the user, the same at every turn and under every arm; `who` has it in words
    texts: WrittenTexts  # those that the users said, were shown, or were written in the run
    similarity: Similarity  # exact dot products of these, from the run's embedder
    truth: GroundTruth | None  # for assistants with `sees_truth` only
    library: Library | None = None  # for ensembles of the engine; an assistant is given none
    domain: Domain = ANSWERS  # what kinds of feedback there are
    frozen: bool = False  # nothing of this turn may be remembered: `learn` is not called
    ask: Callable[[int, str], str] = unasked  # the arm's model: the row of the user and a prompt; it says its words

    @property
    def who(self) -> list[str]:
        """Pseudonyms of the users in words, `[B]`."""
        return [f"user-{user:016x}" for user in self.user.tolist()]

    @property
    def store(self) -> Library:
        """All texts.

        Raises ValueError for an assistant that is given none.
        """
        if self.library is None:
            raise ValueError("this message has no library: only ensembles of the engine are given all texts of a run")
        return self.library


@dataclass(frozen=True, slots=True)
class Bare:
    """The case of a reply of which nothing more is known."""


@dataclass(frozen=True, slots=True)
class GivenAgain:
    """The case of a reply that says for the log when the answer was first given."""

    source: I32  # [B] turn (`Message.turn`) whose answer is given again, -1: none


@dataclass(frozen=True, slots=True)
class InWords:
    """The case of a reply in words, `[B]` each.

    The arm's model may have been asked for them: with what prompts, and how often. It answers in the words
    `answer_words(message, key)` (core/spoken.py), `key` being that of `Message.event`, and each call is metered.
    """

    words: Sequence[str | None]  # what is said instead; None: nothing, so that `how` and `answer` count
    cost: Completions  # what the assistant spent itself, beside the arm's model; FREE (core/types.py): nothing
    asked: Sequence[Sequence[str]] = ()  # prompts with which the model was asked for each user, in order; (): none was


@dataclass(frozen=True, slots=True)
class FromBook:
    """The case of a reply of an assistant with a skillbook, `[B]` each."""

    skill: I32  # number of the skill that was served, -1: none; for the log and for its feedback
    propensity: F64  # probability with which this was chosen
    source: I32  # turn (`Message.turn`) whose answer is given again, -1: none; for the log
    compared: I32  # answer with which a judge compares that of the model, -1: none, or the model does not answer; gives
    # feedback `agrees`, which errs and has a price (`comparison` in conf/config.yaml)
    says: U64  # key of what the served skill says, 0: nothing (core/content.py)
    cost: Completions  # what the assistant spent itself; FREE (core/types.py): nothing

    @staticmethod
    def blank(n: int) -> "FromBook":
        """A reply without a skill, for `dataclasses.replace`: by some of these columns alone."""
        none = np.full(n, -1, np.int32)
        return FromBook(none, np.ones(n), none, none, np.zeros(n, np.uint64), FREE)


@dataclass(frozen=True, slots=True)
class Recalled:
    """The case of a reply of the model with several earlier answers in its prompt; `answer` is one of them. That counts
    which is the newest about this request, else the newest.

    Each makes the prompt longer by its words, once (core/spoken.py: `answer_words`), which the engine counts. An answer
    in a prompt costs that in any case but `FromBook`, whose skill costs the `skill_tokens` of the model alone.
    """

    answers: I32  # [B, K] ids in `Experience.answer`, -1: none


BARE = Bare()


@dataclass(frozen=True, slots=True)
class Reply:
    """Decisions for the users, `[B]` each.

    Each is served in one of four ways: the arm's model answers (`FALLBACK`), an earlier answer is given again
    (`STORED`), the model answers with the skill in its prompt that this answer belongs to (`PROMPTED`), or the skill
    that was made of it is run for this message (`PROCEDURE`). The engine calls the model, so that every arm's has the
    same luck, and meters it; it also calls it after a procedure from which nothing came back.

    An assistant with words of its own puts them into `InWords`; then `how` and `answer` are ignored. The engine knows
    an answer by its reference, `[answer ...]`, wherever it stands in the words; the last one counts:

    * that of the answer to this very message, for which the model was asked: `FALLBACK`; with earlier answers in a
      prompt: `PROMPTED`, by the newest of these that is about this request, else by the newest;
    * that of an answer that this user's assistant had earlier: `STORED`;
    * any other, wherever it stands in the words or in a prompt: a leak. It is wrong, and users rate it so.

    Without one nobody knows whether the words are right, and nobody rates them.
    """

    how: I32  # FALLBACK, STORED, PROMPTED or PROCEDURE (core/world.py)
    answer: I32  # the earlier answer, by its id in `Experience.answer`; -1 with FALLBACK
    case: "Bare | GivenAgain | InWords | FromBook | Recalled" = BARE
    context: Any = None  # a frozen dataclass of arrays `[B, ...]`, handed back with feedback that comes later


@dataclass(frozen=True, slots=True)
class Experience:
    """Consequences of a reply, `[B]` each."""

    message: Message
    reply: Reply
    answer: I32  # id of the answer that was given, to give it again; -1: words that nobody can judge
    rating: I32  # as known with the turn: an index into RATINGS (core/types.py), -1: none
    contexts: Any  # `Reply.context` of the turns that the first rows of the feedback are about: those of earlier turns
    offer: Callable[[Bool], Reaction]  # asks users `[B]` to make a skill of this turn; once a turn, they grow tired
    merge: Callable[[I64, I32], None]  # rows `[n]`, and the earlier answer of each that its skill was made of
    words: Callable[[], list[str]]  # what was said to the users: answers with their references, and words of its own
    right: Bool  # was the answer right? For assistants with `sees_truth`; false for others
    failed: Bool  # no skill served after all: nothing came back from a procedure, so that the model answered, or
    # nothing was said
    known_at: I64  # [n] when each row of the feedback became known


class Assistant(Protocol[S]):
    """Answers messages and learns from feedback. Its config group is `assistant`; `pipeline` is ours.

    A user's replies must not depend on who else is in a call. Randomness comes from `Message.event`; a text id serves
    to read and compare words, its size says nothing (core/texts.py).

    Users leave when they have had their last message, the last rows first. A call has the first B rows of those that
    `start` was given; the state keeps all of them, as the engine hands it on untouched. Methods may write into it.

    Arms can fork and freeze if the state can be copied: None, an array `[n, ...]`, a frozen dataclass of arrays, or a
    tuple of these. At a fork an equal assistant (`==`; that of the same configuration is the same object) goes on with
    the state; another one starts at that turn with none. Once frozen, `learn` is not called; `answer` is.
    """

    @property
    def sees_truth(self) -> bool:
        """Is it an oracle? Others are given no truth."""
        ...

    def start(self, n: int) -> S:
        """The memory of `n` users before their first turn."""
        ...

    def answer(self, query: Message, state: S) -> tuple[S, Reply]:
        """The reply to the users at this turn."""
        ...

    def learn(self, seen: Experience, feedback: KnownFeedback, state: S) -> S:
        """The memory after the turn. `feedback` is all that became known at it, about this turn or earlier ones."""
        ...


@runtime_checkable
class Keeping(Protocol):
    """An assistant whose memory is no plain data: it says itself how that is frozen and saved."""

    @property
    def controls(self) -> bool:
        """Are a few users played beside the run, to see that all memory lies in its state (engine/controls.py)?"""
        ...

    @property
    def name(self) -> str:
        """The class or system that is played, for errors."""
        ...

    @property
    def shares(self) -> Shares:
        """Number of users who share one memory: a number, `all`, or `user`: each has their own."""
        ...

    def shared(self, state: Any) -> Any:
        """The state of one more user, who shares the memory of another user's state."""
        ...

    @property
    def remedy(self) -> str:
        """A sentence that says where it has to keep its memory, for errors of controls."""
        ...

    def unfrozen(self) -> str | None:
        """Reason why its memory cannot be frozen, None: it can. Then it remembers nothing of a turn with
        `Message.frozen`.
        """
        ...

    def saved(self, state: Any) -> Any:
        """The memory as plain data, for a checkpoint; None: there is no way."""
        ...

    def loaded(self, data: Any, n: int) -> Any:
        """The memory of `n` users that was `saved`."""
        ...


# ------------------------------------------------------------------------------------- more than answer and learn


@dataclass(frozen=True, slots=True)
class Applied:
    """Time of a batch, the skill before it, and the books after it."""

    time: I64  # [B]
    last_skill: I32  # [B] the skill of the turn before
    born: I64  # [n] time of the answer that each operation stores
    version: I32  # [B] of the books, after it
    hash: U64  # [B, 2] of the books, after it


class Ensemble(Assistant[S], Protocol[S]):
    """The assistants of arms that are stepped together, as one: row `u * A + j` is user u under arm j of A. It changes
    components at the turns where its arms fork, and fills the columns of skillbooks and decisions in the logs.
    """

    @property
    def reasons(self) -> Sequence[str]:
        """Reasons for operations; `Batch.reason` gives indices into it."""
        ...

    def explain(self, truth: GroundTruth, state: S) -> I32:
        """Codes in CAUSES `[B]`, -1: not known; called after `answer`, for the log alone."""
        ...

    def best(self, truth: GroundTruth, state: S) -> F64 | None:
        """Largest expected worth `[B]` of what the assistant could have said, without a skill included; None: skills
        keep answers, or it has no skillbook. Called after `answer`, for the log alone.
        """
        ...

    def columns(self, state: S) -> EnsembleColumns:
        """Columns of the turn log beyond those of every assistant, or in their place; called after `learn`."""
        ...

    def updates(self, state: S) -> Sequence[tuple[int, Batch, Applied]]:
        """Turn, operations applied at it, and what came of them; called after `learn`. At turn 0 those come first that
        skillbooks started with, at turns below 0.
        """
        ...

    def jobs(self, state: S) -> Jobs | None:
        """Learning jobs that began at the turn, for what they cost; called after `learn`."""
        ...

    def ended(self, state: S) -> Sequence[tuple[Jobs, Course | None]]:
        """Learning jobs that ended since the turn before; None: they took no time. Called after `learn`."""
        ...

    def left(self, state: S, n: int) -> tuple[Jobs, Course] | None:
        """The learning jobs that are under way for the rows from `n` on, which have had their last turn."""
        ...


class BookEnsemble(Ensemble[S], Protocol[S]):
    """An ensemble with skillbooks in whose place the engine can put others: for arms with `book=donor` or `hindsight`,
    which `Stackable.check` lets through.
    """

    def sizes(self, state: S) -> I32:
        """Skills of each skillbook."""
        ...

    def adopt(self, state: S, rows: I64, donors: S, theirs: I64, shift: int) -> S:
        """The books of users `rows` become those that users `theirs` have in `donors`, whose answers' ids grow by
        `shift`.
        """
        ...

    def rewind(self, state: S, shift: int) -> S:
        """Before turn 0 with the last components, memories started, and the books as they are; see `adopt`."""
        ...


@runtime_checkable
class Stackable(Protocol):
    """An assistant whose arms can be stepped together, fork, freeze, and serve other books than their own. The arms are
    those of core/arms.py.
    """

    @property
    def sees_truth(self) -> bool:
        """Is it an oracle?"""
        ...

    @property
    def top_k(self) -> int:
        """Places of the shortlists in its log."""
        ...

    def check(self, arm: Any) -> None:
        """Raises UsageError for what the arm asks of it and it does not do."""
        ...

    def unlogged(self) -> str | None:
        """Reason why a replayed log cannot serve it, to follow the words `arm NAME`; None: it can."""
        ...

    def unread(self, world: World[Any]) -> str | None:
        """Reason why a world cannot use it, to follow `arm NAME`; None: it can."""
        ...

    def alike(self, arm: Any, other: Any) -> bool:
        """Can both be stepped together? Both have assistants of this class."""
        ...

    def ensemble(self, arms: Any) -> BookEnsemble[Any]:
        """Arms that are alike, as one."""
        ...

    def pretrained(self, arm: Any, folder: Any, simulate: Any) -> Any:
        """The arm with what it learns from others before the run, which is kept in `folder`. `simulate(arm, users)`
        runs an arm for so many people outside the run, some at a time, and gives the ids of each time's rows.
        """
        ...
