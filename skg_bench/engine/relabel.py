"""Ids of texts and names in an order that says nothing: in a corpus, wordings of one request type lie side by side.

An arm that took nearness of ids for nearness of meaning would know the truth. So the simulator of a run is seen through
`Relabelled`: ids are permuted in memory, and whatever is written (logs, caches, cases) holds texts and hashes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from skg_bench.core.domain import Domain
from skg_bench.core.draws import Purpose, draw, key, word
from skg_bench.core.grid import I32, I64, Bool
from skg_bench.core.world import Draws, Event, Reaction, Response, Served, Stream, Supposing, World

_TEXTS, _NAMES = 0, 1


@dataclass(frozen=True)
class Relabelled:
    """`simulator` with ids of texts and names permuted by `seed`; the name of what nobody named stays the last."""

    simulator: World[Any]
    seed: int

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.__dict__["simulator"], name)

    def _order(self, kind: int, n: int) -> I64:
        """The old id of each new one."""
        keys = key(word(self.seed, b"ids"), kind)
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
    def stream(self) -> Stream:
        """As it is."""
        return self.simulator.stream

    @property
    def domain(self) -> Domain:
        """As it is."""
        return self.simulator.domain

    @cached_property
    def messages(self) -> Sequence[str]:
        """Words by new id."""
        texts = self.simulator.messages
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
        """Words by new id."""
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

    def begin(self, seed: int, users: I32, weeks: int) -> Any:
        """As it is: the memory of users holds the old ids."""
        return self.simulator.begin(seed, users, weeks)

    def events(self, state: Any, turn: int) -> Event:
        """The same events, texts by new id."""
        event = self.simulator.events(state, turn)
        renamed = replace(event, text=self._new_text[event.text])
        self._latest[:] = [(renamed, event)]
        return renamed

    def respond(self, state: Any, event: Event, served: Served, draws: Draws) -> tuple[Any, Response]:
        """As it is, to the message by its old id; answers are handles, which are no ids of texts."""
        return self.simulator.respond(state, self._old(event), served, draws)

    def offer(self, state: Any, event: Event, offers: Bool, draws: Draws) -> tuple[Any, Reaction]:
        """The same reaction; the message and the name by new id."""
        state, reaction = self.simulator.offer(state, self._old(event), offers, draws)
        name = self._new_name[reaction.name]
        general = name if reaction.general is reaction.name else self._new_name[reaction.general]
        return state, replace(reaction, name=name, general=general)

    def merge(self, state: Any, event: Event, row: I64, earlier: I32, draws: Draws) -> Any:
        """As it is, at the message by its old id."""
        return self.simulator.merge(state, self._old(event), row, earlier, draws)

    def judge(self, state: Any, event: Event, row: I64, answer: I32, supposing: Supposing = "as given") -> I32:
        """As it is, of the message by its old id."""
        return self.simulator.judge(state, self._old(event), row, answer, supposing)

    @cached_property
    def _latest(self) -> list[tuple[Event, Event]]:
        """Events of the latest turn and what they were made of, which is asked for several times a turn."""
        return []

    def _old(self, event: Event) -> Event:
        for renamed, old in self._latest:
            if renamed is event:
                return old
        return replace(event, text=self._old_text[event.text])


def type_names(simulator: World[Any]) -> I32:
    """Id of the name of each request type, `[n_types]`."""
    if isinstance(simulator, Relabelled):
        return simulator.type_names
    return np.arange(len(simulator.types), dtype=np.int32)
