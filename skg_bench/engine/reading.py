"""What skills are really about in a world of advice: the world reads what they say, each text once in a process."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from skg_bench.core.advice import Advised, Outcome
from skg_bench.core.assistant import Worth
from skg_bench.core.content import Contents
from skg_bench.core.grid import F64, I32, U64, Bool
from skg_bench.core.world import Event


@dataclass
class Reading:
    """Kinds of contents by their keys; key 0, which says nothing, is the generic question: kind -1."""

    world: Advised
    contents: Contents
    _known: dict[int, tuple[int, bool]] = field(default_factory=lambda: {0: (-1, True)})

    def about(self, keys: U64) -> tuple[I32, Bool]:
        """Kind, and is it well made; of keys of any shape."""
        distinct, index = np.unique(keys, return_inverse=True)
        new = [key for key in distinct.tolist() if key not in self._known]
        if new:
            said = [content for content in self.contents.of(np.array(new, np.uint64)) if content is not None]
            kinds, sound = self.world.read(said)
            self._known.update(zip(new, zip(kinds.tolist(), sound.tolist(), strict=True), strict=True))
        known = [self._known[key] for key in distinct.tolist()]
        kind = np.array([kind for kind, _ in known], np.int32)[index].reshape(keys.shape)
        return kind, np.array([sound for _, sound in known], np.bool_)[index].reshape(keys.shape)

    def worth(self, users: Any, event: Event) -> Worth:
        """Expected worth of contents `[B, S]` by their keys, to users without a mood."""
        return partial(self._worth, users, event)

    def _worth(self, users: Any, event: Event, keys: U64) -> F64:
        return self.world.worth(users, event, *self.about(keys))


def columns(outcome: Outcome, about: I32, book: F64 | None) -> dict[str, np.ndarray]:
    """Those of the turn log, `[B]` each; `about`: what the served skill is really about; `book`: see Ensemble.best."""
    nothing = np.full(len(about), np.nan)
    return {
        "tier": outcome.tier, "outcome": outcome.code, "wanted": outcome.wanted, "strategy": about,
        "worth": outcome.worth, "worth_expected": outcome.expected, "worth_fresh": outcome.fresh,
        "worth_book": nothing if book is None else book, "worth_best": outcome.best,
    }  # fmt: skip
