"""Failures of a published package, told from mistakes of ours.

The packages check little: garbage fails where Python does not take it. A batch that strict reads holds none, nor does a
book whose fields have their types. An error over these is a mistake of ours, and goes on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import NoneType
from typing import Any

from skg_bench.core.errors import UsageError
from skg_bench.skillbook.ace.book import COUNTERS, AceBook, AceSkill, CounterSkill, InsightSkill
from skg_bench.skillbook.ace.strict import changes_of

ERRORS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)  # what garbage raises
_TYPES: Mapping[str, tuple[type, ...]] = {  # of fields of skills that are no texts
    **dict.fromkeys((*COUNTERS["v1"], *COUNTERS["v2"], "used_count"), (int,)),
    **dict.fromkeys(("justification", "evidence", "insight"), (str, NoneType)),
    **dict.fromkeys(("sources", "occurrences", "keywords"), (tuple,)), "active": (bool,),
}  # fmt: skip
_NO_BATCH: Mapping[str, Any] = {"operations": []}
_UNREAD = ("embedding", "overwritten")  # no operation fails over the first, and the second is looked at apart


@dataclass(frozen=True, slots=True)
class AceFailure:
    """Place where the published package stops, and the class of its error."""

    stage: str  # load, parse, apply, or the name of another step
    type: str


def holds_garbage(book: AceBook, batch: Any = _NO_BATCH) -> bool:
    """Is there anything in the book, or in a batch of parsed JSON, over which a package may fail?"""
    if not all(map(_is_whole, book.skills.values())):
        return True
    try:
        changes_of(batch, book)
    except (UsageError, RecursionError):
        return True
    return False


def _is_whole(skill: AceSkill) -> bool:
    """Has each field a value of its type, and a skill of context an insight?"""
    typed = (
        isinstance(getattr(skill, f.name), _TYPES.get(f.name, (str,))) for f in fields(skill) if f.name not in _UNREAD
    )
    if isinstance(skill, InsightSkill):
        return all(typed) and (skill.section != "context" or bool(skill.insight))
    return all(typed) and not (isinstance(skill, CounterSkill) and skill.overwritten)
