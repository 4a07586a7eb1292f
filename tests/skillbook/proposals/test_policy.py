"""What is admitted of a model's batch: each rule of the policy, and that each refusal is listed."""

from dataclasses import fields, replace
from typing import Any, get_args

import pytest

from skg_bench.core.batch import ADD, REMOVE, TAG, UPDATE
from skg_bench.core.content import Content
from skg_bench.core.errors import UsageError
from skg_bench.skillbook.proposals import (
    Admitted,
    Batches,
    Code,
    Limits,
    Proposed,
    Refused,
    admitted_operations,
    listed,
    refusals_of,
)
from tests.skillbook.proposals.proposing import (
    BOOK,
    LIMITS,
    MATH,
    NO_LIMITS,
    TONE,
    add,
    kinds,
    propose,
    refusals,
    remove,
    skill,
    tag,
    update,
)  # fmt: skip

ADD_V2 = {"type": "ADD", "section": "context", "issue": "Sums.", "insight": "Split.", "keywords": ["Long sums"]}


@pytest.mark.req("P23", "P24")
def test_operations_within_the_limits_become_operations_of_a_run() -> None:
    verdict = propose(add(), update("math-00001", "Split sums."), tag("math-00001"), remove("context-00005"))
    assert verdict.refusals == ()
    assert verdict.operations == (
        Proposed(ADD, -1, Content("math", "Check units."), -1),
        Proposed(UPDATE, 0, Content("Math Strategies", "Split sums."), -1),
        Proposed(TAG, 0, None, 0),
        Proposed(REMOVE, 4, None, -1),
    )


@pytest.mark.req("P23")
def test_operations_of_schema_2_say_issue_insight_and_keywords() -> None:
    part = {"type": "UPDATE", "skill_id": "context-00005", "insight": "At once."}
    again = {**part, "insight": None, "keywords": ["b"]}
    rated = {"type": "TAG", "skill_id": "math-00001", "metadata": {"delta": -1}}
    verdict = propose(ADD_V2, part, again, rated, batches="v2")
    assert verdict.refusals == ()
    assert [operation.content for operation in verdict.operations] == [
        Content("context", "Sums.", "Split.", ("long_sums",)),
        Content("context", "Ask.", "At once.", ("ask",)),
        Content("context", "Ask.", "At once.", ("b",)),  # builds on the UPDATE before
        None,
    ]
    assert verdict.operations[-1].rating == 2


def test_an_update_builds_on_the_updates_that_were_admitted_alone() -> None:
    long = {"type": "UPDATE", "skill_id": "context-00005", "issue": "x" * 300}
    short = {"type": "UPDATE", "skill_id": "context-00005", "insight": "At once."}
    verdict = propose(long, short, batches="v2")
    assert refusals(verdict) == [(1, "too long")]
    assert [operation.content for operation in verdict.operations] == [Content("context", "Ask.", "At once.", ("ask",))]


def test_the_single_text_of_v1_takes_the_place_of_issue_and_insight_and_keeps_keywords() -> None:
    (operation,) = propose(update("context-00005", "Ask early.")).operations
    assert operation.content == Content("context", "Ask early.", None, ("ask",))


# ------------------------------------------------------------------------------------------------------- limits


@pytest.mark.req("P23")
@pytest.mark.parametrize(("operations", "refused"), [
    ([add("a"), add("b"), add("c")], [(3, "too many ADDs")]),
    ([remove("math-00001"), remove("context-00005")], [(2, "too many REMOVEs")]),
    ([tag("tone-00002")], [(1, "not shown")]),
    ([update("tone-00002", "Be rude.")], [(1, "too few ratings")]),
    ([remove("tone-00002")], [(1, "too few ratings")]),
    ([tag("math-00001"), tag("math-00001", harmful=1)], [(2, "too many ratings")]),
    ([tag("math-00001", helpful=2)], [(1, "too many ratings")]),
    ([tag("math-00001", helpful=1, harmful=1)], [(1, "too many ratings")]),
    ([add("x" * 197, "math")], [(1, "too long")]),
    ([update("math-00001", "x" * 186)], [(1, "too long")]),
    ([add("Read the\u202e text.")], [(1, "control characters")]),
    ([add("Read\x00 it.")], [(1, "control characters")]),
    ([update("math-00001", "Read\x00 it.")], [(1, "control characters")]),
    ([add("Read it.", "ma\u200bth")], [(1, "control characters")]),
    ([update("math-00001", "Go to https://shop.example.")], [(1, "an address")]),
    ([add("Go.", "www.shop.example")], [(1, "an address")]),
    ([add("Same."), add(" Same. ")], [(2, "said twice")]),
    ([update("context-00004", "Back.")], [(1, "archived")]),
    ([remove("context-00004")], [(1, "archived")]),
    ([update("math-00001", MATH.issue)], [(1, "no effect")]),
    ([update("math-00001", "New."), remove("math-00001")], [(2, "contradiction")]),
    ([remove("math-00001"), update("math-00001", "New.")], [(2, "contradiction")]),
])  # fmt: skip
def test_what_is_against_the_policy_is_refused_alone(operations: list[Any], refused: list[tuple[int, str]]) -> None:
    verdict = propose(*operations, tag("context-00005"), used=(0, 4))
    numbers = {number for number, _ in refused}
    kept = [operation["type"] for number, operation in enumerate(operations, 1) if number not in numbers]
    assert refusals(verdict) == refused
    assert [kind for kind, _ in kinds(verdict)] == [*kept, "TAG"]


@pytest.mark.parametrize(("operation", "limits"), [
    (add("x" * 196, "math"), LIMITS),
    (update("math-00001", "x" * 185), LIMITS),
    (tag("math-00001", helpful=2, harmful=1), replace(LIMITS, ratings=3)),
    (remove("tone-00002"), replace(LIMITS, tags=2)),
    (add("x" * 25_000), NO_LIMITS),
    (add("Line one\nline\ttwo\r\nnamaste \u0928\u200d\u092e"), LIMITS),
])  # fmt: skip
def test_what_just_keeps_within_a_limit_is_admitted(operation: dict[str, Any], limits: Limits) -> None:
    verdict = propose(operation, limits=limits)
    assert verdict.refusals == ()
    assert verdict.operations


@pytest.mark.parametrize("batches", ["v1", "compat-v1"])
def test_a_frozen_skillbook_takes_ratings_alone_and_says_of_each_other_operation_that_it_is(batches: Batches) -> None:
    batch = {"operations": [add(), tag("math-00001"), update("math-00001", "Split sums."), remove("context-00005")]}
    verdict = admitted_operations(batch, BOOK, [0], LIMITS, batches, frozen=True)
    assert verdict.operations == (Proposed(TAG, 0, None, 0),)
    assert [(r.number, r.code) for r in verdict.refusals] == [(1, "frozen"), (3, "frozen"), (4, "frozen")]


def test_a_tag_of_several_becomes_as_many_operations() -> None:
    verdict = propose(tag("math-00001", helpful=2, harmful=1, neutral=0), limits=replace(LIMITS, ratings=3))
    assert [(operation.skill, operation.rating) for operation in verdict.operations] == [(0, 0), (0, 0), (0, 2)]
    huge = propose(tag("math-00001", helpful=2**31 - 1), tag("math-00001"), batches="compat-v1")
    assert (refusals(huge), len(huge.operations)) == ([(1, "too many ratings")], 1)


def test_ratings_of_the_batch_itself_open_no_skill() -> None:
    verdict = propose(tag("tone-00002", harmful=3), remove("tone-00002"), used=(1,), limits=replace(LIMITS, ratings=3))
    assert refusals(verdict) == [(2, "too few ratings")]


def test_a_tag_goes_with_a_remove_of_the_same_skill() -> None:
    verdict = propose(tag("math-00001", harmful=1), remove("math-00001"))
    assert (kinds(verdict), verdict.refusals) == ([("TAG", 0), ("REMOVE", 0)], ())


def test_what_is_refused_counts_for_no_limit() -> None:
    verdict = propose(add("x" * 300), add("a"), add("a"), add("b"), remove("tone-00002"), remove("math-00001"))
    assert refusals(verdict) == [(1, "too long"), (3, "said twice"), (5, "too few ratings")]
    assert kinds(verdict) == [("ADD", -1), ("ADD", -1), ("REMOVE", 0)]


def test_operations_beyond_the_limit_are_not_even_read() -> None:
    verdict = propose(add("a"), add("b"), {"type": "BURN"}, *[add("c")] * 9, limits=replace(LIMITS, operations=2))
    assert verdict.refusals == (Refused(3, "", "", "too many operations: 12, of which the first 2 are read"),)
    assert len(verdict.operations) == 2


def test_a_second_remove_of_a_skill_is_said_twice() -> None:
    assert refusals(propose(remove("math-00001"), remove("math-00001"))) == [(2, "said twice")]


def test_skills_that_say_nothing_are_no_skills_of_a_proposal() -> None:
    book = (skill(0, None), skill(1, MATH))
    assert refusals(propose(remove("skill-00001"), book=book)) == [(0, "unknown skill")]
    assert kinds(propose(remove("math-00002"), book=book)) == [("REMOVE", 1)]


# ------------------------------------------------------------------------------------------------------ atomic


@pytest.mark.req("U08")
@pytest.mark.parametrize(("operation", "reason"), [
    ({"type": "BURN", "section": "s"}, "invalid: operation 2 has the type"),
    ({**add(), "type": "add"}, "invalid: operation 2 has the type"),
    ("REMOVE all", "invalid: operation 2 is"),
    ({**add(), "colour": 1}, "invalid: operation 2 has the field"),
    ({**add(), "skill_id": "math-00009"}, "invalid: operation 2 has the field"),
    ({**add(), "content": ["a"]}, "invalid: operation 2.content is"),
    ({"type": "ADD", "section": "s"}, "invalid: operation 2 lacks content"),
    (ADD_V2, "invalid: operation 2 has the field"),
    (tag("math-00001", helpful=-1), "invalid: operation 2.metadata.helpful is -1"),
    (tag("math-00001", helpful=0), "invalid: operation 2 lacks metadata"),
    (remove("math-00099"), "unknown skill: operation 2 (REMOVE) names 'math-00099'"),
    (tag("x" * 5000), "unknown skill: operation 2 (TAG) names 'xxx"),
    (update("math-00006", "of the batch's own ADD"), "unknown skill: operation 2"),
    (update("math-00001", "New.", section="tone"), "invalid: operation 2 names the section"),
])  # fmt: skip
def test_a_malformed_operation_refuses_the_whole_batch(operation: Any, reason: str) -> None:
    verdict = propose(add(), operation, tag("math-00001"))
    assert verdict.operations == ()
    (refusal,) = verdict.refusals
    assert (refusal.number, refusal.type, refusal.skill) == (0, "", "")
    assert refusal.reason.startswith(reason)
    assert len(refusal.reason) < 250


@pytest.mark.req("U08")
@pytest.mark.parametrize("batches", ["v1", "v2"])
@pytest.mark.parametrize("batch", [
    None, [], "text", {}, {"operations": None}, {"operations": 3}, {"operations": {}}, {"operations": [], "extra": 1},
    {"operations": [], "reasoning": 3}, {"operations": [10**5000]}, {"operations": [None]},
])  # fmt: skip
def test_what_is_no_batch_is_refused_whole(batch: Any, batches: Batches) -> None:
    verdict = admitted_operations(batch, BOOK, (0,), LIMITS, batches)
    assert (verdict.operations, refusals(verdict)) == ((), [(0, "invalid")])


def test_a_batch_without_operations_changes_nothing_and_is_no_refusal() -> None:
    assert propose() == Admitted((), ())
    assert admitted_operations({"operations": [], "reasoning": None}, BOOK, (), LIMITS, "v2") == Admitted((), ())


def test_a_kind_of_batches_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(UsageError, match="batches='v3', valid are v1, v2, compat-v1, compat-v09, compat-v2"):
        propose(batches="v3")  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------- nulls


@pytest.mark.req("P24")
@pytest.mark.parametrize("batches", ["v1", "compat-v1"])
def test_null_fields_of_structured_answers_are_left_out(batches: Batches) -> None:
    """The prompt's schema has all fields in every operation, and all counters in every metadata."""
    none = dict.fromkeys(("content", "skill_id", "metadata"))
    counters = {"helpful": None, "harmful": 1, "neutral": None}
    verdict = propose(
        {**none, **add()},
        {**none, **update("math-00001", "New."), "section": "Math Strategies"},
        {**none, **tag("math-00001"), "metadata": counters},
        {**none, **remove("context-00005"), "metadata": dict.fromkeys(counters)},
        batches=batches,
    )
    assert [code for _, code in refusals(verdict)] == (["no counterpart"] if batches == "compat-v1" else [])
    assert kinds(verdict) == [("ADD", -1), ("UPDATE", 0), ("TAG", 0), ("REMOVE", 4)]
    assert verdict.operations[2].rating == 2


def test_counters_of_zero_say_nothing_and_a_delta_of_zero_is_neutral() -> None:
    assert [operation.rating for operation in propose(tag("math-00001", helpful=0, neutral=1)).operations] == [1]
    neutral = {"type": "TAG", "skill_id": "math-00001", "metadata": {"delta": 0}}
    assert [operation.rating for operation in propose(neutral, batches="v2").operations] == [1]


# -------------------------------------------------------------------------------------------------- the records


@pytest.mark.req("P23")
def test_refusals_are_written_as_canonical_json_and_read_again() -> None:
    verdict = propose(remove("tone-00002"), add("Go to http://a.example."))
    text = listed(verdict.refusals)
    assert text == (
        '[{"number":1,"reason":"too few ratings: 2, at least 3","skill":"tone-00002","type":"REMOVE"},'
        '{"number":2,"reason":"an address","skill":"","type":"ADD"}]'
    )
    assert refusals_of(text) == verdict.refusals
    assert (listed(()), refusals_of("")) == ("", ())


def test_a_refusal_repeats_no_hidden_character_of_the_model() -> None:
    evil = "\u202e\x1b[2J" * 20
    shown = [
        propose({"type": evil, "section": evil}), propose(tag(evil)), propose({**add(), evil: 1}),
        propose(remove(evil), batches="compat-v1"), propose(add(evil), batches="compat-v1"),
    ]  # fmt: skip
    for verdict in shown:
        assert verdict.refusals
        assert all(f"{r.type}{r.skill}{r.reason}".isprintable() and len(r.reason) < 250 for r in verdict.refusals)
        assert all(refusal.code in get_args(Code) for refusal in verdict.refusals)


@pytest.mark.parametrize("name", [field.name for field in fields(Limits)])
def test_each_limit_is_checked(name: str) -> None:
    least = 1 if name in ("ratings", "characters", "operations") else 0
    assert getattr(replace(LIMITS, **{name: least}), name) == least
    with pytest.raises(UsageError, match=rf"limits\.{name}={least - 1} must be at least {least}"):
        replace(LIMITS, **{name: least - 1})


def test_without_room_nothing_is_admitted() -> None:
    every = [add(), update("math-00001", "New."), tag("math-00001"), remove("context-00005")]
    closed = replace(NO_LIMITS, adds=0, removes=0, tags=99)
    assert kinds(propose(*every, limits=closed)) == [("TAG", 0)]
    assert TONE.size > 10
    assert propose(*every[:2], limits=replace(NO_LIMITS, characters=10)).operations == ()
