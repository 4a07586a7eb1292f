"""Limits of a batch, what is admitted, what is refused and why; refusals as a text of the log and back."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar, Literal, cast

from skg_bench.core.content import Content
from skg_bench.core.errors import UsageError
from skg_bench.core.reach import REACHES_NOTHING, Reaches

Code = Literal[  # how a reason begins
    "invalid",  # malformed: an unknown type or field, a field that is missing or of another kind
    "unknown skill",
    "too many operations", "too many ADDs", "too many REMOVEs", "too many ratings",
    "too few ratings",
    "too long", "control characters", "an address",
    "said twice",  # the batch ADDs it a second time
    "not shown",  # a TAG of a skill that the turn did not show; any operation on a skill that the batch itself adds
    "archived",
    "frozen",  # anything but a TAG, for a skillbook that no longer learns
    "contradiction",  # UPDATE and REMOVE of one skill
    "no effect",
    "no counterpart",  # the published engine does it, skillbooks of a run do not
]  # fmt: skip
_LEAST = {"adds": 0, "removes": 0, "tags": 0, "ratings": 1, "characters": 1, "operations": 1}


@dataclass(frozen=True)
class Limits:
    """Limits of one batch.

    Raises UsageError for a value that is too small.
    """

    adds: int  # ADDs at most
    removes: int  # REMOVEs at most
    tags: int  # ratings of its own that a skill needs before it may be UPDATEd or REMOVEd
    ratings: int  # ratings that one skill may be given at most
    characters: int  # of what a skill says, all fields together, at most
    operations: int  # operations at most; the rest is refused unread
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise UsageError(f"limits.{name}={getattr(self, name)} must be at least {least}")


@dataclass(frozen=True, slots=True)
class Proposed:
    """An operation that is admitted. -1 and None where a field does not apply."""

    op: int  # ADD, UPDATE, TAG, REMOVE (core/batch.py)
    skill: int
    content: Content | None  # what the skill says from now on, all of it
    rating: int  # code in RATINGS: ok is helpful, partial neutral, miss harmful


@dataclass(frozen=True, slots=True)
class Refused:
    """Part of a proposal that is not applied."""

    number: int  # of the operation in the batch, from 1; 0: the whole batch
    type: str  # ADD, UPDATE, TAG, REMOVE; empty: none of these
    skill: str  # as shown; empty: none, or none that the skillbook has
    reason: str  # a Code, and details behind a colon

    @property
    def code(self) -> Code:
        """The words that the reason begins with."""
        return cast("Code", self.reason.partition(":")[0])


@dataclass(frozen=True, slots=True)
class Admitted:
    """A batch after the policy."""

    operations: tuple[Proposed, ...]  # in order of the batch
    refusals: tuple[Refused, ...]  # in order of the batch


def reason_of(code: Code, details: str = "") -> str:
    """A reason of a refusal."""
    return f"{code}: {details}" if details else code


def listed(refusals: Sequence[Refused]) -> str:
    """Refusals as canonical JSON, as the log has them; empty for none."""
    if not refusals:
        return ""
    values = [asdict(refusal) for refusal in refusals]
    return json.dumps(values, ensure_ascii=True, sort_keys=True, separators=(",", ":"))


def refusals_of(text: str) -> tuple[Refused, ...]:
    """The refusals of a log's text."""
    return tuple(Refused(**values) for values in json.loads(text)) if text else ()
