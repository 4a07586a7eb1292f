"""Turns of a run that people judged, as what its log says of right answers."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from skg_bench.analysis.labels.sheets import unguarded
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I64
from skg_bench.runfolder.run import Run
from skg_bench.simulator.logs.arm_log import ArmLog, arm_log
from skg_bench.simulator.logs.decision_table import TableBlock, decision_table

HIT = "hit"
"""Column that says whether a skill answered; it may be left out."""
SHEET_ARM = "arm"
"""Column that names arm and run whose turns are judged; it may be left out."""
TURN_TEXTS = ("message", "answer_to")
"""Columns of the message, and of the one whose stored answer was given; they may be left out."""
TO_JUDGE = "judge"
"""Column that says which rows were drawn to be judged; it may be left out."""
JUDGED_FIELDS = ("user", "turn", "reward", "reward_propensity")
"""Columns of a table of judged turns that are read."""

_MORE = 1.001  # by rounding


@dataclass
class DrawnRows:
    """Count of rows that were drawn to be judged, and of those among them that nobody judged."""

    drawn: int = 0
    empty: int = 0
    first: int = 0  # of the empty ones
    rows: int = 0
    stands_for: float = 0.0  # rows that the drawn ones stand for, by their chances

    def add(self, block: TableBlock, reward: F64) -> None:
        """Raises UsageError for a row that was judged and not drawn."""
        words = "1 or 0 is needed, as skg-bench data label writes it; rename the column if it says something else"
        judge, known = block.numbers(TO_JUDGE, words), ~np.isnan(reward)
        if (neither := (judge != 0) & (judge != 1)).any():  # NaN, too
            raise block.fault(int(neither.argmax()), TO_JUDGE, words)
        if (more := known & (judge == 0)).any():
            raise block.fault(
                int(more.argmax()),
                TO_JUDGE,
                "its reward is filled in, and the row was not drawn; leave its reward empty",
            )
        missing = np.flatnonzero(~known & (judge == 1))
        if len(missing) and not self.empty:
            self.first = int(block.position[missing[0]])
        chance = block.chances("reward_propensity", "a chance above 0, at most 1, is needed in every row")
        self.rows, self.stands_for = self.rows + len(block), self.stands_for + float((1.0 / chance[judge == 1]).sum())
        self.drawn, self.empty = self.drawn + int((judge == 1).sum()), self.empty + len(missing)

    def check(self, path: Path) -> None:
        """Raises UsageError if a drawn row was not judged, or rows that were not drawn have been left out."""
        if self.empty:
            raise UsageError(
                f"{path}: {self.empty:,} of {self.drawn:,} drawn rows have no reward, such as row {self.first}; fill "
                "in reward where judge is 1, in all of them: those that are easy to judge are no sample of the rest"
            )
        if self.drawn == self.rows and self.stands_for > self.rows * _MORE:
            raise UsageError(
                f"{path} has {self.rows:,} rows, all of them drawn, which stand for {self.stands_for:,.0f}: keep the "
                "rows where judge is 0, too, as the sheet had them"
            )


def sheet_arm(run: Run, arm: str) -> str:
    """Name of an arm and its run, as sheets of its turns have it."""
    return f"{arm} of {run.manifest['identity'][:16]}"


def log_by_people(run: Run, arm: str, path: Path) -> ArmLog:
    """The log of an arm with the right answers of a table in place of its own.

    Raises UsageError for a table without a row for each turn, for rewards that are neither 1 nor 0, and for rewards of
    other turns than were drawn.
    """
    log, table = arm_log(run, arm), decision_table(path)
    if absent := [name for name in JUDGED_FIELDS if name not in table.names]:
        raise UsageError(
            f"--judged {path}: it has no column {absent[0]!r}; {', '.join(JUDGED_FIELDS)} are needed. Make it by "
            f"skg-bench data label RUN --arm ARM --n 500 --first hit --out {path.name}"
        )
    right, chance = (np.full(len(log.user), np.nan) for _ in range(2))
    drawn, texts = DrawnRows(), np.array([*map(_plain, log.messages), ""], object)
    for block in table.blocks([*JUDGED_FIELDS, *({HIT, TO_JUDGE, SHEET_ARM, *TURN_TEXTS} & set(table.names))]):
        at = _places(log, block)
        _check_arm(log, block, at, sheet_arm(run, arm))
        _check_texts(log, texts, block, at)
        again = ~np.isnan(chance[at])
        again[np.setdiff1d(np.arange(len(at)), np.unique(at, return_index=True)[1])] = True
        if again.any():
            raise block.fault(int(again.argmax()), "turn", "this turn of the user stands in the table twice")
        chance[at] = block.chances("reward_propensity", "a chance above 0, at most 1, is needed in every row")
        right[at] = _rewards(block)
        if TO_JUDGE in block.cells:
            drawn.add(block, right[at])
    drawn.check(path)
    if (without := np.isnan(chance)).any():
        i = int(without.argmax())
        raise UsageError(
            f"--judged {path}: {without.sum():,} of {len(chance):,} turns have no row, such as user {log.user[i]}, "
            f"turn {log.turn[i]}; keep rows that nobody judges, with an empty reward"
        )
    if np.isnan(right).all():
        raise UsageError(f"--judged {path}: no reward is filled in; write 1 or 0 where judge is 1")
    return replace(log, right=right, judged=chance)


def _check_arm(log: ArmLog, block: TableBlock, at: I64, arm: str) -> None:
    """Raises UsageError for another arm, and where a skill answered and the log says that the LLM did, or the other way
    round.
    """
    if SHEET_ARM in block.cells and (other := _texts(block, SHEET_ARM) != arm).any():
        raise block.fault(int(other.argmax()), SHEET_ARM, f"the log is {arm!r}; the sheet is of another arm or run")
    if HIT in block.cells and (other := block.numbers(HIT, "1 or 0 is needed") != (log.skill[at] >= 0)).any():
        raise block.fault(int(other.argmax()), HIT, "the log says otherwise; the sheet is of another arm or run")


def _check_texts(log: ArmLog, texts: np.ndarray, block: TableBlock, at: I64) -> None:
    """Raises UsageError where the log has another message, or another one whose answer was given. `texts`: its
    messages, as cells are compared with them, and an empty one.
    """
    source = log.source_turn[at]
    stored = log.text[log.start[log.user[at]] + np.maximum(source, 0)]
    for name, text in zip(TURN_TEXTS, (log.text[at], np.where(source >= 0, stored, len(log.messages))), strict=True):
        if name not in block.cells:
            continue
        if (other := _texts(block, name) != texts[text]).any():
            row = int(other.argmax())
            raise block.fault(
                row, name, f"the log has {texts[text[row]][:60]!r}; the sheet is of another run, or rows were moved; "
                f"if a spreadsheet program changed the text, remove the column {name}"
            )  # fmt: skip


def _texts(block: TableBlock, column: str) -> np.ndarray:
    """Cells as plain texts `[n]`."""
    words = ("" if cell is None else str(cell) for cell in block.cells[column].to_pylist())
    return np.array([_plain(unguarded(word)) for word in words], object)


def _plain(text: str) -> str:
    """A text with single blanks, as spreadsheet programs change ends of lines."""
    return " ".join(text.split())


def _places(log: ArmLog, block: TableBlock) -> I64:
    """Places of the rows' turns in the log."""
    user, turn = (block.numbers(name, "a whole number is needed") for name in ("user", "turn"))
    users = len(log.start) - 1
    wrong = ~((user >= 0) & (user < users) & (user == np.floor(user)))
    if wrong.any():
        raise block.fault(int(wrong.argmax()), "user", f"the log has users 0 to {users - 1}")
    whose = user.astype(np.int64)
    wrong = ~((turn >= 0) & (turn < log.counts[whose]) & (turn == np.floor(turn)))
    if wrong.any():
        row = int(wrong.argmax())
        raise block.fault(row, "turn", f"user {whose[row]} has turns 0 to {log.counts[whose[row]] - 1}")
    places: I64 = log.start[whose] + turn.astype(np.int64)
    return places


def _rewards(block: TableBlock) -> F64:
    words = "1 or 0 is needed, true or false, or nothing where nobody judged"
    values = block.numbers("reward", words)
    wrong = ~np.isnan(values) & (values != 0) & (values != 1)
    if wrong.any():
        raise block.fault(int(wrong.argmax()), "reward", words)
    return values
