"""Users with tasks of one's own: a table of messages, each with a reference against which what is said is checked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from skg_bench.core.domain import Domain
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import RATING, feedback_rows
from skg_bench.core.grid import I32, I64
from skg_bench.core.reach import Reach, Reaches
from skg_bench.core.record import Record
from skg_bench.core.spoken import UNCHECKED, task_name
from skg_bench.core.text import plain_signs
from skg_bench.core.types import RATINGS
from skg_bench.core.world import (
    NEAR,
    RIGHT,
    UNKNOWN,
    WRONG,
    Draws,
    Event,
    Events,
    Response,
    Served,
    Supposing,
    Truth,
    calls,
)
from skg_bench.simulator.logs.recorded import Readers, Recorded
from skg_bench.simulator.logs.recorded_columns import LogColumns
from skg_bench.simulator.logs.recorded_csv import TEXT_TABLES
from skg_bench.simulator.order import answerable
from skg_bench.simulator.tasks.checks import WordCheck, check_of, holds, tokens

TASKS = Domain("tasks", telling="skg_bench.simulator.tasks:telling.toml", in_words=True, recorded=True)
_OK, _MISS = RATINGS.index("ok"), RATINGS.index("miss")
_FOR_EVER = 2**40  # seconds for which an answer holds


@dataclass(frozen=True)
class Tasks(Recorded):
    """A log whose answers are references. Unit, meaning and source of each parameter stand in its yaml.

    A message without a reference asks for nothing that is checked: whatever is said to it is right.
    """

    check: str
    rated: float
    domain: Domain = field(default=TASKS, init=False)
    copies: ClassVar[bool] = False  # a task that comes twice is refused
    reaches: ClassVar[Reaches] = {**Recorded.reaches, "check": Reach(("code",), harmless=("exact", "marker"))}

    def __post_init__(self) -> None:
        Recorded.__post_init__(self)
        if not 0 <= self.rated <= 1:
            raise UsageError(f"simulator.rated={self.rated} must lie in [0, 1]")
        if self.redact:
            raise UsageError("simulator.redact=true hides what is said, and tasks are judged by it; take false")
        if self.columns.get("answer") is None:
            raise UsageError("simulator.columns.answer=null; name the column of references, such as reference")
        check_of(self.check)  # one that is not there is refused before a run

    def __getstate__(self) -> Mapping[str, object]:
        """Another process imports the check itself."""
        return {name: value for name, value in vars(self).items() if name != "_checks"}

    @cached_property
    def _checks(self) -> WordCheck:
        return check_of(self.check)

    # ------------------------------------------------------------------------------------------------- data

    @cached_property
    def record(self) -> Record:
        """The table in words and numbers; one whose references are amiss is refused before a run."""
        self.references  # noqa: B018
        return super().record

    def _check_rows(self, rows: LogColumns) -> None:
        """Raises UsageError for a reference that is there and empty. In a text table, an empty cell is none at all."""
        empty = rows.empty("answer")
        if Path(self.path or "").suffix not in TEXT_TABLES and empty.any():
            raise UsageError(
                f"{self.path}, row {rows.position[empty][0]}: the reference is empty, so that any answer or none could "
                "be right; write what is right, or null: nothing is checked"
            )

    @cached_property
    def references(self) -> Sequence[str | None]:
        """Reference of each type, None: nothing is checked.

        Raises UsageError where there are none, for one that stands in its own message, and for a task that comes twice.
        """
        log, references, name = self._log, self.answers, self.columns["answer"]
        if not any(references):
            raise UsageError(
                f"{self.path} has no reference in its column {name!r}; another one holds them: "
                "simulator.columns.answer=NAME"
            )
        _, first = np.unique(np.stack([log.text, log.type]), axis=1, return_index=True)
        for at in first.tolist():
            message, reference = log.messages[log.text[at]], references[log.type[at]] if log.type[at] >= 0 else None
            if reference is not None and not tokens(reference):
                raise UsageError(
                    f"{self.path}, row {log.position[at]}: the reference {reference!r} has no word, number or sign to "
                    "look for"
                )
            if reference is not None and holds(message, reference):
                raise UsageError(
                    f"{self.path}, row {log.position[at]}: the message {message!r} holds its own reference "
                    f"{reference!r}, so that whoever repeats it is right; leave it out"
                )
        user = np.repeat(np.arange(len(log.users)), np.diff(log.start))
        tasks = np.stack([user, log.time, log.text])
        if len(again := np.setdiff1d(np.arange(len(user)), np.unique(tasks, axis=1, return_index=True)[1])):
            at = int(again[0])
            raise UsageError(
                f"{self.path}, row {log.position[at]}: this user says {log.messages[log.text[at]]!r} twice at the same "
                "time; leave one of the rows"
            )
        return references

    @property
    def _kind(self) -> I32:
        """Intent of each type `[T + 1]`: that of the table, or where it names none the reference. -1: none."""
        return self._log.intent_of if self._log.intents else self._log.answer_of

    @property
    def intents(self) -> Sequence[str]:  # of a log they are cached
        """Kinds of tasks, or where the table names none the references."""
        return self._log.intents or self._log.answers

    @cached_property
    def types(self) -> Sequence[str]:
        """Kind and reference of each type, for logs alone: no skill is named so (`names`)."""
        pairs = zip(self._log.types, self.references, strict=True)
        return tuple(
            task_name(name if reference is None else name.rpartition(" | ")[0], reference) for name, reference in pairs
        )

    @cached_property
    def digest(self) -> str:
        """Hash of the table, and of the file of a check of one's own."""
        return f"{super().digest}{self._checks.digest}"

    # ----------------------------------------------------------------------------------------------- events

    def population(self, seed: int, users: I32, weeks: int) -> Events:
        """Messages of these users in the first `weeks`, and how many earlier ones have the same reference."""
        events = Recorded.population(self, seed, users, weeks)
        type_ = np.where(np.arange(events.time.shape[1]) < events.n[:, None], events.truth.type, -1).astype(np.int32)
        ttl = np.full(max(len(self.types), 1), _FOR_EVER, np.int64)
        known = answerable(type_, np.where(type_ >= 0, events.time, 0), ttl)
        return replace(events, truth=Truth(type_, self._kind[type_], known, np.zeros(type_.shape, np.bool_)))

    # ------------------------------------------------------------------------------------------------ turns

    def judge(self, state: Readers, event: Event, row: I64, answer: I32, supposing: Supposing = "as given") -> I32:
        """Quality of answers as what a model is told: RIGHT where it was given to a message with the same reference,
        NEAR to one of the same kind. What users are told is judged by its words, in `respond`.
        """
        type_, theirs = event.type[row], state.ledger.type[row, answer]
        given = supposing in ("as given", "run")
        about = (answer >= 0) & (self._kind[type_] >= 0) & (self._kind[type_] == self._kind[theirs])
        if given and self.check == UNCHECKED:
            return np.where(about, UNKNOWN, WRONG).astype(np.int32)
        if given:
            about &= state.ledger.right[row, answer]
        quality: I32 = np.where(about, np.where(type_ == theirs, RIGHT, NEAR), WRONG).astype(np.int32)
        return quality

    def respond(self, state: Readers, event: Event, served: Served, draws: Draws) -> tuple[Readers, Response]:
        """Checks of the words, and ratings of those that are checked."""
        references = [self.references[kind] if kind >= 0 else None for kind in event.type.tolist()]
        quality = np.full(len(references), UNKNOWN if self.check == UNCHECKED else RIGHT, np.int32)
        for row, (reference, words) in enumerate(zip(references, served.words, strict=True)):
            if self.check == UNCHECKED:
                break
            if reference is not None:
                quality[row] = self._checks.grade(self.messages[event.text[row]], reference, words)
            elif not plain_signs(words).strip():
                quality[row] = WRONG
        called = calls(served.how)
        state.ledger.mint(called.nonzero()[0], event, quality == RIGHT)
        checked = np.array([reference is not None for reference in references], np.bool_) & (quality >= 0)
        rating = np.where(checked & (draws.rated < self.rated), np.where(quality == RIGHT, _OK, _MISS), -1)
        given = np.where(called, event.number, served.answer).astype(np.int32)
        return state, Response(quality, given, feedback_rows(RATING, rating))
