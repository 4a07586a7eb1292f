"""Writers in processes of their own, which learn into the same skillbooks."""

from collections.abc import Iterator, Sequence
from multiprocessing.context import ForkServerContext, ForkServerProcess
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from skg_bench.core.store import Store
from skg_bench.skillbook.ace import from_dict
from skg_bench.skillbook.storing import book_text, load, update, with_key

NOW = "2026-01-05T09:00:00+00:00"
SKILL = "context-00001"
BOOK = {
    "schema_version": "2", "next_id": 1, "sections": {"context": [SKILL]}, "similarity_decisions": {},
    "skills": {SKILL: {
        "id": SKILL, "section": "context", "keywords": ["impulse"], "issue": "Buys at night.", "insight": "Wait a day.",
        "occurrences": [], "active": True, "used_count": 0, "helpful_count": 0, "harmful_count": 0, "neutral_count": 0,
        "created_at": NOW, "updated_at": NOW,
    }},
}  # fmt: skip


def batch(*operations: dict[str, Any]) -> dict[str, Any]:
    return {"reasoning": "", "operations": list(operations)}


def tag(delta: int = 1, skill: str = SKILL) -> dict[str, Any]:
    return {"type": "TAG", "section": "context", "skill_id": skill, "metadata": {"delta": delta}}


def add(issue: str, insight: str = "Wait a day.") -> dict[str, Any]:
    return {"type": "ADD", "section": "context", "keywords": ["impulse"], "issue": issue, "insight": insight}


def rewrite(insight: str, skill: str = SKILL) -> dict[str, Any]:
    return {"type": "UPDATE", "section": "context", "skill_id": skill, "insight": insight}


def remove(skill: str = SKILL) -> dict[str, Any]:
    return {"type": "REMOVE", "section": "context", "skill_id": skill}


def seed(store: Store, users: Sequence[str]) -> None:
    for user in users:
        assert store.swap(user, 0, book_text(with_key(from_dict(BOOK, "v2", NOW), "seed")), "seed")


def helpful(store: Store, user: str) -> int:
    stored = load(store, user, NOW)
    assert stored is not None
    return int(getattr(stored.book.skills[SKILL], "helpful_count"))  # noqa: B009  skills of v1 have none


def start(
    store: Store, users: Sequence[str], keys: Sequence[str], log: Path, barrier: Barrier, *, context: ForkServerContext
) -> ForkServerProcess:
    """A process that stores a TAG for each key, the nth in the book of the nth user, and logs what was acknowledged."""
    given = (type(store), _place(store), users, keys, log, barrier)
    process = context.Process(target=_write, args=given, daemon=True)
    process.start()
    return process


def acknowledged(log: Path) -> list[str]:
    return log.read_text("utf-8").split() if log.exists() else []


def _place(store: Any) -> tuple[Any, ...]:
    return (getattr(store, "path", None) or store.address, store.seconds)


def _write(
    kind: Any, place: tuple[Any, ...], users: Sequence[str], keys: Sequence[str], log: Path, barrier: Barrier
) -> None:
    store = kind(*place)
    with log.open("a", encoding="utf-8") as file:
        for i, key in enumerate(keys):
            if i < 2:  # all begin together; nobody goes on until all have settled what a kill left open
                barrier.wait(60)
            user = users[int(key.split("-")[-1]) % len(users)]
            assert update(store, user, batch(tag()), key=key, now=NOW).end != "given up"
            file.write(f"{key}\n")
            file.flush()
    store.close()


def names(writer: int, count: int) -> Iterator[str]:
    return (f"w{writer}-{i}" for i in range(count))
