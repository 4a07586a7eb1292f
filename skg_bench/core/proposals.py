"""stub until merge"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from skg_bench.core.batch import OPERATIONS
from skg_bench.core.content import Content
from skg_bench.core.skillbook import Skill

Batches = Literal["v1", "v2", "compat-v1", "compat-v09", "compat-v2"]


@dataclass(frozen=True)
class Limits:
    adds: int
    removes: int
    tags: int
    characters: int
    operations: int


@dataclass(frozen=True, slots=True)
class Proposed:
    op: int
    skill: int
    content: Content | None
    rating: int
    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    number: int
    type: str
    skill: str
    reason: str


@dataclass(frozen=True, slots=True)
class Admitted:
    operations: tuple[Proposed, ...]
    refusals: tuple[Refused, ...]


def admitted(batch: Any, skills: Sequence[Skill], used: Collection[int], limits: Limits, batches: Batches) -> Admitted:
    ids = {s.shown_id: s.id for s in skills}
    out = []
    for o in batch["operations"]:
        c = Content(o["section"], o["content"]) if o["content"] else None
        r = (
            {"helpful": 0, "neutral": 1, "harmful": 2}[next(k for k, v in o["metadata"].items() if v)]
            if o["metadata"]
            else -1
        )
        out.append(Proposed(OPERATIONS.index(o["type"]), -1 if o["type"] == "ADD" else ids[o["skill_id"]], c, r, ""))
    return Admitted(tuple(out), ())


def listed(refusals: Sequence[Refused]) -> str:
    return ""
