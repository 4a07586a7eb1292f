"""Kind of request that each event is, as the log itself tells: how long an answer to it holds.

*One-off*: nobody asks it twice. *Live*: an answer to its intent expires, or is an act, of which none holds (some user
has asked the same before and has fewer earlier answers that still hold). *Slot*: the intent is asked with several slot
values, and an answer holds for its own values. *Stable*: an answer holds for all requests of the intent, for ever.
"""

from typing import Literal, get_args

import numpy as np

from skg_bench.analysis.counts.columns import coded
from skg_bench.analysis.counts.tally import LoggedEvents
from skg_bench.core.grid import I32, I64, Bool
from skg_bench.runfolder.run import RunTables

IntentKind = Literal["stable", "slot", "live", "one_off"]
INTENT_KINDS: tuple[IntentKind, ...] = get_args(IntentKind)
INTENT_KIND_WORDS: dict[IntentKind, str] = {
    "stable": "requests whose answer holds for ever",
    "slot": "requests with slot values",
    "live": "live look-ups and acts",
    "one_off": "one-offs",
}
KIND_COLUMNS = ("intent", "request_type", "answerable")


def kinds(run: RunTables, requests: LoggedEvents) -> I32:
    """Index into INTENT_KINDS of each event, `[N]`; truth of a simulated world, which no replayed log has."""
    table = run.turns(run.arms[0], KIND_COLUMNS)
    intent, names = coded(table["intent"])
    type_, types = coded(table["request_type"])
    typed = type_ >= 0
    expired = typed & (requests.answerable < _earlier(requests.row, type_))
    live = _some(intent[expired], len(names))
    slot = _some(intent[typed & (types[type_] != names[intent])], len(names)) if len(types) else live
    of_intent = np.where(
        live, INTENT_KINDS.index("live"), np.where(slot, INTENT_KINDS.index("slot"), INTENT_KINDS.index("stable"))
    )
    return np.where(typed, of_intent[intent] if len(names) else 0, INTENT_KINDS.index("one_off")).astype(np.int32)


def _some(intent: I32, n: int) -> Bool:
    """Intents that occur, `[n]`."""
    return np.bincount(intent, minlength=n) > 0


def _earlier(row: I64, type_: I32) -> I64:
    """How often the user has asked the same before, `[N]`; rows ascend in user and turn."""
    key = row * (int(type_.max(initial=0)) + 2) + type_ + 1
    order = np.argsort(key, kind="stable")
    start = np.flatnonzero(np.diff(key[order], prepend=-1))
    count = np.empty(len(key), np.int64)
    count[order] = np.arange(len(key)) - np.repeat(start, np.diff(start, append=len(key)))
    return count
