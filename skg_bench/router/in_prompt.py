"""The skillbook as the model reads it: what does not fit into the prompt cannot be chosen (P45)."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, get_args

import numpy as np

from skg_bench.core.content import Contents
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I64, U64, Bool
from skg_bench.core.growing import Keyed
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.shortlist import max_dots, shortlist
from skg_bench.core.types import Query, Shortlist, Skillbooks
from skg_bench.skillbook.prompt_layout import SkillOrder, block_sizes, fitting, frame_size, ordered

LEAST_CHARACTERS = 100  # characters of a prompt: a strategy of one sentence, its label and its counters


@dataclass(frozen=True)
class InPrompt:
    """Lists active skills that say something, in the order of the prompt.

    As many as `limit` characters hold, and of these the first `top_k`. Similarity is MaxSim; it does not order them.
    """

    order: SkillOrder
    limit: int
    top_k: int
    lists_whole: ClassVar[bool] = True
    sees_truth: ClassVar[bool] = False
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        if self.order not in get_args(SkillOrder):
            raise UsageError(f"router.order={self.order!r}, valid are {', '.join(get_args(SkillOrder))}")
        if self.limit < LEAST_CHARACTERS:
            raise UsageError(
                f"router.limit={self.limit} characters hold no skill; valid are at least {LEAST_CHARACTERS}, "
                "and 8000 is Pause's"
            )
        if self.top_k < 1:
            raise UsageError(f"router.top_k={self.top_k} must be at least 1")

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        """Skills that the model reads."""
        return prompt_list(self, query, books, whole=True)


def prompt_list(prompt: InPrompt, query: Query, books: Skillbooks, *, whole: bool) -> Shortlist:
    """Skills that a prompt lists: all that they say, or their issues alone."""
    skill = np.full((len(query.text), prompt.top_k), -1, np.int32)
    inside = books.active & (books.content != 0)
    order = ordered(inside, books.ok, books.miss, prompt.order)
    size = np.take_along_axis(_sizes(query.contents, books, inside, whole=whole), order, axis=1)
    n = np.minimum(fitting(size, inside.sum(axis=1), prompt.limit), prompt.top_k)
    width = min(prompt.top_k, order.shape[1])
    np.copyto(skill[:, :width], order[:, :width], where=np.arange(width) < n[:, None], casting="same_kind")
    return shortlist(skill, max_dots(query, books))


def _sizes(contents: Contents, books: Skillbooks, inside: Bool, *, whole: bool) -> I64:
    """Characters of the skills' blocks, `[B, S]`; anything where nothing is inside."""
    skill = np.broadcast_to(np.arange(inside.shape[1]), inside.shape)
    frames = _frames(contents, whole).of(np.where(inside, books.content, 0))
    return block_sizes(frames, skill, books.ok, books.partial, books.miss)


@lru_cache(maxsize=4)
def _frames(contents: Contents, whole: bool) -> Keyed[np.int64]:
    """Characters of what contents say, by key."""

    def frames(keys: U64) -> I64:
        listed = (
            content if whole or content is None else replace(content, insight=None) for content in contents.of(keys)
        )
        return np.array([0 if content is None else frame_size(content) for content in listed], np.int64)

    return Keyed(frames)
