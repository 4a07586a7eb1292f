"""Control: knows which stored answer is right, or which text is best to say."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.core.grid import F64, I32, Bool
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.shortlist import top
from skg_bench.core.types import Query, Shortlist, Skillbooks
from skg_bench.core.world import NEAR, RIGHT


@dataclass(frozen=True)
class RightSkill:
    """A skill whose stored answer is right for this event, with similarity 1; nothing if there is none.

    Where skills say something, the one that is worth most, if it is worth more than what is said without one: with
    policy=always the oracle's choice.
    """

    near: bool  # a skill of the same intent will do, as it does in a prompt
    top_k: ClassVar[int] = 1
    sees_truth: ClassVar[bool] = True
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        """The first right skill by id, or the best one."""
        if query.truth is None:
            raise ValueError("router=oracle needs the truth of the turn")
        if query.truth.worth.shape[1]:
            skill = _best(query.truth.worth, books.active)
        else:
            right = (query.truth.quality >= (NEAR if self.near else RIGHT)) & books.active
            skill = top(np.zeros(right.shape, np.int32), right, 1)
        return Shortlist(skill, (skill >= 0).astype(np.float64))


def _best(worth: F64, active: Bool) -> I32:
    """The skill `[B, 1]` that is worth most, the first of equal ones; -1 where none is worth more than the generic
    question, whose worth is column 0 of `worth` `[B, 1 + S]`.
    """
    of_skill = np.where(active, worth[:, 1:], -np.inf)
    best = of_skill.argmax(axis=1)[:, None]
    better = np.take_along_axis(of_skill, best, axis=1) > worth[:, :1]
    return np.where(better, best, -1).astype(np.int32)
