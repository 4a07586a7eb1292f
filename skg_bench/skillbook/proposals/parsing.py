"""A batch as changes of a document: strictly, or as a published engine takes it.

Strict batches are atomic (U08): one malformed operation refuses the whole batch. A text that no skill may say is no
matter of form, so its operation is refused alone.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from skg_bench.core.errors import UsageError
from skg_bench.skillbook.ace.book import AceBook, CompatMode, Era, InsightSkill
from skg_bench.skillbook.ace.changes import Change
from skg_bench.skillbook.ace.checks import AceLimits, a_list, abridged, an_object
from skg_bench.skillbook.ace.effective import effective
from skg_bench.skillbook.ace.engine import apply_as_published
from skg_bench.skillbook.ace.engine_failures import ERRORS, holds_garbage
from skg_bench.skillbook.ace.operations import TAGS, TYPES, batch_of
from skg_bench.skillbook.ace.strict import change_of
from skg_bench.skillbook.conversion import between
from skg_bench.skillbook.proposals.forbidden_words import flaw_of
from skg_bench.skillbook.proposals.verdicts import Code, Limits, Refused, reason_of
from skg_bench.skillbook.skillbook import Skill

Batches = Literal["v1", "v2", "compat-v1", "compat-v09", "compat-v2"]  # strict, or as the published engine takes them
_ERA: dict[str, Era] = {"v1": "v1", "v2": "v2", "compat-v1": "v1", "compat-v09": "v09", "compat-v2": "v2"}
_MODE: dict[str, CompatMode] = {mode: mode for mode in get_args(CompatMode)}
_SAID = ("section", "content", "issue", "insight")


@dataclass(frozen=True, slots=True)
class Step:
    """Result of one operation of a batch."""

    number: int  # from 1
    type: str  # of the operation, which may be another than the change's; empty: unknown
    skill: str  # that it names; empty: none that the skillbook has
    changes: tuple[Change, ...] = ()
    refusal: str = ""  # a reason; the changes are what was done before

    def refused(self, reason: str) -> Refused:
        """Refusal of something that the operation asks for."""
        return Refused(self.number, self.type, self.skill, reason)


def steps_of(
    batch: Any, skills: Sequence[Skill], limits: Limits, batches: Batches
) -> tuple[tuple[Step, ...], tuple[Refused, ...]]:
    """The operations one after the other, and refusals that concern more than one of them.

    Raises UsageError for a kind of batches that does not exist.
    """
    if batches not in _ERA:
        raise UsageError(f"batches={batches!r}, valid are {', '.join(_ERA)}")
    book = _document(skills, _ERA[batches])
    mode = _MODE.get(batches)
    try:
        items = _items(batch, strictly=mode is None)
        read = [_without_nulls(item, strictly=mode is None) for item in items[: limits.operations]]
        if mode is None:
            steps = _strict(read, book, limits)
        else:
            batch_of({"operations": read}, book.era)  # raises before anything is applied, as there
            steps = _as_published(read, book, mode)
    except UsageError as error:
        code: Code = "unknown skill" if isinstance(error, _UnknownSkillError) else "invalid"
        return (), (Refused(0, "", "", reason_of(code, str(error))),)
    except ERRORS as error:
        if not holds_garbage(book, batch):
            raise
        return (), (Refused(0, "", "", reason_of("invalid", f"reading it fails with {type(error).__name__}")),)
    reason = reason_of("too many operations", f"{len(items):,}, of which the first {len(read):,} are read")
    return steps, (Refused(len(read) + 1, "", "", reason),) if len(read) < len(items) else ()


class _UnknownSkillError(UsageError):
    """A strict batch names a skill that the skillbook does not have."""


def _document(skills: Sequence[Skill], era: Era) -> AceBook:
    """The skills that say something. Sections stay as prompts show them: v2 has only two, but no operation on a skill
    that is there depends on that.
    """
    entries = {}
    for skill in skills:
        if (content := skill.content) is not None:
            insight = content.insight
            if insight is None and content.section == "context":
                insight = content.issue  # v2 asks for one
            entries[skill.shown_id] = InsightSkill(
                skill.shown_id, content.section, content.keywords, content.issue, "", "", insight, (), skill.active, 0,
                skill.ok, skill.miss, skill.partial,
            )  # fmt: skip
    book = AceBook("v2", entries, {}, max((skill.id + 1 for skill in skills), default=0))
    return between(book, era).book


def _items(batch: Any, *, strictly: bool) -> list[Any]:
    fields = {name: value for name, value in batch.items() if value is not None} if isinstance(batch, dict) else batch
    if not strictly:
        items = fields.get("operations")  # AttributeError, as there
        if not isinstance(items, Iterable):
            raise UsageError(f"operations is {abridged(items)}, of which the published engine takes nothing")
        return list(items)
    top = an_object(fields, "the batch", ("reasoning", "operations"), ("operations",))
    if not isinstance(top.get("reasoning", ""), str):
        raise UsageError(f"reasoning is {abridged(top['reasoning'])}; a text is needed")
    return a_list(top["operations"], "operations", sys.maxsize)


def _without_nulls(item: Any, *, strictly: bool) -> Any:
    """The operation without fields that are null, as structured answers have all fields; of a strict TAG, counters that
    gain 0 say nothing either.
    """
    if not isinstance(item, dict):
        return item
    fields = {name: value for name, value in item.items() if value is not None}
    metadata = fields.get("metadata")
    if isinstance(metadata, dict):
        idle = {name for name, gain in metadata.items() if type(gain) is int and gain == 0 and name in TAGS}
        left = {n: v for n, v in metadata.items() if v is not None and not (strictly and n in idle)}
        fields["metadata"] = left
        if not left:
            del fields["metadata"]
    return fields


def _step(number: int, item: Any, book: AceBook, refusal: str = "", changes: tuple[Change, ...] = ()) -> Step:
    fields = item if isinstance(item, dict) else {}
    kind, key = (value if isinstance(value, str) else "" for value in (fields.get("type"), fields.get("skill_id")))
    known = kind.upper() if kind.upper() in TYPES else ""
    return Step(number, known, key if key in book.skills else "", changes, refusal)


# ------------------------------------------------------------------------------------------------------ strict


def _strict(items: Sequence[Any], book: AceBook, limits: Limits) -> tuple[Step, ...]:
    """Raises UsageError where the whole batch is refused."""
    most = AceLimits(text=max(AceLimits().text, limits.characters))
    steps = []
    for number, item in enumerate(items, 1):
        flaw = flaw_of(_texts(item), limits.characters)
        if flaw is not None:
            steps.append(_step(number, item, book, reason_of(*flaw)))
            continue
        change = change_of(item, f"operation {number}", book, most)
        if change.skill_id is not None and change.skill_id not in book.skills:
            raise _UnknownSkillError(f"operation {number} ({change.type}) names {abridged(change.skill_id)}")
        steps.append(_step(number, item, book, changes=(change,)))
    return tuple(steps)


def _texts(item: Any) -> list[str]:
    """Texts of an ADD or UPDATE."""
    if not isinstance(item, dict) or item.get("type") not in ("ADD", "UPDATE"):
        return []
    words = item.get("keywords")
    values = [*(item.get(name) for name in _SAID), *(words if isinstance(words, list) else ())]
    return [value for value in values if isinstance(value, str)]


# --------------------------------------------------------------------------------------------------- as published


def _as_published(items: Sequence[Any], book: AceBook, mode: CompatMode) -> tuple[Step, ...]:
    steps: list[Step] = []
    failed = ""
    for number, item in enumerate(items, 1):
        if failed:
            steps.append(_step(number, item, book, failed))
            continue
        alone = {"operations": [item]}
        changes, outcome = effective(book, alone, mode), apply_as_published(book, alone, mode, "")
        refusal = ""
        if outcome.failure is not None:
            refusal = reason_of("invalid", f"the published engine fails here with {outcome.failure.type}")
            failed = reason_of("no effect", f"the published engine failed at operation {number}")
        elif not changes:
            refusal = _nothing(item, book)
        steps.append(_step(number, item, book, refusal, changes))
        book = outcome.book
    return tuple(steps)


def _nothing(item: Any, book: AceBook) -> str:
    """Reason why the published engine does nothing."""
    key = item.get("skill_id") if isinstance(item, dict) else None
    if isinstance(key, str) and key not in book.skills:
        return reason_of("unknown skill", abridged(key))
    return reason_of("no effect", "the published engine does nothing")
