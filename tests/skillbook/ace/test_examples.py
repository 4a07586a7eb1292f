"""The four operations as ACE's page writes them, in our words, on a book of the current format."""

import json
from pathlib import Path
from typing import Any

import pytest

from skg_bench.core.errors import UsageError
from skg_bench.skillbook.ace import AceBook, apply_as_published, loads, strict
from skg_bench.skillbook.ace.book import InsightSkill

EXAMPLES: dict[str, Any] = json.loads((Path(__file__).parents[2] / "golden" / "operations.json").read_text("utf-8"))
BOOK = loads((Path(__file__).parents[2] / "golden" / "pro.json").read_text("utf-8"), "v2", "<NOW>")


def applied(operation: dict[str, Any], book: AceBook = BOOK) -> AceBook:
    return strict(book, {"reasoning": "", "operations": [operation]}, "<NOW>")


def skill(book: AceBook, key: str) -> InsightSkill:
    entry = book.skills[key]
    assert isinstance(entry, InsightSkill)
    return entry


@pytest.mark.req("U02", "U06", "U07")
def test_add_makes_a_skill_with_the_next_number_of_its_section() -> None:
    new = skill(applied(EXAMPLES["ADD"]), "context-00004")
    assert (new.keywords, new.insight, new.active) == (("math", "decomposition"), "Take it apart first.", True)


@pytest.mark.req("U03", "U07")
def test_update_rewords_a_skill_and_keeps_its_counters() -> None:
    before, after = skill(BOOK, "context-00001"), skill(applied(EXAMPLES["UPDATE"]), "context-00001")
    assert after.insight == "Take it apart first, and check each part."
    assert after.keywords == ("math", "verification")
    assert (after.helpful_count, after.used_count) == (before.helpful_count, before.used_count)


@pytest.mark.req("U04", "U07", "U12")
@pytest.mark.parametrize(("delta", "counter"), [(1, "helpful_count"), (-1, "harmful_count"), (0, "neutral_count")])
def test_tag_raises_the_counter_of_its_delta(delta: int, counter: str) -> None:
    after = skill(applied({**EXAMPLES["TAG"], "metadata": {"delta": delta}}), "context-00001")
    counters = ("helpful_count", "harmful_count", "neutral_count")
    gained = {name: getattr(after, name) - getattr(skill(BOOK, "context-00001"), name) for name in counters}
    assert gained == {name: int(name == counter) for name in counters}


@pytest.mark.req("U05", "U07")
def test_remove_hides_a_skill_and_keeps_it() -> None:
    after = applied(EXAMPLES["REMOVE"])
    assert not skill(after, "context-00002").active
    assert list(after.skills) == list(BOOK.skills)


@pytest.mark.req("U02", "U03", "U04", "U05")
@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("ADD", "section"), ("ADD", "issue"), ("ADD", "keywords"), ("ADD", "insight"), ("UPDATE", "skill_id"),
        ("TAG", "skill_id"), ("TAG", "metadata"), ("REMOVE", "skill_id"),
    ],
)  # fmt: skip
def test_an_operation_without_a_field_that_it_needs_is_refused(kind: str, field: str) -> None:
    lacking = {name: value for name, value in EXAMPLES[kind].items() if name != field}
    with pytest.raises(UsageError, match=field):
        applied(lacking)


@pytest.mark.req("U08", "U09", "P24")
def test_a_batch_is_several_operations_and_all_or_none_of_them_count() -> None:
    operations = [EXAMPLES["ADD"], EXAMPLES["REMOVE"]]
    book = strict(BOOK, {"reasoning": "", "operations": operations}, "<NOW>")
    assert len(book.active) == len(BOOK.active)
    unknown = {**EXAMPLES["REMOVE"], "skill_id": "context-00077"}
    with pytest.raises(UsageError, match="context-00077"):
        strict(BOOK, {"reasoning": "", "operations": [*operations, unknown]}, "<NOW>")
    blank = {**EXAMPLES["ADD"], "issue": " "}
    outcome = apply_as_published(BOOK, {"reasoning": "", "operations": [*operations, blank]}, "compat-v2", "")
    assert outcome.failure is not None
    assert "context-00004" in outcome.book.skills  # the published engine has no way back


@pytest.mark.req("U09")
def test_the_published_batch_needs_a_reasoning_and_strict_does_not() -> None:
    """The page's own call, UpdateBatch(operations=[...]), raises a TypeError in 0.13.0."""
    assert len(strict(BOOK, {"operations": [EXAMPLES["ADD"]]}, "<NOW>").skills) == 4
