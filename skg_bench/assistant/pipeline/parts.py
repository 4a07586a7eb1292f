"""Parts of a stack: a component, and the arms that have it; which arms share one, and what it remembers of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skg_bench.assistant.pipeline.components import components
from skg_bench.core import state
from skg_bench.core.arms import Arm
from skg_bench.core.types import Skillbooks

_PADDING = 2**15  # cells behind the ends of books that are worth a call of a router: some 100 us


@dataclass(frozen=True)
class Part:
    """A component, the arms of the stack that have it, and the turn at which they began to: equal components that began
    at different turns remember different things.
    """

    component: Any
    arms: tuple[int, ...]
    since: int

    def start(self, n_users: int) -> Any:
        """New memory.

        Raises UsageError, which names the component, for a memory that is no state (core/state.py).
        """
        n = n_users * len(self.arms)
        memory = self.component.start(n)
        state.check_state(memory, n, self.component)
        return memory

    def first(self, memory: Any, n_users: int) -> Any:
        """Memory of the first users."""
        return state.first(memory, n_users * len(self.arms))

    def portion(self, old: "Part", memory: Any, n_users: int) -> Any:
        """Memory that `old` has of the arms of this part."""
        if memory is None or self.arms == old.arms:
            return memory
        at = np.arange(n_users)[:, None] * len(old.arms) + np.array([old.arms.index(j) for j in self.arms])
        return state.rows(memory, at.reshape(-1))


def carried_memories(
    parts: Sequence[Part], before: Sequence[Part], memories: Sequence[Any], n_users: int
) -> tuple[Any, ...]:
    """Memory that each part had before, if it had one, else a new one."""
    out = []
    for new in parts:
        old = [i for i, p in enumerate(before) if p.since == new.since and p.component == new.component]
        out.append(new.portion(before[old[0]], memories[old[0]], n_users) if old else new.start(n_users))
    return tuple(out)


def parts_of(arms: Sequence[Arm], turn: int, seam: str) -> tuple[Part, ...]:
    """Equal components with equal beginnings together, by the first arm that has them."""
    groups: list[tuple[Any, int, list[int]]] = []
    for j, arm in enumerate(arms):
        component, begun = getattr(components(arm.at(turn)), seam), _since(arm, turn, seam)
        for other, start, together in groups:
            if other == component and start == begun:
                together.append(j)
                break
        else:
            groups.append((component, begun, [j]))
    return tuple(Part(component, tuple(together), begun) for component, begun, together in groups)


def _since(arm: Arm, turn: int, seam: str) -> int:
    """The turn from which on an arm has had the component that it has at `turn`. A donor's book begins it anew for a
    policy, whose memory is about other skills.
    """
    component = getattr(components(arm.at(turn)), seam)
    since = max(cut for cut in arm.cuts if cut <= turn)
    if seam == "router" or component.start(0) is None:
        return 0  # no memory: it makes no difference, and equal components are called once
    for cut in sorted((cut for cut in arm.cuts if cut < turn), reverse=True):
        before = arm.at(cut)
        if getattr(components(before), seam) != component or arm.at(since).book == "donor":
            break
        since = cut
    return since


def parted(router: Part, books: Skillbooks, n_arms: int) -> list[Part]:
    """A router, and once more for the arms with wide books if that leaves out enough padding."""
    if len(router.arms) == 1:
        return [router]
    widest = books.examples.count.reshape(-1, n_arms)[:, list(router.arms)].max(axis=0, initial=0)
    wide = 2 * widest > widest.max()
    left_out = len(books.examples.count) // n_arms * int((widest.max() - widest[~wide].max(initial=0)) * (~wide).sum())
    if wide.all() or left_out < _PADDING:
        return [router]
    arms = np.array(router.arms)
    return [replace(router, arms=tuple(arms[mask].tolist())) for mask in (~wide, wide)]
