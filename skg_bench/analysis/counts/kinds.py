"""Kind of request that each event is, as the log itself tells: how long an answer to it holds.

*One-off*: nobody asks it twice. *Live*: an answer to its intent expires, or is an act, of which none holds (some user
has asked the same before and has fewer earlier answers that still hold). *Slot*: the intent is asked with several slot
values, and an answer holds for its own values. *Stable*: an answer holds for all requests of the intent, for ever.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class KindFacts:
    """Facts of some users' events, by which their kinds are known."""

    typed: Bool  # [N] no one-off
    intents: Collection[str]
    live: Collection[str]  # intents: an answer expired, or none holds
    slot: Collection[str]  # intents that are asked with slot values


def kind_facts(run: RunTables, requests: LoggedEvents) -> KindFacts:
    """Facts of the events of a simulated world."""
    table = run.turns(run.arms[0], KIND_COLUMNS)
    intent, names = coded(table["intent"])
    type_, types = coded(table["request_type"])
    typed = type_ >= 0
    expired = typed & (requests.answerable < _earlier(requests.row, type_))
    slot = _some(intent[typed & (types[type_] != names[intent])], len(names)) if len(types) else np.zeros(0, np.bool_)
    live = _some(intent[expired], len(names))
    return KindFacts(typed, names.tolist(), names[live].tolist(), names[: len(slot)][slot].tolist())


def kinds_of(facts: Sequence[KindFacts]) -> dict[str, int]:
    """Index into INTENT_KINDS of each intent, by the facts of all users, who come block by block."""
    of_intent = dict.fromkeys(sorted({name for block in facts for name in block.intents}), INTENT_KINDS.index("stable"))
    of_intent |= dict.fromkeys((name for block in facts for name in block.slot), INTENT_KINDS.index("slot"))
    return of_intent | dict.fromkeys((name for block in facts for name in block.live), INTENT_KINDS.index("live"))


def kinds(run: RunTables, requests: LoggedEvents) -> I32:
    """Index into INTENT_KINDS of each event, `[N]`; truth of a simulated world, which no replayed log has."""
    facts = kind_facts(run, requests)
    of_intent = kinds_of([facts])
    of_topic = np.array([of_intent.get(name, 0) for name in requests.about[: requests.named].tolist()] or [0], np.int32)
    topic = np.minimum(requests.cells.intent[requests.cell], len(of_topic) - 1)
    return np.where(facts.typed, of_topic[topic], INTENT_KINDS.index("one_off")).astype(np.int32)


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
