"""True kinds of skills, if the world reads their texts: it reads each text once in a process."""

from functools import partial
from typing import Any

import numpy as np

from skg_bench.core.assistant import Worth
from skg_bench.core.content import Contents
from skg_bench.core.grid import F64, I32, U64, Bool
from skg_bench.core.growing import Keyed
from skg_bench.core.world import Event, ReadingWorld


class Reading:
    """Kinds of contents by their keys; key 0, which says nothing, is of kind -1."""

    def __init__(self, world: ReadingWorld[Any], contents: Contents) -> None:
        self._world, self._contents = world, contents
        self._known = Keyed(self._read)

    def about(self, keys: U64) -> tuple[I32, Bool]:
        """Kind, and is it well made; of keys of any shape."""
        known = self._known.of(keys)
        return known[..., 0], known[..., 1] > 0

    def _read(self, keys: U64) -> I32:
        texts = [content for content in self._contents.of(keys) if content is not None]
        read = np.tile(np.array([-1, 1], np.int32), (len(keys), 1))
        if texts:
            read[keys != 0] = np.stack(self._world.read(texts), axis=1)
        return read

    def worth(self, users: Any, event: Event) -> Worth:
        """Expected worth of contents `[B, S]` by their keys, to users without a mood."""
        return partial(self._worth, users, event)

    def _worth(self, users: Any, event: Event, keys: U64) -> F64:
        return self._world.worth(users, event, *self.about(keys))
