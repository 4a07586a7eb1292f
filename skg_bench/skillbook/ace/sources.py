"""Questions to a book's provenance: which traces taught it what."""

from typing import Any

from skg_bench.skillbook.ace.book import AceBook, Json
from skg_bench.skillbook.ace.provenance import Provenance


def sources(book: AceBook) -> dict[str, tuple[Provenance, ...]]:
    """Records of each skill; a `v1` book has none."""
    field = {"v1": None, "v09": "sources", "v2": "occurrences"}[book.era]
    return {key: getattr(skill, field) if field else () for key, skill in book.skills.items()}


def source_summary(book: AceBook) -> Json:
    """How many records there are in all, and of each epoch, system, trace and question."""
    records = [record for group in sources(book).values() for record in group]
    counts: dict[str, dict[Any, int]] = {
        name: {} for name in ("epochs", "source_systems", "trace_uids", "sample_questions")
    }
    for record in records:
        values = (record.epoch, record.source_system, record.trace_uid, record.sample_question)
        for count, value in zip(counts.values(), values, strict=True):
            count[value] = count.get(value, 0) + 1
    counts["sample_questions"].pop(None, None)
    return {"total_sources": len(records), **counts}


def source_filter(
    book: AceBook,
    *,
    epoch: int | None = None,
    sample_question: str | None = None,
    trace_uid: str | None = None,
    trace_id: str | None = None,
    source_system: str | None = None,
) -> dict[str, list[Json]]:
    """Records of each skill that have all that is asked for; of the question a part in any case will do."""
    exact = {"epoch": epoch, "trace_uid": trace_uid, "trace_id": trace_id, "source_system": source_system}
    wanted = {name: value for name, value in exact.items() if value is not None}
    part = (sample_question or "").lower()
    matches = {
        key: [
            record.to_dict()
            for record in group
            if all(getattr(record, name) == value for name, value in wanted.items())
            and part in (record.sample_question or "").lower()
        ]
        for key, group in sources(book).items()
    }
    return {key: records for key, records in matches.items() if records}
