"""A log of real turns, replayed: users send their logged messages, and values that the log lacks stay unknown.

An answer is *that of the log* where the LLM answers what it answered then, or a skill returns the very same text; then
the log's rating counts too. One to another intent is taken to be wrong. All else is unknown and rated by nobody.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa

from skg_bench.core.calendar import WEEK
from skg_bench.core.domain import Domain
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import RATING, feedback_rows
from skg_bench.core.grid import I8, I32, I64, Bool
from skg_bench.core.reach import NO_REACH, Reach, Reaches
from skg_bench.core.record import LOGS_DOMAIN, Record
from skg_bench.core.world import (
    AS_LOGGED,
    PROMPTED,
    RIGHT,
    STORED,
    UNKNOWN,
    WRONG,
    Draws,
    Event,
    Events,
    Ledger,
    Reaction,
    Response,
    Served,
    Stream,
    Supposing,
    Truth,
)
from skg_bench.runfolder.encoding import encoded
from skg_bench.simulator.answers.skill_names import distinct
from skg_bench.simulator.logs import recorded_rows
from skg_bench.simulator.logs.dataset_rows import DatasetSplit, hashed, holds_tables, is_dataset
from skg_bench.simulator.logs.recorded_again import again_signs
from skg_bench.simulator.logs.recorded_agentropy import agentropy_turns, assumed
from skg_bench.simulator.logs.recorded_assumptions import NEWEST_FIRST, assumptions
from skg_bench.simulator.logs.recorded_columns import LogColumns
from skg_bench.simulator.logs.recorded_csv import TEXT_TABLES, CsvFile
from skg_bench.simulator.logs.recorded_datasets import dataset
from skg_bench.simulator.logs.recorded_dialogues import ASSUMES, invented, sgd, uss
from skg_bench.simulator.logs.recorded_log import LogReading, RecordedLog, assemble
from skg_bench.simulator.logs.recorded_rows import INVENTED, TURN_FIELDS, LeftOut, check_suffix
from skg_bench.simulator.logs.recorded_size import log_size
from skg_bench.simulator.offer_reactions import offers_accepted

Format = Literal["table", "sgd", "uss", "agentropy"]
_NAMELESS, _UNITS = "unnamed", {"ms": 1.0, "s": 1000.0}
_MANY = 100_000  # rows of a log from which on it is said what reading them takes: some seconds
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Readers:
    """Users of a log, who only read from it what they said."""

    events: Events
    ledger: Ledger


@dataclass(frozen=True)
class Recorded:
    """Users of a log. Unit, meaning and source of each parameter stand in its yaml."""

    format: Format
    path: str | None
    subset: str | None
    split: str | None
    columns: Mapping[str, str | None]
    encoding: str | None
    separator: str | None
    day_first: bool | None
    decimal: str | None
    latency_unit: str
    zone: str
    rated_ok: Sequence[str | int | float | bool]
    rated_partial: Sequence[str | int | float | bool]
    rated_miss: Sequence[str | int | float | bool]
    dialogues_per_user: int
    accept: float
    redact: bool
    most_rows: int | None
    stream: Stream = field(default="exogenous", init=False)
    domain: Domain = field(default=LOGS_DOMAIN, init=False)
    copies: ClassVar[bool] = True  # rows that are as earlier ones are left out
    reaches: ClassVar[Reaches] = {
        "path": Reach(("reads", "network")),
        **dict.fromkeys(("subset", "split", "columns", "encoding", "separator", "decimal", "latency_unit"), NO_REACH),
        **dict.fromkeys(("zone", "rated_ok", "rated_partial", "rated_miss"), NO_REACH),
    }

    def __post_init__(self) -> None:
        if self.format not in get_args(Format):
            raise UsageError(f"simulator.format={self.format!r}, valid are {', '.join(get_args(Format))}")
        if unknown := sorted(set(self.columns) - set(TURN_FIELDS)):
            raise UsageError(f"simulator.columns has unknown {', '.join(unknown)}; valid are {', '.join(TURN_FIELDS)}")
        if self.decimal not in (None, ".", ","):
            raise UsageError(f"simulator.decimal={self.decimal!r} must be a point or a comma, or null")
        if self.latency_unit not in _UNITS:
            raise UsageError(f"simulator.latency_unit={self.latency_unit!r}, valid are {', '.join(_UNITS)}")
        if self.dialogues_per_user < 1:
            raise UsageError(f"simulator.dialogues_per_user={self.dialogues_per_user} must be at least 1")
        if self.most_rows is not None and self.most_rows < 1:
            raise UsageError(f"simulator.most_rows={self.most_rows} must be at least 1, or null")
        if not 0 <= self.accept <= 1:
            raise UsageError(f"simulator.accept={self.accept} must lie in [0, 1]")
        words = [word for words in self._words for word in words]
        if twice := sorted({word for word in words if words.count(word) > 1}):
            raise UsageError(f"{', '.join(twice)} stands in two of simulator.rated_ok, rated_partial, rated_miss")

    # --------------------------------------------------------------------------------------------- the log

    @property
    def _words(self) -> list[list[str]]:
        """Words for each of RATINGS."""
        phrases = (self.rated_ok, self.rated_partial, self.rated_miss)
        return [[str(word).strip().lower() for word in words] for words in phrases]

    @property
    def _file(self) -> Path:
        if self.path is None:
            raise UsageError("simulator.path=null; name the file of the log: simulator.path=FILE")
        path = Path(self.path)
        if not path.exists():
            raise UsageError(f"simulator.path={path} does not exist")
        return path

    @cached_property
    def _read(self) -> tuple[RecordedLog, LeftOut, int]:
        """The log, what was left out of it, and how many rows there were in all."""
        out = LeftOut()
        if self._dataset is None:
            rows = self._columns(out)
        else:
            rows = dataset(self._dataset, self.format, self.columns, self.dialogues_per_user, out)
        if self._invented:
            rows = LogColumns.of(invented(rows.turns(), self.dialogues_per_user), out)
        self._check_rows(rows)
        read = len(rows) + out.rows
        ratings = {word: code for code, words in enumerate(self._words) for word in words}
        reading = LogReading(ratings, self._zone, self.day_first, self.decimal, _UNITS[self.latency_unit], self.copies)
        log = assemble(rows, reading, out, str(self.path))
        del rows
        pa.default_memory_pool().release_unused()  # 85 MB after a million rows, which the run would keep to its end
        return log, out, read

    def _check_rows(self, rows: LogColumns) -> None:
        """Checks no answer: those of a log may be empty."""

    def _columns(self, out: LeftOut) -> LogColumns:
        path = self._file
        if path.is_dir() and self.format in ("table", "uss"):
            raise UsageError(f"simulator.path={path} is a folder; name a file")
        if self.subset is not None or self.split is not None:
            raise UsageError(f"simulator.subset and simulator.split are of data sets; {path} is none: leave them out")
        readers: Mapping[str, Callable[[], LogColumns]] = {
            "table": lambda: self._table(path, out),
            "sgd": lambda: LogColumns.of(sgd(path, self.dialogues_per_user, out), out),
            "uss": lambda: LogColumns.of(uss(path, self.dialogues_per_user, out), out),
            "agentropy": lambda: LogColumns.of(agentropy_turns(path), out),
        }
        return readers[self.format]()

    def _table(self, path: Path, out: LeftOut) -> LogColumns:
        check_suffix(path)
        wanted = recorded_rows.mapped_columns(path, self.columns)
        log_size(path).check(self.most_rows)
        if path.suffix not in TEXT_TABLES:
            return LogColumns.of(recorded_rows.turns_of_table(path, wanted, out, self.most_rows), out)
        names = list(wanted.values())
        file = CsvFile.open(path, names, self.encoding, self.separator, most=self.most_rows)
        return file.columns(wanted, out)

    @property
    def reading(self) -> str | None:
        """Rows of a table, and what it takes to read them. None: it is none, or it has a few rows only.

        Raises UsageError for a file that cannot be opened, or has more rows than are read.
        """
        path = Path(self.path or "")
        if self.format != "table" or path.suffix not in recorded_rows.LOG_SUFFIXES or not path.is_file():
            return None
        size = log_size(path)
        size.check(self.most_rows)
        return f"{path}: {size.words}" if size.rows >= _MANY else None

    @cached_property
    def _dataset(self) -> DatasetSplit | None:
        """Dataset that the `datasets` library reads; None: a file, or files, of our own formats."""
        path = self.path if self.path is not None and is_dataset(self.path) else str(self._file)
        tables = self.format == "table" and holds_tables(Path(path))
        return DatasetSplit(path, self.subset, self.split, "simulator") if is_dataset(path) or tables else None

    @property
    def _invented(self) -> list[str]:
        """Facts that a table does not say and that are made up."""
        return [what for name, what in INVENTED.items() if self.format == "table" and self.columns.get(name) is None]

    @property
    def _zone(self) -> ZoneInfo:
        try:
            return ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise UsageError(f"simulator.zone={self.zone!r} is no time zone such as Europe/Berlin") from error

    @property
    def _log(self) -> RecordedLog:
        return self._read[0]

    @cached_property
    def record(self) -> Record:
        """The log in words and numbers."""
        log, out, read = self._read
        dialogues, made_up = self.format in ("sgd", "uss"), self._invented
        assumes = assumptions(log.knows, self.accept, tuple(ASSUMES) if dialogues else made_up, log.users)
        if self.format == "agentropy":
            assumes |= assumed(self._file)
        if log.newest_first:
            assumes["order"] = NEWEST_FIRST
        name = self._file.name if self._dataset is None else self._dataset.title
        return Record(
            name, dialogues or "users" in made_up, len(log.users), len(log.time), int((log.rating >= 0).sum()),
            log.weeks, log.first_day, log.knows, self.redact, assumes, read, out.found, log.offsets,
        )  # fmt: skip

    @property
    def messages(self) -> Sequence[str]:
        """All texts of the log."""
        return self._log.messages

    def show(self, texts: Sequence[str]) -> Sequence[str]:
        """Texts as logs and pages show them, what was written from them too."""
        if not self.redact:
            return texts
        secret = self.digest.encode()[:64]
        return tuple(blake2b(text.encode(), key=secret, digest_size=8).hexdigest() for text in texts)

    @cached_property
    def types(self) -> Sequence[str]:
        """Distinct (active intents, answer), by intent and number; hashes where the log is redacted."""
        return self.show(self._log.types)

    @property
    def answers(self) -> Sequence[str | None]:
        """Answers to each type, in words."""
        log = self._log
        return tuple(log.answers[i] if i >= 0 else None for i in log.answer_of[:-1].tolist())

    @cached_property
    def intents(self) -> Sequence[str]:
        """Intents that the log names; hashes where the log is redacted: who asked for what is told by them."""
        return self.show(self._log.intents)

    @cached_property
    def names(self) -> Sequence[str]:
        """Names of skills: of the types, of a skill made from each message, and of what nobody named."""
        types = self.show(self._log.types)
        return (*types, *distinct(self.show(self.messages), set(types) | {_NAMELESS}), _NAMELESS)

    @cached_property
    def digest(self) -> str:
        """Hash of the file, of all files of the folder, or of which commit of a data set was read."""
        if self._dataset is None:
            return hashed(self._file)
        return blake2b(self._dataset.title.encode(), digest_size=16).hexdigest()

    # ------------------------------------------------------------------------------------------- what it says

    def logged(self, user: I32, event: I32, stored: I32) -> Mapping[str, pa.Array]:
        """Columns of the log for events, and for the answer that was stored then, in its own words."""
        log, keys, answers = self._log, *self._shown
        at, source = log.start[user] + event, np.where(stored >= 0, log.start[user] + stored, -1)
        type_, type_of_source = log.type[at], np.where(source >= 0, log.type[source], -1)
        answer, answer_then = log.answer_of[type_], log.answer_of[type_of_source]
        intent, intent_then = log.intent_of[type_], log.intent_of[type_of_source]
        same, apart = intent == intent_then, ~self._log.share(type_, type_of_source)
        unknown = (intent < 0) | (intent_then < 0) | ~(same | apart)
        since = np.datetime64(log.first_day, "s")
        return {
            "logged_user": encoded(user, keys),
            "logged_id": pa.nulls(len(at), pa.string()) if self._ids is None else self._ids.take(pa.array(at)),
            "logged_row": pa.array(log.position[at]),
            "logged_time": pa.array((since + log.local[at]).astype("datetime64[ms]")),
            "logged_answer": encoded(answer, answers),
            "logged_cost_usd": pa.array(log.cost_usd[at], from_pandas=True),
            "logged_latency_ms": pa.array(log.latency_ms[at], from_pandas=True),
            "stored_answer": encoded(answer_then, answers),
            "same_answer": pa.array(answer == answer_then, mask=(answer < 0) | (answer_then < 0)),
            "same_intent": pa.array(same, mask=unknown),
            "asked_again": pa.array(self._again[at] == 1, mask=self._again[at] < 0),
        }

    @cached_property
    def _shown(self) -> tuple[pa.Array, pa.Array]:
        """Names of users and answers as logs show them."""
        words = self._log.users, self._log.answers
        users, answers = (pa.array(self.show(each), pa.string()).dictionary_encode() for each in words)
        return users, answers

    @cached_property
    def _again(self) -> I8:
        return again_signs(self._log)

    @cached_property
    def _ids(self) -> pa.Array | None:
        """Ids of the turns as logs show them."""
        ids = self._log.id
        return pa.array(list(self.show(ids.to_pylist())), pa.string()) if ids is not None and self.redact else ids

    # ----------------------------------------------------------------------------------------------- events

    def count(self, seed: int, users: I32, weeks: int) -> I32:
        """How many turns these users have in the first `weeks`.

        Raises UsageError for a user whom the log does not have.
        """
        log = self._log
        if len(users) and int(users.max()) >= len(log.users):
            raise UsageError(
                f"the log has {len(log.users)} users, fewer than the run needs; lower users, without pools and donors"
            )
        first, last = log.start[users], log.start[users.astype(np.int64) + 1]
        return np.array(
            [np.searchsorted(log.time[a:b], weeks * WEEK) for a, b in zip(first, last, strict=True)], np.int32
        )

    def population(self, seed: int, users: I32, weeks: int) -> Events:
        """The turns of these users in the first `weeks`.

        Raises UsageError for a user whom the log does not have.
        """
        log, n = self._log, self.count(seed, users, weeks)
        first = log.start[users]
        mask = np.arange(n.max(initial=0)) < n[:, None]
        at = np.where(mask, first[:, None] + np.arange(mask.shape[1]), 0)

        def column(values: I32 | I64, empty: int) -> Any:
            return np.where(mask, values[at], np.array(empty, values.dtype))

        type_ = column(log.type, -1)
        unknown = np.full(type_.shape, -1, np.int32)
        truth = Truth(type_, log.intent_of[type_], unknown, np.zeros(type_.shape, np.bool_))
        number = np.where(mask, np.arange(mask.shape[1], dtype=np.int32), np.int32(0))
        return Events(users, n, number, column(log.time, _NEVER), column(log.text, 0), truth)

    # ------------------------------------------------------------------------------------------------ turns

    def begin(self, seed: int, users: I32, weeks: int) -> Readers:
        """All their turns."""
        events = self.population(seed, users, weeks)
        return Readers(events, Ledger.of(events))

    def events(self, state: Readers, turn: int) -> Event:
        """Events number `turn` of the users in the log, with what their clocks showed."""
        return state.events.at(turn, self._log.local[self._at(state, state.events.number[:, turn])])

    def _at(self, state: Readers, number: I32) -> I64:
        at: I64 = self._log.start[state.events.user] + number
        return at

    def judge(self, state: Readers, event: Event, row: I64, answer: I32, supposing: Supposing = "as given") -> I32:
        """LOGGED: the stored answer is that of the log; WRONG: it was given to another intent, and the two turns share
        no active one; else UNKNOWN.
        """
        said_of, intent_of = self._log.answer_of, self._log.intent_of
        type_, source = event.type[row], np.where(answer >= 0, state.ledger.type[row, answer], -1)
        same = (said_of[type_] == said_of[source]) & (said_of[type_] >= 0)
        other = (intent_of[type_] >= 0) & (intent_of[source] >= 0) & ~self._log.share(type_, source)
        return np.where(same, AS_LOGGED, np.where(other, WRONG, UNKNOWN)).astype(np.int32)

    def respond(self, state: Readers, event: Event, served: Served, draws: Draws) -> tuple[Readers, Response]:
        """Response with the log's rating for the log's answer; nobody rates an answer that was not given."""
        at = self._at(state, event.number)
        called, prompted = served.how != STORED, served.how == PROMPTED
        fresh = np.where(prompted | ~self._log.by_llm[at], UNKNOWN, AS_LOGGED)
        stored = self.judge(state, event, np.arange(len(at)), served.answer)
        quality = np.where(called, np.where(prompted & (stored == WRONG), WRONG, fresh), stored).astype(np.int32)
        state.ledger.mint(called.nonzero()[0], event, quality == RIGHT)
        feedback = feedback_rows(RATING, np.where(quality == AS_LOGGED, self._log.rating[at], -1), self._log.delay[at])
        return state, Response(quality, np.where(called, event.number, served.answer), feedback, self._log.metered(at))

    def merge(self, state: Readers, event: Event, row: I64, earlier: I32, draws: Draws) -> Readers:
        """Changes nothing: nobody knows what procedures would have said, so none is run."""
        return state

    def offer(self, state: Readers, event: Event, offers: Bool, draws: Draws) -> tuple[Readers, Reaction]:
        """Accepted with a probability that is assumed, under a name of the message's own."""
        return state, offers_accepted(offers, self.accept, draws.accept, len(self.types) + event.text)
