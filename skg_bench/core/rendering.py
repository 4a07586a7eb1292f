"""A skillbook as part of a prompt: what helped comes first, and no skill is cut in two."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from skg_bench.core.content import Content
from skg_bench.core.errors import UsageError
from skg_bench.core.skillbook import Skill, Skillbook

Order = Literal["evidence", "inserted"]
LIMIT = 8000  # characters (Pause's MAX_CONTEXT_CHARS)
TRUNCATED = "\n\n[Skillbook truncated]"
_TOKENS_PER_WORD = 1.3  # as conf/llm/simulated.yaml has it


@dataclass(frozen=True, slots=True)
class Rendered:
    """What stands in the prompt."""

    text: str
    skills: tuple[int, ...]  # ids of the skills that are inside, in order
    tokens: int  # an estimate from the number of words


def _numbered(skill: Skill) -> str:
    return skill.shown_id


def render(
    book: Skillbook, limit: int = LIMIT, order: Order = "evidence", label: Callable[[Skill], str] = _numbered
) -> Rendered:
    """Active skills that say something, each with its label and its counters, at most `limit` characters in all.

    `order`: `evidence` puts first what is more likely to help by the mean of a Beta(1, 1) posterior of helpful and
    harmful uses, then what was used more, then older skills, so that harmful skills come last; `inserted` goes by age,
    as the published engine does (P14). The first skill that does not fit ends the text, which then says so (P13).

    Raises UsageError for another order, and where `limit` has no room for the words that say so.
    """
    if order not in get_args(Order):
        raise UsageError(f"order={order!r}, valid are {', '.join(get_args(Order))}")
    if limit < len(TRUNCATED):
        raise UsageError(f"limit={limit}: a prompt needs room for {TRUNCATED!r}, {len(TRUNCATED)} characters")
    skills = [skill for skill in book.skills if skill.active and skill.content is not None]
    if order == "evidence":
        skills.sort(key=lambda skill: (-_helpful(skill), -(skill.ok + skill.miss), skill.id))
    blocks = [_block(label(skill), skill, skill.content) for skill in skills if skill.content is not None]
    whole = "\n\n".join(blocks)
    if len(whole) <= limit:
        return _rendered(whole, skills)
    room, n = limit - len(TRUNCATED), 0
    while room >= len(blocks[n]):
        room -= len(blocks[n]) + len("\n\n")
        n += 1
    return _rendered("\n\n".join(blocks[:n]) + TRUNCATED, skills[:n])


def _rendered(text: str, skills: list[Skill]) -> Rendered:
    return Rendered(text, tuple(skill.id for skill in skills), round(len(text.split()) * _TOKENS_PER_WORD))


def _helpful(skill: Skill) -> Fraction:
    return Fraction(skill.ok + 1, skill.ok + skill.miss + 2)


def _block(label: str, skill: Skill, content: Content) -> str:
    lines = [
        f"[{label}] {content.section}" + (f" ({', '.join(content.keywords)})" if content.keywords else ""),
        f"Issue: {content.issue}",
    ]
    if content.insight is not None:
        lines.append(f"Insight: {content.insight}")
    lines.append(f"Helpful {skill.ok}, harmful {skill.miss}, neutral {skill.partial}")
    return "\n".join(lines)
