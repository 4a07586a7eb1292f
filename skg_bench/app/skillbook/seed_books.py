"""Skillbooks that users start with, by name or file."""

from collections.abc import Sequence
from pathlib import Path

from skg_bench.assistant.pipeline.components import components
from skg_bench.assistant.pipeline.pipeline import Pipeline
from skg_bench.assistant.pipeline.seeding import SeedBook
from skg_bench.core.arms import Arm
from skg_bench.core.errors import UsageError
from skg_bench.core.package import named_books

_MOST = 10_000  # ratings of all skills together: each is an operation of every user


def seed_book(name: str) -> SeedBook:
    """The skillbook that comes with the package under this name, or else the one of a file in a format of ACE, or of a
    folder of Agent Skills.

    Raises UsageError for files and folders that hold none, or more ratings than users should start with.
    """
    from skg_bench.app.skillbook import files  # the formats of skillbooks take 0.1 s, and few runs begin with one
    from skg_bench.skillbook.conversion import from_ace

    named = named_books()
    path = named.get(name, Path(name))
    document = files.Named(path).document() if path.is_file() or path.is_dir() else None
    if document is None:
        known = "".join(f"{name}, " for name in named)
        raise UsageError(
            f"seeds={name} is no file; valid are {known}the file of a skillbook, or a folder of Agent Skills"
        )
    book = SeedBook(from_ace(document.book, files.MONDAY).book.skills, described=path.is_dir())
    if not book.skills:
        raise UsageError(f"seeds={name} has no skills; take seeds=null for skillbooks that start empty")
    if (ratings := sum(skill.ok + skill.partial + skill.miss for skill in book.skills)) > _MOST:
        raise UsageError(f"seeds={name} has {ratings:,} ratings; valid are at most {_MOST:,}, as every user gets them")
    return book


def seed_digests(arms: Sequence[Arm]) -> dict[str, str]:
    """Hashes of the skillbooks that the users of arms start with."""
    books = {arm.name: components(arm).seeds for arm in arms if isinstance(arm.assistant, Pipeline)}
    return {f"seeds of {name}": book.hash for name, book in books.items() if book is not None}
