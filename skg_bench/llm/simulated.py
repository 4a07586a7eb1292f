"""An LLM without a model: rightness, tokens, price and latency drawn from declared distributions."""

from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, Bool
from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.types import Completions, Prompts


@dataclass(frozen=True)
class Simulated:
    """Right with probability `right`, or `right_with_skill` when it follows the prompt of a skill that fits.

    Another skill's prompt misleads it with probability `misled`: it is wrong where it would have been right.
    """

    right: float
    right_with_skill: float
    misled: float
    prompt_tokens: int
    skill_tokens: int
    tokens_per_word: float
    answer_tokens: float
    answer_spread: float
    usd_per_million_in: float
    usd_per_million_out: float
    latency_ms: float
    latency_spread: float
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        for name in ("right", "right_with_skill", "misled"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"llm.{name}={getattr(self, name)} must lie in [0, 1]")
        for name in (field.name for field in fields(self)):
            if not getattr(self, name) >= 0:
                raise UsageError(f"llm.{name}={getattr(self, name)} must not be negative")

    def complete(self, prompts: Prompts) -> Completions:
        """A metered call; length of the answer and latency are about log-normal (log-logistic)."""
        tokens_in = self.prompt_tokens + np.rint(prompts.words * self.tokens_per_word)
        tokens_in = tokens_in + prompts.with_skill * self.skill_tokens
        tokens_out = np.maximum(1, np.rint(self.answer_tokens * np.exp(self.answer_spread * _spread(prompts.length))))
        usd = (tokens_in * self.usd_per_million_in + tokens_out * self.usd_per_million_out) / 1e6
        latency = np.rint(self.latency_ms * np.exp(self.latency_spread * _spread(prompts.latency)))
        return Completions(tokens_in.astype(np.int32), tokens_out.astype(np.int32), usd, latency)

    def ability(self, with_skill: Bool, *, fitting: bool) -> F64:
        """Probability that the answer of each call is right, `[B]`."""
        prompted = self.right_with_skill if fitting else self.right * (1.0 - self.misled)
        return np.where(with_skill, prompted, self.right)


def _spread(u: F64) -> F64:
    """Logistic quantile scaled by 1.702 to resemble the standard normal (Haley 1952); needs one logarithm only."""
    return np.log(u / (1.0 - u)) / 1.702
