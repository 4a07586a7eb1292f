"""Skillbooks in files: of ACE, of Agent Skills and of agentropy, told apart by what is there."""

import os
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import NamedTemporaryFile

from skg_bench.app.skillbook import rebuilt
from skg_bench.core.calendar import FIRST_MONDAY
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import text_of
from skg_bench.runfolder.run import Run
from skg_bench.skillbook import agent_skills
from skg_bench.skillbook.ace.book import AceBook, dumps, to_dict
from skg_bench.skillbook.ace.checks import AceLimits
from skg_bench.skillbook.ace.codec import format_of, from_dict, loads
from skg_bench.skillbook.agentropy import SKILLS, read_agentropy
from skg_bench.skillbook.conversion import NO_LOSS, ConvertedAce, ConvertedBook, from_ace

MONDAY = FIRST_MONDAY.replace(tzinfo=UTC)
LIMITS = AceLimits()
_LARGEST = 200_000_000  # bytes of a file


@dataclass(frozen=True)
class Named:
    """Source that the command line names: a file, or a run with arm, user and turn."""

    path: Path
    arm: str | None = None
    user: int | None = None
    turn: int | None = None

    def __post_init__(self) -> None:
        if self.is_run:
            if self.arm is None or self.user is None:
                raise UsageError(f"{self.path} is a run; name one of its skillbooks with --arm and --user")
            return
        for name, value in (("--arm", self.arm), ("--user", self.user), ("--turn", self.turn)):
            if value is not None:
                raise UsageError(f"{name} {value}: {self.path} is no run, and holds one skillbook; leave it out")

    @property
    def is_run(self) -> bool:
        """Is it a run directory?"""
        return is_run(self.path)

    def document(self) -> ConvertedAce | None:
        """The document of ACE that a file or a folder of Agent Skills is; None: it is a run, or agentropy's.

        Raises UsageError for files that hold no skillbook.
        """
        if self.is_run or (self.path / SKILLS).is_file():
            return None
        if self.path.is_dir():
            return agent_skills.read_agent_skills(self.path, now())
        return ConvertedAce(read_ace_book(self.path), NO_LOSS)

    def read(self) -> ConvertedBook:
        """The skillbook as runs have it; what a file says beyond that is counted as lost.

        Raises UsageError for files that hold no skillbook.
        """
        if self.arm is not None and self.user is not None:
            return ConvertedBook(rebuilt.book(Run(self.path), self.arm, self.user, self.turn), {})
        document = self.document()
        if document is None:
            return ConvertedBook(read_agentropy(self.path, FIRST_MONDAY).book, NO_LOSS)
        try:
            read = from_ace(document.book, MONDAY)
        except UsageError as error:
            raise UsageError(f"{self.path}: {error}") from error
        return ConvertedBook(read.book, Counter(document.losses) + Counter(read.losses))


def now() -> str:
    """The time, as documents have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def is_run(path: Path) -> bool:
    """Is it a run directory?"""
    return (path / "manifest.json").is_file()


def read_ace_book(path: Path, limits: AceLimits = LIMITS) -> AceBook:
    """A skillbook of ACE, of whichever format.

    Raises UsageError, which names the file, for files that hold none.
    """
    content = document_text(path)
    try:
        return loads(content, format_of(content), now(), limits)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error


def document_text(path: Path) -> str:
    """The text of a file, without the byte order mark that editors of Windows write.

    Raises UsageError for what is no file, too large, or not in UTF-8.
    """
    if not path.exists():
        raise UsageError(f"{path} does not exist; valid are a skillbook (.json), a run, and a folder of skills")
    if not path.is_file():
        raise UsageError(f"{path} is no file; valid are a skillbook (.json), a run, and a folder of skills")
    return text_of(path, _LARGEST).removeprefix("\ufeff")


def check_free(path: Path) -> None:
    """Raises UsageError where something is at `path`, a link included, or no folder can hold it."""
    if os.path.lexists(path):
        raise UsageError(f"{path} is there already; name another one with --out")
    above = next(folder for folder in (path.parent, *path.parent.parents) if os.path.lexists(folder))
    if not above.is_dir():
        raise UsageError(f"{above} is no folder, so that {path} cannot be in it; name another one with --out")


def write_ace_book(book: AceBook, path: Path, *, strictly: bool = True) -> None:
    """Write a document, whole or not at all. `strictly`: only what is read again.

    Raises UsageError where something is there already, and for a book that breaks its format.
    """
    check_free(path)
    if strictly:
        try:
            from_dict(to_dict(book), book.era, now())
        except UsageError as error:
            raise UsageError(f"this skillbook breaks the format {book.era}, so nothing is written: {error}") from error
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=f".{path.name[:40]}.", delete=False) as file:
        file.write(dumps(book) + "\n")
    try:
        os.link(file.name, path)  # which never writes over what is there
    finally:
        Path(file.name).unlink()
