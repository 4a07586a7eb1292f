"""An LLM without a model: rightness, tokens, price and latency drawn from declared distributions."""

from dataclasses import dataclass

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I32, Bool
from skg_bench.core.types import Answer, Draws


@dataclass(frozen=True)
class Simulated:
    """Right with probability `right`, or `right_with_skill` when it follows a skill's prompt."""

    right: float
    right_with_skill: float
    prompt_tokens: int
    skill_tokens: int
    tokens_per_word: float
    answer_tokens: float
    answer_spread: float
    usd_per_million_in: float
    usd_per_million_out: float
    latency_ms: float
    latency_spread: float
    hit_latency_ms: float

    def __post_init__(self) -> None:
        for name in ("right", "right_with_skill"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"llm.{name}={getattr(self, name)} must lie in [0, 1]")
        for name in self.__dataclass_fields__:
            if not getattr(self, name) >= 0:
                raise UsageError(f"llm.{name}={getattr(self, name)} must not be negative")

    def answer(self, words: I32, with_skill: Bool, draws: Draws) -> Answer:
        """A metered call; length of the answer and latency are about log-normal (log-logistic)."""
        tokens_in = self.prompt_tokens + np.rint(words * self.tokens_per_word) + with_skill * self.skill_tokens
        tokens_out = np.maximum(1, np.rint(self.answer_tokens * np.exp(self.answer_spread * _spread(draws.length))))
        usd = (tokens_in * self.usd_per_million_in + tokens_out * self.usd_per_million_out) / 1e6
        latency = np.rint(self.latency_ms * np.exp(self.latency_spread * _spread(draws.latency)))
        right = np.where(with_skill, draws.skill_right < self.right_with_skill, draws.llm_right < self.right)
        return Answer(right, tokens_in.astype(np.int32), tokens_out.astype(np.int32), usd, latency)

    def serve(self, words: I32, draws: Draws) -> Answer:
        """A stored answer: no tokens, no price, the latency of a hit."""
        b = len(words)
        none = np.zeros(b, np.int32)
        return Answer(np.zeros(b, np.bool_), none, none, np.zeros(b), np.full(b, float(self.hit_latency_ms)))


def _spread(u: F64) -> F64:
    """Logistic quantile scaled by 1.702 to resemble the standard normal (Haley 1952); needs one logarithm only."""
    return np.log(u / (1.0 - u)) / 1.702
