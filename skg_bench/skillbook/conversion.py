"""Skillbooks from one format into another, and what is lost on the way.

A strategy of ACE is a skill: its counters helpful, neutral and harmful are ok, partial and miss. A format that has no
place for something loses it; each kind of loss is counted by skills. Counters are as they stand: no format says that a
rating was taken back.
"""

import reprlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType

from skg_bench.core.content import Content
from skg_bench.core.errors import UsageError
from skg_bench.skillbook.ace.book import SKILL_OF, AceBook, AceSkill, CounterSkill, Era, InsightSkill, PlainSkill
from skg_bench.skillbook.ace.provenance import Provenance, named_trace
from skg_bench.skillbook.ace.words import SECTIONS, section_of
from skg_bench.skillbook.skillbook import Skill, Skillbook

_SYSTEM = "skg-bench"
NO_LOSS: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ConvertedAce:
    """A document of ACE."""

    book: AceBook
    losses: Mapping[str, int]  # kind of loss -> how many skills it concerns


@dataclass(frozen=True, slots=True)
class ConvertedBook:
    """A skillbook as a run has it."""

    book: Skillbook
    losses: Mapping[str, int]


def to_ace(book: Skillbook, era: Era, monday: datetime, user: int | None = None) -> ConvertedAce:
    """A skillbook of a run as a document; second 0 of the book is `monday`. Skills that say nothing, as stored answers,
    have no place in it, and ids are section and number (U06). With the id of its `user`, the turns that a skill's words
    were learned from are its provenance (U10), by the names that they have in traces.
    """
    whole = to_document(book, monday, user)
    converted = brought_into(whole.book, era)
    return ConvertedAce(converted.book, Counter(whole.losses) + Counter(converted.losses))


def to_document(book: Skillbook, monday: datetime, user: int | None = None) -> ConvertedAce:
    """As `to_ace`, with sections, keywords and insights as they are, also where no format of ACE has such ones."""
    lost: Counter[str] = Counter()
    skills = {}
    for skill in book.skills:
        if skill.content is None:
            lost["skills that say nothing"] += 1
            continue
        lost.update(_lost_of_ours(skill))
        entry = replace(_of_ours(skill, skill.content, monday), occurrences=_provenance(skill, user))
        skills[entry.id] = entry
    return ConvertedAce(_document("v2", skills, len(book.skills)), dict(lost))


def from_ace(book: AceBook, monday: datetime) -> ConvertedBook:
    """A document as a skillbook: skills are numbered in the order of the file, and named by the ids that they had.

    Raises UsageError for texts that no skill can say (core/content.py), and for times that are no ISO dates.
    """
    lost: Counter[str] = Counter()
    skills = []
    for number, skill in enumerate(book.skills.values()):
        entry, losses = richest(skill)
        lost.update(losses)
        single = not isinstance(skill, InsightSkill)
        content = Content(entry.section, entry.issue, None if single else entry.insight, entry.keywords)
        lost.update(["provenance"] if entry.occurrences else [])
        born, last = (_seconds(text, monday) for text in (entry.created_at, entry.updated_at))
        ours = Skill(
            number, entry.id, -1, (), entry.active, entry.used_count, entry.helpful_count, entry.neutral_count,
            entry.harmful_count, born, last, last, (0,) * 8, 0, -1, content,
        )  # fmt: skip
        lost.update(["ids"] if ours.shown_id != entry.id else [])
        skills.append(ours)
    lost.update({"decisions to keep near-duplicates": len(book.decisions)} if book.decisions else {})
    return ConvertedBook(Skillbook(tuple(skills), 0), dict(lost))


def between(book: AceBook, era: Era) -> ConvertedAce:
    """A document in another of ACE's formats; ids, numbering and kept pairs stay."""
    return ConvertedAce(book, NO_LOSS) if book.era == era else brought_into(book, era)


def brought_into(book: AceBook, era: Era) -> ConvertedAce:
    """As `between`, also for a document of `v2` with sections that this format does not have, or without what it asks
    for.
    """
    if book.era == era and all(skill == _of_era(skill, era)[0] for skill in book.skills.values()):
        return ConvertedAce(book, NO_LOSS)
    lost: Counter[str] = Counter()
    skills = {}
    for key, skill in book.skills.items():
        skills[key], losses = _of_era(skill, era)
        lost.update(losses)
    document = _document(era, skills, book.next_id)
    return ConvertedAce(replace(document, decisions=book.decisions, batches=book.batches), dict(lost))


# --------------------------------------------------------------------------------------------------- one skill


def _of_ours(skill: Skill, content: Content, monday: datetime) -> InsightSkill:
    """As the richest format has it, with the section as it is."""
    born, last = ((monday + timedelta(seconds=at)).isoformat() for at in (skill.born, skill.last_ok))
    return InsightSkill(
        skill.shown_id, content.section, content.keywords, content.issue, born, last, content.insight, (), skill.active,
        skill.uses, skill.ok, skill.miss, skill.partial,
    )  # fmt: skip


def _provenance(skill: Skill, user: int | None) -> tuple[Provenance, ...]:
    """A record for each turn that the skill's words come from; the first one seeded it."""
    if user is None:
        return ()
    names = [named_trace(_SYSTEM, f"u{user}-t{turn}") for turn in skill.sources]
    return tuple(
        Provenance(name.trace_uid, name.source_system, name.trace_id, relation="supporting" if nth else "seed")
        for nth, name in enumerate(names)
    )


def _whole_entry(skill: InsightSkill) -> InsightSkill:
    """Entry with the fields that `v2` asks for: keywords, as its own ADD fills them in, and an insight in context."""
    insight = skill.issue if skill.section == "context" and skill.insight is None else skill.insight
    return replace(skill, keywords=skill.keywords or (skill.section,), insight=insight)


def _lost_of_ours(skill: Skill) -> Iterator[str]:
    """Fields that no format of ACE has a place for."""
    if skill.name != skill.shown_id:
        yield "names"
    if skill.examples:
        yield "examples"
    if skill.source_turn >= 0:
        yield "stored answers"
    if any(skill.hours):
        yield "times of use"


def _of_era(skill: AceSkill, era: Era) -> tuple[AceSkill, list[str]]:
    """The skill in a format, and the kinds of loss. `v2` has no sections but context and harness."""
    if era != "v2" and isinstance(skill, SKILL_OF[era]):
        return skill, []
    whole, lost = richest(skill)
    if era == "v2":
        if whole.section not in SECTIONS:
            section, keywords = section_of(whole.section, whole.keywords)
            lost += ["free sections"]
            whole = replace(whole, section=section, keywords=keywords)
        return _whole_entry(whole), lost
    status = "active" if whole.active else "invalid"
    if whole.keywords:
        lost.append("keywords")
    content = whole.issue
    if whole.insight is not None and whole.insight != whole.issue:
        content = f"{whole.issue}\n\n{whole.insight}"
        lost.append("issue and insight apart")
    if whole.used_count:
        lost.append("used_count")
    common = (whole.id, whole.section, content, whole.created_at, whole.updated_at)
    if era == "v1":
        if whole.occurrences:
            lost.append("provenance")
        counters = (whole.helpful_count, whole.harmful_count, whole.neutral_count)
        return CounterSkill(*common, *counters, status=status), lost
    if whole.helpful_count or whole.harmful_count or whole.neutral_count:
        lost.append("counters")
    return PlainSkill(*common, status=status, sources=whole.occurrences), lost


def richest(skill: AceSkill) -> tuple[InsightSkill, list[str]]:
    """As the richest format has it, and what that one has no place for. A single text is issue and insight, as in the
    package's own ADD.
    """
    if isinstance(skill, InsightSkill):
        return skill, []
    lost = ["embeddings"] if skill.embedding is not None else []
    common = (skill.id, skill.section, (), skill.content, skill.created_at, skill.updated_at, skill.content)
    if isinstance(skill, CounterSkill):
        uses = skill.helpful + skill.harmful + skill.neutral
        return InsightSkill(*common, (), skill.active, uses, skill.helpful, skill.harmful, skill.neutral), lost
    lost += ["justification and evidence"] if skill.justification or skill.evidence else []
    return InsightSkill(*common, skill.sources, skill.active), lost


def _document(era: Era, skills: Mapping[str, AceSkill], next_id: int) -> AceBook:
    sections: dict[str, tuple[str, ...]] = {}
    for key, skill in skills.items():
        sections[skill.section] = (*sections.get(skill.section, ()), key)
    return AceBook(era, skills, sections, next_id)


def _seconds(text: str, monday: datetime) -> int:
    try:
        when = datetime.fromisoformat(text)
    except (TypeError, ValueError) as error:
        raise UsageError(f"time {reprlib.repr(text)}, valid are ISO dates such as 2026-01-05T00:00:00+00:00") from error
    return round((when.replace(tzinfo=None) - monday.replace(tzinfo=None)) / timedelta(seconds=1))
