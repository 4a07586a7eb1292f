"""Asked again: a user's next message of the same conversation asks the same, as if the answer had not helped.

Messages ask the same where at least half of their distinct runs of three characters are common to both (Jaccard 1912),
whatever their case, and, where the log names intents of both, these share one. It is a sign and no rating: a person may
also ask again because the answer helped.
"""

import re

import numpy as np

from skg_bench.core.grid import I8, I64
from skg_bench.simulator.logs.recorded_log import RecordedLog

_COMMON = 0.5  # of the runs of three characters
_SIGNS = re.compile(r"[\W_]+")


def again_signs(log: RecordedLog) -> I8:
    """Sign of each turn `[N]`: 1, 0, and -1 where the log names no conversation or no answer of the turn."""
    again = np.full(len(log.time), -1, np.int8)
    answered = (log.session >= 0) & (log.answer_of[log.type] >= 0)
    again[answered] = 0
    first, then = _pairs(log)
    known = answered[first]
    intent, other = (log.intent_of[log.type[rows]] for rows in (first, then))
    known &= (intent < 0) | (other < 0) | log.share(log.type[first], log.type[then])
    for i, j in zip(first[known].tolist(), then[known].tolist(), strict=True):
        again[i] = alike(log.messages[log.text[i]], log.messages[log.text[j]])
    return again


def _pairs(log: RecordedLog) -> tuple[I64, I64]:
    """Each turn of a conversation, and the same user's next one of it."""
    user = np.repeat(np.arange(len(log.users)), np.diff(log.start))
    order = np.lexsort((log.session, user))  # stable: in order of time
    first, then = order[:-1], order[1:]
    same = (user[first] == user[then]) & (log.session[first] == log.session[then]) & (log.session[first] >= 0)
    return first[same], then[same]


def alike(message: str, other: str) -> bool:
    """Do two messages ask the same?"""
    if message == other:
        return True
    a, b = _runs(message), _runs(other)
    return len(a & b) >= _COMMON * len(a | b)


def _runs(message: str) -> frozenset[str]:
    """Runs of three characters of a message, its ends included."""
    text = f" {_SIGNS.sub(' ', message.casefold()).strip()} "
    return frozenset(text[i : i + 3] for i in range(max(len(text) - 2, 1)))
