"""A small library of strategies, and turns of users who were advised by them."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skg_bench.core.batch import Batch, part
from skg_bench.core.content import Content
from skg_bench.core.feedback import KnownFeedback, feedback, joined_rows
from skg_bench.core.grid import I32
from skg_bench.core.learning_jobs import Jobs
from skg_bench.core.texts import Texts
from skg_bench.core.types import Curator, LearningContext, Observation, Skillbooks
from skg_bench.core.world import Reaction
from skg_bench.simulator.advice.outcome import advice
from skg_bench.skillbook.library.strategies import Strategies, Triggers
from tests.core import samples

KINDS = ("wait", "hours", "goal", "list")
CONTEXTS = 6
TURNS = 12
UNHEARD = KnownFeedback(*np.zeros((5, 0), np.int32))
MESSAGES = [f"{name} {i}: context {context}" for i, (name, context) in enumerate(
    (name, context) for name in ("shoes", "phone", "lamp") for context in range(CONTEXTS)
)] + ["something"]  # fmt: skip


class Library(Strategies):
    """Whose texts end in their kind, and whose messages end in their context."""

    def read(self, contents: Any) -> Any:
        """Kind by the last word."""
        kinds = [KINDS.index(content.issue.split()[-1]) for content in contents]
        return np.array(kinds, np.int32), np.ones(len(kinds), np.bool_)

    def context_of(self, text: str) -> int:
        """The last word."""
        return int(text.split()[-1]) if "context" in text else -1


def made(rng_seed: int = 0) -> Library:
    """Of each kind five sound texts, and two that are not."""
    kind = np.repeat(np.arange(len(KINDS)), 7).astype(np.int32)
    sound = np.tile(np.arange(7) < 5, len(KINDS))
    contents = tuple(
        Content("strategies", f"{'good' if ok else 'poor'} {i} {KINDS[k]}")
        for i, (k, ok) in enumerate(zip(kind, sound, strict=True))
    )
    fit = np.random.default_rng(rng_seed).standard_normal((len(KINDS), CONTEXTS))
    none = np.zeros(0, np.int32)
    return Library(KINDS, ("a", "b", "c"), ("am", "pm"), np.zeros(4), np.zeros(4), (fit - fit.mean()) / fit.std(),
                   contents, kind, sound, Triggers((), none, none, none, none), "fake")  # fmt: skip


LIBRARY = made()
OTHER = made(1)


@dataclass
class Turn:
    """One turn of `b` users, each with a book of strategies."""

    b: int
    seed: int = 0
    active: int = 5  # skills that each user has, by the texts of the library in any order
    known: KnownFeedback = UNHEARD
    jobs: list[Jobs] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        self.texts = Texts(MESSAGES, ["nobody's"], None)
        keys = np.array([self.texts.contents.add(content) for content in LIBRARY.contents], np.uint64)
        books = samples.ragged(rng, self.b, 0)
        shape = (self.b, self.active + 3)
        mask = np.broadcast_to(np.arange(shape[1]) < self.active, shape)
        drawn = np.stack([rng.permutation(len(keys))[: shape[1]] for _ in range(self.b)])
        none, zeros = np.full(shape, -1, np.int32), np.zeros(shape, np.int32)
        self.books = replace(
            books, n_skills=np.full(self.b, self.active, np.int32), active=mask.copy(), name=none, source=none,
            uses=zeros, ok=zeros.copy(), partial=zeros.copy(), miss=zeros.copy(),
            content=np.where(mask, keys[drawn], 0).astype(np.uint64),
        )  # fmt: skip
        messages = rng.integers(0, len(MESSAGES), (self.b, TURNS)).astype(np.int32)
        nobody = np.full(self.b, -1, np.int32)
        event, other = rng.integers(0, 2**63, self.b, np.uint64), samples.context(rng, messages[:, -1], books)
        context = LearningContext(
            event, other.similarity, self.texts, messages, messages[:, :-1], nobody[:, None], np.ones(self.b, np.bool_),
            np.zeros(self.b, np.bool_), self.jobs.append, advice(KINDS),
        )  # fmt: skip
        self.seen = Observation(
            np.full(self.b, samples.NOW), TURNS - 1, messages[:, -1], nobody, np.zeros(self.b), nobody, context,
        )  # fmt: skip

    def hear(
        self, kind: int, value: int | I32, *, row: Any = None, turn: int = TURNS - 1, skill: int | I32 = 0
    ) -> None:
        """Feedback of this kind, from all users or from `row`."""
        row = np.arange(self.b) if row is None else np.asarray(row)
        values, skills = (np.broadcast_to(np.asarray(x, np.int32), row.shape) for x in (value, skill))
        self.known = joined_rows([self.known, feedback(row, turn, kind, values, skills)])

    def curated(self, curator: Curator[Any], state: Any = None) -> tuple[Any, Batch]:
        """What the curator makes of it."""
        state = curator.start(self.b) if state is None else state
        nobody = np.full(self.b, -1, np.int32)
        return curator.curate(self.seen, Reaction(nobody, nobody, nobody), self.known, self.books, state)

    def of(self, rows: list[int]) -> "Turn":
        """The same turn of these users alone."""
        alone, old = Turn(len(rows), active=self.active), self.seen
        columns: tuple[str, ...] = ("time", "text", "skill", "best_similarity", "rating")
        seen = replace(alone.seen, **{name: getattr(old, name)[rows] for name in columns})
        columns = ("past", "event", "asks", "messages", "shown", "tags_only")
        of_rows = {name: getattr(old.context, name)[rows] for name in columns}
        alone.seen = replace(seen, context=replace(seen.context, **of_rows, texts=old.context.texts))
        alone.books = samples.some(self.books, rows)
        place = np.full(self.b, -1, np.int32)
        place[rows] = np.arange(len(rows))
        heard = self.known.rows(place[self.known.row] >= 0)
        alone.known = replace(heard, row=place[heard.row])
        return alone


def with_books(turn: Turn, **columns: Any) -> Skillbooks:
    """The books of a turn with other columns, which it then has."""
    turn.books = replace(turn.books, **columns)
    return turn.books


def of_rows(batch: Batch, rows: list[int]) -> list[tuple[int, ...]]:
    """Operations of these users, as their places among `rows` say, by user."""
    place = {row: i for i, row in enumerate(rows)}
    mine = part(batch, np.isin(batch.row, rows))
    columns: list[Any] = [mine.op, mine.skill, mine.name, mine.text, mine.rating, mine.uses, mine.reason, mine.content]
    values = zip([place[row] for row in mine.row.tolist()], *(column.tolist() for column in columns), strict=True)
    return sorted(values, key=lambda operation: operation[0])
