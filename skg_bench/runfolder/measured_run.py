"""A run as statistics read it: who shares a memory is one person to them, and a call of the model is what was paid."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import lcm
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skg_bench.core.grid import I64
from skg_bench.runfolder.run import Run
from skg_bench.runfolder.worded_arms import arms_in_words, arms_of_own_words, assistant_node

_TURNS = ("source_turn", "about")  # columns of a log that name another turn of the user


def shared_by(run: Run) -> dict[str, int]:
    """Number of users who share one memory, by arm; arms whose users have their own are left out."""
    users, sizes = int(run.manifest["users"]), {}
    for arm in arms_of_own_words(run):
        if (shares := assistant_node(run, arm).get("shares", "user")) != "user":
            sizes[arm] = users if shares == "all" else int(shares)
    return {arm: size for arm, size in sizes.items() if size > 1}


def measured_run(run: Run) -> Run:
    """The run as statistics read it: calls as they were paid, and by instance where users share a memory in any arm."""
    words = arms_in_words(run)
    paid, size = PaidRun(run, words) if words else run, lcm(*shared_by(run).values())
    return InstanceRun(paid, size) if size > 1 else paid


def instance_words(run: Run) -> str | None:
    """Sentence that says what is the unit of intervals where users share a memory; None: users are."""
    if not (sizes := shared_by(run)):
        return None
    users, size = int(run.manifest["users"]), lcm(*sizes.values())
    arms = ", ".join(f"{n:,} users of {arm}" for arm, n in sizes.items())
    if size == users:
        unit = f"one instance of {size:,} users, which counts as one user"
        return f"{arms} share one memory. That is {unit}, so there are no intervals."
    units = f"{users // size:,} instances of {size:,} users"
    return f"{arms} share one memory. So {units} are the units of all intervals, and are counted as users."


class PaidRun(Run):
    """A run in which `serving` says of assistants without a skillbook whether the model was called, which they do as
    they like: `stored` where no token was paid, `prompted` where an earlier answer was given and some were. In a
    world that judges words the log says who asked, also where the model failed and no token was paid.
    """

    def __init__(self, run: Run, arms: Collection[str]) -> None:
        """`arms`: those with such assistants."""
        super().__init__(run.path)
        self._run, self._words = run, arms

    @property
    def arms(self) -> list[str]:
        return self._run.arms

    def turns(self, arm: str, columns: Sequence[str] | None = None, users: Sequence[int] | None = None) -> pa.Table:
        """Turn rows of one arm, by user and turn."""
        if arm not in self._words or (columns is not None and "serving" not in columns):
            return self._run.turns(arm, columns, users)
        table = self._run.turns(arm, None if columns is None else [*columns, "tokens_in"], users)
        paid = pc.greater(table["tokens_in"], 0)
        serving = table["serving"].cast(pa.string())
        again = pc.is_in(serving, pa.array(["stored", "leaked"]))
        unpaid = serving if self.domain.in_words else "stored"
        named = pc.if_else(paid, pc.if_else(again, "prompted", serving), unpaid).dictionary_encode()
        table = table.set_column(table.column_names.index("serving"), "serving", named)
        return table if columns is None else table.select(list(dict.fromkeys([*columns, "user", "turn"])))


class InstanceRun(Run):
    """A run whose logs have a number of an instance in the place of each user's.

    Its turns are those of all its users, in order of time; `book_size` is a mean over its users.
    """

    def __init__(self, run: Run, size: int) -> None:
        """`size`: users of an instance."""
        super().__init__(run.path)
        self._run, self._size = run, size

    @property
    def arms(self) -> list[str]:
        return self._run.arms

    def rows(self) -> Mapping[range, int]:
        """Turns of all instances, which are read together: those of one may stand in several shards."""
        rows = self._run.rows()
        return {range(-(-max(users.stop for users in rows) // self._size)): sum(rows.values())} if rows else {}

    def turns(self, arm: str, columns: Sequence[str] | None = None, users: Sequence[int] | None = None) -> pa.Table:
        """Turn rows of one arm, by instance and turn; the same holds for the other logs."""
        return self._moved(self._run.turns(arm, columns, self._members(users)))

    def updates(self, arm: str, columns: Sequence[str] | None = None, users: Sequence[int] | None = None) -> pa.Table:
        return self._moved(self._run.updates(arm, columns, self._members(users)))

    def feedback(self, arm: str, columns: Sequence[str] | None = None, users: Sequence[int] | None = None) -> pa.Table:
        return self._moved(self._run.feedback(arm, columns, self._members(users)))

    def learning(self, arm: str, columns: Sequence[str] | None = None, users: Sequence[int] | None = None) -> pa.Table:
        return self._moved(self._run.learning(arm, columns, self._members(users)))

    def _members(self, instances: Sequence[int] | None) -> list[int] | None:
        """Users of instances; None: of all."""
        if instances is None or instances in list(self.rows()):
            return None
        return [user for each in instances for user in range(each * self._size, (each + 1) * self._size)]

    @cached_property
    def _places(self) -> "_Places":
        table = self._run.turns(self.arms[0], ["time"])
        user, turn, time = (table[name].to_numpy() for name in ("user", "turn", "time"))
        return _Places.of(user, turn, time, self._size)

    def _moved(self, table: pa.Table) -> pa.Table:
        """The log with instances and their turns."""
        user = table["user"].to_numpy().astype(np.int64)
        instance, books = user // self._size, "book_size" in table.column_names
        if books and table["book_size"].null_count == 0:
            table = _mean_books(table, user, self._places.at(user, table["turn"].to_numpy()), self._size)
        for name in ("turn", *_TURNS):
            if name in table.column_names:
                other = table[name].to_numpy().astype(np.int64)
                known = np.flatnonzero(other >= 0)  # below 0: before the first turn, or none
                other[known] = self._places.at(user[known], other[known])
                table = _with(table, name, other)
        table = _with(table, "user", instance)
        return table.take(pa.array(np.lexsort((np.arange(len(user)), table["turn"].to_numpy(), instance))))


def _with(table: pa.Table, name: str, values: I64) -> pa.Table:
    """The table with other values of a column."""
    field = table.schema.field(name)
    return table.set_column(table.column_names.index(name), field, pa.array(values, field.type))


def _mean_books(table: pa.Table, user: I64, place: I64, size: int) -> pa.Table:
    """The table with the mean over an instance's users of how large the book of each last was. Rows are by user and
    turn, `user` and `place` `[N]`.
    """
    book = table["book_size"].to_numpy().astype(np.float64)
    more = book - np.where(np.r_[True, np.diff(user) != 0], 0.0, np.r_[0.0, book[:-1]])
    instance = user // size
    order = np.lexsort((place, instance))
    total, start = np.cumsum(more[order]), np.searchsorted(instance, instance)
    values = np.empty(len(book))
    values[order] = (total - np.where(start > 0, total[start - 1], 0.0)) / size
    return table.set_column(table.column_names.index("book_size"), "book_size", pa.array(values))


@dataclass(frozen=True, slots=True)
class _Places:
    """Place of each turn among those of its instance, flat over users and their turns."""

    users: I64  # [n] ids, ascending
    start: I64  # [n] of each user
    place: I64  # [N]

    @staticmethod
    def of(user: I64, turn: I64, time: Any, size: int) -> "_Places":
        """Places of turns `[N]`, in the order (user, turn), at their times: the user of the lowest id comes first."""
        users, start = np.unique(user, return_index=True)
        instance = user.astype(np.int64) // size
        order = np.lexsort((turn, user, time, instance))
        place = np.empty(len(user), np.int64)
        place[order] = np.arange(len(user)) - np.searchsorted(instance, instance)
        return _Places(users.astype(np.int64), start.astype(np.int64), place)

    def at(self, user: I64, turn: I64) -> I64:
        """Places of turns `[n]` of these users."""
        places: I64 = self.place[self.start[np.searchsorted(self.users, user)] + turn]
        return places
