"""Learning jobs of a run as bursts: what several writers learn into one skillbook at the same moment.

A job is what was learned from one turn. Jobs of a user follow one another in the run; here up to as many as there are
writers are started together, the densest sitting that there can be. A job that is about a skill of an earlier job
waits for the next burst, as nobody proposes to change what he has not read.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from skg_bench.app.skillbook import files, rebuilt
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from skg_bench.skillbook.ace.book import AceBook, InsightSkill
from skg_bench.skillbook.ace.words import section_of
from skg_bench.skillbook.conversion import to_ace
from skg_bench.skillbook.skillbook import Operation, operation

_MARK = "run_"  # a keyword with the number that the run gave a skill, as ids of documents depend on who came first
DELTAS = {"ok": 1, "partial": 0, "miss": -1}


@dataclass(frozen=True)
class LoggedJob:
    """Job that learned from one turn; skills have the numbers that the run gave them."""

    key: str
    operations: tuple[Operation, ...]


Bursts = Sequence[Sequence[LoggedJob]]  # of one user


@dataclass(frozen=True)
class Learner:
    """A user's skillbook before the first turn, and what was learned then."""

    book: AceBook
    bursts: Bursts


def learners(run: Run, arm: str, users: int, size: int) -> dict[str, Learner]:
    """The first `users` of a run.

    Raises UsageError where the run has fewer, and for an arm whose ratings are taken back, as ACE has no operation for
    that.
    """
    if users > int(run.manifest["users"]):
        raise UsageError(f"--store-users {users}: {run.path} has {run.manifest['users']} users")
    return {
        f"user-{user}": Learner(_seeded(run, arm, user), bursts(rebuilt.updates(run, arm, user), size, f"{user}"))
        for user in range(users)
    }


def bursts(rows: Iterable[Mapping[str, Any]], size: int, user: str) -> Bursts:
    """Rows of a user's update log as bursts of at most `size` jobs."""
    jobs = dict[tuple[int, int], list[Operation]]()
    for row in rows:
        entry = operation(row)
        if row["turn"] >= 0 and _learned(entry):
            jobs.setdefault((row["turn"], entry.about), []).append(entry)
    made = list[list[LoggedJob]]()
    added = set[int]()
    for (turn, about), operations in jobs.items():
        if not made or len(made[-1]) == size or added & {entry.skill for entry in operations}:
            made.append([])
            added.clear()
        made[-1].append(LoggedJob(f"u{user}-t{turn}-{about}", tuple(operations)))
        added |= {entry.skill for entry in operations if entry.op == "ADD"}
    return made


def _learned(entry: Operation) -> bool:
    """Is it an operation of a batch of ACE, which does not count how often a skill was served?"""
    if entry.op == "TAG":
        if entry.rating is not None and entry.rating not in DELTAS:
            raise UsageError(f"a TAG says {entry.rating}, which ACE cannot; take an arm with signs.merge=sum")
        return entry.rating is not None
    return entry.op == "REMOVE" or entry.content is not None


def _seeded(run: Run, arm: str, user: int) -> AceBook:
    before = rebuilt.book(run, arm, user, -1)
    book = to_ace(before, "v2", files.MONDAY).book
    skills = {
        skill.shown_id: _marked(cast("InsightSkill", book.skills[skill.shown_id]), skill.id)
        for skill in before.skills
        if skill.shown_id in book.skills
    }
    return replace(book, skills=skills)


def _marked(skill: InsightSkill, number: int) -> InsightSkill:
    return replace(skill, keywords=(*skill.keywords, f"{_MARK}{number}"))


def numbers(book: AceBook) -> dict[str, int]:
    """Ids of the skills of a document, with the numbers that the run gave them."""
    return {
        skill.id: int(word.removeprefix(_MARK))
        for skill in book.skills.values()
        for word in cast("InsightSkill", skill).keywords
        if word.startswith(_MARK)
    }


def batch_of(job: LoggedJob, book: AceBook) -> tuple[dict[str, Any], tuple[Operation, ...]]:
    """A job as a batch for the document that its writer has read, and the operations that are in it: those whose skill
    the document has.
    """
    ids = {number: key for key, number in numbers(book).items()}
    possible = tuple(entry for entry in job.operations if entry.op == "ADD" or entry.skill in ids)
    return {"reasoning": "", "operations": [_entry(entry, ids.get(entry.skill), book) for entry in possible]}, possible


def _entry(entry: Operation, key: str | None, book: AceBook) -> dict[str, Any]:
    """An operation as ACE writes it."""
    says: dict[str, Any] = {}
    if entry.content is not None:
        content = entry.content
        section, words = section_of(content.section, content.keywords)
        says = {"issue": content.issue, "insight": content.insight or content.issue}
        says["keywords"] = [*words, f"{_MARK}{entry.skill}"]
    if key is None:
        return {"type": "ADD", "section": section, **says}
    common = {"type": entry.op, "section": book.skills[key].section, "skill_id": key}
    if entry.op == "TAG":
        return {**common, "metadata": {"delta": DELTAS[entry.rating or "partial"]}}
    return {**common, **says}
