"""Reports to writers, held against the documents."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.bench.locking.bursts import DELTAS, Learner, numbers
from experiments.bench.locking.writers import NOW, JobEnd
from skg_bench.core.store import Store
from skg_bench.skillbook.ace.book import AceBook
from skg_bench.skillbook.storing import load

_COUNTERS = {1: "helpful_count", 0: "neutral_count", -1: "harmful_count"}


@dataclass(frozen=True)
class Held:
    """Operations, by what they do."""

    stored: Mapping[str, int]  # of which a writer was told that they are stored
    lost: Mapping[str, int]  # of them, not in the document; of UPDATEs only a skill's last ones can be seen
    doubled: Mapping[str, int]  # more often in it than stored


def held(store: Store, people: Mapping[str, Learner], ends: Sequence[JobEnd]) -> Held:
    """Compare all documents with what was told of them."""
    stored, lost, doubled = Counter[str](), Counter[str](), Counter[str]()
    for user, learner in people.items():
        endings = [end for end in ends if end.user == user]
        stored.update(entry.op for end in endings for entry in end.applied)
        kept = load(store, user, NOW)
        book = AceBook("v2") if kept is None else kept.book
        for kind, difference in _differences(book, learner.book, endings):
            if difference:
                (lost if difference > 0 else doubled)[kind] += abs(difference)
    return Held(stored, lost, doubled)


def _differences(book: AceBook, before: AceBook, ends: Sequence[JobEnd]) -> Iterable[tuple[str, int]]:
    """Kind of operation, and how many are missing; below 0: too many."""
    skills = dict[int, list[Any]]()
    for key, number in numbers(book).items():
        skills.setdefault(number, []).append(book.skills[key])
    first = {number: before.skills[key] for key, number in numbers(before).items()}
    claimed = Counter(
        (entry.op, entry.skill, DELTAS.get(entry.rating or "")) for end in ends for entry in end.applied
    )  # fmt: skip
    for number in {number for _, number, _ in claimed} | set(skills):
        yield "ADD", claimed["ADD", number, None] - len(skills.get(number, ())) + (number in first)
        for delta, counter in _COUNTERS.items():
            count = sum(getattr(skill, counter) for skill in skills.get(number, ()))
            yield (
                "TAG",
                claimed["TAG", number, delta] - count + (getattr(first[number], counter) if number in first else 0),
            )
        if claimed["REMOVE", number, None] and any(skill.active for skill in skills.get(number, ())):
            yield "REMOVE", claimed["REMOVE", number, None]
    for number, texts in _last_texts(ends).items():
        if not any((skill.issue, skill.insight) in texts for skill in skills.get(number, ())):
            yield "UPDATE", 1


def _last_texts(ends: Sequence[JobEnd]) -> dict[int, set[tuple[str, str]]]:
    """Texts, by skill, that the UPDATEs of the last burst that had some set it to."""
    last = dict[int, tuple[int, set[tuple[str, str]]]]()
    for end in sorted(ends, key=lambda end: end.burst):
        for entry in end.applied:
            if entry.op == "UPDATE" and entry.content is not None:
                burst, texts = last.get(entry.skill, (-1, set()))
                text = entry.content.issue, entry.content.insight or entry.content.issue
                last[entry.skill] = end.burst, {*(texts if burst == end.burst else ()), text}
    return {number: texts for number, (_, texts) in last.items()}
