"""Output of `skillbook show` and `skillbook diff`."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
from rich.console import Console

from skg_bench.app import table_blocks
from skg_bench.app.progress import console
from skg_bench.app.skillbook import differences, files, rebuilt
from skg_bench.app.skillbook.differences import SKILL_COUNTERS, status
from skg_bench.app.skillbook.files import Named
from skg_bench.core.calendar import first_monday, local_time, offsets_of
from skg_bench.core.errors import UsageError
from skg_bench.core.text import revealed
from skg_bench.runfolder.run import Run
from skg_bench.skillbook.rendering import render
from skg_bench.skillbook.skillbook import Operation, Skillbook, operation


def show_skillbook(path: Path, arm: str | None, user: int | None, turn: int | None) -> None:
    """Print one skillbook, and what it says in a prompt."""
    named, screen = Named(path, arm, user, turn), console()
    book = named.read().book
    last_used, monday = np.array([s.last_used for s in book.skills], np.int64), files.MONDAY
    if named.is_run:
        manifest = Run(path).manifest
        last_used, monday = local_time(offsets_of(manifest), last_used), first_monday(manifest)
    _table(screen, book, [monday + timedelta(seconds=at) for at in last_used.tolist()])
    if any(skill.content is not None for skill in book.skills):
        rendered = render(book) if named.is_run else render(book, label=lambda skill: skill.name)
        _line(screen, f"\n{rendered.text}\n")
        _line(screen, f"in a prompt: {_some(len(rendered.skills), 'skill')}, some {rendered.tokens:,} tokens")
    when = "at the end" if turn is None else f"after turn {turn}"
    title = f"user {user}, arm {arm}, {when}" if named.is_run else str(path)
    active = sum(skill.active for skill in book.skills)
    state = f", version {book.version}, state hash {book.hash.hex()}" if named.is_run else ""
    _line(screen, f"{title}: {_some(active, 'active skill')}{state}")


def _table(screen: Console, book: Skillbook, last_used: Sequence[datetime]) -> None:
    examples = any(skill.examples for skill in book.skills)
    headings = ["id", "skill", "status", "uses", "last used", "ok", "partial", "miss"]
    rows = [
        [str(s.id), s.name, status(s), str(s.uses), at.strftime("%Y-%m-%d"),
         *(str(n) for n in (s.ok, s.partial, s.miss)),
         *([str(s.embedding_count), s.examples[0] if s.examples else ""] if examples else [])]
        for s, at in zip(book.skills, last_used, strict=True)
    ]  # fmt: skip
    _rows(screen, [*headings, "examples", "first example"] if examples else headings, rows)


def history(path: Path, arm: str | None, user: int | None, turn: int | None, skill: int) -> None:
    """Print what happened to one skill of a run, an operation a row.

    Raises UsageError for a skill that the book does not have.
    """
    if not files.is_run(path):
        raise UsageError(f"--skill {skill}: {path} is no run, and no log tells what happened to its skills")
    book = Named(path, arm, user, turn).read().book
    if not 0 <= skill < len(book.skills):
        valid = f"skills 0 to {len(book.skills) - 1}" if book.skills else "no skills"
        raise UsageError(f"--skill {skill}: this skillbook has {valid}")
    run = Run(path)
    monday = first_monday(run.manifest)
    rows = [
        [str(row["turn"]), (monday + timedelta(seconds=row["time"])).strftime("%Y-%m-%d"), row["op"],
         _what(operation(row)), row["reason"], str(row["book_version"])]
        for row in rebuilt.updates(run, str(arm), int(user or 0))
        if row["skill"] == skill and (turn is None or row["turn"] <= turn)
    ]  # fmt: skip
    screen = console()
    _rows(screen, ("turn", "date", "operation", "what", "why", "version"), rows)
    entry = book.skills[skill]
    counts = ", ".join(f"{name} {getattr(entry, name)}" for name in SKILL_COUNTERS)
    _line(screen, f"skill {skill}, {entry.name}: {_some(len(rows), 'operation')}; {status(entry)}, {counts}")


def show_differences(
    path: Path, other: Path | None, arm: str | None, user: int | None, *, since: int | None, turn: int | None
) -> None:
    """Print what changed from one skillbook to another, or in a run after turn `since`.

    Raises UsageError where only one skillbook is named, and for options that do not go with what is named.
    """
    screen = console()
    if other is None:
        if since is None:
            raise UsageError(f"{path} is one skillbook; name another one, or of a run a turn with --since")
        if turn is not None and turn < since:
            raise UsageError(f"--since {since} --turn {turn}: the second turn must not be the earlier one")
        after = Named(path, arm, user, turn).read().book
        before = Named(path, arm, user, since).read().book
        show_changes(screen, differences.of_books(before, after, by_name=False), _active(before), _active(after))
        return
    if since is not None:
        raise UsageError(f"--since {since}: with two skillbooks all that differs is shown; leave it out")
    names = [
        Named(p, arm, user, turn) if files.is_run(p) or not (files.is_run(path) or files.is_run(other)) else Named(p)
        for p in (path, other)
    ]
    documents = [read.book for named in names if (read := named.document()) is not None]
    if len(documents) == len(names) and documents[0].era == documents[1].era:
        first, second = documents
        show_changes(screen, differences.of_documents(first, second), len(first.active), len(second.active))
        return
    before, after = (named.read().book for named in names)
    by_name = not all(named.is_run for named in names)
    show_changes(screen, differences.of_books(before, after, by_name=by_name), _active(before), _active(after))


def show_changes(screen: Console, rows: Iterable[Sequence[str]], before: int, after: int) -> None:
    """Print rows of differences; `before`, `after`: active skills."""
    rows = list(rows)
    if rows:
        headings = ("id", "skill", "what", "change")
        _rows(screen, headings[-len(rows[0]) :], rows)
    skills = len({tuple(row[:-2]) for row in rows})
    differ = f"{_some(skills, 'skill')} {'differs' if skills == 1 else 'differ'}"
    _line(screen, f"{differ}; {_some(before, 'active skill')} before, {after} after")


def _active(book: Skillbook) -> int:
    return sum(skill.active for skill in book.skills)


def _some(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def _what(op: Operation) -> str:
    """An operation in words."""
    parts: list[str] = []
    if op.name is not None:
        parts.append(f"named {op.name}")
    if op.message is not None:
        parts.append(f"example: {op.message}")
    if op.source_turn >= 0:
        parts.append(f"answer of turn {op.source_turn}")
    if op.content is not None:
        words = op.content.issue if op.content.insight is None else f"{op.content.issue} -> {op.content.insight}"
        parts.append(f"says: {words}")
    if op.uses:
        parts.append("served")
    if op.rating is not None:
        parts.append(f"rated {op.rating}")
    return "; ".join(parts)


def _rows(screen: Console, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    table_blocks.show_table(screen, headings, [[revealed(cell) for cell in row] for row in rows])


def _line(screen: Console, text: str) -> None:
    screen.print(revealed(text), markup=False, highlight=False, soft_wrap=False)
