"""How skills stand in a prompt: in which order, how much room each takes, and which of them fit.

A prompt is written from one book (skillbook/rendering.py), and counted without being written for many at once
(router=in_prompt). Both go by this module, so that a skill is chosen from only where it could be read.
"""

from typing import Literal

import numpy as np

from skg_bench.core.content import Content
from skg_bench.core.grid import I32, I64, Bool

SkillOrder = Literal["evidence", "inserted"]
LARGEST_PROMPT = 8000  # characters (Pause's MAX_CONTEXT_CHARS)
TRUNCATED = "\n\n[Skillbook truncated]"
BETWEEN = "\n\n"
_DIGITS = 5  # that the number in a label has at least


def shown_id(section: str, skill: int) -> str:
    """As ACE numbers strategies: the section's first word and a number from 1 (U06), as `context-00001`."""
    return f"{section.split()[0].lower()}-{skill + 1:0{_DIGITS}d}"


def skill_block(label: str, content: Content, ok: int, partial: int, miss: int) -> str:
    """Lines of a prompt about a skill."""
    lines = [
        f"[{label}] {content.section}" + (f" ({', '.join(content.keywords)})" if content.keywords else ""),
        f"Issue: {content.issue}",
    ]
    if content.insight is not None:
        lines.append(f"Insight: {content.insight}")
    lines.append(f"Helpful {ok}, harmful {miss}, neutral {partial}")
    return "\n".join(lines)


def frame_size(content: Content) -> int:
    """Characters of the block of the book's first skill, before it is used."""
    return len(skill_block(shown_id(content.section, 0), content, 0, 0, 0))


def block_sizes(frames: I64, skill: I64, ok: I32, partial: I32, miss: I32) -> I64:
    """Characters of blocks with these frames, labelled by `shown_id`; all of one shape."""
    label = np.maximum(_length(skill + 1), _DIGITS) - _DIGITS
    counters = sum(_length(counter) - 1 for counter in (ok, partial, miss))
    size: I64 = frames + label + counters
    return size


def ordered(inside: Bool, ok: I32, miss: I32, order: SkillOrder) -> I64:
    """Skill ids of each book `[B, S]` as they stand in the prompt, those that are `inside` before all others.

    `evidence` goes by the mean of a Beta(1, 1) posterior of helpful and harmful uses, then by their number, then by
    age; `inserted` by age. Means are compared exactly: two different fractions of counts below 2**26 are different
    float64 numbers, and equal ones are the same.
    """
    skill = np.broadcast_to(np.arange(inside.shape[1]), inside.shape)
    if order == "inserted":
        return np.lexsort((skill, ~inside))
    rated = ok.astype(np.int64) + miss
    helpful = (ok + 1.0) / (rated + 2.0)
    return np.lexsort((skill, -rated, -helpful, ~inside))


def fitting(size: I64, count: I64, limit: int) -> I64:
    """How many of the first `count` `[B]` blocks, of these sizes in their order `[B, S]`, stand in a prompt of at most
    `limit` characters. Where not all do, the prompt says that it was truncated, and this takes room too.
    """
    width = size.shape[1]
    inside = np.arange(width) < count[:, None]
    ends = np.cumsum(np.where(inside, size + len(BETWEEN), 0), axis=1) - len(BETWEEN)
    whole = np.max(ends, axis=1, initial=0) <= limit
    fits = (inside & (ends <= limit - len(TRUNCATED))).sum(axis=1)
    return np.where(whole, count, fits)


def _length(number: I32 | I64) -> I64:
    """Decimal digits of whole numbers that are not negative."""
    length = np.ones(number.shape, np.int64)
    power, most = 10, int(number.max(initial=0))
    while power <= most:
        length += number >= power
        power *= 10
    return length
