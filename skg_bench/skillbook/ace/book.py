"""A skillbook document as a frozen value, and how it is written.

Three formats: `v1` counts helpful, harmful and neutral uses of a text (ace-framework 0.7.1 and the TypeScript port),
`v09` keeps text and sources without counters (0.9.7), `v2` splits the text into issue and insight and adds keywords
(0.13.0). The compatibility modes keep whatever type a file has in a field, as the packages do; the annotations below
say what a well-formed book holds.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from skg_bench.core.errors import UsageError
from skg_bench.skillbook.ace.provenance import Provenance

Era = Literal["v1", "v09", "v2"]
CompatMode = Literal["compat-v1", "compat-v09", "compat-v2"]
ERAS: tuple[Era, ...] = get_args(Era)
BOOK_SCHEMA = "2"  # what a v2 book says of itself; older books say nothing
Json = dict[str, Any]
Vector = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class CounterSkill:
    """An entry of a `v1` book."""

    id: str
    section: str
    content: str
    created_at: str  # ISO 8601, as all times here
    updated_at: str
    helpful: int = 0
    harmful: int = 0
    neutral: int = 0
    embedding: Any = None  # numbers, or None
    status: str = "active"  # or "invalid": removed softly
    overwritten: frozenset[str] = frozenset()  # methods of the package's class that metadata has put numbers over

    @property
    def active(self) -> bool:
        """Is it offered to the agent?"""
        return self.status == "active"


@dataclass(frozen=True, slots=True)
class PlainSkill:
    """An entry of a `v09` book."""

    id: str
    section: str
    content: str
    created_at: str
    updated_at: str
    justification: str | None = None
    evidence: str | None = None
    embedding: Any = None
    status: str = "active"
    sources: tuple[Provenance, ...] = ()

    @property
    def active(self) -> bool:
        """Is it offered to the agent?"""
        return self.status == "active"


@dataclass(frozen=True, slots=True)
class InsightSkill:
    """An entry of a `v2` book."""

    id: str
    section: str  # context or harness
    keywords: tuple[str, ...]  # lower case, no blanks, distinct
    issue: str
    created_at: str
    updated_at: str
    insight: str | None = None
    occurrences: tuple[Provenance, ...] = ()
    active: bool = True
    used_count: int = 0
    helpful_count: int = 0
    harmful_count: int = 0
    neutral_count: int = 0
    embedding: Any = None  # never written

    @property
    def embedding_text(self) -> str:
        """Text that retrieval and the search for near-duplicates read."""
        keywords = f"Keywords: {', '.join(self.keywords)}" if self.keywords else None
        return "\n\n".join(part for part in (self.issue, self.insight or None, keywords) if part is not None)


AceSkill = CounterSkill | PlainSkill | InsightSkill
SKILL_OF: dict[Era, type[AceSkill]] = {"v1": CounterSkill, "v09": PlainSkill, "v2": InsightSkill}
WRITTEN: dict[Era, tuple[str, ...]] = {  # in the order of the published files
    "v1": (
        "id", "section", "content", "helpful", "harmful", "neutral", "created_at", "updated_at", "embedding", "status",
    ),
    "v09": (
        "id", "section", "content", "justification", "evidence", "created_at", "updated_at", "embedding", "status",
        "sources",
    ),
    "v2": (
        "id", "section", "keywords", "issue", "insight", "occurrences", "active", "used_count", "helpful_count",
        "harmful_count", "neutral_count", "created_at", "updated_at",
    ),
}  # fmt: skip
COUNTERS: dict[Era, tuple[str, ...]] = {
    "v1": ("helpful", "harmful", "neutral"),
    "v09": (),
    "v2": ("helpful_count", "harmful_count", "neutral_count"),
}


@dataclass(frozen=True, slots=True)
class KeepDecision:
    """A pair of near-duplicates that stays apart."""

    decision: str
    reasoning: str
    decided_at: str
    similarity_at_decision: float


Sections = Mapping[str, tuple[str, ...]]
Decisions = Mapping[frozenset[str], KeepDecision]


@dataclass(frozen=True, slots=True)
class AceBook:
    """A skillbook document. `sections` lists ids in the order in which prompts show them; `batches` are the keys of the
    strict batches that the book contains.
    """

    era: Era
    skills: Mapping[str, AceSkill] = field(default_factory=dict)
    sections: Sections = field(default_factory=dict)
    next_id: int = 0  # the number that was given last
    decisions: Decisions = field(default_factory=dict)
    batches: tuple[str, ...] = ()

    @property
    def active(self) -> tuple[AceSkill, ...]:
        """Skills that were not removed, in the order of the file."""
        return tuple(skill for skill in self.skills.values() if skill.active)


def era_of(mode: CompatMode) -> Era:
    """The format that a compatibility mode reads and writes."""
    return _ERA_OF[mode] if mode in _ERA_OF else _no_such_mode(mode)


_ERA_OF: dict[str, Era] = {f"compat-{era}": era for era in ERAS}


def _no_such_mode(mode: str) -> Era:
    raise UsageError(f"mode={mode}; valid: {', '.join(_ERA_OF)}")


def to_dict(book: AceBook) -> Json:
    """The book as its format writes it (P11); embeddings are not part of a `v2` file, nor `None` of a `v09` one."""
    written: Json = {"schema_version": BOOK_SCHEMA} if book.era == "v2" else {}
    written |= {
        "skills": {key: _skill(book.era, skill) for key, skill in book.skills.items()},
        "sections": {section: list(ids) for section, ids in book.sections.items()},
        "next_id": book.next_id,
        "similarity_decisions": {
            ",".join(sorted(pair)): {f.name: getattr(decision, f.name) for f in fields(decision)}
            for pair, decision in book.decisions.items()
        },
    }
    return written | ({"batches": list(book.batches)} if book.batches else {})


def dumps(book: AceBook) -> str:
    """The text of the file, as the packages lay it out."""
    return json.dumps(to_dict(book), ensure_ascii=False, indent=2)


def _skill(era: Era, skill: AceSkill) -> Json:
    values = {name: getattr(skill, name) for name in WRITTEN[era]}
    if era == "v2":
        values["keywords"] = list(values["keywords"])
        values["occurrences"] = [source.to_dict() for source in values["occurrences"]]
        return values
    if isinstance(values["embedding"], tuple):
        values["embedding"] = list(values["embedding"])
    if era == "v09":
        values["sources"] = [source.to_dict() for source in values["sources"]]
        if values["embedding"] is None:
            del values["embedding"]
    return values
