"""Skills that are run again: they fill their slots from the message, call a tool if they need one, and can fail.

A procedure is made of an earlier answer. With probability `generalises` it serves other slot values and later times,
where its intent has procedures at all; else it is a stored answer in disguise. Each further example with another value
of the intent makes it general with probability `generalises_again`, if it is not; one with the same value leaves it as
it is. It fills the slots of an intent that has several values: the longer the message, and the fewer words it shares
with the one that the procedure was made of, the more often wrongly. Some of these failures are silent: the answer is
for other slot values. All others, and those of tools, are seen: nothing comes back, and the model is called. What is
looked up or done needs a tool.

Each parameter is one for all, or one for each row of users: rows of a step, of which the last leave first.
"""

import re
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from skg_bench.core.draws import Purpose, fold, uniform
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I32, I64, U64, Bool
from skg_bench.core.text import text_hash
from skg_bench.core.types import CAUSES
from skg_bench.core.world import Execution
from skg_bench.simulator.answers.corpus import ANSWER, Corpus

USUAL = 8  # words of a message up to which its length does not matter
_SHARES = (
    "procedures_exist", "generalises", "generalises_again", "slots_filled", "lost_per_word", "lost_unlike", "silent",
    "tool_fails",
)  # fmt: skip
_SLOT, _TOOL = CAUSES.index("slot"), CAUSES.index("tool")


@dataclass(frozen=True)
class Procedures:
    """Meaning, unit and source of the parameters stand in `conf/simulator/assistant.yaml`."""

    procedures_exist: float | F64
    generalises: float | F64
    generalises_again: float | F64
    slots_filled: float | F64
    lost_per_word: float | F64
    lost_unlike: float | F64
    silent: float | F64
    tool_fails: float | F64
    tool_latency_ms: float | F64
    tool_usd: float | F64

    def __post_init__(self) -> None:
        for name in _SHARES:
            value = np.asarray(getattr(self, name))
            if not ((value >= 0) & (value <= 1)).all():
                raise UsageError(f"simulator.{name}={getattr(self, name)} must lie in [0, 1]")
        for name in ("tool_latency_ms", "tool_usd"):
            value = np.asarray(getattr(self, name))
            if not ((value >= 0) & (value < np.inf)).all():
                raise UsageError(f"simulator.{name}={getattr(self, name)} must not be negative, and finite")

    def of(self, rows: I64) -> "Procedures":
        """Procedures of some rows, where each has its own."""
        if not isinstance(self.generalises, np.ndarray):
            return self
        return Procedures(*(np.asarray(getattr(self, f.name))[rows] for f in fields(self)))


class Running:
    """Procedures for the intents of a corpus. Arrays by intent end with one more value, which index -1 reads."""

    def __init__(self, parameters: Procedures, corpus: Corpus) -> None:
        self.parameters, self._messages = parameters, _Messages(corpus.messages)
        several = np.bincount(corpus.intent, minlength=len(corpus.intents)) > 1
        intents = np.array([text_hash(name) for name in corpus.intents], np.uint64)
        self._luck: F64 = np.append(uniform(fold(intents, int(Purpose.PROCEDURES))), 1.0)  # [I + 1]
        self._slotted, self._tool = np.append(several, False), np.append(corpus.effect != ANSWER, False)

    def under(self, parameters: Procedures) -> "Running":
        """The same under other parameters."""
        other = copy(self)
        other.parameters = parameters
        return other

    def exists(self, row: I64, intent: I32) -> Bool:
        """Can a procedure be made for this intent? Both broadcast."""
        chance: Bool = self._luck.take(intent, mode="wrap") < self.parameters.of(row).procedures_exist
        return chance

    def general(self, row: I64, event: U64) -> Bool:
        """Would a procedure made of the answer to this event serve other slot values, if there are procedures?"""
        return uniform(fold(event, int(Purpose.GENERAL))) < self.parameters.of(row).generalises

    def again(self, row: I64, event: U64) -> Bool:
        """Does the answer to this event, with another value, make a procedure general that is not?"""
        return uniform(fold(event, int(Purpose.GENERAL_AGAIN))) < self.parameters.of(row).generalises_again

    def run(self, row: I64, event: U64, intent: I32, text: I32, source: I32) -> tuple[Bool, Execution]:
        """Runs general procedures: is what comes back right, and what came of it? `[n]` each.

        `event`: keys of the events; `text`, `source`: text ids of the message and of the one that it was made of.
        """
        p = self.parameters.of(row)
        filled = ~self._slotted[intent] | (uniform(fold(event, int(Purpose.SLOTS))) < self.filled(row, text, source))
        silent = ~filled & (uniform(fold(event, int(Purpose.SILENT))) < p.silent)
        calls = self._tool[intent] & (filled | silent)
        broken = calls & (uniform(fold(event, int(Purpose.TOOL))) < p.tool_fails)
        cause = np.where(~filled, _SLOT, np.where(broken, _TOOL, -1)).astype(np.int32)
        usd, latency = np.where(calls, p.tool_usd, 0.0), np.where(calls, p.tool_latency_ms, 0.0)
        return filled & ~broken, Execution(broken | (~filled & ~silent), cause, usd, latency)

    def filled(self, row: I64, text: I32, source: I32) -> F64:
        """Probability that all slots of a message are filled rightly."""
        p, (words, masks) = self.parameters.of(row), self._messages.words
        mine, theirs = masks[text], masks[source]
        alike: F64 = np.bitwise_count(mine & theirs) / np.maximum(np.bitwise_count(mine | theirs), 1)
        lost = p.lost_per_word * np.maximum(words[text] - USUAL, 0) + p.lost_unlike * (1.0 - alike)
        chance: F64 = np.clip(p.slots_filled - lost, 0.0, 1.0)
        return chance


@dataclass(frozen=True, eq=False)
class _Messages:
    """Read when the first slots are filled: most runs have no procedures."""

    texts: Sequence[str]

    @cached_property
    def words(self) -> tuple[I64, U64]:
        """Length of each message in words, and the set of its words as 64 bits (a Bloom filter of one hash)."""
        count, masks = np.zeros(len(self.texts), np.int64), np.zeros(len(self.texts), np.uint64)
        bits: dict[str, int] = {}
        for i, message in enumerate(self.texts):
            words = re.findall(r"\w+", message.lower())
            mask = 0
            for word in words:
                if word not in bits:
                    bits[word] = 1 << (int(text_hash(word)) % 64)
                mask |= bits[word]
            count[i], masks[i] = len(words), mask
        return count, masks
