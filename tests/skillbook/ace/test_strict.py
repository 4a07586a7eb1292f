"""The strict algebra: atomic, typed, bounded, idempotent; and where it parts from the published packages."""

import json
from typing import Any

import pytest

from skg_bench.core.errors import UsageError
from skg_bench.skillbook.ace import codec
from skg_bench.skillbook.ace.book import AceBook, Era, dumps, to_dict
from skg_bench.skillbook.ace.changes import Change, commit
from skg_bench.skillbook.ace.checks import AceLimits
from skg_bench.skillbook.ace.strict import strict
from tests.skillbook.ace.deviations import DEVIATIONS
from tests.skillbook.ace.play import NOW, Case, Player, cases

ADD: Case = {
    "type": "ADD",
    "section": "context",
    "issue": "Long sums go wrong.",
    "insight": "Split.",
    "keywords": ["math"],
}
TEXT_ADD: Case = {"type": "ADD", "section": "Math Strategies", "content": "split sums"}


def batch(*operations: Any) -> Case:
    return {"reasoning": "", "operations": list(operations)}


def book(era: Era = "v2") -> AceBook:
    """Two skills; the first is helpful."""
    more = {**ADD, "section": "harness"} if era == "v2" else {**TEXT_ADD, "section": "tone"}
    return strict(AceBook(era), batch(ADD if era == "v2" else TEXT_ADD, more), NOW)


def deviates(case: Case) -> bool:
    """Whether the strict algebra refuses what the package takes, or ends with another book."""
    player, refused, expect = Player(case["schema"]), False, case["expect"]
    try:
        if case["initial"] is not None:
            player.book = codec.from_dict(case["initial"], player.era, NOW)
        for step in case["steps"]:
            if step["op"] in ("apply", "apply_direct"):
                player.book = strict(player.book, step["batch"] if "batch" in step else batch(*step["operations"]), NOW)
            else:
                player.step(step)
    except UsageError:
        refused = True
    if expect["skillbook"] is None:
        return not refused
    failed = any("error" in outcome for outcome in expect["outcomes"])
    return json.loads(dumps(player.book)) != expect["skillbook"] or (refused and not failed)


@pytest.mark.req("U08")
def test_the_list_of_deviations_from_the_packages_is_complete_and_exact() -> None:
    assert {case["uid"] for case in cases() if deviates(case)} == set(DEVIATIONS)
    assert all(reason.endswith(".") and len(reason) < 120 for reason in DEVIATIONS.values())


@pytest.mark.req("U07", "U12")
def test_the_documents_examples_of_the_four_types_are_taken() -> None:
    update = {"type": "UPDATE", "skill_id": "context-00001", "issue": "Sums.", "section": "context"}
    tags = [{"type": "TAG", "skill_id": "context-00001", "metadata": {"delta": delta}} for delta in (1, 1, -1, 0)]
    remove = {"type": "REMOVE", "section": "harness", "skill_id": "harness-00002", "reason": "stale"}
    after = to_dict(strict(book(), batch(update, *tags, remove), "later"))["skills"]
    first, second = after["context-00001"], after["harness-00002"]
    assert (first["issue"], first["insight"], first["updated_at"], first["created_at"]) == (
        "Sums.",
        "Split.",
        "later",
        NOW,
    )
    assert (first["helpful_count"], first["harmful_count"], first["neutral_count"]) == (2, 1, 1)
    assert (second["active"], second["issue"]) == (False, ADD["issue"])


@pytest.mark.req("U08")
@pytest.mark.parametrize("era", ["v1", "v09", "v2"])
def test_a_batch_with_a_bad_operation_changes_nothing(era: Era) -> None:
    before = book(era)
    text = dumps(before)
    good = {"type": "REMOVE", "skill_id": next(iter(before.skills))}
    with pytest.raises(
        UsageError, match=r"operation 2 \(REMOVE\) names skill 'nope-00009', which the book does not have"
    ):
        strict(before, batch(good, {"type": "REMOVE", "skill_id": "nope-00009"}), NOW)
    assert dumps(before) == text


def test_a_batch_that_the_book_contains_changes_nothing_the_second_time() -> None:
    once = strict(book(), batch(ADD), NOW, key="b-1")
    assert strict(once, batch(ADD), NOW, key="b-1") is once
    assert len(strict(once, batch(ADD), NOW, key="b-2").skills) == 4
    reread = codec.loads(dumps(once), "v2", NOW)
    assert reread == once
    assert strict(reread, "not even read", NOW, key="b-1") is reread


@pytest.mark.parametrize(("era", "operation", "message"), [
    ("v2", {**ADD, "type": "MERGE"}, r"operation 1 has the type 'MERGE'; valid: ADD, UPDATE, TAG, REMOVE"),
    ("v2", {"section": "context"}, r"operation 1 has the type None"),
    ("v2", "ADD", r"operation 1 is 'ADD'; an object is needed"),
    ("v2", {**ADD, "colour": 1}, r"operation 1 has the field 'colour'; valid: type, section, reason, issue"),
    ("v2", {**ADD, "skill_id": "context-00007"}, r"has the field 'skill_id'"),
    ("v2", {**ADD, "keywords": "math"}, r"operation 1\.keywords is 'math'; a list is needed"),
    ("v2", {**ADD, "keywords": []}, r"operation 1\.keywords is empty"),
    ("v2", {**ADD, "keywords": [3]}, r"operation 1\.keywords\[0\] is 3; a text is needed"),
    ("v2", {**ADD, "section": "tone"}, r"operation 1\.section is 'tone'; valid: context, harness"),
    ("v2", {**ADD, "issue": 5}, r"operation 1\.issue is 5; a text is needed"),
    ("v2", {**ADD, "issue": " \n"}, r"operation 1\.issue is ' \\n'; it has to say something"),
    ("v2", {**ADD, "issue": "x" * 2_000_000}, r"operation 1\.issue has 2,000,000 characters; at most 20,000"),
    ("v2", {**ADD, "issue": "a\ud800"}, r"operation 1\.issue has the character U\+D800 at 1"),
    ("v2", {**ADD, "issue": "a\x00"}, r"operation 1\.issue has the character U\+0000 at 1"),
    ("v2", {**ADD, "insight": None}, r"operation 1 adds to the section context, but lacks an insight"),
    ("v2", {**ADD, "insight_source": "trace"}, r"insight_source is 'trace'; a list is needed"),
    ("v2", {**ADD, "insight_source": {"surplus": 1}}, r"insight_source\[0\] has the field 'surplus'"),
    ("v2", {**ADD, "insight_source": {"epoch": True}}, r"insight_source\[0\]\.epoch is True"),
    ("v2", {**ADD, "reflection_indices": [0, "1"]}, r"reflection_index is '1'; a whole number from 0 is needed"),
    ("v2", {"type": "TAG", "skill_id": "context-00001", "metadata": {"delta": True}}, r"metadata\.delta is True"),
    ("v2", {"type": "TAG", "skill_id": "context-00001", "metadata": {"delta": 2}}, r"metadata\.delta is 2"),
    ("v2", {"type": "UPDATE", "skill_id": "context-00001"}, r"an UPDATE that sets nothing"),
    ("v1", {**TEXT_ADD, "content": 7}, r"operation 1\.content is 7; a text is needed"),
    ("v1", {**TEXT_ADD, "section": ""}, r"operation 1\.section is ''; it has to say something"),
    ("v1", {**TEXT_ADD, "metadata": {"helpful": -1}}, r"metadata\.helpful is -1"),
    ("v1", {"type": "TAG", "skill_id": "math-00001", "metadata": {}}, r"metadata is empty; it needs one of helpful"),
    ("v09", {"type": "TAG", "skill_id": "math-00001", "metadata": {"helpful": 1}}, r"a v09 book has no counters"),
])  # fmt: skip
def test_bad_operations_are_refused_with_their_value_and_what_is_valid(era: Era, operation: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        strict(book(era), batch(operation), NOW)


@pytest.mark.parametrize(("text", "message"), [
    ('{"operations": [', "the batch is no whole JSON"),
    ('{"operations": [], "operations": []}', "the batch holds 'operations' twice in one object"),
    ('{"operations": [NaN]}', "the batch holds NaN"),
    ("[" * 100_000, "the batch is nested too deeply"),
    ("[]", r"the batch is \[\]; an object is needed"),
    ("{}", "the batch lacks operations"),
])  # fmt: skip
def test_torn_batches_are_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        strict(book(), text, NOW)


def test_limits_are_arguments() -> None:
    with pytest.raises(UsageError, match="operations has 2 entries; at most 1"):
        strict(book(), batch(ADD, ADD), NOW, limits=AceLimits(operations=1))
    with pytest.raises(UsageError, match="would have 3 skills; at most 2"):
        strict(book(), batch(ADD), NOW, limits=AceLimits(skills=2))
    long = {**ADD, "issue": "x" * 2_000_000}
    assert len(to_dict(strict(book(), batch(long), NOW, limits=AceLimits(text=2_000_000)))["skills"]) == 3


def test_keywords_are_kept_distinct_in_lower_case_without_blanks() -> None:
    after = to_dict(strict(book(), batch({**ADD, "keywords": ["Unit  check", "unit check", " Ü "]}), NOW))
    assert after["skills"]["context-00003"]["keywords"] == ["unit_check", "ü"]


@pytest.mark.parametrize(("era", "change", "message"), [
    ("v2", Change("ADD", "context-00001", {"section": "context"}), "would take the id 'context-00001'"),
    ("v2", Change("TAG", "context-00001", {"helpful": 1}), "sets 'helpful'; valid: helpful_count"),
    ("v2", Change("UPDATE", "context-00001", {"active": False}), "sets 'active'; valid: issue, insight, keywords"),
    ("v2", Change("MERGE", "context-00001"), "is of no known type"),  # type: ignore[arg-type]
    ("v09", Change("TAG", "math-00001", {"helpful": 1}), "nothing, as the book has no counters"),
])  # fmt: skip
def test_commit_refuses_what_no_type_may_do(era: Era, change: Change, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        commit(book(era), [change], NOW)
