"""A batch that was made from one version of a document, for a later version of it (P26).

A batch here is a sequence of `Change`, and a version an `AceBook`, as these are what a store holds. The operations of
`skillbook/skillbook.py` name rows of a run's skillbook table by numbers, which another writer's ADD would shift. A
document names skills by ids that are never given twice, so an operation still means the same skill in any later
version.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from skg_bench.skillbook.ace.book import COUNTERS, AceBook, AceSkill
from skg_bench.skillbook.ace.changes import SETTABLE, Change
from skg_bench.skillbook.word_cosines import WordCosines

# applied: as it is. merged: an ADD of what was added meanwhile, now a TAG of that skill. aside: an UPDATE of a skill
# that was updated meanwhile. misdirected: its skill was removed meanwhile. The last two are not applied.
Fate = Literal["applied", "merged", "aside", "misdirected"]
ALIKE = 0.9  # cosine by words from which two contents count as one: our choice; 1.0: the same words only
_HELPFUL = {"v1": "helpful", "v2": "helpful_count"}


@dataclass(frozen=True, slots=True)
class RebasedOperation:
    """Outcome of an operation of the batch."""

    change: Change  # as the batch has it
    fate: Fate
    skill_id: str | None = None  # of a merged ADD: the skill that says the same


class Rebased(NamedTuple):
    """Batch to apply, and the outcome of every operation, in the order of the batch."""

    batch: tuple[Change, ...]
    report: tuple[RebasedOperation, ...]


def rebase(batch: Sequence[Change], read: AceBook, now: AceBook, alike: float = ALIKE) -> Rebased:
    """The batch that was made from `read`, for the book as it is `now`.

    TAGs are sums and stay; an ADD gets its id when it is applied. A REMOVE stays, whatever was done to its skill
    meanwhile, unless that was removed, too. Where nothing changed meanwhile, the batch comes back as it is.
    """
    twins = _twins(batch, read, now, alike)
    report, kept = [], []
    for place, change in enumerate(batch):
        twin = twins.get(place)
        fate: Fate = "merged" if twin is not None else _fate(change, read, now)
        report.append(RebasedOperation(change, fate, twin))
        if twin is not None:
            kept.append(Change("TAG", twin, _gains(change, now), change.sources, change.reason, change.reflections))
        elif fate == "applied":
            kept.append(change)
    return Rebased(tuple(kept), tuple(report))


def as_it_is(batch: Sequence[Change]) -> Rebased:
    """A batch that needs no change, with its report."""
    return Rebased(tuple(batch), tuple(RebasedOperation(change, "applied") for change in batch))


def replayed(batch: Sequence[Change], now: AceBook) -> Rebased:
    """The batch as the article's pipeline applies it again: the same operations. The package passes over those whose
    skill is gone, and changes skills that are hidden.
    """
    report = []
    for change in batch:
        skill = now.skills.get(change.skill_id or "")
        gone = change.type != "ADD" and (skill is None or not skill.active)
        report.append(RebasedOperation(change, "misdirected" if gone else "applied"))
    return Rebased(tuple(c for c in batch if c.type == "ADD" or c.skill_id in now.skills), tuple(report))


def _fate(change: Change, read: AceBook, now: AceBook) -> Fate:
    if change.type == "ADD":
        return "applied"
    before, after = (book.skills.get(change.skill_id or "") for book in (read, now))
    if before is None or after is None or (before.active and not after.active):
        return "misdirected"
    if change.type == "UPDATE":
        words = _words(after, now)
        if words != _words(before, read) and any(words[name] != value for name, value in change.values.items()):
            return "aside"
    return "applied"


def _twins(batch: Sequence[Change], read: AceBook, now: AceBook, alike: float) -> Mapping[int, str]:
    """Places of ADDs in the batch, with the id of the skill, added meanwhile, that says the same or nearly so."""
    added = [skill for key, skill in now.skills.items() if key not in read.skills and skill.active]
    places = [place for place, change in enumerate(batch) if change.type == "ADD"]
    if not added or not places:
        return {}
    known = [_text(_words(skill, now)) for skill in added]
    texts = [_text(batch[place].values) for place in places]
    cosines = WordCosines([*known, *texts]).of(texts)[:, : len(added)]
    twins = {}
    for place, text, row in zip(places, texts, cosines.tolist(), strict=True):
        section = batch[place].values["section"]
        scores = [
            (1.0 if other == text else cosine, -i)
            for i, (skill, other, cosine) in enumerate(zip(added, known, row, strict=True))
            if skill.section == section and (other == text or cosine >= alike)
        ]
        if scores:
            twins[place] = added[-max(scores)[1]].id
    return twins


def _gains(change: Change, now: AceBook) -> dict[str, Any]:
    """Worth of an ADD as a TAG: the counters that it has, or else one helpful use; `v09` counts nothing."""
    counters = {name: change.values[name] for name in COUNTERS[now.era] if change.values.get(name)}
    return counters or ({_HELPFUL[now.era]: 1} if COUNTERS[now.era] else {})


def _words(skill: AceSkill, book: AceBook) -> dict[str, Any]:
    return {name: getattr(skill, name) for name in SETTABLE[book.era]}


def _text(values: Mapping[str, Any]) -> str:
    parts = (values.get(name) for names in SETTABLE.values() for name in names)
    return "\n".join(part if isinstance(part, str) else " ".join(part) for part in parts if part)
