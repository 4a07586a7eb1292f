"""Planted flaws: each spoils one part of the simulator, and the moment of that part must show it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from skg_bench.simulator.answers.corpus import Corpus, Source
from skg_bench.simulator.answers.world import AssistantUsers


@dataclass(frozen=True)
class Mixed:
    """A corpus in which every other wording stands under the next request type."""

    corpus: Corpus

    def load(self) -> Corpus:
        """The corpus."""
        wordings, common = self.corpus.wordings.copy(), int(self.corpus.n_wordings.min())
        wordings[:, 1:common:2] = np.roll(wordings[:, 1:common:2], 1, axis=0)
        return replace(self.corpus, wordings=wordings)


@dataclass(frozen=True)
class Flaw:
    """A spoiled part. Without `changes`, which are parameters of the simulator, its corpus is `Mixed`."""

    part: str
    what: str
    moment: str  # its own
    changes: Mapping[str, float]

    def planted(self, world: AssistantUsers, corpus: Corpus) -> tuple[AssistantUsers, Corpus]:
        """The users with the flaw, and their corpus, which is `corpus` without it."""
        if self.changes:
            return replace(world, **self.changes), corpus  # type: ignore[arg-type]
        source: Source = Mixed(corpus)
        return replace(world, corpus=source), source.load()


FLAWS = (
    Flaw("habit", "`simulator.habit=1`: always the usual words", "own_words", {"habit": 1.0}),
    Flaw(
        "gaps",
        "`simulator.active_low=0.1 simulator.active_high=0.1`: a day in ten",
        "active",
        {"active_low": 0.1, "active_high": 0.1},
    ),
    Flaw("wordings", "every other wording under the next request type", "near_miss", {}),
    Flaw("ratings", "`simulator.rated_share=0.6`: most answers are rated", "feedback", {"rated_share": 0.6}),
    Flaw("volumes", "`simulator.messages_per_day=20`: twice as much", "a_day", {"messages_per_day": 20.0}),
)
