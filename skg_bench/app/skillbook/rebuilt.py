"""Skillbooks of a run, rebuilt from its update log."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from skg_bench.app.arm_keys import PIPELINE
from skg_bench.app.progress import console
from skg_bench.core.calendar import FIRST_MONDAY, local_time, offsets_of
from skg_bench.core.errors import UsageError
from skg_bench.core.text import plural
from skg_bench.runfolder.run import Run, made_here
from skg_bench.skillbook.skillbook import Skillbook, rebuild

_TIMES = ("time", "born")


def updates(run: Run, arm: str, user: int) -> list[dict[str, Any]]:
    """Update rows of one user in order, `time`, `born` and `local` in seconds since the first Monday.

    Raises UsageError if the run has no such arm or user, for an arm whose assistant has no skillbooks, and for a user
    who is not played yet or was removed.
    """
    made_here(run, "a skillbook")
    if arm in run.arms and not _has_books(run, arm):
        kind = run.manifest["compositions"][arm]["assistant"]["_target_"]
        raise UsageError(f"arm {arm!r} has no skillbooks: its assistant is {kind}; take an arm of assistant=pipeline")
    if not 0 <= user < int(run.manifest["users"]):
        raise UsageError(f"user={user}: {run.path} has users 0 to {int(run.manifest['users']) - 1}")
    _check_played(run, arm, user)
    rows: list[dict[str, Any]] = run.updates(arm, users=[user]).to_pylist()
    second = timedelta(seconds=1)
    rows = [{**row, **{k: row[k] and round((row[k] - FIRST_MONDAY) / second) for k in _TIMES}} for row in rows]
    local = local_time(offsets_of(run.manifest), np.array([row["time"] for row in rows], np.int64))
    return [row | {"local": at} for row, at in zip(rows, local.tolist(), strict=True)]


def everybody(run: Run, arm: str) -> Sequence[int]:
    """Numbers of all users of a run, without those who were removed from it."""
    if not run.manifest.get("removed_users"):
        return range(int(run.manifest["users"]))
    numbers: list[int] = np.unique(run.turns(arm, ["user"])["user"].to_numpy()).tolist()
    return numbers


def check_readable_skills(run: Run) -> None:
    """Raises UsageError for a run whose log was redacted: its skills would say hashes."""
    if (run.manifest.get("log") or {}).get("redacted"):
        raise UsageError(f"{run.path} has hashes in place of what skills say; run without simulator.redact=true")


def _check_played(run: Run, arm: str, user: int) -> None:
    """Raises UsageError for a user whose turns are not there: an empty skillbook would not be the one at the end."""
    if arm in run.arms and not run.numbers(arm, [user]):
        raise UsageError("this user is not played yet; finish the run with `skg-bench run`")
    if run.manifest.get("removed_users") and not run.turns(arm, ["turn"], [user]).num_rows:
        raise UsageError("this user was removed from the run, and has no skillbook there")


def _has_books(run: Run, arm: str) -> bool:
    composition = run.manifest.get("compositions", {}).get(arm, {})
    return "assistant" not in composition or composition["assistant"].get("_target_") == PIPELINE


def book(run: Run, arm: str, user: int, turn: int | None = None) -> Skillbook:
    """The book after `turn` (None: at the end), every state hash on the way checked.

    Raises UsageError where the rebuilt book differs from the log, for a turn that the user does not have, and for an
    arm that serves a book that was given to it, which no log of its own tells.
    """
    if turn is not None and turn < -1:
        raise UsageError(
            f"turn {turn}: turns count from 0, and -1 is before the first; leave it out for the book at the end"
        )
    composition = run.manifest.get("compositions", {}).get(arm, {})
    if composition.get("book", "own") != "own":
        trunk, _, fork = str(composition["fork"]).rpartition("@")
        given = (
            f"{trunk} had before turn {fork}"
            if composition["book"] == "hindsight"
            else f"somebody else had under {trunk}"
        )
        raise UsageError(f"arm {arm!r} serves the book that {given}, and learns nothing; look at {trunk}")
    skillbook = _rebuilt(run, arm, user, turn)[0]
    if turn is not None and turn >= (count := run.turns(arm, ["turn"], [user]).num_rows):
        valid = f"turns 0 to {count - 1:,}" if count else "no turns"
        raise UsageError(f"turn {turn}: user {user} of {run.path} has {valid}; leave it out for the book at the end")
    return skillbook


def _rebuilt(run: Run, arm: str, user: int, turn: int | None = None) -> tuple[Skillbook, int]:
    try:
        return rebuild(updates(run, arm, user), turn)
    except UsageError as error:
        raise UsageError(f"{run.path}, arm {arm!r}, user {user}: {error}") from error


def verify(path: Path, arms: Sequence[str], users: int) -> None:
    """Rebuild books of evenly spread users under each arm and check each logged state hash.

    Raises UsageError at the first one that differs.
    """
    run, screen = Run(path), console()
    for arm in arms or [arm for arm in run.arms if _has_books(run, arm)]:
        people = everybody(run, arm)
        everyone = len(people)
        picked = sorted({people[round(u)] for u in np.linspace(0, everyone - 1, min(users, everyone))})
        batches = sum(_rebuilt(run, arm, user)[1] for user in picked)
        books, noun = plural(everyone, "skillbook"), "batch" if batches == 1 else "batches"
        checked = f"rebuilt from {batches:,} update {noun}, every state hash agrees"
        screen.print(f"{arm}: {len(picked):,} of {books} {checked}")
    if len(picked) < everyone:
        screen.print(f"the others were not looked at: --users {everyone} rebuilds all")
