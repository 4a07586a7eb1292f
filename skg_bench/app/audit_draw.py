"""`skg-bench data label LOG`, of a table of decisions or an arm of a run: which rows people judge, drawn by chance.

The table is written again with two more columns: `reward`, empty, and `reward_propensity`, the chance with which a row
was drawn. Rows that are not to be judged keep an empty reward; `skg-bench estimate` then takes the file as it is.
"""

import csv
from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skg_bench.analysis.labels.sheets import guarded
from skg_bench.analysis.labels.word_pairs import has_tasks
from skg_bench.app.judged_turns import HIT, SHEET_ARM, TO_JUDGE, TURN_TEXTS, sheet_arm
from skg_bench.app.logged_choices import one_arm
from skg_bench.app.progress import console
from skg_bench.app.replayed_arms import check_replayable
from skg_bench.core.draws import Purpose, draw, key
from skg_bench.core.errors import UsageError, nearest
from skg_bench.core.grid import F64, I64, Bool
from skg_bench.core.temporary import write_private
from skg_bench.runfolder.run import Run
from skg_bench.simulator.logs.decision_table import DecisionTable, TableBlock, is_list

ADDED = (TO_JUDGE, "reward", "reward_propensity")
"""Columns that are added: which rows to judge, the reward to fill in, and the chance of having been drawn."""


def draw_audit(log: DecisionTable, n: int, first: str | None, out: Path | None, *, seed: int, then: str) -> None:
    """Write a table of decisions with the rows that are to be judged. `then`: the command that reads it, with a place
    for its name. `first`: a column of true and false; half of the rows are drawn where it is true.

    Raises UsageError for a table that has such columns, or fewer rows; OSError.
    """
    if out is None or out.suffix != ".csv":
        given = "is missing" if out is None else str(out)
        raise UsageError(f"--out {given}: name a new CSV file for the table with the rows that are to be judged")
    if out.exists():
        raise UsageError(f"{out} is there already, maybe with rewards in it; name another file, or remove it")
    table, path = log, log.path
    if taken := [name for name in ADDED if name in table.names]:
        raise UsageError(f"{path} has a column {taken[0]!r}, which this command writes; rename it, or leave it out")
    if first is not None and first not in table.names:
        raise UsageError(f"--first {first}: {path} has no such column; {nearest(first, table.names)}")
    blocks = list(table.blocks(table.names))
    rows = sum(map(len, blocks))
    if lists := [name for name in table.names if blocks and is_list(blocks[0].cells[name])]:
        raise UsageError(f"{path}: column {lists[0]!r} holds lists, and a sheet for people cannot; leave it out")
    if first is not None and n < 2:
        raise UsageError(f"--n {n}: one row cannot be half of them where {first} is true; draw two at least")
    if rows <= n:
        raise UsageError(f"--n {n:,}: {path} has {rows:,} rows; draw fewer, or judge all of them")
    preferred = np.concatenate([_flags(block, first) for block in blocks])
    chosen, chance = drawn_rows(preferred, n, seed)
    write_private(out, _text(table.names, blocks, chosen, chance))
    half = "" if first is None else f", {int((chosen & preferred).sum()):,} of them where {first} is true"
    screen = console()
    screen.print(f"{n:,} of {rows:,} rows to judge{half}: {out}", soft_wrap=True)
    screen.print(
        "fill in reward where judge is 1, a number or true and false; leave all other rows as they are", soft_wrap=True
    )
    screen.print(f"then: {then.format(out)}", soft_wrap=True)


def draw_turns(folder: Path, arm: str | None, n: int, first: str, out: Path | None, *, seed: int) -> None:
    """Write the turns of an arm with those that are to be judged.

    Raises UsageError as `draw_audit` does, for a run that is not replayed, and for several arms without `arm`.
    """
    run = Run(folder)
    labels = run.domain.recorded or has_tasks(run)
    check_replayable(run, "leave --first out here" if labels else "skg-bench estimate takes it with --estimand step")
    name = one_arm(run, arm)
    then = f"skg-bench estimate {run.path} --arm {name} --judged {{}} --target NAME=[KEY=VALUE]"
    draw_audit(turns_to_judge(run, name), n, first, out, seed=seed, then=then)


def turns_to_judge(run: Run, arm: str) -> DecisionTable:
    """The turns of an arm as people judge them: the message, and the one whose answer was given. No truth is in it."""

    def blocks(columns: Sequence[str]) -> Iterator[TableBlock]:
        table = run.turns(arm, ["user", "turn", "message", "skill", "source_turn"])
        user, source = table["user"].to_numpy(), table["source_turn"].to_numpy()
        text = table["message"].cast(pa.string()).combine_chunks()
        at = np.searchsorted(user, user) + np.maximum(source, 0)
        stored = pc.if_else(pa.array(source >= 0), text.take(pa.array(at)), pa.scalar(None, pa.string()))
        cells = {
            "user": table["user"].combine_chunks(), "turn": table["turn"].combine_chunks(), TURN_TEXTS[0]: text,
            TURN_TEXTS[1]: stored, HIT: pa.array((table["skill"].to_numpy() >= 0).astype(np.int8)),
            SHEET_ARM: pa.array([sheet_arm(run, arm)] * len(table)),
        }  # fmt: skip
        yield TableBlock(run.path, np.arange(1, len(table) + 1), {name: cells[name] for name in columns})

    return DecisionTable(run.path, ("user", "turn", *TURN_TEXTS, HIT, SHEET_ARM), blocks)


def drawn_rows(preferred: Bool, n: int, seed: int) -> tuple[Bool, F64]:
    """Rows that are drawn `[N]`, half of them among `preferred` where there are so many, and the chance of each."""
    many, rows_left = int(preferred.sum()), int((~preferred).sum())
    half = min(max(n // 2, n - rows_left), many)
    order = draw(key(seed, np.arange(len(preferred))), 0, Purpose.JUDGED)
    chosen, chance = np.zeros(len(preferred), np.bool_), np.zeros(len(preferred))
    for part, size in ((preferred, half), (~preferred, n - half)):
        rows: I64 = np.flatnonzero(part)
        chosen[rows[np.argsort(order[rows], kind="stable")[:size]]] = True
        chance[rows] = size / max(len(rows), 1)
    return chosen, chance


def _flags(block: TableBlock, first: str | None) -> Bool:
    if first is None:
        return np.zeros(len(block), np.bool_)
    words = "true or false is needed in every row, or 1 and 0"
    values = block.numbers(first, words)
    if (neither := (values != 0) & (values != 1)).any():  # NaN, too
        raise block.fault(int(neither.argmax()), first, words)
    return np.asarray(values != 0, np.bool_)


def _text(names: tuple[str, ...], blocks: list[TableBlock], chosen: Bool, chance: F64) -> str:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\r\n")  # so that both of its characters are quoted within a cell
    writer.writerow([*names, *ADDED])
    at = 0
    for block in blocks:
        columns = [map(_cell, block.cells[name].to_pylist()) for name in names]
        for cells in zip(*columns, strict=True):
            writer.writerow([*cells, int(chosen[at]), "", repr(float(chance[at]))])
            at += 1
    return text.getvalue()


def _cell(value: object) -> str:
    """A cell as text; a text that a spreadsheet program would compute is guarded, a number is not."""
    text = "" if value is None else str(value)
    try:
        float(text)
    except ValueError:
        return guarded(text)
    return text
