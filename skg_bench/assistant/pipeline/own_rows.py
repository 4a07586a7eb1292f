"""Values of the rows that a component of a stack is responsible for: of its own arms, and of no other.

A column is taken when it is read first, as most components read few; of one arm it is a view, of several a copy. Books
are as wide as the widest of these rows, so that an arm that captures everything does not slow the arms beside it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from skg_bench.assistant.pipeline.in_book import InBook
from skg_bench.core.batch import RenewedSkills
from skg_bench.core.content import Contents
from skg_bench.core.errors import RowError
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import I32, I64
from skg_bench.core.learning_jobs import Jobs
from skg_bench.core.types import (
    NO_STARTS,
    BookExamples,
    LearningContext,
    Observation,
    Query,
    Skillbooks,
    TurnTruth,
    UseHistory,
    WrittenTexts,
)
from skg_bench.core.world import Reaction
from skg_bench.skillbook.terms_of_book import TermsOfBook


@dataclass(frozen=True)
class OwnRows:
    """The rows of some arms of a stack among the first `n_rows`."""

    arms: tuple[int, ...]
    n_arms: int  # of the stack
    n_rows: int

    @cached_property
    def rows(self) -> I64:
        """The rows, ascending."""
        at: I64 = (np.arange(0, self.n_rows, self.n_arms)[:, None] + np.array(self.arms)).reshape(-1)
        return at

    @cached_property
    def index(self) -> slice | I64:
        """An index of them, with which the values of one arm are not copied."""
        return slice(self.arms[0], self.n_rows, self.n_arms) if len(self.arms) == 1 else self.rows

    @cached_property
    def _place(self) -> I32:
        """Place of each row among them, `[n_rows]`; -1: it is another's."""
        place = np.full(self.n_rows, -1, np.int32)
        place[self.rows] = np.arange(len(self.rows), dtype=np.int32)
        return place

    def feedback(self, known: KnownFeedback) -> KnownFeedback:
        """Feedback of these rows, numbered anew."""
        heard = known.rows(self._place[known.row] >= 0)
        return replace(heard, row=self._place[heard.row])

    def renewed(self, skills: RenewedSkills) -> RenewedSkills:
        """Renewed skills of these rows, numbered anew."""
        mine = self._place[skills.row] >= 0
        return RenewedSkills(self._place[skills.row[mine]], skills.skill[mine])

    def reaction(self, reaction: Reaction) -> Reaction:
        """Reactions of these rows."""
        return Reaction(*(column[self.index] for column in (reaction.code, reaction.name, reaction.general)))

    def truth(self, truth: TurnTruth, width: int) -> TurnTruth:
        """Truth of these rows, about the first `width` skills."""
        quality, worth = truth.quality[:, :width][self.index], truth.worth[:, : 1 + width][self.index]
        return TurnTruth(quality, truth.type[self.index], truth.llm_right[self.index], worth)

    def books(self, books: Skillbooks) -> Skillbooks:
        """The books of these rows."""
        skills, count = books.n_skills[self.index], books.examples.count[self.index]
        width = max(int(skills.max(initial=1)), 1)
        examples = OwnExamples(
            count=count, starts=NO_STARTS, _of=books.examples, _index=self.index, _skills=width,
            _examples=max(int(count.max(initial=1)), 1),
        )  # fmt: skip
        view = OwnBooks(n_skills=skills, examples=examples, _of=books, _index=self.index, _skills=width)
        return cast("Skillbooks", view)

    def query(self, query: Query, books: Skillbooks, truth: TurnTruth | None) -> Query:
        """The messages of these rows, to their books `books`."""
        at, text = self.index, query.text[self.index]
        near, terms = cast("InBook", query.similarity), cast("TermsOfBook", query.terms)
        return Query(
            query.turn, query.time[at], text, query.words[at], query.gap[at], query.last_skill[at],
            InBook(near.similarity, text, books, self.rows), TermsOfBook(terms.vocabulary, text, books), truth,
            query.local[at], query.contents,
        )  # fmt: skip

    def observation(
        self, seen: Observation, books: Skillbooks, truth: TurnTruth | None, columns: Mapping[str, Any]
    ) -> Observation:
        """The turn of these rows, whose books are `books`, with these columns."""
        whole, near = seen.context, cast("InBook", seen.context.similarity)

        def reported(jobs: Jobs) -> None:
            whole.report(replace(jobs, row=self.rows[jobs.row].astype(np.int32)))

        def words() -> list[str]:
            heard = whole.words()
            return [heard[row] for row in self.rows.tolist()]

        context = OwnContext(
            similarity=InBook(near.similarity, seen.text[self.index], books, self.rows),
            texts=OwnTexts(whole.texts, self.rows), report=reported, words=words, domain=whole.domain, _of=whole,
            _index=self.index, truth=truth, **columns,
        )  # fmt: skip
        view = OwnObservation(turn=seen.turn, context=context, _of=seen, _index=self.index)
        return cast("Observation", view)


class OwnBooks:
    """Skillbooks of some rows, for code that takes `Skillbooks`, `dataclasses.replace` included."""

    __dataclass_fields__ = Skillbooks.__dataclass_fields__

    def __init__(self, **columns: Any) -> None:
        self.__dict__.update(columns)

    def __getattr__(self, name: str) -> Any:
        if name not in self.__dataclass_fields__:
            raise AttributeError(name)
        if name == "history":
            whole = (getattr(self._of.history, f.name) for f in fields(UseHistory))
            self.__dict__[name] = history = UseHistory(*(self._column(column) for column in whole))
            return history
        self.__dict__[name] = column = self._column(getattr(self._of, name))
        return column

    def _column(self, column: np.ndarray) -> np.ndarray:
        taken: np.ndarray = column[:, : self._skills][self._index]
        taken.flags.writeable = False
        return taken


class OwnExamples:
    """Examples of some rows, as `OwnBooks`."""

    __dataclass_fields__ = BookExamples.__dataclass_fields__

    def __init__(self, **columns: Any) -> None:
        self.__dict__.update(columns)

    def __getattr__(self, name: str) -> Any:
        if name not in self.__dataclass_fields__:
            raise AttributeError(name)
        width = self._examples if name in ("text", "skill") else self._skills
        column = getattr(self._of, name)[:, :width][self._index]
        column.flags.writeable = False
        self.__dict__[name] = column
        return column


class OwnObservation:
    """Observation of some rows, as `OwnBooks`."""

    __dataclass_fields__ = Observation.__dataclass_fields__
    hit = Observation.hit

    def __init__(self, **columns: Any) -> None:
        self.__dict__.update(columns)

    def __getattr__(self, name: str) -> Any:
        if name not in self.__dataclass_fields__:
            raise AttributeError(name)
        self.__dict__[name] = value = getattr(self._of, name)[self._index]
        return value


class OwnContext:
    """Context of some rows, as `OwnBooks`."""

    __dataclass_fields__ = LearningContext.__dataclass_fields__

    def __init__(self, **columns: Any) -> None:
        self.__dict__.update(columns)

    def __getattr__(self, name: str) -> Any:
        if name not in self.__dataclass_fields__:
            raise AttributeError(name)
        self.__dict__[name] = value = getattr(self._of, name)[self._index]
        return value


@dataclass(frozen=True, slots=True)
class OwnTexts:
    """Texts of the run, read for these rows of a turn: core.types.WrittenTexts."""

    texts: WrittenTexts
    rows: I64

    def add(self, texts: Sequence[str]) -> I32:
        """Ids of texts; a known text has the id that it has."""
        return self.texts.add(texts)

    def read(self, text: I32, row: I64 | I32 | None = None) -> list[str]:
        """The words of texts `[n]` of the users of rows `[n]`; None: of all rows, in order.

        Raises RowError for a text that its user has not met.
        """
        n = len(self.rows if row is None else row)
        if len(text) != n:
            raise RowError(int(self.rows[0]), f"read {len(text)} texts of {n} users; give the row of each")
        return self.texts.read(text, self.rows if row is None else self.rows[row])

    @property
    def contents(self) -> Contents:
        """Contents of skills."""
        return self.texts.contents

    @property
    def recorded(self) -> bool:
        """Did people write the messages, in a log?"""
        return self.texts.recorded

    @property
    def redacts(self) -> bool:
        """Do logs show other texts?"""
        return self.texts.redacts
