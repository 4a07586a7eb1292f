"""Decisions on messages. Answering one message online is `choose_skills` with B = 1."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from skg_bench.assistant.pipeline.part_calls import scores_by
from skg_bench.assistant.pipeline.sample import sample
from skg_bench.assistant.pipeline.signals import Positions
from skg_bench.assistant.pipeline.stack import Stack
from skg_bench.core.deciding import Candidates, Decision, Shown
from skg_bench.core.grid import F64, I32, I64, U64, read_only, sigmoid
from skg_bench.core.spending_checks import check_spent
from skg_bench.core.types import FREE, Completions, Query, Scorer, Shortlist, Skillbooks, WrittenTexts


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of a stack of arms beside its skillbooks, for the users who are still there."""

    scorer: Scorer | None
    policies: tuple[Any, ...]  # a state for each policy of the stack
    llm_turns: I32  # [B]


@dataclass(frozen=True, slots=True)
class ServingChoice:
    """Decision for `[B]` messages, and what it was based on."""

    shortlist: Shortlist
    features: F64 | None  # [B, K, F]
    decision: Decision
    skill: I32  # [B] -1: the LLM answers
    cost: Completions = FREE  # what policies spent
    places: I32 | None = None  # [B] how many places the shortlist of a row has; None: all the same


def choose_skills(
    stack: Stack, query: Query, books: Skillbooks, memory: Memory, event: U64, *, texts: WrittenTexts | None = None
) -> ServingChoice:
    """Decides on messages: route, describe, score, choose; `event` `[B]` is the key of the draw, `texts` is for
    policies that read. `query.truth` is of the rows of oracles, and reaches these alone.
    """
    parts = stack.shared
    shortlist, places = stack.route(query, books)
    positions = Positions(shortlist, books)
    preference = parts.signals.prefer(books, positions, query.time)
    features = score = None
    if memory.scorer is not None:
        features = parts.signals.describe(query, books, positions, shortlist.similarity, preference)
        score = sigmoid(scores_by(memory.scorer, features))
    combined = parts.signals.combine(shortlist.similarity, preference, score)
    combined[shortlist.skill < 0] = -1.0
    ok, rows, spent = positions.ok + 0.5 * positions.partial, np.arange(len(query.text)), _Spent()
    known = (shortlist.skill, shortlist.similarity, preference, score, combined, positions.uses, ok, positions.rated,
             memory.llm_turns, positions.miss)  # fmt: skip
    read_only(*known)
    shown = None
    if texts is not None:
        shown = Shown(rows, query.text, positions.at(books.content), event, texts, spent.add)
    share = stack.propensities(Candidates(*known, shown), memory.policies)
    place, propensity = sample(share, positions.at(books.lineage), event)
    skill = np.where(place >= 0, shortlist.skill[rows, np.maximum(place, 0)], -1).astype(np.int32)
    skill.flags.writeable = place.flags.writeable = propensity.flags.writeable = False
    decision = Decision(query.turn, Candidates(*known), place, propensity)
    return ServingChoice(shortlist, features, decision, skill, spent.total(len(place)), places)


class _Spent:
    """Spending that policies report."""

    def __init__(self) -> None:
        self._parts: list[tuple[I64, Completions]] = []

    def add(self, rows: I64, cost: Completions) -> None:
        """Adds what was spent for these rows of the turn.

        Raises RowError for what is no cost.
        """
        check_spent(cost, rows)
        self._parts.append((rows, cost))

    def total(self, n: int) -> Completions:
        """Sum for each of `n` rows; FREE: nothing was reported."""
        if not self._parts:
            return FREE
        none = np.zeros(n, np.int32)
        total = Completions(none, none.copy(), np.zeros(n), np.zeros(n))
        for rows, cost in self._parts:
            for f in fields(Completions):
                np.add.at(getattr(total, f.name), rows, getattr(cost, f.name))
        return total
