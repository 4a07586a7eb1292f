"""What a run is made of."""

from dataclasses import dataclass

from skg_bench.core.errors import UsageError
from skg_bench.core.types import LLM, Curator, Embedder, Policy, Reranker, Router, Serving, Simulator
from skg_bench.engine.signals import Signals


@dataclass(frozen=True)
class Arm:
    """A name and one complete choice of components."""

    name: str
    router: Router
    reranker: Reranker
    policy: Policy
    curator: Curator
    llm: LLM
    signals: Signals
    serving: Serving
    refit_every: int  # turns of a user between refits of the scorer
    refit_on_capture: bool
    decline_is_miss: bool  # a declined offer is logged as "miss" (SKG paper, section 3, step 2)

    def __post_init__(self) -> None:
        if self.serving not in ("stored", "prompted"):
            raise UsageError(f"serving={self.serving!r}, valid are stored, prompted")
        if self.refit_every < 1:
            raise UsageError(f"refit_every={self.refit_every} must be at least 1")


@dataclass(frozen=True)
class Plan:
    """Arms over the events of the same users."""

    seed: int
    users: int
    weeks: int
    simulator: Simulator
    embedder: Embedder
    arms: tuple[Arm, ...]
