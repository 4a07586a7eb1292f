"""Shortlists of all kinds, and policies that have lived through turns of a small world."""

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from skg_bench.assistant.pipeline.sample import sample
from skg_bench.core.batch import NONE_RENEWED, UPDATE, RenewedSkills, blank, renewed_skills
from skg_bench.core.deciding import Candidates, Decision, Policy
from skg_bench.core.draws import fold, key
from skg_bench.core.feedback import AFTERWARDS, AGREES, RATING, KnownFeedback, feedback, joined_rows
from skg_bench.core.grid import I32, I64, U64

HEARD_NOTHING = feedback(NONE_RENEWED.row, 0, RATING, NONE_RENEWED.row, NONE_RENEWED.row)


def candidates(seed: int, b: int = 40, k: int = 5, skills: int = 50) -> Candidates:
    """Shortlists of 0 to k skills, with many equal scores and some right at 0.5."""
    rng = np.random.default_rng(seed)
    n = rng.integers(0, k + 1, b)
    skill = np.stack([np.where(np.arange(k) < m, rng.permutation(skills)[:k], -1) for m in n]).astype(np.int32)
    mask = skill >= 0
    combined = np.where(mask, rng.integers(0, 9, (b, k)) / 8, -1.0)
    uses = np.where(mask, rng.integers(0, 9, (b, k)), 0).astype(np.int32)
    llm_turns = rng.integers(0, 9, b).astype(np.int32)
    rated = np.minimum(uses, rng.integers(0, 9, (b, k))).astype(np.int32)
    ok = rng.integers(0, 2 * rated + 1) / 2
    similarity, preference, score = (np.where(mask, rng.integers(0, 9, (b, k)) / 8, 0.0) for _ in range(3))
    miss = np.floor(rated - ok).astype(np.int32)  # of the others at most one is partial
    return Candidates(skill, similarity, preference, score, combined, uses, ok, rated, llm_turns, miss)


def turned(c: Candidates) -> Candidates:
    """The same skills, those of each shortlist in the opposite order of places."""
    found: dict[str, Any] = {f.name: getattr(c, f.name) for f in fields(Candidates)}
    return Candidates(**{name: x[:, ::-1] if x is not None and x.ndim == 2 else x for name, x in found.items()})


def lineages(skill: I32) -> I64:
    """A lineage for each skill id, in another order than the ids."""
    return (skill.astype(np.int64) * 7919) % 10_007


def keys(seed: int, n: int) -> U64:
    """Keys of `n` events."""
    return fold(key(seed, np.zeros(1, np.int64)), np.arange(n))


def decided(policy: Policy[Any], c: Candidates, state: Any, turn: int, event: U64) -> Decision:
    """What the engine draws from the policy's distribution."""
    place, propensity = sample(policy.propensities(c, state), lineages(c.skill), event)
    return Decision(turn, c, place, propensity)


def served(decision: Decision) -> I32:
    """The skill that answers, `[B]`; -1: the LLM."""
    at = np.maximum(decision.place, 0)[:, None]
    skill: I32 = np.where(decision.place >= 0, np.take_along_axis(decision.candidates.skill, at, axis=1)[:, 0], -1)
    return skill


def renewing(row: I64 | list[int], skill: I32 | list[int], op: int = UPDATE, source: int = 0) -> RenewedSkills:
    """What operations on these skills renew, for `[n]` rows."""
    batch = blank(len(row))
    batch.row[:], batch.op[:], batch.skill[:], batch.source[:] = row, op, skill, source
    return renewed_skills(batch)


@dataclass
class Living:
    """A policy and its memory of `b` users; all turns are rated, and the ratings known up to three turns later."""

    policy: Policy[Any]
    b: int
    seed: int = 0
    turn: int = 0

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.state = self.policy.start(self.b)
        self.waiting: dict[int, list[KnownFeedback]] = {}

    def step(self) -> tuple[Decision, KnownFeedback, RenewedSkills]:
        """What the policy is to learn from next; a similarity above 1/2 is rated ok and agrees with the LLM."""
        c = candidates(int(self.rng.integers(2**32)), self.b, skills=5)
        decision = decided(self.policy, c, self.state, self.turn, keys(self.seed + 1 + self.turn, self.b))
        skill = served(decision)
        good = self.rng.random((self.b, 5)) < 0.2 + 0.6 * (c.similarity > 0.5)
        well = np.where(skill >= 0, good[np.arange(self.b), decision.place], self.rng.random(self.b) < 0.7)
        due = self.turn + self.rng.integers(0, 4, self.b)
        for when in range(self.turn, self.turn + 4):
            rows = np.flatnonzero(due == when)
            told = feedback(rows, self.turn, RATING, np.where(well[rows], 0, 2).astype(np.int32), skill[rows])
            later = feedback(rows, self.turn, AFTERWARDS, told.value, skill[rows]).rows(skill[rows] >= 0)
            self.waiting.setdefault(when, []).extend([told, later])
        compared = np.flatnonzero((skill < 0) & (c.skill[:, 0] >= 0))
        now = feedback(compared, self.turn, AGREES, good[compared, 0].astype(np.int32), skill[compared])
        renewed = np.flatnonzero(self.rng.random(self.b) < 0.05)
        batch = renewing(renewed, self.rng.integers(0, 5, len(renewed)).astype(np.int32))
        return decision, joined_rows([*self.waiting.pop(self.turn), now]), batch

    def learn(self, decision: Decision, known: KnownFeedback, batch: RenewedSkills) -> None:
        """The turn is over."""
        self.state = self.policy.learn(self.state, decision, known, batch)
        self.turn += 1

    def live(self, turns: int) -> Any:
        """The memory after so many turns more."""
        for _ in range(turns):
            self.learn(*self.step())
        return self.state


def same_state(one: Any, other: Any) -> bool:
    """Do two memories hold the same?"""
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if is_dataclass(one) and not isinstance(one, type):
        return type(one) is type(other) and all(
            same_state(getattr(one, f.name), getattr(other, f.name)) for f in fields(one)
        )
    if isinstance(one, tuple):
        return len(one) == len(other) and all(same_state(a, b) for a, b in zip(one, other, strict=True))
    return one is None and other is None
