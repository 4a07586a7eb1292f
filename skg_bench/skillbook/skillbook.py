"""One user's skillbook as a value: a readable form of a row of the skillbook table, rebuilt from logged operations.

`apply(book, operations)` is the algebra in plain Python; rebuilding a book from a log and comparing state hashes proves
that the log tells everything (law 8).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from skg_bench.core.batch import TAG_RATINGS, TAKEN_BACK
from skg_bench.core.calendar import DAY
from skg_bench.core.content import Content
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import U64
from skg_bench.core.text import text_hash
from skg_bench.skillbook.prompt_layout import shown_id
from skg_bench.skillbook.statehash import row_hash

_MASK = (1 << 64) - 1
_BACK = TAG_RATINGS[TAKEN_BACK].removeprefix(TAG_RATINGS[0])
_CHUNK = 4096  # batches whose hashes are computed in one call


@dataclass(frozen=True, slots=True)
class Skill:
    """An entry of a skillbook; times in seconds since the first Monday."""

    id: int
    name: str
    source_turn: int
    examples: tuple[str, ...]
    active: bool
    uses: int
    ok: int
    partial: int
    miss: int
    born: int
    last_used: int
    last_ok: int
    hours: tuple[int, ...]
    weekend: int
    after: int
    content: Content | None = None
    sources: tuple[int, ...] = field(default=(), compare=False)  # turns from which what it says was learned

    @property
    def success_rate(self) -> float | None:
        """Share of uses marked successful, 0 to 1 (SKG paper, 2.3); None before the first use or rating. Of ratings,
        where there are more of them than uses: several witnesses may rate what was said, each at several times.
        """
        known = max(self.uses, self.ok + self.partial + self.miss)
        return self.ok / known if known else None

    @property
    def shown_id(self) -> str:
        """As ACE numbers strategies: the section's first word and a number from 1 (U06), as `context-00001`."""
        return shown_id("skill" if self.content is None else self.content.section, self.id)

    @property
    def embedding_count(self) -> int:
        """Number of examples (SKG paper, 2.3)."""
        return len(self.examples)


@dataclass(frozen=True, slots=True)
class Skillbook:
    """All skills of a user, by id, at one version."""

    skills: tuple[Skill, ...] = ()
    version: int = 0

    @property
    def hash(self) -> bytes:
        """State hash, 16 bytes; the empty book's is zero."""
        with np.errstate(over="ignore"):
            state: U64 = _hashes(self.skills).sum(axis=0, dtype=np.uint64)
        return state.astype("<u8").tobytes()


@dataclass(frozen=True, slots=True)
class Operation:
    """One logged update; fields that an operation does not use keep their defaults."""

    op: str
    skill: int
    time: int
    name: str | None = None
    message: str | None = None
    source_turn: int = -1
    rating: str | None = None
    uses: int = 0
    after: int = -1
    born: int | None = None  # time of the answer that is stored; None: it was given right now
    content: Content | None = None  # what the skill says from now on (ADD, UPDATE); None: nothing, or as before
    reason: str = field(default="", compare=False)
    about: int = field(default=-1, compare=False)  # turn that it was learned from; -1: none
    local: int | None = None  # what the user's clock showed, for hours and weekdays; None: `time`


_LOGGED = tuple(f.name for f in fields(Operation) if f.name not in ("local", "content"))


def apply(book: Skillbook, operations: Sequence[Operation]) -> Skillbook:
    """The book after one atomic batch (TAGs, ADDs, UPDATEs, REMOVEs): all operations, or UsageError and none."""
    skills = {s.id: s for s in book.skills}
    ordered = sorted(operations, key=lambda o: ("TAG", "ADD", "UPDATE", "REMOVE").index(o.op))
    tags = sum(op.op == "TAG" for op in ordered)
    for nth, op in enumerate(ordered):
        if op.op == "ADD":
            if op.skill != len(skills):
                raise UsageError(f"ADD of skill {op.skill}, but the next id of this book is {len(skills)}")
            new = Skill(op.skill, op.name or "", -1, (), True, 0, 0, 0, 0, 0, 0, 0, (0,) * 8, 0, -1)
            skills[op.skill] = _answered(new, op)
            continue
        if op.skill not in skills:
            raise UsageError(f"{op.op} of skill {op.skill}, which the book does not have (it has {len(skills)} skills)")
        old = skills[op.skill]
        if op.op == "TAG":
            skills[op.skill] = _tagged(old, op)
            if nth + 1 == tags:
                _check_counters(skills, ordered[:tags])
        elif op.op == "UPDATE":
            skills[op.skill] = _answered(old, op) if op.source_turn >= 0 else _said(old, op)
        else:
            skills[op.skill] = replace(old, active=False)
    return Skillbook(tuple(skills.values()), book.version + 1)


def _said(skill: Skill, op: Operation) -> Skill:
    """Skill with the example and the content of an operation, if it has them."""
    if op.message is None and op.content is None:
        return skill
    examples = skill.examples if op.message is None else (*skill.examples, op.message)
    new = op.content is not None and op.about >= 0 and op.about not in skill.sources
    sources = (*skill.sources, op.about) if new else skill.sources
    return replace(skill, examples=examples, content=op.content or skill.content, sources=sources)


def _answered(skill: Skill, op: Operation) -> Skill:
    renewed = replace(
        _said(skill, op), source_turn=op.source_turn, active=True, ok=0, partial=0, miss=0,
        born=op.time if op.born is None else op.born, last_ok=op.time,
    )  # fmt: skip
    return _remembered(renewed, op)


def _check_counters(skills: Mapping[int, Skill], tags: Sequence[Operation]) -> None:
    """Raises UsageError where all TAGs together took back more ratings than there were."""
    for op in tags:
        if op.rating is None or not op.rating.endswith(_BACK):
            continue
        counter = op.rating.removesuffix(_BACK)
        if (left := getattr(skills[op.skill], counter)) < 0:
            raise UsageError(f"skill {op.skill} would have {left} ratings {counter}: a TAG takes back one too many")


def _tagged(skill: Skill, op: Operation) -> Skill:
    counted = skill
    if op.rating is not None:
        counter = op.rating.removesuffix(_BACK)
        counted = replace(counted, **{counter: getattr(skill, counter) + (1 if counter == op.rating else -1)})
    if op.rating == "ok":
        counted = replace(counted, last_ok=max(skill.last_ok, op.time))
    return _remembered(replace(counted, uses=skill.uses + 1), op) if op.uses else counted


def _remembered(skill: Skill, op: Operation) -> Skill:
    hours, clock = list(skill.hours), op.time if op.local is None else op.local
    hours[clock // 10_800 % 8] += 1
    weekend = skill.weekend + int(clock // DAY % 7 >= 5)
    return replace(skill, last_used=op.time, after=op.after, hours=tuple(hours), weekend=weekend)


def operation(row: Mapping[str, Any]) -> Operation:
    """A row of the update log (time in seconds). `local` is in a row where the user's clock showed something else than
    `time`.
    """
    content = None
    if row["section"] is not None:
        keywords = tuple(row["keywords"].split()) if row["keywords"] else ()
        content = Content(row["section"], row["issue"], row["insight"], keywords)
    return Operation(**{name: row[name] for name in _LOGGED}, content=content, local=row.get("local"))


def rebuild(rows: Iterable[Mapping[str, Any]], until: int | None = None) -> tuple[Skillbook, int]:
    """Rebuild a book from rows of the update log of one arm and user, as `operation` reads them, up to turn `until`.

    Returns the book and the number of batches. Raises UsageError where a state hash or version differs from the log.
    """
    book, batches, check = Skillbook(), 0, _Check()
    pending: list[Operation] = []
    last: Mapping[str, Any] | None = None

    def close() -> None:
        nonlocal book, batches, pending
        if last is None:
            return
        try:
            book = apply(book, pending)
        except UsageError:
            check.close()  # an earlier difference explains this one
            raise
        check.add(book, {op.skill for op in pending}, last)
        pending, batches = [], batches + 1

    for row in rows:
        if until is not None and row["turn"] > until:
            break
        if last is not None and row["book_version"] != last["book_version"]:
            close()
        pending.append(operation(row))
        last = row
    close()
    check.close()
    return book, batches


class _Check:
    """Compares state hashes with those of the log, many batches at once: the hash of a book is that of the book before,
    without the rows that a batch touched, and with them as they are now.
    """

    def __init__(self) -> None:
        self._total = [0, 0]
        self._hash: dict[int, list[int]] = {}  # of each skill, as summed up
        self._batches: list[tuple[list[Skill], int, Mapping[str, Any]]] = []

    def add(self, book: Skillbook, touched: set[int], row: Mapping[str, Any]) -> None:
        """The book after a batch that touched these skills; `row` is one that the batch left in the log."""
        self._batches.append(([book.skills[skill] for skill in sorted(touched)], book.version, row))
        if len(self._batches) == _CHUNK:
            self.close()

    def close(self) -> None:
        """Compare what was added. Raises UsageError at the first difference."""
        hashes = iter(_hashes([skill for skills, _, _ in self._batches for skill in skills]).tolist())
        for skills, version, row in self._batches:
            for skill in skills:
                new, old = next(hashes), self._hash.get(skill.id, [0, 0])
                self._total = [(total + n - o) & _MASK for total, n, o in zip(self._total, new, old, strict=True)]
                self._hash[skill.id] = new
            state = b"".join(total.to_bytes(8, "little") for total in self._total)
            if state != row["book_hash"] or version != row["book_version"]:
                raise UsageError(
                    f"replay differs from the log at turn {row['turn']}: version {version} hash {state.hex()}, logged "
                    f"{row['book_version']} and {row['book_hash'].hex()}; the log is damaged or of another version"
                )
        self._batches = []


def _hashes(skills: Sequence[Skill]) -> U64:
    """Row hashes of skills, `[n, 2]`."""

    def column(name: str, kind: type[np.generic]) -> Any:
        return np.array([getattr(skill, name) for skill in skills], kind)

    examples = [sum(map(text_hash, skill.examples)) & _MASK for skill in skills]
    names = [text_hash(skill.name) for skill in skills]
    contents = [skill.content.key if skill.content else 0 for skill in skills]
    return row_hash(
        column("id", np.int32), np.array(names, np.uint64), column("source_turn", np.int32), column("active", np.bool_),
        column("uses", np.int32), column("ok", np.int32), column("partial", np.int32), column("miss", np.int32),
        column("born", np.int64), column("last_used", np.int64), column("last_ok", np.int64),
        np.array(examples, np.uint64), column("hours", np.int16).reshape(-1, 8), column("weekend", np.int32),
        column("after", np.int32), np.array(contents, np.uint64),
    )  # fmt: skip
