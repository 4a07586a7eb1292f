"""Ids of texts and names in an order that says nothing: in a corpus, wordings of one request type lie side by side.

An arm that took nearness of ids for nearness of meaning would know the truth. So the simulator of a run is seen through
`Relabelled`: ids are permuted in memory, and whatever is written (logs, caches, cases) holds texts and hashes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from skg_bench.core.draws import Purpose, arms_word, draw, key
from skg_bench.core.grid import F64, I32, I64, Bool
from skg_bench.core.record import replay
from skg_bench.core.types import Draws, Events, Reaction, Simulator

_TEXTS, _NAMES = 0, 1


@dataclass(frozen=True)
class Relabelled:
    """`simulator` with ids of texts and names permuted by `seed`; the name of what nobody named stays the last."""

    simulator: Simulator
    seed: int

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.__dict__["simulator"], name)

    def _order(self, kind: int, n: int) -> I64:
        """The old id of each new one."""
        keys = key(arms_word(self.seed), kind)
        order: I64 = np.argsort(draw(keys, np.arange(n), Purpose.RELABEL), kind="stable")
        return order

    @cached_property
    def _old_text(self) -> I32:
        return self._order(_TEXTS, len(self.simulator.messages)).astype(np.int32)

    @cached_property
    def _old_name(self) -> I64:
        n = len(self.simulator.names) - 1
        return np.append(self._order(_NAMES, n), n)

    @cached_property
    def _new_text(self) -> I32:
        return np.argsort(self._old_text).astype(np.int32)

    @cached_property
    def _new_name(self) -> I32:
        return np.append(np.argsort(self._old_name), -1).astype(np.int32)  # of no name: none

    @property
    def stream(self) -> Literal["exogenous", "reactive"]:
        """As it is."""
        return self.simulator.stream

    @cached_property
    def messages(self) -> Sequence[str]:
        """By new id."""
        texts = self.simulator.messages
        return tuple(texts[i] for i in self._old_text)

    @cached_property
    def shown(self) -> Sequence[str]:
        """The messages as logs have them, by new id."""
        log = replay(self.simulator)
        texts = self.simulator.messages if log is None else log.shown
        return tuple(texts[i] for i in self._old_text)

    @property
    def types(self) -> Sequence[str]:
        """As they are: no arm sees them."""
        return self.simulator.types

    @property
    def intents(self) -> Sequence[str]:
        """As they are: no arm sees them."""
        return self.simulator.intents

    @cached_property
    def names(self) -> Sequence[str]:
        """By new id."""
        names = self.simulator.names
        return tuple(names[i] for i in self._old_name)

    @property
    def type_names(self) -> I32:
        """New id of the name of each request type, `[n_types]`."""
        return self._new_name[: len(self.simulator.types)]

    @property
    def digest(self) -> str:
        """As it is."""
        return self.simulator.digest

    def count(self, seed: int, users: I32, weeks: int) -> I32:
        """As it is."""
        return self.simulator.count(seed, users, weeks)

    def population(self, seed: int, users: I32, weeks: int) -> Events:
        """The same events, texts by new id."""
        events = self.simulator.population(seed, users, weeks)
        return replace(events, text=self._new_text[events.text])

    def judge(self, event_type: I32, source_type: I32, source_right: Bool, age: I64) -> I32:
        """As it is."""
        return self.simulator.judge(event_type, source_type, source_right, age)

    def react(self, quality: I32, draws: Draws) -> Reaction:
        """As it is."""
        return self.simulator.react(quality, draws)

    def same_answer(self, stored: I32, fresh: I32, draws: Draws) -> Bool:
        """As it is."""
        return self.simulator.same_answer(stored, fresh, draws)

    def offer(self, type_: I32, text: I32, fatigue: F64, idle: I64, draws: Draws) -> tuple[I32, I32, F64]:
        """The same reaction; `text` and the name by new id."""
        old = self._old_text[text]
        code, name, tired = self.simulator.offer(type_, old, fatigue, idle, draws)
        return code, self._new_name[name], tired


def type_names(simulator: Simulator) -> I32:
    """Id of the name of each request type, `[n_types]`."""
    if isinstance(simulator, Relabelled):
        return simulator.type_names
    return np.arange(len(simulator.types), dtype=np.int32)
