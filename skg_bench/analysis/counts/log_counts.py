"""Counts that a replayed log adds to those of every run: how its own answers compare with those of an arm."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skg_bench.analysis.counts.columns import column
from skg_bench.core.grid import Bool

LOGGED_COLUMNS = ("same_answer", "same_intent")
LOGGED = {
    "other": "answered from memory, for another intent than was asked and in another text than that of the log",
    "same": "answered from memory, in the text of the log",
    "reworded": "answered from memory, for the same intent in another text than that of the log",
    "wrong_least": "answered from memory for another intent, or in the text of the log that was rated a miss",
    "wrong_most": "answered from memory, but for the text of the log that was rated ok or not at all",
}
"""Extra counts for replayed logs. Correctness is unknown there, so `wrong` and `wrong_hit` are NaN. The last two are
bounds of `wrong_hit` if no answer does for two intents, what was rated a miss was wrong, and the log's own answers were
right unless they were rated partial or miss."""

METERED = {"priced": ("cost", "cost_usd"), "timed": ("latency", "latency_ms")}
"""Counts of turns at which a replayed log says what an answer cost or how long it took: of which count, by which field.
Such a field is no part of any sum where the log does not say it."""


def logged_counts(table: pa.Table, other: Bool, complaints: tuple[Bool, Bool], knows: Sequence[str]) -> dict[str, Any]:
    """The counts of LOGGED at each turn, NaN where the log says nothing of them. `complaints`: rated partial or miss,
    and miss.
    """
    nan, (complained, missed) = np.full(len(table), np.nan), complaints
    hit, same = ~column(table, "fallback_to_llm"), table["same_answer"].fill_null(False).to_numpy()
    answers, intents = "answer" in knows, "intent" in knows
    least, other_text = other | (same & missed), ~table["same_answer"].fill_null(True).to_numpy()
    reworded = other_text & table["same_intent"].fill_null(False).to_numpy()
    return {
        "other": other if intents else nan, "same": same if answers else nan,
        "reworded": reworded if answers and intents else nan, "wrong_least": least if answers or intents else nan,
        "wrong_most": hit & ~(same & ~complained) if answers else nan,
    }  # fmt: skip


def metered_counts(counts: Mapping[str, npt.NDArray[Any] | None], knows: Sequence[str]) -> dict[str, Any]:
    """Counts of METERED at each turn, with what was summed of turns that the log has a figure for."""
    made: dict[str, Any] = {}
    for count, (amount, field) in METERED.items():
        values = counts[amount]
        if field in knows and values is not None:
            made |= {count: ~np.isnan(values), amount: np.nan_to_num(values, nan=0.0)}
    return made
