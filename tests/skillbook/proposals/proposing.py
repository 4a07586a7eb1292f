"""Skills, limits and batches for tests of proposals."""

from collections.abc import Collection, Sequence
from typing import Any

from skg_bench.core.batch import ADD, OPERATIONS, TAG
from skg_bench.core.content import Content
from skg_bench.core.types import RATINGS
from skg_bench.skillbook.proposals import Admitted, Batches, Limits, Proposed, admitted_operations
from skg_bench.skillbook.skillbook import Operation, Skill

LIMITS = Limits(adds=2, removes=1, tags=3, ratings=1, characters=200, operations=8)
NO_LIMITS = Limits(adds=999, removes=999, tags=0, ratings=999, characters=10**6, operations=999)
MATH = Content("Math Strategies", "Split long sums.")
TONE = Content("tone", "Be brief.", "Short answers are read.", ("brief", "chat"))


def skill(
    number: int, content: Content | None, ratings: tuple[int, int, int] = (3, 0, 0), *, active: bool = True
) -> Skill:
    """With `ratings` ok, partial and miss."""
    return Skill(number, "", -1, (), active, 0, *ratings, 0, 0, 0, (0,) * 8, 0, -1, content)


BOOK = (
    skill(0, MATH, (2, 0, 1)),  # math-00001: just enough ratings
    skill(1, TONE, (1, 1, 0)),  # tone-00002: one too few
    skill(3, Content("context", "Old.", "Gone.", ("k",)), active=False),  # context-00004
    skill(4, Content("context", "Ask.", "First.", ("ask",)), (0, 1, 9)),  # context-00005
)


def add(content: str = "Check units.", section: str = "math", **fields: Any) -> dict[str, Any]:
    return {"type": "ADD", "section": section, "content": content, **fields}


def update(skill_id: str, content: str, **fields: Any) -> dict[str, Any]:
    return {"type": "UPDATE", "skill_id": skill_id, "content": content, **fields}


def tag(skill_id: str, **gains: int | None) -> dict[str, Any]:
    return {"type": "TAG", "section": "s", "skill_id": skill_id, "metadata": gains or {"helpful": 1}}


def remove(skill_id: str) -> dict[str, Any]:
    return {"type": "REMOVE", "section": "s", "skill_id": skill_id}


def propose(
    *operations: Any, batches: Batches = "v1", limits: Limits = LIMITS, used: Collection[int] = (0,),
    book: Sequence[Skill] = BOOK,
) -> Admitted:  # fmt: skip
    return admitted_operations({"reasoning": "r", "operations": list(operations)}, book, used, limits, batches)


def refusals(verdict: Admitted) -> list[tuple[int, str]]:
    """Numbers of operations, and the stable words of the reasons."""
    return [(refusal.number, refusal.code) for refusal in verdict.refusals]


def kinds(verdict: Admitted) -> list[tuple[str, int]]:
    return [(OPERATIONS[operation.op], operation.skill) for operation in verdict.operations]


def operations_of(proposed: Sequence[Proposed], size: int) -> list[Operation]:
    """As the algebra of a user's book of `size` skills takes them."""
    made = []
    for operation in proposed:
        number = size if operation.op == ADD else operation.skill
        size += operation.op == ADD
        rating = RATINGS[operation.rating] if operation.op == TAG else None
        made.append(Operation(OPERATIONS[operation.op], number, 0, rating=rating, content=operation.content))
    return made
