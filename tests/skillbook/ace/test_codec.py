"""Strict books as files: they come back equal, and what is not whole or of another format is refused."""

import json
from typing import Any

import pytest

from skg_bench.core.errors import UsageError
from skg_bench.skillbook.ace.book import AceBook, Era, dumps, to_dict
from skg_bench.skillbook.ace.checks import AceLimits
from skg_bench.skillbook.ace.codec import from_dict, loads
from skg_bench.skillbook.ace.strict import strict
from tests.skillbook.ace.play import NOW, Case
from tests.skillbook.ace.test_strict import ADD, batch, book

ERAS: list[Era] = ["v1", "v09", "v2"]


@pytest.mark.req("P08", "P11", "U06")
@pytest.mark.parametrize("era", ERAS)
def test_what_is_written_is_read_back_equal(era: Era) -> None:
    before = book(era)
    assert loads(dumps(before), era, "unused") == before
    assert from_dict(to_dict(before), era, "unused") == before
    assert dumps(loads(dumps(before), era, "unused")) == dumps(before)


def test_sources_survive_a_file() -> None:
    source = {"source_system": "lab", "trace_id": "t1", "epoch": 2}
    before = strict(AceBook("v2"), batch({**ADD, "insight_source": [source, source], "reflection_index": 1}), NOW)
    (skill,) = to_dict(before)["skills"].values()
    assert skill["occurrences"] == [{**source, "trace_uid": "lab:t1", "display_name": "t1"}]
    assert loads(dumps(before), "v2", NOW) == before


def test_a_book_without_times_and_sections_gets_them() -> None:
    payload = {"skills": {"a-1": {"id": "a-1", "section": "a", "content": "c"}}, "next_id": 1}
    read = to_dict(from_dict(payload, "v1", NOW))
    assert read["sections"] == {"a": ["a-1"]}
    assert read["skills"]["a-1"]["created_at"] == NOW


def changed(era: Era, **top: Any) -> Case:
    return to_dict(book(era)) | top


def first(era: Era, **fields: Any) -> Case:
    payload = to_dict(book(era))
    next(iter(payload["skills"].values())).update(fields)
    return payload


@pytest.mark.parametrize(("era", "payload", "message"), [
    ("v2", to_dict(book("v1")), r"has no schema_version; a v2 book has '2': read a book without one as v1 or v09"),
    ("v2", changed("v2", schema_version=3), r"has schema_version 3"),
    ("v1", to_dict(book("v2")), r"has schema_version '2'; v1 has none: read this book as v2"),
    ("v09", to_dict(book("v1")), r"skill 'math-00001' has the field 'helpful'; valid: id, section, content"),
    ("v2", [], r"the skillbook is \[\]; an object is needed"),
    ("v2", changed("v2", colour=1), r"the skillbook has the field 'colour'"),
    ("v2", changed("v2", skills=[]), r"skills is \[\]; an object of skills by id"),
    ("v2", changed("v2", next_id=1), r"next_id=1, but the book has skill 'harness-00002': set next_id to 2"),
    ("v2", changed("v2", next_id="2"), r"next_id is '2'; a whole number"),
    ("v2", changed("v2", sections={"context": ["context-00001"]}), r"no section lists skill 'harness-00002'"),
    ("v2", changed("v2", sections={"context": ["ghost-00001"]}), r"lists 'ghost-00001', which is no skill"),
    ("v2", changed("v2", sections={"context": ["context-00001"] * 2}), r"lists 'context-00001', which stands twice"),
    ("v2", changed("v2", sections={"harness": ["context-00001"]}), r"which stands of section 'context'"),
    ("v2", changed("v2", sections=3), r"sections is 3; an object of lists"),
    ("v2", changed("v2", similarity_decisions={"a": {}}), r"similarity_decisions\['a'\] lacks decision"),
    ("v2", first("v2", id="other"), r"skill 'context-00001' has the id 'other'; a skill stands under its own id"),
    ("v2", first("v2", insight=None), r"of the section context lacks an insight"),
    ("v2", first("v2", section="tone"), r"section is 'tone'; valid: context, harness"),
    ("v2", first("v2", helpful_count="3"), r"helpful_count is '3'; a whole number from 0 to 2147483647 is needed"),
    ("v2", first("v2", helpful_count=True), r"helpful_count is True"),
    ("v2", first("v2", active="yes"), r"active is 'yes'; true or false is needed"),
    ("v2", first("v2", keywords="math"), r"keywords is 'math'; a list is needed"),
    ("v2", first("v2", issue=None), r"lacks issue"),
    ("v2", first("v2", occurrences=[1]), r"occurrences\[0\] is 1; an object is needed"),
    ("v1", first("v1", content=3), r"content is 3; a text is needed"),
    ("v1", first("v1", content="a\udc00"), r"content has the character U\+DC00 at 1"),
    ("v1", first("v1", content="x" * 2_000_000), r"content has 2,000,000 characters; at most 20,000 are taken"),
    ("v1", first("v1", status="gone"), r"status is 'gone'; valid: active, invalid"),
    ("v1", first("v1", embedding=["x"]), r"embedding is \['x'\]; a list of numbers is needed"),
])  # fmt: skip
def test_bad_books_are_refused_with_the_value_and_what_is_valid(era: Era, payload: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        from_dict(payload, era, NOW)


def test_torn_files_and_ids_that_stand_twice_are_refused() -> None:
    text = dumps(book("v1"))
    with pytest.raises(UsageError, match="the skillbook is no whole JSON"):
        loads(text[: len(text) // 2], "v1", NOW)
    with pytest.raises(UsageError, match="holds 'math-00001' twice in one object"):
        loads(text.replace("tone-00002", "math-00001"), "v1", NOW)
    with pytest.raises(UsageError, match="has 2 skills; at most 1"):
        loads(text, "v1", NOW, AceLimits(skills=1))
    with pytest.raises(UsageError, match="format=v3; valid: v1, v09, v2"):
        from_dict(json.loads(text), "v3", NOW)  # type: ignore[arg-type]
