"""Batches through the policy, and the same batches through the document algebras: the same skillbooks come out."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from skg_bench.core.batch import ADD
from skg_bench.core.content import Content
from skg_bench.core.errors import UsageError
from skg_bench.skillbook.ace.book import COUNTERS, AceBook, CompatMode, Era, to_dict
from skg_bench.skillbook.ace.changes import SETTABLE
from skg_bench.skillbook.ace.engine import apply_as_published
from skg_bench.skillbook.ace.strict import strict
from skg_bench.skillbook.conversion import to_ace
from skg_bench.skillbook.proposals import Admitted, Batches, admitted_operations
from skg_bench.skillbook.skillbook import Skillbook, apply
from tests.skillbook.ace.garbage import Dice
from tests.skillbook.ace.play import NOW
from tests.skillbook.proposals.proposing import (
    BOOK,
    LIMITS,
    NO_LIMITS,
    add,
    kinds,
    operations_of,
    propose,
    refusals,
    remove,
    skill,
    tag,
    update,
)

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
COMPAT: list[tuple[Batches, CompatMode, Era]] = [
    ("compat-v1", "compat-v1", "v1"), ("compat-v09", "compat-v09", "v09"), ("compat-v2", "compat-v2", "v2"),
]  # fmt: skip
STRICT: list[tuple[Batches, Era]] = [("v1", "v1"), ("v2", "v2")]
APART = {"justification", "evidence"}
ALONGSIDE = {  # refusals of parts that are not compared
    "the published engine deletes the skill; here it is archived", "where it comes from is not kept",
    "sets justification", "sets evidence", "sets evidence, justification",
}  # fmt: skip
DIFFERS = {
    "control characters",
    "an address",
    "invalid",
    "contradiction",
    "archived",
    "no counterpart",
    "not shown",
    "said twice",
}


def book_of(era: Era) -> Skillbook:
    """Four skills, the third one archived."""
    sections = ("context", "harness", "context", "context") if era == "v2" else ("math", "tone", "context", "context")
    return Skillbook(tuple(
        skill(i, Content(section, f"issue {i}", f"insight {i}", ("k", f"k{i}")), (i, 1, 2), active=i != 2)
        for i, section in enumerate(sections)
    ))  # fmt: skip


def after(book: Skillbook, verdict: Admitted) -> Skillbook:
    return apply(book, operations_of(verdict.operations, len(book.skills)))


def document(book: Skillbook, era: Era) -> AceBook:
    return to_ace(book, era, MONDAY).book


def contents(book: AceBook) -> dict[str, dict[str, Any]]:
    """What each skill says, its counters, and whether it is active."""
    names = (*SETTABLE[book.era], *COUNTERS[book.era], "section", "active", "status")
    entries: Mapping[str, Mapping[str, Any]] = to_dict(book)["skills"]
    return {
        key: {name: entry[name] for name in names if name in entry and name not in APART}
        for key, entry in entries.items()
    }


def is_removed(entry: Mapping[str, Any]) -> bool:
    return entry.get("status") == "invalid" or entry.get("active") is False


def compared(batch: Any, batches: Batches, mode: CompatMode, era: Era) -> Counter[str]:
    """Compare what is not among the refusals; how many skills of each sort that were."""
    book, counts = book_of(era), Counter[str]()
    verdict = admitted_operations(batch, book.skills, range(4), NO_LIMITS, batches)
    before = contents(document(book, era))
    theirs = contents(apply_as_published(document(book, era), batch, mode, NOW).book)
    entries = list(contents(document(after(book, verdict), era)).values())
    ours = dict(zip(before, entries, strict=False))  # by their places: an ADD over a skill may change its section
    explicit = {str(item.get("skill_id")) for item in _items(batch) if str(item.get("type")).upper() == "ADD"}
    apart = [r for r in verdict.refusals if r.code in DIFFERS and r.reason.partition(": ")[2] not in ALONGSIDE]
    noted = {r.skill for r in apart} | explicit
    for key, old in before.items():
        if key not in noted:
            if key in theirs:
                assert ours[key] == theirs[key]
            else:
                assert is_removed(ours[key])
            counts["removed"] += key not in theirs or is_removed(theirs[key]) > is_removed(old)
            counts["changed"] += key in theirs and theirs[key] != old
    if not any(r.type in ("", "ADD") or r.code == "not shown" for r in apart):
        new = [entry for key, entry in theirs.items() if key not in before]
        assert entries[len(before) :] == new
        counts["added"] += len(new)
    return counts


def without_nulls(value: Any) -> Any:
    """As structured answers are read here, and not by the published engines."""
    if isinstance(value, list):
        return [without_nulls(entry) for entry in value]
    return {k: without_nulls(v) for k, v in value.items() if v is not None} if isinstance(value, dict) else value


def _items(batch: Any) -> list[Any]:
    items = batch.get("operations") if isinstance(batch, dict) else []
    return [item for item in (items if isinstance(items, list) else []) if isinstance(item, dict)]


@pytest.mark.req("P23", "P24")
@pytest.mark.parametrize(("batches", "mode", "era"), COMPAT)
def test_what_is_admitted_of_garbage_is_what_the_published_engine_makes_of_it(
    batches: Batches, mode: CompatMode, era: Era
) -> None:
    counts = Counter[str]()
    for seed in range(1200):
        counts += compared(without_nulls(Dice(seed, era).batch()), batches, mode, era)
    assert min(counts[name] for name in ("added", "changed", "removed")) > 40, counts


def operations(era: Era) -> st.SearchStrategy[dict[str, Any]]:
    """Operations that mostly are sound."""
    keys = ["context-00001", "harness-00002"] if era == "v2" else ["math-00001", "tone-00002"]
    key = st.sampled_from([*keys, "context-00003", "context-00004", "context-00005", "nope-00009"])
    words = st.sampled_from(["split", "brief", "ask first", " "])
    if era == "v2":
        section = st.sampled_from(["context", "harness"])
        said = {"issue": words, "insight": words, "keywords": st.just(["k", "New one"])}
        gains: st.SearchStrategy[Any] = st.fixed_dictionaries({"delta": st.integers(-1, 1)})
    else:
        section = st.sampled_from(["math", "Tone of voice"])
        said = {"content": words}
        gains = st.dictionaries(st.sampled_from(["helpful", "harmful", "neutral"]), st.integers(1, 3), min_size=1)
    return st.one_of(
        st.fixed_dictionaries({"type": st.just("ADD"), "section": section, **said}),
        st.fixed_dictionaries({"type": st.just("UPDATE"), "skill_id": key}, optional=said),
        st.fixed_dictionaries({"type": st.just("TAG"), "skill_id": key, "metadata": gains}),
        st.fixed_dictionaries({"type": st.just("REMOVE"), "skill_id": key}),
    )


@pytest.mark.req("P23")
@pytest.mark.parametrize(("batches", "mode", "era"), COMPAT)
@given(data=st.data())
def test_any_sound_batch_has_the_published_outcome(
    batches: Batches, mode: CompatMode, era: Era, data: st.DataObject
) -> None:
    items = data.draw(st.lists(operations(era), max_size=5))
    compared({"reasoning": "", "operations": items}, batches, mode, era)


@pytest.mark.req("U08", "P23")
@pytest.mark.parametrize(("batches", "era"), STRICT)
@given(data=st.data())
def test_strict_batches_have_the_outcome_of_the_strict_algebra(batches: Batches, era: Era, data: st.DataObject) -> None:
    items = data.draw(st.lists(operations(era), max_size=5))
    book = book_of(era)
    verdict = admitted_operations({"operations": items}, book.skills, range(4), NO_LIMITS, batches)
    numbers = {refusal.number for refusal in verdict.refusals}
    if 0 in numbers:
        event("refused whole")
        assert verdict.operations == ()
        assert len(verdict.refusals) == 1
        own = any(item.get("skill_id") == "context-00005" for item in items)  # the id of an ADD of the batch itself
        if not own:
            with pytest.raises(UsageError):
                strict(document(book, era), {"operations": items}, NOW)
        return
    event(f"{len(items) - len(numbers)} operations")
    kept = [item for number, item in enumerate(items, 1) if number not in numbers]
    kept.sort(key=lambda item: item["type"] == "REMOVE")  # as a run applies them; here v1 deletes
    theirs = contents(strict(document(book, era), {"operations": kept}, NOW))
    ours = contents(document(after(book, verdict), era))
    assert all(is_removed(entry) for key, entry in ours.items() if key not in theirs)
    assert {key: entry for key, entry in ours.items() if key in theirs} == theirs


def test_a_free_section_stays_as_the_prompt_shows_it_in_schema_2() -> None:
    change = {"type": "UPDATE", "section": "Math Strategies", "skill_id": "math-00001", "issue": "Split sums."}
    for batches in ("v2", "compat-v2"):
        (operation,) = propose(change, batches=batches).operations
        assert operation.content == Content("Math Strategies", "Split sums.")


def test_a_skill_of_context_without_an_insight_can_be_updated_in_schema_2() -> None:
    """The published engine fails at such a skill, which v2 cannot hold but a run can."""
    verdict = propose(
        {"type": "UPDATE", "skill_id": "context-00001", "issue": "New."},
        batches="compat-v2", book=(skill(0, Content("context", "Old.")),),
    )  # fmt: skip
    assert (verdict.refusals, verdict.operations[0].content) == ((), Content("context", "New."))


# ----------------------------------------------------------------------------------- what has no counterpart


@pytest.mark.parametrize(("batches", "operation", "reason"), [
    ("compat-v1", add(skill_id="mine"), "an explicit id"),
    ("compat-v1", add(metadata={"helpful": 3}), "sets helpful"),
    ("v1", add(metadata={"helpful": 3}), "sets helpful"),
    ("compat-v1", add(metadata={"status": 3}), "sets status"),
    ("compat-v1", update("math-00001", "New.", metadata={"helpful": 9}), "sets helpful"),
    ("compat-v1", tag("math-00001", helpful=-1), "a counter that falls"),
    ("compat-v1", remove("math-00001"), "the published engine deletes the skill; here it is archived"),
    ("compat-v09", remove("math-00001"), "the published engine deletes the skill; here it is archived"),
    ("compat-v09", update("math-00001", "New.", justification="j", evidence="e"), "sets evidence, justification"),
    ("compat-v09", add(justification="j"), "sets justification"),
    ("compat-v09", add(insight_source={"trace_id": "t"}), "where it comes from is not kept"),
    ("compat-v09", add(reflection_index=2), "where it comes from is not kept"),
])  # fmt: skip
def test_what_skillbooks_of_a_run_cannot_do_is_listed_and_the_rest_is_admitted(
    batches: Batches, operation: dict[str, Any], reason: str
) -> None:
    verdict = propose(operation, batches=batches)
    assert len(verdict.refusals) == 1
    assert verdict.refusals[0].reason.startswith(f"no counterpart: {reason}")
    assert verdict.refusals[0].type == operation["type"]
    assert [kind for kind, _ in kinds(verdict)] == ([] if "falls" in reason else [operation["type"]])


@pytest.mark.parametrize("part", ["issue", "insight", "section", "keywords"])
def test_each_text_of_a_published_batch_is_looked_at(part: str) -> None:
    """Strict batches are looked at as they stand; here the engine may have put the words elsewhere."""
    evil = "www.shop.example"
    operation = {"type": "ADD", "section": "context", "issue": "a", "insight": "b", "keywords": ["c"]}
    verdict = propose({**operation, part: [evil] if part == "keywords" else evil}, batches="compat-v2")
    assert (verdict.operations, refusals(verdict)) == ((), [(1, "an address")])


def test_an_add_over_a_skill_is_an_update_for_the_policy() -> None:
    """An explicit id would otherwise be a way round the ratings that an UPDATE needs."""
    verdict = propose(add("Mine.", skill_id="math-00001"), batches="compat-v1")
    assert kinds(verdict) == [("UPDATE", 0)]
    assert verdict.operations[0].content == Content("math", "Mine.")
    assert [refusal.reason for refusal in verdict.refusals] == [
        "no counterpart: counters of a replaced skill begin again; here they go on"
    ]
    assert refusals(propose(add(skill_id="tone-00002"), batches="compat-v1")) == [(1, "too few ratings")]
    assert refusals(propose(add(skill_id="context-00004"), batches="compat-v1")) == [(1, "archived")]


def test_after_an_add_its_explicit_id_is_not_the_old_skill() -> None:
    batch = (remove("math-00001"), add(skill_id="math-00001"), tag("math-00001"))
    verdict = propose(*batch, batches="compat-v1")
    assert kinds(verdict) == [("REMOVE", 0), ("ADD", -1)]
    assert refusals(verdict) == [(1, "no counterpart"), (2, "no counterpart"), (3, "not shown")]


@pytest.mark.req("U08")
def test_a_published_engine_keeps_what_came_before_the_operation_that_fails_and_the_rest_is_listed() -> None:
    """The comparison of two arms: what does an apply cost that is not atomic?"""
    batch = (tag("math-00001"), add("x", " "), add(), remove("context-00005"))
    assert (propose(*batch).operations, refusals(propose(*batch))) == ((), [(0, "invalid")])
    verdict = propose(*batch, batches="compat-v1")
    assert kinds(verdict) == [("TAG", 0)]
    assert [refusal.reason for refusal in verdict.refusals] == [
        "no counterpart: a number that is used up",
        "invalid: the published engine fails here with IndexError",
        "no effect: the published engine failed at operation 2",
        "no effect: the published engine failed at operation 2",
    ]


def test_what_a_published_engine_drops_is_listed() -> None:
    batch = (
        "garbage",
        remove("nope-00001"),
        tag("math-00001", helpful=0),
        update("math-00001", "New."),
        {"type": "TAG"},
        {"type": "UPDATE", "skill_id": "math-00001"},
    )
    verdict = propose(*batch, batches="compat-v1")
    assert kinds(verdict) == [("UPDATE", 0)]
    assert refusals(verdict) == [
        (1, "no effect"),
        (2, "unknown skill"),
        (3, "no effect"),
        (5, "no effect"),
        (6, "no effect"),
    ]
    assert refusals(propose(tag("math-00001"), batches="compat-v09")) == [(1, "no effect")]


@pytest.mark.parametrize("batches", ["compat-v1", "compat-v09", "compat-v2"])
@pytest.mark.parametrize("batch", [
    None, [], "text", {}, {"operations": 3}, {"operations": [{"type": "BURN"}]}, {"operations": [{"section": "s"}]},
])  # fmt: skip
def test_a_batch_that_a_published_engine_cannot_read_is_refused_whole(batch: Any, batches: Batches) -> None:
    verdict = admitted_operations(batch, BOOK, (0,), LIMITS, batches)
    assert (verdict.operations, refusals(verdict)) == ((), [(0, "invalid")])


@pytest.mark.req("P23")
def test_the_rules_hold_for_published_batches_too() -> None:
    batch = (
        add("a"), add("b"), add("c"), add("Go to www.shop.example."), remove("tone-00002"), tag("tone-00002"),
        update("math-00001", "x" * 300), tag("math-00001", harmful=2), {"type": "ADD", "section": "math"},
    )  # fmt: skip
    verdict = propose(*batch, batches="compat-v1", limits=replace(LIMITS, operations=9))
    assert kinds(verdict) == [("ADD", -1), ("ADD", -1)]
    assert refusals(verdict) == [
        (3, "too many ADDs"), (4, "an address"), (5, "too few ratings"), (6, "unknown skill"), (7, "too long"),
        (8, "too many ratings"), (9, "invalid"),
    ]  # fmt: skip
    assert all(operation.op == ADD for operation in verdict.operations)
