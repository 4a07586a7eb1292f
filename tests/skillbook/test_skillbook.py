"""One user's skillbook as a value: what the four operations do, and what a log must say to be believed."""

from dataclasses import replace
from typing import Any

import pytest

from skg_bench.core.content import NAMES, Content
from skg_bench.core.errors import UsageError
from skg_bench.skillbook.skillbook import Operation, Skillbook, apply, rebuild

SATURDAY = 5 * 86_400 + 13 * 3600
ADD = Operation("ADD", 0, SATURDAY, name="get-time", message="what time is it", source_turn=4, after=-1)


def book_of(*batches: list[Operation]) -> Skillbook:
    book = Skillbook()
    for batch in batches:
        book = apply(book, batch)
    return book


@pytest.mark.req("K12", "K13")
def test_a_captured_skill_has_the_fields_of_the_paper() -> None:
    (skill,) = book_of([ADD]).skills
    assert (skill.name, skill.examples, skill.embedding_count) == ("get-time", ("what time is it",), 1)
    assert (skill.source_turn, skill.born, skill.last_used, skill.last_ok) == (4, SATURDAY, SATURDAY, SATURDAY)
    assert (skill.active, skill.uses, skill.success_rate, skill.weekend) == (True, 0, None, 1)
    assert skill.hours == (0, 0, 0, 0, 1, 0, 0, 0)


def test_hours_and_weekends_are_those_of_the_users_clock_and_times_are_not() -> None:
    (skill,) = book_of([replace(ADD, time=7 * 86_400 + 1800, local=7 * 86_400 - 1800)]).skills
    assert (skill.weekend, skill.hours) == (1, (0, 0, 0, 0, 0, 0, 0, 1))
    assert skill.born == skill.last_used == skill.last_ok == 7 * 86_400 + 1800


@pytest.mark.req("K13")
def test_the_success_rate_is_the_share_of_uses_marked_ok() -> None:
    use = Operation("TAG", 0, SATURDAY + 60, rating="ok", uses=1, after=0)
    book = book_of([ADD], [use], [replace(use, rating="miss")], [replace(use, rating=None)], [replace(use, uses=0)])
    (skill,) = book.skills
    assert (skill.uses, skill.ok, skill.miss, skill.success_rate) == (3, 2, 1, 2 / 3)
    assert (skill.last_ok, skill.last_used, skill.after) == (SATURDAY + 60, SATURDAY + 60, 0)


def test_a_rating_that_comes_later_is_no_use() -> None:
    late = Operation("TAG", 0, SATURDAY + 900, rating="partial")
    (skill,) = book_of([ADD], [late]).skills
    assert (skill.uses, skill.partial, skill.last_used, skill.last_ok) == (0, 1, SATURDAY, SATURDAY)


def test_a_rating_that_no_longer_counts_is_taken_back_and_times_stay() -> None:
    ok = Operation("TAG", 0, SATURDAY + 60, rating="ok", uses=1)
    back, again = (Operation("TAG", 0, SATURDAY + 900, rating=rating) for rating in ("ok taken back", "miss"))
    (skill,) = book_of([ADD], [ok], [back, again]).skills
    assert (skill.uses, skill.ok, skill.miss, skill.last_ok) == (1, 0, 1, SATURDAY + 60)
    assert book_of([ADD], [back, ok]) == book_of([ADD], [ok, back])  # in one batch order does not matter
    with pytest.raises(UsageError, match="skill 0 would have -1 ratings ok: a TAG takes back one too many"):
        book_of([ADD], [ok], [back], [back])


def test_an_update_renews_the_answer_and_keeps_examples_and_uses() -> None:
    use = Operation("TAG", 0, SATURDAY + 60, rating="miss", uses=1)
    again = Operation("UPDATE", 0, SATURDAY + 90, message="time please", source_turn=9, after=0)
    (skill,) = book_of([ADD], [use], [Operation("REMOVE", 0, SATURDAY + 70)], [again]).skills
    assert (skill.active, skill.examples, skill.source_turn) == (True, ("what time is it", "time please"), 9)
    assert (skill.uses, skill.miss, skill.born, skill.after) == (1, 0, SATURDAY + 90, 0)


def test_removing_is_soft() -> None:
    book = book_of([ADD], [Operation("REMOVE", 0, SATURDAY)])
    assert [s.active for s in book.skills] == [False]
    assert book.version == 2


@pytest.mark.parametrize(
    ("operation", "says"),
    [
        (Operation("TAG", 3, 0, rating="ok"), "TAG of skill 3, which the book does not have"),
        (Operation("UPDATE", 1, 0), "UPDATE of skill 1"),
        (Operation("REMOVE", -1, 0), "REMOVE of skill -1"),
        (Operation("ADD", 5, 0, name="x"), "ADD of skill 5, but the next id of this book is 1"),
    ],
)
def test_a_batch_is_applied_as_a_whole_or_not_at_all(operation: Operation, says: str) -> None:
    book = book_of([ADD])
    before = book.hash
    with pytest.raises(UsageError, match=says):
        apply(book, [Operation("TAG", 0, 0, rating="ok", uses=1), operation])
    assert book.hash == before


def test_the_hash_sees_every_field_and_not_the_way_there() -> None:
    (skill,) = book_of([ADD]).skills
    other: dict[str, Any] = {
        "id": 1, "name": "b", "source_turn": 5, "examples": ("b",), "active": False, "uses": 1, "ok": 1, "partial": 1,
        "miss": 1, "born": 1, "last_used": 1, "last_ok": 1, "hours": (1,) * 8, "weekend": 0, "after": 0,
        "content": Content("s", "i"),
    }  # fmt: skip
    assert {*other, "sources"} == set(type(skill).__dataclass_fields__)  # which turns taught it is no state
    hashes = {Skillbook((replace(skill, **{k: v}),)).hash for k, v in other.items()}
    assert len(hashes | {Skillbook((skill,)).hash, Skillbook().hash}) == len(other) + 2
    assert Skillbook().hash == bytes(16)
    b = replace(skill, id=1, name="b")
    assert Skillbook((skill, b)).hash == Skillbook((b, skill)).hash
    assert Skillbook((replace(skill, name="b"), replace(b, name=skill.name))).hash != Skillbook((skill, b)).hash
    there_and_back = replace(skill, examples=("x", "y")), replace(skill, examples=("y", "x"))
    assert Skillbook(there_and_back[:1]).hash == Skillbook(there_and_back[1:]).hash


def logged(*batches: list[Operation]) -> list[dict[str, Any]]:
    """Rows of an update log, at turns 0, 10, 20, ..."""
    book, rows = Skillbook(), []
    for turn, batch in enumerate(batches):
        book = apply(book, batch)
        rows += [
            {f: getattr(o, f) for f in Operation.__slots__}
            | {name: o.content and getattr(o.content, name) for name in NAMES}
            | {"keywords": o.content and " ".join(o.content.keywords)}
            | {"turn": 10 * turn, "book_version": book.version, "book_hash": book.hash}
            for o in batch
        ]
    return rows


BATCHES = (
    [ADD, replace(ADD, skill=1, name="other", message="b")],
    [Operation("TAG", 1, SATURDAY + 9, rating="ok", uses=1, after=0), replace(ADD, skill=2, name="third", message="c")],
    [Operation("REMOVE", 0, SATURDAY + 99)],
)


def test_a_log_rebuilds_every_past_book() -> None:
    rows = logged(*BATCHES)
    for until, batches in ((-1, 0), (0, 1), (9, 1), (10, 2), (25, 3), (None, 3)):
        book, n = rebuild(rows, until)
        assert (book, n) == (book_of(*BATCHES[:batches]), batches)


@pytest.mark.parametrize(
    ("row", "field", "value"),
    [
        (0, "name", "renamed"),
        (1, "message", "edited"),
        (2, "rating", None),
        (2, "after", 1),
        (3, "source_turn", 5),
        (4, "book_version", 4),
        (4, "book_hash", bytes(16)),
        (2, "time", SATURDAY + 10),
        (4, "op", "UPDATE"),
    ],
)
def test_a_log_that_was_touched_is_refused_with_the_turn(row: int, field: str, value: object) -> None:
    rows = logged(*BATCHES)
    rows[row] = rows[row] | {field: value}
    with pytest.raises(UsageError, match=rf"replay differs from the log at turn {rows[row]['turn']}"):
        rebuild(rows)


def test_a_log_that_lost_a_row_is_refused() -> None:
    for lost in range(1, 4):  # the last row of a batch also carries its hash
        rows = logged(*BATCHES)
        del rows[lost]
        with pytest.raises(UsageError):
            rebuild(rows)
