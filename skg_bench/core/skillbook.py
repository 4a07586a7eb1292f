"""One user's skillbook as a value: a readable form of a row of the skillbook table, rebuilt from logged operations.

`apply(book, operations)` is the algebra in plain Python; rebuilding a book from a log and comparing state hashes proves
that the log tells everything (law 8).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.statehash import row_hash, text_hash

_DAY = 86_400


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

    @property
    def success_rate(self) -> float | None:
        """Share of uses marked successful (SKG paper, 2.3); None before the first use."""
        return self.ok / self.uses if self.uses else None

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
        total = np.zeros(2, np.uint64)
        with np.errstate(over="ignore"):
            for s in self.skills:
                examples = sum(text_hash(e) for e in s.examples) & 0xFFFFFFFFFFFFFFFF
                total += row_hash(
                    _i32(s.id), np.array([text_hash(s.name)], np.uint64), _i32(s.source_turn), np.array([s.active]),
                    _i32(s.uses), _i32(s.ok), _i32(s.partial), _i32(s.miss), _i64(s.born), _i64(s.last_used),
                    _i64(s.last_ok), np.array([examples], np.uint64), np.array([s.hours], np.int16), _i32(s.weekend),
                    _i32(s.after),
                )[0]  # fmt: skip
        return total.astype("<u8").tobytes()


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
    reason: str = field(default="", compare=False)
    local: int | None = None  # what the user's clock showed, for hours and weekdays; None: `time`


_LOGGED = tuple(f.name for f in fields(Operation) if f.name != "local")


def apply(book: Skillbook, operations: Sequence[Operation]) -> Skillbook:
    """The book after one atomic batch (TAGs, ADDs, UPDATEs, REMOVEs): all operations, or UsageError and none."""
    skills = {s.id: s for s in book.skills}
    for op in sorted(operations, key=lambda o: ("TAG", "ADD", "UPDATE", "REMOVE").index(o.op)):
        if op.op == "ADD":
            if op.skill != len(skills):
                raise UsageError(f"ADD of skill {op.skill}, but the next id of this book is {len(skills)}")
            blank = Skill(op.skill, op.name or "", -1, (), True, 0, 0, 0, 0, 0, 0, 0, (0,) * 8, 0, -1)
            skills[op.skill] = _answered(blank, op)
            continue
        if op.skill not in skills:
            raise UsageError(f"{op.op} of skill {op.skill}, which the book does not have (it has {len(skills)} skills)")
        old = skills[op.skill]
        if op.op == "TAG":
            skills[op.skill] = _tagged(old, op)
        elif op.op == "UPDATE":
            skills[op.skill] = _answered(old, op)
        else:
            skills[op.skill] = replace(old, active=False)
    return Skillbook(tuple(skills.values()), book.version + 1)


def _answered(skill: Skill, op: Operation) -> Skill:
    examples = skill.examples if op.message is None else (*skill.examples, op.message)
    renewed = replace(
        skill, source_turn=op.source_turn, examples=examples, active=True, ok=0, partial=0, miss=0,
        born=op.time if op.born is None else op.born, last_ok=op.time,
    )  # fmt: skip
    return _remembered(renewed, op)


def _tagged(skill: Skill, op: Operation) -> Skill:
    counted = skill
    if op.rating is not None:
        counted = replace(counted, **{op.rating: getattr(skill, op.rating) + 1})
    if op.rating == "ok":
        counted = replace(counted, last_ok=max(skill.last_ok, op.time))
    return _remembered(replace(counted, uses=skill.uses + 1), op) if op.uses else counted


def _remembered(skill: Skill, op: Operation) -> Skill:
    hours, clock = list(skill.hours), op.time if op.local is None else op.local
    hours[clock // 10_800 % 8] += 1
    weekend = skill.weekend + int(clock // _DAY % 7 >= 5)
    return replace(skill, last_used=op.time, after=op.after, hours=tuple(hours), weekend=weekend)


def rebuild(rows: Iterable[dict[str, Any]], until: int | None = None) -> tuple[Skillbook, int]:
    """Rebuild a book from rows of the update log of one arm and user (time in seconds), up to turn `until`. `local` is
    in a row where the user's clock showed something else than `time`.

    Returns the book and the number of batches. Raises UsageError where a state hash or version differs from the log.
    """
    book, batches = Skillbook(), 0
    pending: list[Operation] = []
    last: dict[str, Any] | None = None

    def close() -> None:
        nonlocal book, batches, pending
        if last is None:
            return
        book, pending, batches = apply(book, pending), [], batches + 1
        if book.hash != last["book_hash"] or book.version != last["book_version"]:
            raise UsageError(
                f"replay differs from the log at turn {last['turn']}: version {book.version} hash {book.hash.hex()}, "
                f"logged {last['book_version']} and {last['book_hash'].hex()}; the log is damaged or of another version"
            )

    for row in rows:
        if until is not None and row["turn"] > until:
            break
        if last is not None and row["turn"] != last["turn"]:
            close()
        pending.append(Operation(**{k: row[k] for k in _LOGGED}, local=row.get("local")))
        last = row
    close()
    return book, batches


def _i32(x: int) -> Any:
    return np.array([x], np.int32)


def _i64(x: int) -> Any:
    return np.array([x], np.int64)
