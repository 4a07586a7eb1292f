"""Our assistant: router, signals, reranker, policy and curator over skillbooks."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from skg_bench.assistant.pipeline.components import Components
from skg_bench.assistant.pipeline.ensemble import Pipelines
from skg_bench.assistant.pipeline.pretraining import Simulate, pretrained
from skg_bench.assistant.pipeline.stack import stackable
from skg_bench.core.arms import Arm
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.world import World


@dataclass(frozen=True)
class Pipeline:
    """Routes messages over the user's skillbook, reranks, serves or falls back, and curates the book."""

    components: Components
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    @property
    def sees_truth(self) -> bool:
        """Is one of its components an oracle?"""
        return self.components.sees_truth

    @property
    def top_k(self) -> int:
        """Length of the router's shortlists."""
        return self.components.router.top_k

    def check(self, arm: Arm) -> None:
        """Raises UsageError for what the arm asks of it and it does not do."""
        self.components.check(arm)

    def unlogged(self) -> str | None:
        """Reason why a replayed log cannot serve it, after `arm NAME`; None: it can."""
        return self.components.unlogged()

    def unread(self, world: World[Any]) -> str | None:
        """Reason why it cannot be used in a world, after `arm NAME`; None: it can."""
        return self.components.unread(world)

    def alike(self, arm: Arm, other: Arm) -> bool:
        """Can both be stepped together?"""
        return stackable(arm, other)

    def ensemble(self, arms: Sequence[Arm]) -> Pipelines:
        """Arms that are alike, as one."""
        return Pipelines(arms)

    def pretrained(self, arm: Arm, folder: Path, simulate: Simulate) -> Arm:
        """The arm with a scorer that was fitted on a pool, now unless it lies in `folder`.

        Raises UsageError for a model of another recipe or other features.
        """
        return pretrained(arm, folder, simulate)
