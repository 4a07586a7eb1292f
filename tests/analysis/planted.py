"""A laboratory in which one link of the chain can be broken alone, and the defects that are planted there.

Everything holds but the planted defect. Each right answer of the LLM becomes a skill of its own. The router shows the
skills of the request, expired ones too, but only where one of them is right, so that nobody is tempted to answer what
cannot be answered. The policy takes the newest of them, which is right, unless the user complained of it, which users
do of wrong answers only. What is left of regret is what no skillbook could answer (novelty), what the LLM answered
wrongly when it should have been learned (capture), and what it answered wrongly when it should have been renewed
(staleness).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from skg_bench.assistant.pipeline.components import components
from skg_bench.core.arms import Arm
from skg_bench.core.batch import ADD, TAG, Batch, blank, joined, part
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import F64, I64, Bool
from skg_bench.core.shortlist import max_dots, shortlist, top
from skg_bench.core.types import (
    RATINGS,
    Observation,
    Query,
    Router,
    Scorer,
    Shortlist,
    Skillbooks,
    TrainingRows,
)
from skg_bench.core.world import RIGHT, Reaction
from tests.arms import changed
from tests.curator.altered import Altered

WORLD = (
    "simulator.messages_per_day=10", "simulator.volume_spread=0", "simulator.day_spread=0",
    "simulator.concentration=2", "simulator.discount=0.5", "simulator.lag_scale=2",
    "simulator.lag_power=1.5", "simulator.conversation_length=8", "simulator.one_off_share=0.2",
    "simulator.answers_stale_hours=2", "simulator.rated_share=0.9", "simulator.rating_if_right=[1,0,0]",
    "simulator.rating_if_wrong=[0,0,1]", "policy.threshold=0.71", "signals.similarity=0.05", "signals.preference=0.45",
    "signals.score=0.5", "signals.half_life_days=null", "seed=3", "weeks=2", "arms={base: []}", "reference=base",
)  # fmt: skip


# ------------------------------------------------------------------------------------------------- the laboratory


@dataclass(frozen=True)
class Shown:
    """Skills of the request, by MaxSim, where one of them is right; else nothing."""

    top_k: int
    sees_truth: ClassVar[bool] = True

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        assert query.truth is not None
        right = ((query.truth.quality == RIGHT) & books.active).any(axis=1)
        same = books.active & (books.name == query.truth.type[:, None]) & right[:, None]
        dots = max_dots(query, books)
        return shortlist(top(dots, same, self.top_k), dots)


@dataclass(frozen=True)
class Appending:
    """Every right answer of the LLM becomes a new skill with the name of its request type."""

    sees_truth: ClassVar[bool] = True
    reasons: ClassVar[Sequence[str]] = ("used", "captured")

    def start(self, n: int) -> None:
        return None

    def offers(self, seen: Observation, state: None) -> Bool:
        return np.zeros(len(seen.text), np.bool_)

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: None
    ) -> tuple[None, Batch]:
        late = known.ratings(before=seen.turn)
        assert seen.context.truth is not None
        hit = np.flatnonzero(seen.hit)
        new = np.flatnonzero(~seen.hit & seen.context.truth.llm_right & (seen.context.truth.type >= 0))
        used = _tags(hit, seen.skill[hit], seen.rating[hit], 1)
        rated = joined(used, _tags(late.row, late.skill, late.value, 0))
        kind = seen.context.truth.type[new]
        added = _batch(len(new), row=new, op=ADD, name=kind, text=seen.text[new], source=seen.turn)
        return None, joined(rated, added)


@dataclass(frozen=True)
class Newest:
    """Scores the candidate with the youngest answer 1 and the others 0; all of them 1 where recency is ignored."""

    age: int  # column of the feature `answer_age`, 1 for an answer of this moment
    ignored: bool

    def score(self, features: F64) -> F64:
        young = features[:, :, self.age]
        return np.where(self.ignored | (young == young.max(axis=1, keepdims=True)), 12.0, -12.0)


@dataclass(frozen=True)
class Recency:
    """Prefers the newest answer, and learns nothing."""

    ignored: bool = False
    window: ClassVar[int] = 0

    def start(self, n_users: int, features: Sequence[str]) -> Scorer | None:
        return Newest(list(features).index("answer_age"), self.ignored)

    def fit(self, scorer: Scorer, rows: I64, training: TrainingRows) -> Scorer:
        return scorer


def laboratory(arm: Arm) -> Arm:
    """The arm whose every link holds."""
    return changed(arm, name="base", router=Shown(64), curator=Appending(), reranker=Recency())


# --------------------------------------------------------------------------------------------------- the defects


def stale_cache(batch: Batch, seen: Observation, books: Skillbooks) -> Batch:
    """What is there is never renewed: captures of a request that has a skill are lost."""
    mask = (books.name[batch.row] == batch.name[:, None]) & books.active[batch.row]
    return part(batch, ~((batch.op == ADD) & mask.any(axis=1)))


def captures_lost(batch: Batch, seen: Observation, books: Skillbooks) -> Batch:
    """Half of the names cannot be stored."""
    return part(batch, ~((batch.op == ADD) & (batch.name % 2 == 0)))


def ratings_leaked(batch: Batch, seen: Observation, books: Skillbooks) -> Batch:
    """A complaint, whatever it was about, is booked as a miss of every skill of the user."""
    complained = np.flatnonzero(seen.rating > RATINGS.index("ok"))
    at, skill = np.nonzero(books.active[complained])
    return joined(batch, _tags(complained[at], skill, np.full(len(at), RATINGS.index("miss")), 0))


@dataclass(frozen=True)
class Blind:
    """A router that shows nothing at every second turn."""

    router: Router
    sees_truth: ClassVar[bool] = True

    @property
    def top_k(self) -> int:
        return self.router.top_k

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        ranked = self.router.route(query, books)
        if query.turn % 2:
            return ranked
        return Shortlist(np.full_like(ranked.skill, -1), np.zeros_like(ranked.similarity))


def planted(base: Arm) -> dict[str, Arm]:
    """Each defect alone."""
    made = {
        "stale_cache": changed(base, curator=Altered(components(base).curator, stale_cache, sees_truth=True)),
        "captures_lost": changed(base, curator=Altered(components(base).curator, captures_lost, sees_truth=True)),
        "recency_ignored": changed(base, reranker=Recency(ignored=True)),
        "ratings_leaked": changed(base, curator=Altered(components(base).curator, ratings_leaked, sees_truth=True)),
        "router_blind": changed(base, router=Blind(components(base).router)),
    }
    return {name: replace(arm, name=name) for name, arm in made.items()}


# ------------------------------------------------------------------------------------------------------- batches


def _batch(n: int, **columns: Any) -> Batch:
    batch, reason = blank(n), 1 if columns["op"] == ADD else 0
    for name, value in {**columns, "reason": reason}.items():
        getattr(batch, name)[:] = value
    return batch


def _tags(row: Any, skill: Any, rating: Any, uses: int) -> Batch:
    return _batch(len(row), row=row, op=TAG, skill=skill, rating=rating, uses=uses)
