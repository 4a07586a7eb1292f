"""A skillbook as part of a prompt: what helped comes first, and no skill is cut in two."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.skillbook.prompt_layout import (
    BETWEEN,
    LARGEST_PROMPT,
    TRUNCATED,
    SkillOrder,
    fitting,
    ordered,
    skill_block,
)
from skg_bench.skillbook.skillbook import Skill, Skillbook

_TOKENS_PER_WORD = 1.3  # as conf/llm/simulated.yaml has it


@dataclass(frozen=True, slots=True)
class Rendered:
    """Words in the prompt."""

    text: str
    skills: tuple[int, ...]  # ids of the skills that are inside, in order
    tokens: int  # an estimate from the number of words


def _numbered(skill: Skill) -> str:
    return skill.shown_id


def render(
    book: Skillbook,
    limit: int = LARGEST_PROMPT,
    order: SkillOrder = "evidence",
    label: Callable[[Skill], str] = _numbered,
) -> Rendered:
    """Active skills that say something, each with its label and its counters, at most `limit` characters in all.

    `order`: `evidence` puts first what is more likely to help by the mean of a Beta(1, 1) posterior of helpful and
    harmful uses, then what was used more, then older skills, so that harmful skills come last; `inserted` goes by age,
    as the published engine does (P14). The first skill that does not fit ends the text, which then says so (P13).

    Raises UsageError for another order, and where `limit` has no room for the words that say so.
    """
    if order not in get_args(SkillOrder):
        raise UsageError(f"order={order!r}, valid are {', '.join(get_args(SkillOrder))}")
    if limit < len(TRUNCATED):
        raise UsageError(f"limit={limit}: a prompt needs room for {TRUNCATED!r}, {len(TRUNCATED)} characters")
    inside = sorted((s for s in book.skills if s.active and s.content is not None), key=lambda skill: skill.id)
    ok, miss = (np.array([[getattr(skill, name) for skill in inside]], np.int32) for name in ("ok", "miss"))
    places = ordered(np.ones(ok.shape, np.bool_), ok, miss, order)[0].tolist()
    skills = [inside[place] for place in places]
    blocks = [skill_block(label(s), s.content, s.ok, s.partial, s.miss) for s in skills if s.content is not None]
    n = int(fitting(np.array([[*map(len, blocks)]], np.int64), np.array([len(blocks)]), limit)[0])
    text = BETWEEN.join(blocks[:n]) + (TRUNCATED if n < len(blocks) else "")
    return Rendered(text, tuple(s.id for s in skills[:n]), round(len(text.split()) * _TOKENS_PER_WORD))
