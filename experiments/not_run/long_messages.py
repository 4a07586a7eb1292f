"""Simulated users whose LLM errs more on long messages."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from skg_bench.core.grid import F64
from skg_bench.core.world import Draws, Event, Response, Served, World

SHORT = 6  # words that cost nothing


@dataclass(frozen=True)
class LongMessages:
    """`users`, whom the LLM answers rightly less often by `lost_per_word` for each word beyond SHORT."""

    users: World[Any]
    lost_per_word: float

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.__dict__["users"], name)

    @cached_property
    def lost(self) -> F64:
        """Loss of ability by message."""
        words = np.array([len(text.split()) for text in self.users.messages])
        lost: F64 = self.lost_per_word * np.maximum(words - SHORT, 0)
        return lost

    def respond(self, state: Any, event: Event, served: Served, draws: Draws) -> tuple[Any, Response]:
        """Consequences of answers of an LLM that is right less often."""
        lost = self.lost[event.text]
        ability, if_misled = (np.maximum(each - lost, 0.0) for each in (served.ability, served.if_misled))
        return self.users.respond(state, event, replace(served, ability=ability, if_misled=if_misled), draws)
