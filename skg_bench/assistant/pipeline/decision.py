"""From a message to a decision. Answering one message online is `decide` with B = 1."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from skg_bench.assistant.pipeline.sample import sample
from skg_bench.assistant.pipeline.signals import Positions
from skg_bench.assistant.pipeline.stack import Stack
from skg_bench.core.deciding import Candidates, Decision
from skg_bench.core.grid import F64, I32, U64, sigmoid
from skg_bench.core.types import Query, Scorer, Shortlist, Skillbooks


@dataclass(frozen=True, slots=True)
class Memory:
    """What a stack of arms has learned beside its skillbooks, of the users who are still there."""

    scorer: Scorer | None
    policies: tuple[Any, ...]  # a state for each policy of the stack
    llm_turns: I32  # [B]


@dataclass(frozen=True, slots=True)
class Choice:
    """What was decided for `[B]` messages, and on what."""

    shortlist: Shortlist
    features: F64 | None  # [B, K, F]
    decision: Decision
    skill: I32  # [B] -1: the LLM answers


def decide(stack: Stack, query: Query, books: Skillbooks, memory: Memory, event: U64) -> Choice:
    """From messages to decisions: route, describe, score, choose; `event` `[B]` is the key of the draw."""
    parts = stack.shared
    shortlist = parts.router.route(query, books)
    positions = Positions(shortlist, books)
    preference = parts.signals.prefer(books, positions, query.time)
    features = score = None
    if memory.scorer is not None:
        features = parts.signals.describe(query, books, positions, shortlist.similarity, preference)
        score = sigmoid(memory.scorer.score(features))
    combined = parts.signals.combine(shortlist.similarity, preference, score)
    combined[shortlist.skill < 0] = -1.0
    ok = positions.ok + 0.5 * positions.partial
    candidates = Candidates(shortlist.skill, shortlist.similarity, preference, score, combined, positions.uses, ok,
                            positions.rated, memory.llm_turns, positions.miss)  # fmt: skip
    share = stack.propensities(candidates, memory.policies)
    place, propensity = sample(share, positions.at(books.lineage), event)
    skill = np.where(place >= 0, shortlist.skill[np.arange(len(place)), np.maximum(place, 0)], -1).astype(np.int32)
    return Choice(shortlist, features, Decision(query.turn, candidates, place, propensity), skill)
