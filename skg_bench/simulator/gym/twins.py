"""Order in which tasks come to users, by what of them comes back; after each the user says its answer.

Twins are streams that differ in `reuse` alone: as many tasks, at the same times, in the same wordings, drawn from the
same entries, the first of each group the same.
"""

from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from skg_bench.core.calendar import DAY
from skg_bench.core.draws import Purpose, draw
from skg_bench.core.grid import F64, I32, I64, U64
from skg_bench.core.world import Events, Truth
from skg_bench.simulator.order import answerable

TASK_WORDINGS = (
    "Please solve this task: {question}", "I have a task: {question}", "Can you help me with a task: {question}",
    "What is the answer to this task: {question}", "Here is a task: {question}", "Solve a task: {question}",
)  # fmt: skip
SOLUTION = "The answer is {answer} to the task: {question}"
Reuse = Literal["family", "entry", "none"]
Column = TypeVar("Column", I32, I64)
NEW_TASK, FAMILY_MET, ENTRY_MET = range(3)
_TEXTS = len(TASK_WORDINGS) + 1  # of each entry
_FAMILY, _ENTRY, _WHEN = range(3)  # decisions
_SPACE = 60  # seconds between two tasks, at least
_FOR_EVER = 2**40  # seconds for which an answer holds


@dataclass(frozen=True)
class Twin:
    """Groups of tasks in the stream of each user: the tasks of a group have something in common, which comes back."""

    reuse: Reuse
    groups: int
    times: int  # tasks of a group

    @property
    def tasks(self) -> int:
        """Tasks of each user."""
        return self.groups * self.times


def twin_events(twin: Twin, sizes: I32, keys: U64, users: I32, weeks: int) -> tuple[Events, I32]:
    """Events of users, and of each what the user met before `[B, T]`, -1: the message says an answer.

    `sizes` has the number of entries of each family.
    """
    slot = np.arange(twin.tasks, dtype=np.int32)[None]
    round_, group = np.divmod(slot, twin.groups)
    lead = slot if twin.reuse == "none" else group  # the family is drawn for
    every = np.arange(len(sizes), dtype=np.int32)[None]
    order = np.argsort(_uniforms(keys, every, _FAMILY), axis=1, kind="stable").astype(np.int32)
    family = order[:, lead[0]]
    size = sizes[family]
    place = (_uniforms(keys, lead, _ENTRY) * size).astype(np.int32)
    place = (place + (round_ if twin.reuse == "family" else 0)) % size
    entry = (np.concatenate([[0], np.cumsum(sizes)])[family] + place).astype(np.int32)
    span = weeks * 7 * DAY - _SPACE * twin.tasks
    time: I64 = (np.sort(_uniforms(keys, slot, _WHEN), axis=1) * span).astype(np.int64) + _SPACE * slot
    met = {"none": NEW_TASK, "family": FAMILY_MET, "entry": ENTRY_MET}[twin.reuse]
    before = np.broadcast_to(np.where(round_ > 0, met, NEW_TASK), entry.shape)
    text = entry * _TEXTS + round_ % len(TASK_WORDINGS)

    type_, intent = _both(entry, entry), _both(family, family)
    times, texts = _both(time, time + _SPACE // 2), _both(text, entry * _TEXTS + len(TASK_WORDINGS))
    known = answerable(type_, times, np.full(int(sizes.sum()), _FOR_EVER, np.int64))
    number = np.broadcast_to(np.arange(2 * twin.tasks, dtype=np.int32), type_.shape)
    truth = Truth(type_, intent, known, np.zeros(type_.shape, np.bool_))
    events = Events(users, np.full(len(users), 2 * twin.tasks, np.int32), number, times, texts, truth)
    return events, _both(before.astype(np.int32), np.full(entry.shape, -1, np.int32))


def task_texts(question: str, answer: str) -> list[str]:
    """Texts of an entry: the task in all wordings, and its answer."""
    tasks = [wording.format(question=question) for wording in TASK_WORDINGS]
    return [*tasks, SOLUTION.format(answer=answer, question=question)]


def _both(tasks: Column, answers: Column) -> Column:
    """Columns of tasks `[B, n]` and of the messages that follow them, side by side `[B, 2 n]`."""
    return np.stack([tasks, answers], axis=2).reshape(len(tasks), -1)


def _uniforms(keys: U64, number: I32, decision: int) -> F64:
    return draw(keys[:, None], number, Purpose.PUZZLE, 0, decision)
