"""Run folders that tests write or change, as whole as those that a run leaves."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skg_bench.core.domain import Domain
from skg_bench.runfolder import manifest, shards
from skg_bench.runfolder.run import Run
from skg_bench.runfolder.shards import LogName


@contextmanager
def logs_alone() -> Iterator[None]:
    """Runs of this process end without tables and page, which take more time than all else of a small run."""
    from skg_bench.app import launch

    with patch.object(launch, "write_outputs", lambda out, *_: Run(out)):
        yield


@contextmanager
def tables_alone() -> Iterator[None]:
    """Runs of this process end without the page."""
    from skg_bench.analysis import report

    with patch.object(report, "write_page", lambda *_: None):
        yield


def save(folder: Path, content: Mapping[str, Any]) -> None:
    """Write a manifest whose identity, if it has one, is that of its content. The domain is *answers* by default."""
    content = {"domain": Domain("answers").plain(), **content}
    if "identity" in content:
        content = {"compositions": {}, "data": {}, "code": None, "beside": [], **content}
        content["identity"] = manifest.identity_of(content)
    manifest.write_manifest(folder, content)


def table_of(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Rows of a log as a table. What they leave out is null, or nothing of its type where the schema allows no null: a
    new column of the schema changes no maker of logs.
    """
    blank = {field.name: _blank(field.type) for field in schema if not field.nullable}
    return pa.Table.from_pylist([{**blank, **row} for row in rows], schema=schema)


def _blank(kind: pa.DataType) -> Any:
    if pa.types.is_fixed_size_list(kind):
        return [_blank(kind.value_type)] * kind.list_size
    if pa.types.is_fixed_size_binary(kind):
        return bytes(kind.byte_width)
    words = pa.types.is_dictionary(kind) or pa.types.is_string(kind)
    return "" if words else pa.scalar(0, pa.int64()).cast(kind).as_py()


def write_logs(folder: Path, arm: str, users: int, logs: Mapping[Any, pa.Table]) -> None:
    """The logs of an arm, as shards of the run whose manifest lies there."""
    key = manifest.run_key(manifest.manifest_of(folder / manifest.MANIFEST))
    for log in shards.LOGS:
        (folder / log).mkdir(exist_ok=True)
    for shard in range(shards.count(users)):
        rows = {log: np.asarray(table["user"]) // shards.SHARD_USERS == shard for log, table in logs.items()}
        inside = {log: table.filter(pa.array(rows[log])) for log, table in logs.items()}
        shards.write_shard(folder, key, arm, shard, inside.__getitem__)


def changed(run: Run, **fields: Any) -> Run:
    """The run, whose manifest says something else, and whose shards and tables belong to it."""
    old = manifest.manifest_of(run.path / manifest.MANIFEST)
    logs = {arm: {log: _all(run, log, arm) for log in shards.LOGS} for arm in old["arms"]}
    tables = [name for name in manifest.TABLES if (run.path / name).is_file()]
    save(run.path, {key: value for key, value in {**old, **fields}.items() if key != "shards"})
    for arm, known in logs.items():
        if len(known["turns"]):
            write_logs(run.path, arm, old["users"], known)
    accept(run.path, *tables)
    return Run(run.path)


def accept(folder: Path, *names: str) -> None:
    """Note in the manifest that tables of a run are as they should be."""
    with manifest.accepting(folder, manifest.manifest_of(folder / manifest.MANIFEST), *names):
        pass


def rewritten(file: Path, change: Any) -> None:
    """A shard with other rows, `change(table)`, that says of itself what it should, as do the turns beside it."""
    folder, (arm, number, _) = file.parents[1], file.name.rsplit(".", 2)
    label = shards.shard_label(file)
    tables = {log: _table(shards.path(folder, log, arm, int(number))) for log in shards.LOGS}
    log: LogName = file.parent.name  # type: ignore[assignment]
    tables[log] = change(tables[log])
    shards.write_shard(folder, label.run, arm, int(number), tables.__getitem__)
    content = manifest.manifest_of(folder / manifest.MANIFEST)
    if ended := content.get("shards"):
        ended[arm][int(number)] = shards.shard_label(shards.path(folder, "turns", arm, int(number))).digest
        manifest.write_manifest(folder, content)


def _all(run: Run, log: LogName, arm: str) -> pa.Table:
    files = run.shards(log, arm)
    empty = pa.table({"user": pa.array([], pa.int32())})
    return pa.concat_tables([_table(file) for file in files]) if files else empty


def _table(file: Path) -> pa.Table:
    return pq.read_table(file, partitioning=None)
