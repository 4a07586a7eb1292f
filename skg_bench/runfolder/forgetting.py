"""Removal of a user from a finished run: new files are written beside the old ones, then moved over them by renames.

A removal that was killed is known by a folder in the run's. `NEW`: the run is as it was, and the removal begins again.
`MOVING`: all new files are whole, and the rest is moved. `TABLES`: tables and page are to be written.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from skg_bench.core.foreign import table_of
from skg_bench.runfolder import shards
from skg_bench.runfolder.manifest import MANIFEST, run_key, write_manifest
from skg_bench.runfolder.run import REMOVAL, Run
from skg_bench.runfolder.shards import LogName

NEW, MOVING, TABLES_MISSING = ".forget.new", REMOVAL, ".forget.tables"
_MADE_AGAIN = ("summary.json", "curves.csv", "report*.html", "curves.svg", "events.jsonl")  # from the logs; patterns
_KEPT = ("timings.json", "pool/")  # beginnings of names of files that hold nobody's turns
_PIECES = "pieces"
_NUMBERS = ("user_msg_id",)  # texts that are made of a user's number in the run
_JSON = ("reflection", "refusals")  # of a model's learning


@dataclass(frozen=True, slots=True)
class UserTexts:
    """Texts of the logs by who has them."""

    mine: frozenset[str]  # of the user's rows
    others: frozenset[str]

    @property
    def only_mine(self) -> frozenset[str]:
        """Texts that nobody else has."""
        return self.mine - self.others


def write_logs_without(run: Run, user: int) -> UserTexts:
    """Write the logs of a run without a user, and their manifest, into its folder `NEW`.

    Raises UsageError for a shard that is not as it was written; OSError.
    """
    new = run.path / NEW
    content = {**run.manifest, "removed_users": run.manifest.get("removed_users", 0) + 1}
    key, digests = run_key(content), dict[str, list[str]]()
    mine, others = set[str](), set[str]()
    for log in shards.LOGS:
        (new / log).mkdir(mode=0o700, parents=True)
    for arm in run.arms:
        digests[arm] = []
        for number in run.numbers(arm):
            shards.belonging(run.path, run.key, "turns", arm, number)

            def without(log: LogName, arm: str = arm, number: int = number) -> pa.Table:
                shards.belonging(run.path, run.key, log, arm, number)
                table = table_of(shards.path(run.path, log, arm, number))
                hers = pc.equal(table["user"], user)
                rest = table.filter(pc.invert(hers))
                mine.update(_texts(table.filter(hers)))
                others.update(_texts(rest))
                return rest

            shards.write_shard(new, key, arm, number, without)
            digests[arm].append(shards.shard_label(shards.path(new, "turns", arm, number)).digest)
    turns = run.turns(run.arms[0], ["user"], [user]).num_rows
    if record := content.get("log"):
        content["log"] = {**record, "users": record["users"] - 1, "turns": record["turns"] - turns}
    kept = {name: digest for name, digest in content["files"].items() if name.startswith(_KEPT)}
    write_manifest(new, {**content, "shards": digests, "files": kept})
    return UserTexts(frozenset(mine), frozenset(others))


def _texts(table: pa.Table) -> Iterator[str]:
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if pa.types.is_string(kind) and name not in _NUMBERS:
            for text in filter(None, column.cast(pa.string()).unique().to_pylist()):
                yield text
                if name in _JSON:
                    with suppress(ValueError):  # a hash
                        yield from _leaves(json.loads(text))


def _leaves(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict | list):
        for inner in node.values() if isinstance(node, dict) else node:
            yield from _leaves(inner)


def drop_unfinished(folder: Path) -> None:
    """Remove new files that were not all written."""
    if (folder / NEW).exists():
        shutil.rmtree(folder / NEW)


@contextmanager
def written_beside(folder: Path) -> Iterator[None]:
    """The block writes all new files into `NEW`. From its end on the removal goes on, and does not begin again."""
    try:
        yield
        commit_removal(folder)
    finally:
        drop_unfinished(folder)


def commit_removal(folder: Path) -> None:
    """The new files are whole."""
    (folder / NEW).rename(folder / MOVING)


def move_over(folder: Path) -> None:
    """Move all files of `MOVING` over those of the run, the manifest first; remove what is made from the logs again."""
    moving = folder / MOVING
    for file in sorted((file for file in moving.rglob("*") if file.is_file()), key=lambda file: file.name != MANIFEST):
        file.replace(folder / file.relative_to(moving))
    for file in [file for pattern in _MADE_AGAIN for file in folder.glob(pattern)]:
        file.unlink()
    if (folder / _PIECES).exists():
        shutil.rmtree(folder / _PIECES)
    moving.rename(folder / TABLES_MISSING)


def end_removal(folder: Path) -> None:
    """The tables are written."""
    shutil.rmtree(folder / TABLES_MISSING)
