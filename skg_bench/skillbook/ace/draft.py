"""A working copy of a book while operations change it: one copy of its dictionaries, however many operations."""

from dataclasses import replace
from typing import Any

from skg_bench.skillbook.ace.book import AceBook, KeepDecision


class Draft:
    """A book in the making; `now` is the time that touched skills get."""

    def __init__(self, book: AceBook, now: str) -> None:
        self.era, self.now, self.next_id = book.era, now, book.next_id
        self.skills: dict[str, Any] = dict(book.skills)  # the format decides on their class
        self.sections: dict[str, tuple[str, ...]] = dict(book.sections)
        self.decisions: dict[frozenset[str], KeepDecision] = dict(book.decisions)
        self._batches = book.batches

    @property
    def book(self) -> AceBook:
        """The book as it is now; the draft is done with."""
        return AceBook(self.era, self.skills, self.sections, self.next_id, self.decisions, self._batches)

    def number(self, section: str) -> str:
        """A new id: the first word of the section and the next number, which counts in all sections together."""
        self.next_id += 1  # a section without a word has used up the number before it fails
        return f"{section.split()[0].lower()}-{self.next_id:05d}"

    def held(self, key: Any) -> str | None:
        """`key` where there is such a skill, removed or not."""
        return key if key in self.skills else None

    def change(self, key: str, **values: Any) -> None:
        """Set fields of a skill."""
        self.skills[key] = replace(self.skills[key], **values)

    def show(self, section: str, key: str) -> None:
        """List a skill at the end of a section; again, if it stands there already."""
        self.sections[section] = (*self.sections.get(section, ()), key)

    def purge(self, key: Any) -> None:
        """Delete a skill for good, and its section with its last skill; nothing for an unknown id."""
        if self.held(key) is None:  # `pop` alone would take a list for an id where the book is empty
            return
        skill = self.skills.pop(key)
        ids = self.sections.get(skill.section)
        if ids:
            left = tuple(entry for entry in ids if entry != key)
            if left:
                self.sections[skill.section] = left
            else:
                del self.sections[skill.section]

    def soft_remove(self, key: Any) -> None:
        """Hide a skill; nothing for an unknown id."""
        if self.held(key) is not None:
            removed = {"active": False} if self.era == "v2" else {"status": "invalid"}
            self.change(key, **removed, updated_at=self.now)
