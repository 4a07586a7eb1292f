"""Law 8: skillbooks in arrays and as values go through the same states, whatever batches come."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from skg_bench.assistant.pipeline.skillbook_table import SkillbookTable, Stamp, Stored
from skg_bench.core.batch import (
    ADD,
    LINEAGE_BITS,
    OPERATIONS,
    REMOVE,
    TAG,
    TAG_RATINGS,
    TAKEN_BACK,
    UPDATE,
    Batch,
    blank,
)  # fmt: skip
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I32, I64
from skg_bench.core.texts import Texts
from skg_bench.core.types import NO_STARTS, RATINGS, Skillbooks
from skg_bench.engine.vectors import Rows
from skg_bench.skillbook.skillbook import Operation, Skill, Skillbook, apply
from tests.core import samples

USERS = 5
TEXTS = [f"message {i}" for i in range(30)]
NAMES = [f"name-{i}" for i in range(12)]
VECTORS = samples.vectors(np.random.default_rng(0), len(TEXTS), 384)


def new_table(n_users: int = USERS) -> SkillbookTable:
    """Empty books over TEXTS and NAMES."""
    return SkillbookTable(n_users).open(Texts(TEXTS, NAMES, None), Rows(VECTORS))


def batch_of(rows: list[dict[str, int]]) -> Batch:
    """A batch from rows; fields that are not given do not apply, and names count from the first one."""
    batch = blank(len(rows))
    for i, row in enumerate(rows):
        for field, value in row.items():
            getattr(batch, field)[i] = value + len(TEXTS) if field == "name" else value
    return batch


def unknown(n: int) -> Stored:
    """The answers that `n` operations store, where they do not matter."""
    return Stored(np.zeros(n, np.int64), np.full(n, -1, np.int32))


def stamp(time: I64, last: I32 | None = None, event: int = 0, local: I64 | None = None) -> Stamp:
    """The moment of a turn at which all users have event number `event`."""
    none = np.zeros(len(time), np.int32)
    return Stamp(time, time if local is None else local, none if last is None else last, none + event)


def skills_of(books: Skillbooks, row: int) -> tuple[Skill, ...]:
    """The view's skills as values."""
    known = np.arange(books.examples.text.shape[1]) < books.examples.count[row]
    made = []
    for s in range(books.n_skills[row]):
        texts = books.examples.text[row, known & (books.examples.skill[row] == s)]
        assert len(texts) == books.examples.of_skill[row, s]
        places = (books, ("uses", "ok", "partial", "miss", "born", "last_used")), (
            books.history, ("last_ok", "weekend", "after")
        )  # fmt: skip
        plain: dict[str, Any] = {k: int(getattr(of, k)[row, s]) for of, names in places for k in names}
        words: dict[str, Any] = {
            "name": NAMES[books.name[row, s] - len(TEXTS)],
            "source_turn": int(books.source[row, s]),
            "active": bool(books.active[row, s]),
            "examples": tuple(TEXTS[t] for t in texts),
            "hours": tuple(int(h) for h in books.history.hours[row, s]),
        }
        made.append(Skill(id=s, **words, **plain))
    return tuple(made)


class Twins(RuleBasedStateMachine):
    """A skillbook table of five users beside five books as values."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.books, self.turn = new_table(), [Skillbook()] * USERS, 1
        self.time: I64 = np.arange(USERS) * 40_000

    def _rows(self, data: st.DataObject, n: int) -> list[dict[str, int]]:
        rows: list[dict[str, int]] = []
        for _ in range(n):
            u = data.draw(st.integers(0, USERS - 1))
            have = len(self.books[u].skills)
            op = data.draw(st.sampled_from([ADD, UPDATE, TAG, TAG, TAG, REMOVE] if have else [ADD]))
            operation = {"row": u, "op": op}
            if op != ADD:
                operation["skill"] = data.draw(st.integers(0, have - 1))
            if op == ADD:
                operation["name"] = data.draw(st.integers(0, len(NAMES) - 1))
            if op in (ADD, UPDATE):
                operation["text"] = data.draw(st.integers(0 if op == ADD else -1, len(TEXTS) - 1))
                operation["source"] = data.draw(st.integers(self.turn // 2, self.turn))
            if op == TAG:
                operation |= {"rating": data.draw(self._rating(operation, rows)), "uses": data.draw(st.integers(0, 1))}
            rows.append(operation)
        return rows

    def _rating(self, tag: dict[str, int], rows: list[dict[str, int]]) -> st.SearchStrategy[int]:
        """None, one, or that one is taken back which the skill has, or gets in this batch before."""
        skill = self.books[tag["row"]].skills[tag["skill"]]
        before = [r["rating"] for r in rows if (r["row"], r.get("skill"), r["op"]) == (tag["row"], skill.id, TAG)]
        counts = [getattr(skill, name) + before.count(code) - before.count(code + TAKEN_BACK) for code, name in
                  enumerate(RATINGS)]  # fmt: skip
        return st.sampled_from([-1, 0, 1, 2, *(code + TAKEN_BACK for code, n in enumerate(counts) if n > 0)])

    @rule(data=st.data(), n=st.integers(0, 12), last=st.lists(st.integers(-1, 3), min_size=USERS, max_size=USERS))
    def a_turn(self, data: st.DataObject, n: int, last: list[int]) -> None:
        """Some operations, of any users, in any order."""
        rows, before = self._rows(data, n), np.array(last, np.int32)
        if rows and rows[-1]["op"] == ADD and data.draw(st.booleans()):
            u = rows[-1]["row"]
            added = len(self.books[u].skills) + sum(r["op"] == ADD and r["row"] == u for r in rows) - 1
            rows.append({"row": u, "op": REMOVE, "skill": added})  # at once
        answer = np.array([r.get("source", -1) % 7 for r in rows], np.int32)
        born = answer.astype(np.int64) * 1000 + 5
        local = self.time - 3600 * (np.arange(USERS) % 3) if self.turn % 2 else None  # clocks that were turned back
        now = stamp(self.time, before, self.turn, local)
        operated = self.table.apply(batch_of(rows), now, Stored(born, answer))
        for u in range(USERS):
            mine = [
                Operation(
                    OPERATIONS[r["op"]],
                    int(s),
                    int(self.time[u]),
                    NAMES[r["name"]] if "name" in r else None,
                    TEXTS[r["text"]] if r.get("text", -1) >= 0 else None,
                    r.get("source", -1),
                    TAG_RATINGS[r["rating"]] if r.get("rating", -1) >= 0 else None,
                    r.get("uses", 0),
                    last[u],
                    int(b),
                    local=None if local is None else int(local[u]),
                )
                for r, s, b in zip(rows, operated, born, strict=True)
                if r["row"] == u
            ]
            if mine:
                self.books[u] = apply(self.books[u], mine)
        last_of = {(r["row"], s): r["source"] for r, s in zip(rows, operated, strict=True) if r["op"] in (ADD, UPDATE)}
        for at, source in last_of.items():
            assert self.table.answer[at] == source % 7
        self.turn += 1
        self.time = self.time + 3000 * (1 + np.arange(USERS) * (self.turn % 9))

    @precondition(lambda self: any(book.skills for book in self.books))
    @rule(data=st.data(), code=st.integers(0, 2), more=st.integers(0, 3))
    def a_batch_that_takes_back_what_is_not_there(self, data: st.DataObject, code: int, more: int) -> None:
        """Is refused by both, and nothing of it happens; with as many ratings in the same batch it is applied."""
        u = data.draw(st.sampled_from([u for u, book in enumerate(self.books) if book.skills]))
        skill = data.draw(st.sampled_from(self.books[u].skills))
        has = getattr(skill, RATINGS[code])
        tags = [TAKEN_BACK + code] * (has + more + 1) + [code] * more
        rows = [{"row": u, "op": TAG, "skill": skill.id, "rating": rating} for rating in tags]
        mine = [Operation("TAG", skill.id, int(self.time[u]), rating=TAG_RATINGS[rating]) for rating in tags]
        hashes, versions = self.table.hash.copy(), self.table.version.copy()
        message = f"skill {skill.id} would have -1 ratings {RATINGS[code]}"
        with pytest.raises(ValueError, match=message):
            self.table.apply(batch_of(rows), stamp(self.time), unknown(len(rows)))
        with pytest.raises(UsageError, match=message):
            apply(self.books[u], mine)
        assert np.array_equal(self.table.hash, hashes)
        assert np.array_equal(self.table.version, versions)
        self.table.apply(batch_of(rows[1:]), stamp(self.time), unknown(len(rows) - 1))
        self.books[u] = apply(self.books[u], mine[1:]) if len(rows) > 1 else self.books[u]

    @precondition(lambda self: self.turn > 0)
    @rule(data=st.data(), op=st.sampled_from([TAG, UPDATE, REMOVE]), beyond=st.sampled_from([-1, 0, 7, 10_000]))
    def a_batch_with_an_unknown_skill(self, data: st.DataObject, op: int, beyond: int) -> None:
        """Is refused, and nothing of it happens."""
        u = data.draw(st.integers(0, USERS - 1))
        rows = self._rows(data, 3)
        added = sum(r["op"] == ADD and r["row"] == u for r in rows) if op == REMOVE else 0
        skill = beyond if beyond < 0 else len(self.books[u].skills) + added + beyond
        rows = [*rows, {"row": u, "op": op, "skill": skill, "text": 1, "source": 1, "rating": 0}]
        rows = rows if beyond else rows[::-1]
        hashes, versions = self.table.hash.copy(), self.table.version.copy()
        with pytest.raises(ValueError, match=f"operation on skill {skill}, which the skillbook does not have"):
            self.table.apply(batch_of(rows), stamp(self.time), unknown(len(rows)))
        assert np.array_equal(hashes, self.table.hash)
        assert np.array_equal(versions, self.table.version)

    @invariant()
    def examples_sum_to_vectors_of_the_length_that_is_kept(self) -> None:
        for u, book in enumerate(self.books):
            for skill in book.skills:
                total = VECTORS[[TEXTS.index(text) for text in skill.examples]].sum(axis=0, dtype=np.int64)
                assert self.table.square[u, skill.id] == total @ total

    @invariant()
    def both_are_in_the_same_state(self) -> None:
        view = self.table.view(USERS)
        for u, book in enumerate(self.books):
            assert skills_of(view, u) == book.skills
            assert self.table.version[u] == book.version
            assert self.table.hash[u].astype("<u8").tobytes() == book.hash
            assert self.table.n_active[u] == sum(s.active for s in book.skills)


TestTwins = pytest.mark.req("K18", "U01", "U08")(Twins.TestCase)
TestTwins.settings = settings(deadline=None, max_examples=30, stateful_step_count=20)


def test_a_view_holds_the_first_books_and_no_truth() -> None:
    table = new_table()
    view = table.view(2)
    columns = [getattr(of, f.name) for of in (view, view.examples, view.history) for f in fields(of)]
    assert {len(column) for column in columns if isinstance(column, np.ndarray) and column is not NO_STARTS} == {2}
    assert not {f for f in Skillbooks.__dataclass_fields__ if f.startswith("source_") or f == "answer"}


def test_a_book_grows_past_any_width() -> None:
    table = new_table(2)
    now = stamp(np.zeros(2, np.int64))
    for turn in range(60):
        rows = [{"row": 1, "op": ADD, "name": 1, "text": turn % 30, "source": turn}] * 3
        assert table.apply(batch_of(rows), now, unknown(3)).tolist() == [
            3 * turn,
            3 * turn + 1,
            3 * turn + 2,
        ]
    assert table.n_skills.tolist() == [0, 180]
    assert table.n_active.tolist() == [0, 180]
    assert [s.examples for s in skills_of(table.view(2), 1)] == [(TEXTS[i // 3 % 30],) for i in range(180)]


class Counted(np.ndarray[Any, Any]):
    """Column that counts the values which are taken out of it."""

    taken = 0

    def __getitem__(self, at: Any) -> Any:
        values = super().__getitem__(at)
        Counted.taken += np.size(values)
        return np.asarray(values)


@pytest.mark.parametrize("wide", ["captures", "renews"])
def test_a_wide_book_costs_the_book_beside_it_nothing(wide: str) -> None:
    """Both change in one batch: no more values are read than if each changed alone."""
    captures = {"op": ADD, "name": 1, "text": 4, "source": 9}
    renews = {"op": UPDATE, "skill": 2, "text": 6, "source": 9}
    small = [{"row": 1, **captures}, {"row": 1, **renews}]
    large = [{"row": 0, **(captures if wide == "captures" else renews)}]

    def read(*batches: list[dict[str, int]]) -> int:
        table = new_table(2)
        now = stamp(np.zeros(2, np.int64))
        for row, n in ((0, 400), (1, 3)):
            table.apply(batch_of([{"row": row, "op": ADD, "name": 1, "text": 5, "source": 0}] * n), now, unknown(n))
        for column in ("active", "example", "example_skill"):
            setattr(table, column, getattr(table, column).view(Counted))
        Counted.taken = 0
        for rows in batches:
            table.apply(batch_of(rows), now, unknown(len(rows)))
        assert table.n_active.tolist() == table.active.sum(axis=1).tolist()
        return Counted.taken

    assert read(small + large) <= read(small, large)
    assert read(large) < (10 if wide == "captures" else 410)


def test_the_lineage_of_a_skill_is_its_event_and_which_add_of_that_event_it_was() -> None:
    table = new_table(2)
    add = {"op": ADD, "name": 1, "text": 1, "source": 0}
    table.apply(
        batch_of([{"row": 1, **add}, {"row": 0, **add}, {"row": 1, **add}]), stamp(np.zeros(2, np.int64)), unknown(3)
    )
    table.apply(batch_of([{"row": 1, **add}]), stamp(np.ones(2, np.int64), event=7), unknown(1))
    renewed = {"row": 1, "op": UPDATE, "skill": 0, "source": 8}
    table.apply(batch_of([renewed]), stamp(np.ones(2, np.int64), event=8), unknown(1))
    assert table.view(2).lineage[1, :3].tolist() == [0, 1, 7 << LINEAGE_BITS]
    assert table.view(2).lineage[0, 0] == 0


def a_book(skills: int, at: int) -> SkillbookTable:
    """Two users, the second with so many skills, captured at time `at`."""
    table = new_table(2)
    rows = [{"row": 1, "op": ADD, "name": s % 12, "text": s % 30, "source": 3} for s in range(skills)]
    born = np.full(skills, at, np.int64)
    stored = Stored(born, np.arange(skills, dtype=np.int32))
    table.apply(batch_of(rows), stamp(np.full(2, at)), stored)
    return table


@pytest.mark.parametrize(("size", "given"), [(2, 40), (40, 2), (7, 7), (5, 0)])
def test_a_donors_book_takes_the_place_of_the_users_own(size: int, given: int) -> None:
    table, other = a_book(size, 10), a_book(given, 99)
    table.adopt(np.array([1]), other, np.array([1]))
    assert skills_of(table.view(2), 1) == skills_of(other.view(2), 1)
    assert len(skills_of(table.view(2), 1)) == given
    for column in ("hash", "version", "n_active"):
        assert np.array_equal(getattr(table, column), getattr(other, column))
    assert table.answer[1, :given].tolist() == list(range(given))
    assert (table.answer[1, given:] == -1).all()
    assert not table.active[1, given:].any()
    assert (table.example[1, given:] == -1).all()  # nothing of the user's own book
    assert skills_of(table.view(2), 0) == ()
    batch = batch_of([{"row": 1, "op": ADD, "name": 1, "text": 1, "source": 3}])
    if given:  # the books are two: what is learned in one is not in the other
        table.apply(batch, stamp(np.full(2, 100)), unknown(1))
        assert (table.n_skills[1], other.n_skills[1]) == (given + 1, given)


def test_in_hindsight_a_skill_is_never_younger_than_now_and_later_as_old_as_it_is() -> None:
    table = a_book(3, 500)
    hash_ = table.hash.copy()
    table.hindsight()
    for now, seen in ((100, 100), (400, 400), (499, 499), (501, 500), (900, 500), (200, 200)):
        table.as_of(np.full(2, now))
        view = table.view(2)
        for times in (view.born, view.last_used, view.history.last_ok):
            assert (times[1, :3] == seen).all()
    assert np.array_equal(table.hash, hash_)
