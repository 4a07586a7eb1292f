"""The strategies against impulse purchases that `data/guardian` holds: what they say, and what they really are.

Worlds know from here which kind of strategy a skill is, learners what fits in general; the users' own tastes are in
neither. The context of a trigger is its category and its time of day: `category * len(times) + time`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from skg_bench.core.content import Content
from skg_bench.core.grid import F64, I32, Bool


@dataclass(frozen=True, slots=True)
class Triggers:
    """Purchases that somebody is about to make, M of them."""

    text: tuple[str, ...]  # [M]
    category: I32  # [M]
    time: I32  # [M]
    band: I32  # [M] price band
    price: I32  # [M] USD


@dataclass(frozen=True, eq=False)
class Strategies:
    """K kinds of strategies, N texts of them, and the C contexts in which they are used."""

    kinds: tuple[str, ...]
    categories: tuple[str, ...]
    times: tuple[str, ...]
    persuades: F64  # [K] logit of listening to a kind in a context that suits it neither well nor badly
    discerns: F64  # [K] what that logit loses where the purchase is really wanted, 0 or more
    fit: F64  # [K, C] how a kind suits a context; mean 0 and standard deviation 1 over all cells
    contents: tuple[Content, ...]
    kind: I32  # [N]
    sound: Bool  # [N] is it well made? The others name no reason and no next step
    triggers: Triggers
    digest: str

    def read(self, contents: Sequence[Content]) -> tuple[I32, Bool]:
        """Kind and soundness of texts `[n]`: of those in the table as it says, of others as of the nearest by words."""
        raise NotImplementedError

    def context_of(self, text: str) -> int:
        """The context that a trigger's words name, -1: none."""
        raise NotImplementedError


@cache
def strategies(folder: str | None = None) -> Strategies:
    """Those of a folder; None: `data/guardian`.

    Raises UsageError for a folder that has none, and for what is missing or wrong in it.
    """
    raise NotImplementedError
