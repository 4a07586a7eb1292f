"""Skillbooks in files: of ACE, of Agent Skills and of agentropy, told apart by what is there."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from skg_bench.app.skillbook import agent_skills, rebuilt
from skg_bench.core.ace.book import AceBook, Era, dumps
from skg_bench.core.ace.checks import AceLimits
from skg_bench.core.ace.codec import loads
from skg_bench.core.agentropy import SKILLS
from skg_bench.core.agentropy import read as read_agentropy
from skg_bench.core.conversion import ConvertedBook, from_ace
from skg_bench.core.errors import UsageError
from skg_bench.core.run import Run

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)  # second 0 of a run
LIMITS = AceLimits()
_LARGEST = 200_000_000  # bytes of a file


def now() -> str:
    """The time, as documents have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def is_run(path: Path) -> bool:
    """Is it a run directory?"""
    return (path / "manifest.json").is_file()


def read(path: Path, arm: str | None, user: int | None, turn: int | None = None) -> ConvertedBook:
    """A skillbook, as runs have it; what a file says beyond that is counted as lost.

    Raises UsageError for files that hold no skillbook, and for a run without `arm` and `user`.
    """
    if is_run(path):
        if arm is None or user is None:
            raise UsageError(f"{path} is a run; name one of its skillbooks with --arm and --user")
        return ConvertedBook(rebuilt.book(Run(path), arm, user, turn), {})
    for name, value in (("--arm", arm), ("--user", user), ("--turn", turn)):
        if value is not None:
            raise UsageError(f"{name} {value}: {path} is no run, and holds one skillbook; leave it out")
    if path.is_dir() and (path / SKILLS).is_file():
        return ConvertedBook(read_agentropy(path, MONDAY.replace(tzinfo=None)).book, {})
    if path.is_dir():
        return agent_skills.read(path)
    return from_ace(document(path), MONDAY)


def document(path: Path, limits: AceLimits = LIMITS) -> AceBook:
    """A skillbook of ACE, of whichever format.

    Raises UsageError for files that hold none.
    """
    text = _text(path)
    return loads(text, _era(text), now(), limits)


def parsed(path: Path) -> Any:
    """The JSON value of a file.

    Raises UsageError for what is none.
    """
    try:
        return json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no whole JSON file: {error}") from error


def write(book: AceBook, path: Path) -> None:
    """Write a document, whole or not at all.

    Raises UsageError where something is there already.
    """
    if path.exists():
        raise UsageError(f"{path} is there already; name another file with --out")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.write_text(dumps(book) + "\n", "utf-8")
    temporary.rename(path)


def _text(path: Path) -> str:
    if not path.is_file():
        raise UsageError(f"{path} is no file; valid are a skillbook (.json), a run, and a folder of skills")
    if (size := path.stat().st_size) > _LARGEST:
        raise UsageError(f"{path} has {size:,} bytes; at most {_LARGEST:,} are read")
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is no text in UTF-8: {error}") from error


def _era(text: str) -> Era:
    """By what only one format has: a version, or counters of skills."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return "v2"  # whose reader says what is wrong
    if not isinstance(value, dict) or "schema_version" in value:
        return "v2"
    skills = value.get("skills")
    entries = skills.values() if isinstance(skills, dict) else ()
    return "v09" if any(isinstance(e, dict) and "helpful" not in e for e in entries) else "v1"
