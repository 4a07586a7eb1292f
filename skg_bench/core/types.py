"""The values that cross the seams, and the Protocol of each seam. Arrays carry the user axis first.

B users stepped together, K places of a shortlist, F features, S skills of a book, E examples of a book, T events.
Times are int64 seconds that have passed since Monday 00:00 local time of the first week. That is what the users' clocks
show, except in a replayed log after clocks were turned (core/record.py).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar, runtime_checkable

import numpy as np

from skg_bench.core.batch import Batch
from skg_bench.core.content import Contents
from skg_bench.core.domain import ANSWERS, Domain
from skg_bench.core.feedback import FEEDBACK_KINDS, KnownFeedback
from skg_bench.core.grid import F32, F64, I16, I32, I64, U64, Bool
from skg_bench.core.learning_jobs import Jobs, unheard
from skg_bench.core.world import Reaction

Serving = Literal["stored", "prompted", "procedure"]
RATINGS = FEEDBACK_KINDS["rating"]  # ok, partial, miss: codes 0, 1, 2; -1 is None
CAUSES = (
    "none", "novelty", "capture", "routing", "score", "threshold", "staleness", "wrong_source", "generality", "slot",
    "tool",
)  # fmt: skip
"""Why no right skill answered: assistant/pipeline/cause.py."""

S = TypeVar("S")  # the memory of a component: see core/state.py


@runtime_checkable
class Embedder(Protocol):
    """Texts to vectors on the embedding grid."""

    @property
    def pure(self) -> bool:
        """Is a text's vector the same bits alone, in any batch and order? Else written texts cannot be examples."""
        ...

    @property
    def digest(self) -> str:
        """Identifies the model."""
        ...

    def embed(self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None) -> I16:
        """int16 `[N, D]`, rows `rint(4000 x)` of unit vectors; `progress(done, total)` counts texts that take time."""
        ...


class Similarity(Protocol):
    """Dot products between messages of one table of vectors, exact integers in float32. The engine's, not an arm's."""

    def dots(self, query: I32, example: I32, row: I64 | None = None) -> F32:
        """`[B]` and `[B, E]` text ids to `[B, E]`; 0, or anything, for example -1 behind the last one. `row` `[B]`: of
        the cohort, for who keeps what belongs to a row; None: its first B.
        """
        ...

    def pairs(self, text: I32, other: I32) -> F32:
        """`[n]` and `[n]` text ids to `[n]`."""
        ...

    def gram(self, text: I32) -> F32:
        """`[B, M]` text ids to the products of each row's texts with one another, `[B, M, M]`."""
        ...


class BookSimilarity(Protocol):
    """Dot products of the users' messages and the examples of their own books, by place in the book: exact integers."""

    def dots(self) -> F32:
        """Dot products of the message with each example, `[B, E]`."""
        ...

    def around(self, place: I64) -> F32:
        """Dot products of the example at place `[B]` of each book with each example, `[B, E]`."""
        ...

    def gram(self, place: I64) -> F32:
        """Dot products of the examples at places `[B, M]` with one another, `[B, M, M]`."""
        ...


class BookWords(Protocol):
    """Words of the users' messages and of the examples of their own books. A term is a word, by a number."""

    @property
    def size(self) -> int:
        """Number of different terms."""
        ...

    def message(self) -> tuple[I64, I32]:
        """Terms of the messages, flat: row, term."""
        ...

    def examples(self, row: I64, place: I64) -> tuple[I64, I32]:
        """Terms of the examples at places `[n]` of users `row` `[n]`, flat: which of the n, term."""
        ...


class WrittenTexts(Protocol):
    """Texts of the run, by text id, for those who write some.

    An id serves to write, read and compare texts, in this process only: it depends on all that was written before, for
    other users too. Only what a user said, was shown, or was written in the run can be read (engine/text_view.py);
    another id ends the run.
    """

    def add(self, texts: Sequence[str]) -> I32:
        """Ids of texts, `[n]`, for `Batch.text` and `Batch.name`; a known text has the id that it has."""
        ...

    def read(self, text: I32, row: I64 | I32 | None = None) -> list[str]:
        """The words of texts `[n]` of the users of rows `[n]`; None: of all rows, in order."""
        ...

    def embed(self, texts: Sequence[str]) -> I16:
        """Vectors of any texts by the run's embedder, int16 `[n, D]`."""
        ...

    @property
    def contents(self) -> Contents:
        """Contents of skills, by the keys of `Skillbooks.content`; new ones are written for `Batch.content`."""
        ...

    @property
    def recorded(self) -> bool:
        """Did people write the messages, in a log?"""
        ...

    @property
    def redacts(self) -> bool:
        """Do logs show other texts?"""
        ...


# ------------------------------------------------------------------------------------------------ skillbook


NO_STARTS = np.zeros(0, np.int64)
"""Starts of examples that do not lie in order, or are of several users: there are none."""


@dataclass(frozen=True, slots=True)
class BookExamples:
    """Examples of B skillbooks, for what compares messages or texts with them."""

    count: I32  # [B] number of examples of the book
    text: I32  # [B, E] text id; beyond `count` -1
    skill: I32  # [B, E] skill that the example belongs to; beyond `count` any
    of_skill: I32  # [B, S] number of examples of a skill
    square: I64  # [B, S] squared length of the sum of its examples' vectors, in squared units of the embedding grid
    starts: I64  # `[n_skills]` of one user alone: where each skill's examples start, if they lie in order; else `[0]`


@dataclass(frozen=True, slots=True)
class UseHistory:
    """Times and occasions at which skills of B skillbooks were used and captured, for the signals of a pipeline."""

    last_ok: I64  # [B, S] time of the last successful use, or of creation (`last_updated` of the SKG paper)
    hours: I16  # [B, S, 8] uses and captures by three-hour bin of the local day
    weekend: I32  # [B, S] uses and captures at weekends
    after: I32  # [B, S] the skill that answered right before this one's last use, -1: none


@dataclass(frozen=True, slots=True)
class Skillbooks:
    """Read-only view of B skillbooks. A skill's index within its book is its id; it never changes."""

    n_skills: I32  # [B]
    active: Bool  # [B, S] False: archived, or no such skill
    name: I32  # [B, S] text id of the name
    source: I32  # [B, S] turn whose answer is stored
    uses: I32  # [B, S] turns answered by the skill
    ok: I32  # [B, S] uses rated ok, as known now
    partial: I32  # [B, S]
    miss: I32  # [B, S]
    born: I64  # [B, S] time of the stored answer
    last_used: I64  # [B, S] time of the last use, or of creation
    content: U64  # [B, S] key of what the skill says, 0: nothing (core/content.py; `WrittenTexts.contents` reads it)
    lineage: I64  # [B, S] the operation that added it: number of the event, and which ADD of that event (core/batch.py)
    examples: BookExamples
    history: UseHistory


@dataclass(frozen=True, slots=True)
class Query:
    """The messages of this turn, as an arm may see them, `[B]` each."""

    turn: int
    time: I64
    text: I32  # text id: an identity of the text, nothing about its meaning
    words: I32  # length of the message in words
    gap: I64  # seconds since the user's previous message; the largest int64 before the first
    last_skill: I32  # skill that answered, or was captured at, the previous turn; -1: none
    similarity: BookSimilarity
    terms: BookWords
    truth: "TurnTruth | None"  # given to components with `sees_truth` only
    local: I64  # what the user's clock shows, for hours and weekdays
    contents: Contents  # what skills say, by the keys of `Skillbooks.content`


@dataclass(frozen=True, slots=True)
class TurnTruth:
    """Truth for oracles: quality that each skill's stored answer would have now."""

    quality: I32  # [B, S]
    type: I32  # [B] the request type, by the text id of its name; -1: a one-off
    llm_right: Bool  # [B] the LLM answered, and rightly; False before the decision
    worth: F64  # [B, 1 + S] expected worth of what is said without a skill, and with each skill; [B, 0]: none is said


@dataclass(frozen=True, slots=True)
class Shortlist:
    """Candidates, best first."""

    skill: I32  # [B, K] skill ids, -1 beyond the end
    similarity: F64  # [B, K] in [0, 1], 0 beyond the end


@runtime_checkable
class Router(Protocol):
    """Message + skillbook -> shortlist."""

    @property
    def sees_truth(self) -> bool:
        """Is it an oracle? Others are given no truth."""
        ...

    @property
    def top_k(self) -> int:
        """Places of its shortlists: the K of `[B, K]`."""
        ...

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        """Shortlist of the user's own active skills; equal similarities are ordered by skill id."""
        ...


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """Rated turns of R users, flat over n rows, each user's in the order in which they became known.

    A rating is of the served skill; the candidates that it was chosen from are there for those who rank.
    """

    row: I32  # [n] row of the user among those being refitted
    features: F64  # [n, K, F] of the shortlist, 0 beyond its end
    candidates: I32  # [n] how many the shortlist has
    place: I32  # [n] the one that was served
    label: F64  # [n] ok 1, partial 0.5, miss 0
    event: U64  # [n] key of the event, to fold purposes and items on
    offset: F64 | None = None  # [n, K] logits that what is fitted here will be added to; None: 0

    def rows(self, which: I64 | Bool) -> "TrainingRows":
        """Training data of these rows only."""
        return TrainingRows(
            self.row[which], self.features[which], self.candidates[which], self.place[which], self.label[which],
            self.event[which], None if self.offset is None else self.offset[which],
        )  # fmt: skip


class Scorer(Protocol):
    """A fitted, frozen model for each of B users."""

    def score(self, features: F64) -> F64:
        """`[b, K, F]` of the first b users to logits `[b, K]`; multiples of 2**-36 or coarser."""
        ...


class Reranker(Protocol):
    """Recipe that makes scorers from rated turns."""

    @property
    def window(self) -> int:
        """How many of a user's last rated turns each fit is given; 0: those that are new since the last one."""
        ...

    def start(self, n_users: int, features: Sequence[str]) -> Scorer | None:
        """The scorer before anything is known; None: this reranker gives no signal."""
        ...

    def fit(self, scorer: Scorer, rows: I64, training: TrainingRows) -> Scorer:
        """A new scorer in which users `rows` `[R]` have learned from `training`; each has a rated turn there."""
        ...


@dataclass(frozen=True, slots=True)
class Prompts:
    """Calls of a model in one step, `[B]` each; rows that a stored answer serves are ignored."""

    words: I32  # length of the message in words
    with_skill: Bool  # a skill's prompt stands before it
    length: F64  # uniforms, from which a simulated model draws the length of its answer ...
    latency: F64  # ... and its latency


@dataclass(frozen=True, slots=True)
class Completions:
    """Cost of calls of a model, `[B]` each. The world mints the answers: no completion carries truth."""

    tokens_in: I32
    tokens_out: I32
    cost_usd: F64
    latency_ms: F64


FREE = Completions(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0), np.zeros(0))
"""The cost of nobody's calls: of no model at all."""


@runtime_checkable
class LLM(Protocol):
    """Answers on fallback, and with a skill's prompt when `serving=prompted`."""

    def complete(self, prompts: Prompts) -> Completions:
        """Metered calls."""
        ...

    def ability(self, with_skill: Bool, *, fitting: bool) -> F64:
        """Probability that the answer of each call is right, `[B]`, which the world draws; NaN: nobody knows.
        `fitting`: what it is if skills in prompts are about the request, or are about something else.
        """
        ...


# -------------------------------------------------------------------------------------------------- learning


def _nowhere(_jobs: Jobs) -> None:
    """Ignores jobs, where no log is kept."""


@dataclass(frozen=True, slots=True)
class LearningContext:
    """Turn for a curator that compares, reads or writes texts, draws, asks a model, or is an oracle, `[B]` each."""

    event: U64  # key of the event, to fold purposes and items on
    similarity: BookSimilarity
    texts: WrittenTexts
    messages: I32  # [B, t + 1] text ids of all messages of the user, by turn, this one last
    past: I32  # [B, t] those of them before this one that the LLM answered, -1: a skill did
    shown: I32  # [B, K] ids of the skills that were to choose from, best first, -1 beyond the end
    asks: Bool  # users whose book may learn; offers and operations for others are dropped
    tags_only: Bool  # users whose book is frozen: operations other than TAG are dropped
    report: Callable[[Jobs], None] = _nowhere  # takes the learning jobs of this turn, for the log
    domain: Domain = ANSWERS  # what kinds of feedback there are
    truth: TurnTruth | None = None  # given to components with `sees_truth` only
    words: Callable[[], list[str]] = unheard  # what was said to the users at this turn; a reference in a world without


@dataclass(frozen=True, slots=True)
class Observation:
    """Turn as a curator may know it, `[B]` each."""

    time: I64
    turn: int
    text: I32  # text id of the message
    skill: I32  # the skill that was served, -1: the LLM answered
    best_similarity: F64  # largest similarity of the shortlist, 0 if it is empty
    rating: I32  # as known with the turn, -1: none
    context: LearningContext

    @property
    def hit(self) -> Bool:
        """Was a skill served?"""
        return self.skill >= 0


class Curator(Protocol[S]):
    """Observations + read-only view of the skillbooks -> update batch."""

    @property
    def sees_truth(self) -> bool:
        """Is it an oracle? Others are given no truth."""
        ...

    @property
    def reasons(self) -> Sequence[str]:
        """Reasons for operations; `Batch.reason` gives indices into it. Empty: the curator makes no operations."""
        ...

    def start(self, n: int) -> S:
        """The memory of `n` users before their first turn; None for a curator without one."""
        ...

    def offers(self, seen: Observation, state: S) -> Bool:
        """Whom to ask `could this become a reusable skill? name it`, `[B]`."""
        ...

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: S
    ) -> tuple[S, Batch]:
        """The memory after this turn, and its operations. `reaction`: to offers, with text ids of names; `known`: what
        became known at this turn. It may write into the arrays of `state`.
        """
        ...
