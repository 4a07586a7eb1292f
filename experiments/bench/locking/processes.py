"""Learning of several processes into one skillbook: is it all there, and there once?"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

from experiments.bench.locking.bursts import Learner
from experiments.bench.locking.held import Held, held
from experiments.bench.locking.writers import JobEnd, replay, writers
from experiments.bench.server import running
from skg_bench.app.experiment_report import Table
from skg_bench.skillbook.storing import Rule
from skg_bench.store.postgres import Postgres
from skg_bench.store.sqlite import SQLite

WRITERS = 8
RULES: tuple[Rule, ...] = get_args(Rule)
HEADINGS = (
    "database", "rule", "operations", "stored", "lost", "doubled", "aside", "misdirected", "without its skill",
    "given up", "retries", "kills", "seconds",
)  # fmt: skip
_PATIENCE = 60.0  # s that a store waits for a server that recovers


@dataclass(frozen=True)
class Outcome:
    """Outcome of all jobs in one database by one rule."""

    database: str
    rule: Rule
    operations: int
    ends: Sequence[JobEnd]
    held: Held
    kills: int
    seconds: float

    @property
    def stored(self) -> int:
        """Operations that writers believe to be stored."""
        return sum(self.held.stored.values())

    @property
    def lost(self) -> int:
        """Operations of these that are not there."""
        return sum(self.held.lost.values())

    @property
    def doubled(self) -> int:
        """Operations of these that are there once more."""
        return sum(self.held.doubled.values())

    @property
    def given_up(self) -> int:
        """Operations that were not stored after the last try."""
        return sum(end.given_up for end in self.ends)


def outcomes(people: Mapping[str, Learner], folder: Path, kill_every: float) -> Iterator[Outcome]:
    """Each rule in SQLite and, where one is installed, in PostgreSQL with its backends killed."""
    operations = sum(len(job.operations) for each in people.values() for burst in each.bursts for job in burst)
    with TemporaryDirectory(dir=folder) as name, running(Path(name)) as address, writers(WRITERS) as pool:
        for rule in RULES:
            file = SQLite(f"{name}/{rule}.db", _PATIENCE)
            result = replay(pool, WRITERS, file, people, rule)
            documents = held(file, people, result.ends)
            file.close()
            yield Outcome("SQLite", rule, operations, result.ends, documents, result.kills, result.seconds)
        for rule in RULES if address is not None else ():
            with _schema(str(address), rule) as table:
                result = replay(pool, WRITERS, table, people, rule, (str(address), kill_every))
                documents = held(table, people, result.ends)
            yield Outcome("PostgreSQL", rule, operations, result.ends, documents, result.kills, result.seconds)


@contextmanager
def _schema(address: str, rule: Rule) -> Iterator[Postgres]:
    """An empty table for a rule."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"create schema {rule}")  # type: ignore[arg-type,unused-ignore]
    table = Postgres(f"{address}&options=-csearch_path%3D{rule}", _PATIENCE)
    try:
        yield table
    finally:
        table.close()


def table(results: Sequence[Outcome]) -> Table:
    """A row for each database and rule."""
    lines = [
        (
            each.database, each.rule, f"{each.operations:,}", f"{each.stored:,}", _share(each.lost, each.stored),
            _share(each.doubled, each.stored), f"{sum(end.aside for end in each.ends)}",
            f"{sum(end.misdirected for end in each.ends)}", f"{sum(end.absent for end in each.ends)}",
            f"{each.given_up}", f"{sum(end.retries for end in each.ends):,}", f"{each.kills}", f"{each.seconds:.0f}",
        )
        for each in results
    ]  # fmt: skip
    return Table("processes", HEADINGS, lines)


def _share(count: int, total: int) -> str:
    return f"{count} ({1000 * count / max(total, 1):.0f} per 1,000)" if count else "0"
