"""Logs in data sets that the `datasets` library reads: tables with a row a turn or a conversation, and dialogues in
SGD's form (MultiWOZ 2.2 has it too).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from skg_bench.core.errors import UsageError
from skg_bench.simulator.logs.dataset_rows import DatasetSplit, records
from skg_bench.simulator.logs.recorded_columns import LogColumns
from skg_bench.simulator.logs.recorded_dialogues import Dialogue, as_pseudo_users, published
from skg_bench.simulator.logs.recorded_rows import (
    ColumnNames,
    LeftOut,
    RecordedTurn,
    check_mapped,
    mapped_columns,
    turns_of,
)


def dataset(split: DatasetSplit, form: str, columns: ColumnNames, per_user: int, out: LeftOut) -> LogColumns:
    """The turns of a table, or of dialogues that go to pseudo-users, about `per_user` each.

    Raises UsageError for another form, and for what `turns_of_table` does.
    """
    if form == "table":
        return LogColumns.of(turns_of_split(split, columns, out), out)
    if form == "sgd":
        return LogColumns.of(as_pseudo_users(list(dialogues(split, out)), per_user), out)
    raise UsageError(f"simulator.format={form} is of files; a data set is read as table or sgd")


def turns_of_split(split: DatasetSplit, columns: ColumnNames, out: LeftOut) -> list[RecordedTurn]:
    """The turns of a table; see `recorded_rows.turns_of_table`.

    Raises UsageError for what cannot be read, and a mapping that names an absent column.
    """
    wanted, rows = mapped_columns(split.path, columns), list[RecordedTurn]()
    for position, row in split.rows():
        if position == 1:
            check_mapped(split.path, wanted, row)
        cells = {name: row[column] for name, column in wanted.items()}
        if isinstance(cells["message"], Mapping):
            cells["message"] = records(cells["message"])
        rows += turns_of(split.path, position, cells, out)
    return rows


def dialogues(split: DatasetSplit, out: LeftOut) -> Iterator[Dialogue]:
    """Dialogues in SGD's form."""
    for position, row in split.rows():
        turns = [_turn(turn) for turn in records(row.get("turns"))]
        yield from published({**row, "turns": turns}, position, split.path, out)


def _turn(turn: Any) -> dict[str, Any]:
    frames = [{**frame, "actions": records(frame.get("actions"))} for frame in records(turn.get("frames"))]
    return {**turn, "frames": frames}
