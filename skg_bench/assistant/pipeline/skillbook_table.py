"""The skillbooks of a cohort under one arm, as arrays that only grow. Curators change them through `apply` alone."""

from dataclasses import dataclass, fields

import numpy as np

from skg_bench.core.batch import (
    ADD,
    REMOVE,
    TAG,
    TAG_RATINGS,
    TAKEN_BACK,
    UPDATE,
    Batch,
    lineage,
    nth,
    stores,
)
from skg_bench.core.calendar import DAY
from skg_bench.core.grid import I32, I64, U64, Bool
from skg_bench.core.texts import Texts
from skg_bench.core.types import NO_STARTS, BookExamples, Similarity, Skillbooks, UseHistory
from skg_bench.skillbook.statehash import row_hash

_SKILL_COLUMNS: dict[str, tuple[type[np.generic], int]] = {
    "active": (np.bool_, 0), "name": (np.int32, -1), "source": (np.int32, -1), "uses": (np.int32, 0),
    "ok": (np.int32, 0), "partial": (np.int32, 0), "miss": (np.int32, 0), "born": (np.int64, 0),
    "last_used": (np.int64, 0), "last_ok": (np.int64, 0), "examples_of": (np.int32, 0), "square": (np.int64, 0),
    "weekend": (np.int32, 0),
    "after": (np.int32, -1), "lineage": (np.int64, -1), "examples_hash": (np.uint64, 0),
    "answer": (np.int32, -1), "content": (np.uint64, 0),
}  # fmt: skip
_VIEWED = tuple(f.name for f in fields(Skillbooks) if f.name not in ("examples", "history"))
_TIMES = ("born", "last_used", "last_ok")


@dataclass(frozen=True, slots=True)
class Stamp:
    """Time at which a turn's operations are applied, and the skill before, `[B]` each."""

    time: I64
    local: I64  # what the users' clocks show
    last_skill: I32  # the skill of the turn before
    event: I32  # number of the event
    added: I32 | None = None  # skills that were added at this event before; None: none


@dataclass(frozen=True, slots=True)
class Stored:
    """The answers that operations store, `[n]` each; anything where an operation stores none."""

    born: I64
    answer: I32  # handle in the world's ledger (core/world.py)


class SkillbookTable:
    """Skillbooks of B users. `answer`, what the world knows of the stored answer by, is in no view of the book."""

    active: Bool
    name: I32
    source: I32
    uses: I32
    ok: I32
    partial: I32
    miss: I32
    born: I64
    last_used: I64
    last_ok: I64
    examples_of: I32
    square: I64
    weekend: I32
    after: I32
    lineage: I64
    examples_hash: U64
    answer: I32
    content: U64

    _texts: Texts
    _similarity: Similarity
    _view: Skillbooks | None = None  # the last one; None: it would be of arrays that are no longer in use
    OF_ONE_TURN = ("_view",)  # no checkpoint has it (runfolder/saving.py)

    def __init__(self, n_users: int) -> None:
        self.n_skills = np.zeros(n_users, np.int32)
        self.n_examples = np.zeros(n_users, np.int32)
        self.n_active = np.zeros(n_users, np.int32)
        self.version = np.zeros(n_users, np.int32)
        self.hash = np.zeros((n_users, 2), np.uint64)
        for column, (kind, empty) in _SKILL_COLUMNS.items():
            setattr(self, column, np.full((n_users, 8), empty, kind))
        self.hours = np.zeros((n_users, 8, 8), np.int16)
        self.skill_hash = np.zeros((n_users, 8, 2), np.uint64)
        self.example = np.full((n_users, 8), -1, np.int32)
        self.example_skill = np.zeros((n_users, 8), np.int32)
        self._later: dict[str, I64] = {}  # times of skills as they are, where the book is from the future

    def open(self, texts: Texts, similarity: Similarity) -> "SkillbookTable":
        """Ready for operations, whose examples are texts of `texts`."""
        self._texts, self._similarity = texts, similarity
        return self

    def view(self, n_users: int) -> Skillbooks:
        """Read-only view of the first `n_users` books, which follows what is written into them."""
        if self._view is None or len(self._view.n_skills) != n_users:

            def seen(column: np.ndarray) -> np.ndarray:
                view = column[:n_users]
                view.flags.writeable = False
                return view

            examples = BookExamples(
                seen(self.n_examples), seen(self.example), seen(self.example_skill), seen(self.examples_of),
                seen(self.square), NO_STARTS,
            )  # fmt: skip
            history = UseHistory(seen(self.last_ok), seen(self.hours), seen(self.weekend), seen(self.after))
            columns = {column: seen(getattr(self, column)) for column in _VIEWED}
            self._view = Skillbooks(**columns, examples=examples, history=history)
        return self._view

    def hindsight(self) -> None:
        """Lets the books be read at earlier times too, from now on; they may not change any more."""
        self._later = {column: getattr(self, column).copy() for column in _TIMES}

    def as_of(self, now: I64) -> None:
        """No skill is younger than `now` `[b]`: what is from the future counts as made and used right now."""
        for column, later in self._later.items():
            np.minimum(later[: len(now)], now[:, None], out=getattr(self, column)[: len(now)])

    def adopt(self, rows: I64, other: "SkillbookTable", theirs: I64) -> None:
        """The books of users `rows` become those that users `theirs` have in `other`."""
        self._grow(other.active.shape[1], other.example.shape[1])
        for column, (_, empty) in _SKILL_COLUMNS.items():
            getattr(self, column)[rows] = empty
        self.hours[rows], self.skill_hash[rows], self.example[rows] = 0, 0, -1
        for column in (*_SKILL_COLUMNS, "hours", "skill_hash", "example", "example_skill"):
            copied = getattr(other, column)[theirs]
            getattr(self, column)[rows, : copied.shape[1]] = copied
        for column in ("n_skills", "n_examples", "n_active", "version", "hash"):
            getattr(self, column)[rows] = getattr(other, column)[theirs]

    def _grow(self, skills: int, examples: int) -> None:
        width = self.active.shape[1]
        if skills > width or examples > self.example.shape[1]:
            self._view = None
        if skills > width:
            new = max(skills, width + width // 4 + 4)
            for column, (_, empty) in _SKILL_COLUMNS.items():
                setattr(self, column, _widen(getattr(self, column), new, empty))
            self.hours, self.skill_hash = _widen(self.hours, new, 0), _widen(self.skill_hash, new, 0)
        width = self.example.shape[1]
        if examples > width:
            new = max(examples, width + width // 4 + 4)
            self.example, self.example_skill = _widen(self.example, new, -1), _widen(self.example_skill, new, 0)

    def apply(self, batch: Batch, stamp: Stamp, stored: Stored) -> I32:
        """Apply a turn's operations: TAGs first, then ADDs, UPDATEs and REMOVEs. Returns the skill of each operation.

        An UPDATE with an answer renews the stored one: the ratings of the old one are forgotten. One without an answer
        changes what the skill says, or adds an example, and nothing else. All or nothing: an operation on a skill that
        does not exist, or with a content that nobody wrote, raises ValueError before anything is changed, as do TAGs
        that take back more ratings than there are; of the skills that the batch itself adds, it may REMOVE some.
        """
        if not len(batch.op):
            return batch.skill
        skill = batch.skill.copy()
        add = (batch.op == ADD).nonzero()[0]
        rows = batch.row[add]
        skill[add] = self.n_skills[rows] + nth(rows)
        have = self.n_skills[batch.row]
        if len(add):
            more = np.bincount(rows, minlength=len(self.n_skills)).astype(np.int32)
            have = have + np.where((batch.op == ADD) | (batch.op == REMOVE), more[batch.row], 0)
        if not ((skill >= 0) & (skill < have)).all():
            wrong = np.flatnonzero((skill < 0) | (skill >= have))[0]
            raise ValueError(f"operation on skill {skill[wrong]}, which the skillbook does not have")
        self._check_counters(batch, skill)
        self._texts.contents.check(batch.content)
        with_text = (((batch.op == ADD) | (batch.op == UPDATE)) & (batch.text >= 0)).nonzero()[0]
        self._texts.know(batch.text[with_text])
        most = self.n_examples.max() + (np.bincount(batch.row[with_text]).max() if len(with_text) else 0)
        self._grow(int(skill.max(initial=-1)) + 1, int(most))

        tag = (batch.op == TAG).nonzero()[0]
        if len(tag):
            self._tag(batch.row[tag], skill[tag], batch.rating[tag], batch.uses[tag] > 0, stamp)
        touched = np.zeros(len(self.version), np.bool_)
        touched[batch.row] = True
        self.version += touched
        if len(tag) < len(skill):
            np.add.at(self.n_skills, rows, 1)
            self.name[rows, skill[add]] = batch.name[add]
            earlier = 0 if stamp.added is None else stamp.added[rows]
            self.lineage[rows, skill[add]] = lineage(stamp.event[rows], nth(rows) + earlier)
            answered = stores(batch).nonzero()[0]
            row, s = self._distinct(batch.row, skill)
            was_active = self.active[row, s]
            self._answer(batch, skill, answered, stamp)
            at = batch.row[answered], skill[answered]
            self.born[at] = stored.born[answered]
            self.answer[at] = stored.answer[answered]
            self._examples(batch.row[with_text], skill[with_text], batch.text[with_text])
            says = batch.content.nonzero()[0]
            self.content[batch.row[says], skill[says]] = batch.content[says]
            gone = (batch.op == REMOVE).nonzero()[0]
            self.active[batch.row[gone], skill[gone]] = False
            np.add.at(self.n_active, row, self.active[row, s].astype(np.int32) - was_active)
        self._rehash(batch.row, skill)
        return skill

    def _check_counters(self, batch: Batch, skill: I32) -> None:
        """Raises ValueError where a counter would fall below 0."""
        if not (batch.rating >= TAKEN_BACK).any():
            return
        rated = ((batch.op == TAG) & (batch.rating >= 0)).nonzero()[0]
        width, kinds = self.active.shape[1], TAKEN_BACK
        back, code = np.divmod(batch.rating[rated], kinds)
        flat = (batch.row[rated].astype(np.int64) * width + skill[rated]) * kinds + code
        distinct, index = np.unique(flat, return_inverse=True)
        code, at = distinct % kinds, np.divmod(distinct // kinds, width)
        left = np.choose(code, [self.ok[at], self.partial[at], self.miss[at]])
        left += np.bincount(index, 1 - 2 * back).astype(np.int32)
        if (wrong := (left < 0).nonzero()[0]).size:
            s, n, rating = at[1][wrong[0]], left[wrong[0]], TAG_RATINGS[code[wrong[0]]]
            raise ValueError(f"skill {s} would have {n} ratings {rating}: a TAG takes back one too many")

    def _tag(self, row: I32, s: I32, rating: I32, used: Bool, stamp: Stamp) -> None:
        for code, counter in enumerate((self.ok, self.partial, self.miss)):
            for given, by in ((code, 1), (code + TAKEN_BACK, -1)):
                matches = rating == given
                np.add.at(counter, (row[matches], s[matches]), by)
        good = rating == 0
        np.maximum.at(self.last_ok, (row[good], s[good]), stamp.time[row[good]])
        np.add.at(self.uses, (row[used], s[used]), 1)
        self._remember(row[used], s[used], stamp)

    def _answer(self, batch: Batch, skill: I32, at: I64, stamp: Stamp) -> None:
        row, s = batch.row[at], skill[at]
        self.active[row, s] = True
        self.source[row, s] = batch.source[at]
        self.last_ok[row, s] = stamp.time[row]
        for counter in (self.ok, self.partial, self.miss):
            counter[row, s] = 0
        self._remember(row, s, stamp)

    def _remember(self, row: I32, skill: I32, stamp: Stamp) -> None:
        """Remembers when and after what a skill was used or captured."""
        local = stamp.local[row]
        self.last_used[row, skill] = stamp.time[row]
        self.after[row, skill] = stamp.last_skill[row]
        np.add.at(self.hours, (row, skill, local // 10_800 % 8), 1)
        np.add.at(self.weekend, (row, skill), (local // DAY % 7 >= 5).astype(np.int32))

    def _examples(self, row: I32, s: I32, text: I32) -> None:
        position = self.n_examples[row] + nth(row)
        self.example[row, position] = text
        self.example_skill[row, position] = s
        self._lengthen(row, s, text, position)
        np.add.at(self.n_examples, row, 1)
        np.add.at(self.examples_of, (row, s), 1)
        np.add.at(self.examples_hash, (row, s), self._texts.hash[text])

    def _lengthen(self, row: I32, s: I32, text: I32, position: I64) -> None:
        """Sums of examples, longer by `text`: |a + b|^2 = |a|^2 + 2 ab + |b|^2 in whole numbers."""
        known = self.examples_of[row, s] + nth(row * np.int64(self.active.shape[1]) + s)
        n = np.where(known > 0, position, 0)  # examples that may be of the same skill; of a new skill there are none
        new = np.arange(len(n)).repeat(n)
        old = np.arange(len(new)) - (n.cumsum() - n).repeat(n)
        same = self.example_skill[row[new], old] == s[new]
        new, old = new[same], old[same]
        both = self._similarity.pairs(text[new], self.example[row[new], old])
        np.add.at(self.square, (row[new], s[new]), 2 * both.astype(np.int64))
        np.add.at(self.square, (row, s), self._similarity.pairs(text, text).astype(np.int64))

    def _distinct(self, row: I32, skill: I32) -> tuple[I64, I64]:
        """Each skill once, by row."""
        width = np.int64(self.active.shape[1])
        flat = np.unique(row * width + skill)
        return flat // width, flat % width

    def _rehash(self, row: I32, skill: I32) -> None:
        r, s = self._distinct(row, skill)
        flat: I64 = r * self.active.shape[1] + s

        def at(column: np.ndarray) -> np.ndarray:
            return column.reshape(-1)[flat]

        new = row_hash(
            s.astype(np.int32), self._texts.hash[at(self.name)], at(self.source), at(self.active), at(self.uses),
            at(self.ok), at(self.partial), at(self.miss), at(self.born), at(self.last_used), at(self.last_ok),
            at(self.examples_hash), self.hours.reshape(-1, 8)[flat], at(self.weekend), at(self.after),
            self._texts.contents.logged(at(self.content)),
        )  # fmt: skip
        with np.errstate(over="ignore"):
            np.add.at(self.hash, r, new - self.skill_hash[r, s])
        self.skill_hash[r, s] = new


def _widen(array: np.ndarray, width: int, empty: int) -> np.ndarray:
    out = np.full((array.shape[0], width, *array.shape[2:]), empty, array.dtype)
    out[:, : array.shape[1]] = array
    return out
