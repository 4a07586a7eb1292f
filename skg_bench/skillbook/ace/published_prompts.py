"""Prompts of the published packages, and their figures: insertion order, nothing cut (P14 fails there)."""

import re
from typing import Any
from xml.sax.saxutils import escape

from skg_bench.skillbook.ace.book import AceBook, CounterSkill, InsightSkill, Json
from skg_bench.skillbook.ace.toon import toon_table
from skg_bench.skillbook.ace.words import SECTIONS

_SHOWN = {"v1": ("id", "section", "content", "helpful", "harmful", "neutral"), "v09": ("id", "section", "content")}


def as_prompt(book: AceBook) -> str:
    """Active skills as the package of that format renders them: a TOON table, or Markdown by section in `v2`.

    Raises KeyError where a section of a `v2` book lists an id that it does not have, as the package does, and its other
    errors for values that cannot be written.
    """
    if book.era != "v2":
        if any(isinstance(skill, CounterSkill) and "to_llm_dict" in skill.overwritten for skill in book.active):
            raise TypeError("metadata has put a number over to_llm_dict")
        names = _SHOWN[book.era]
        return toon_table("skills", [{name: getattr(skill, name) for name in names} for skill in book.active])
    blocks: list[str] = []
    for section in SECTIONS:
        listed: list[Any] = [book.skills[key] for key in book.sections.get(section, ())]
        active = [skill for skill in listed if skill.active]
        blocks += [f"## {section}"] if active else []
        for skill in active:
            insight = [f"  Insight: {skill.insight}"] if skill.insight else []
            blocks += [f"- [{skill.id}]", f"  Keywords: {', '.join(skill.keywords)}", f"  Issue: {skill.issue}"]
            blocks += [*insight, ""]
    return "\n".join(blocks).rstrip()


def wrap_context(book: AceBook) -> str:
    """The prompt's part on what was learned; empty without active skills."""
    if not book.active:
        return ""
    return (
        "\n## Learned strategies\n\nThese come from earlier tasks. Cite the ids of those that you use, in brackets.\n\n"
        f"{as_prompt(book)}\n\nUse what fits the task at hand.\n"
    )


def xml(book: AceBook) -> str:
    """Active skills of a `v2` book as `<strategy>` elements, an element a skill."""
    return "\n".join(_strategy(skill) for skill in book.active if isinstance(skill, InsightSkill))


def _strategy(skill: InsightSkill) -> str:
    insight = [("insight", skill.insight)] if skill.insight else []
    parts = [("issue", skill.issue), *insight, ("keywords", ",".join(skill.keywords))]
    body = "".join(f"  <{tag}>{escape(text)}</{tag}>\n" for tag, text in parts)
    return f'<strategy id="{escape(skill.id)}" section="{escape(skill.section)}">\n{body}</strategy>'


def cited(text: str) -> tuple[str, ...]:
    """Ids in brackets, in order of first mention (U13)."""
    return tuple(dict.fromkeys(re.findall(r"\[([a-zA-Z_]+-\d+)\]", text)))


def stats(book: AceBook) -> Json:
    """The package's own figures."""
    if book.era == "v2":
        by_section: dict[str, int] = dict.fromkeys(SECTIONS, 0)
        for skill in book.active:
            by_section[skill.section] = by_section.get(skill.section, 0) + 1
        count = sum(1 for number in by_section.values() if number)
        return {
            "sections": count, "skills": len(book.skills), "active_skills": len(book.active), "by_section": by_section,
        }  # fmt: skip
    figures: Json = {"sections": len(book.sections), "skills": len(book.skills)}
    if book.era == "v1":
        skills: list[Any] = list(book.skills.values())
        figures["tags"] = {tag: sum(getattr(s, tag) for s in skills) for tag in ("helpful", "harmful", "neutral")}
    return figures
