"""What `skillbook show` and `skillbook diff` print."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import numpy as np
from rich.console import Console

from skg_bench.app import blocks
from skg_bench.app.progress import console
from skg_bench.app.skillbook import files, rebuilt
from skg_bench.core.content import NAMES
from skg_bench.core.errors import UsageError
from skg_bench.core.record import local_time, offsets_of
from skg_bench.core.rendering import render
from skg_bench.core.run import Run
from skg_bench.core.skillbook import Operation, Skill, Skillbook, operation

_COUNTS = ("uses", "ok", "partial", "miss")


def show(path: Path, arm: str | None, user: int | None, turn: int | None) -> None:
    """Print one skillbook, and what it says in a prompt."""
    book, screen = files.read(path, arm, user, turn).book, console()
    headings = ["id", "skill", "status", "uses", "last used", "ok", "partial", "miss", "examples"]
    examples = any(skill.examples for skill in book.skills)
    headings += ["first example"] if examples else []
    offsets = offsets_of(Run(path).manifest) if files.is_run(path) else None
    times = np.array([s.last_used for s in book.skills], np.int64)
    last_used = (times if offsets is None else local_time(offsets, times)).tolist()
    rows = [
        [str(s.id), s.name, _status(s), str(s.uses), (files.MONDAY + timedelta(seconds=at)).strftime("%Y-%m-%d"),
         *(str(n) for n in (s.ok, s.partial, s.miss, s.embedding_count)), *(s.examples[:1] or [""] * examples)]
        for s, at in zip(book.skills, last_used, strict=True)
    ]  # fmt: skip
    blocks.show(screen, headings, rows)
    active = sum(s.active for s in book.skills)
    if any(skill.content is not None for skill in book.skills):
        rendered = render(book)
        _line(screen, f"\n{rendered.text}\n")
        _line(screen, f"in a prompt: {len(rendered.skills)} skills, some {rendered.tokens:,} tokens")
    if files.is_run(path):
        when = "at the end" if turn is None else f"after turn {turn}"
        title = f"user {user}, arm {arm}, {when}"
    else:
        title = str(path)
    _line(screen, f"{title}: {active} active skills, version {book.version}, {book.hash.hex()}")


def history(path: Path, arm: str | None, user: int | None, turn: int | None, skill: int) -> None:
    """Print what happened to one skill of a run, an operation a row.

    Raises UsageError for a skill that the book does not have.
    """
    if not files.is_run(path):
        raise UsageError(f"--skill {skill}: {path} is no run, and no log tells what happened to its skills")
    book = files.read(path, arm, user, turn).book
    if not 0 <= skill < len(book.skills):
        raise UsageError(f"--skill {skill}: this skillbook has skills 0 to {len(book.skills) - 1}")
    rows = [
        [str(row["turn"]), (files.MONDAY + timedelta(seconds=row["time"])).strftime("%Y-%m-%d"), row["op"],
         _what(operation(row)), row["reason"], str(row["book_version"])]
        for row in rebuilt.updates(Run(path), str(arm), int(user or 0))
        if row["skill"] == skill and (turn is None or row["turn"] <= turn)
    ]  # fmt: skip
    screen = console()
    blocks.show(screen, ("turn", "date", "operation", "what", "why", "version"), rows)
    entry = book.skills[skill]
    counts = ", ".join(f"{name} {getattr(entry, name)}" for name in _COUNTS)
    _line(screen, f"skill {skill}, {entry.name}: {len(rows)} operations; {_status(entry)}, {counts}")


def diff(
    path: Path, other: Path | None, arm: str | None, user: int | None, *, since: int | None, turn: int | None
) -> None:
    """Print what changed from one skillbook to another, or in a run after turn `since`.

    Raises UsageError where only one skillbook is named.
    """
    if other is None:
        if since is None:
            raise UsageError(f"{path} is one skillbook; name another one, or of a run a turn with --since")
        after = files.read(path, arm, user, turn).book
        before = Skillbook() if since == -1 else files.read(path, arm, user, since).book
    else:
        if since is not None:
            raise UsageError(f"--since {since}: with two skillbooks all that differs is shown; leave it out")
        runs = files.is_run(path), files.is_run(other)
        before = files.read(path, *((arm, user, turn) if runs[0] else (None, None, None))).book
        after = files.read(other, *((arm, user, turn) if runs[1] else (None, None, None))).book
    changes(console(), before, after)


def changes(screen: Console, before: Skillbook, after: Skillbook) -> None:
    """Print the differences of two skillbooks."""
    rows = list(differences(before, after))
    if rows:
        blocks.show(screen, ("id", "skill", "what", "change"), rows)
    skills = len({row[0] for row in rows})
    old, new = (sum(s.active for s in book.skills) for book in (before, after))
    _line(screen, f"{skills} skills differ; {old} active skills before, {new} after")


def differences(before: Skillbook, after: Skillbook) -> Iterator[Sequence[str]]:
    """Rows of id, name, field and change; skills are the same if they have the same id."""
    old, new = ({s.id: s for s in book.skills} for book in (before, after))
    for i in sorted(old.keys() | new.keys()):
        first: dict[str, str] = {} if i not in old else _fields(old[i])
        then: dict[str, str] = {} if i not in new else _fields(new[i])
        skill = (new.get(i) or old[i]).name
        for name in first | then:
            if first.get(name) != then.get(name):
                yield str(i), skill, name, _change(first.get(name), then.get(name))


def _change(before: str | None, after: str | None) -> str:
    if before is None:
        return f"+ {after}"
    return f"- {before}" if after is None else f"{before} -> {after}"


def _fields(skill: Skill) -> dict[str, str]:
    values: dict[str, str] = {"status": _status(skill)}
    if skill.content is not None:
        texts = {name: getattr(skill.content, name) for name in NAMES}
        values |= {name: " ".join(v) if isinstance(v, tuple) else v for name, v in texts.items() if v}
    values |= {name: str(getattr(skill, name)) for name in _COUNTS if getattr(skill, name)}
    return values | {f"example {i + 1}": example for i, example in enumerate(skill.examples)}


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


def _status(skill: Skill) -> str:
    return "active" if skill.active else "archived"


def _line(screen: Console, text: str) -> None:
    screen.print(text, markup=False, highlight=False, soft_wrap=False)


def recorded_losses(losses: Mapping[str, int]) -> str:
    """Losses of a conversion in words."""
    if not losses:
        return "nothing is lost"
    return "lost: " + ", ".join(f"{kind} ({n})" for kind, n in losses.items()) + "; in brackets: of how many skills"
