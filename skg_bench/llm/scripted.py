"""A stand-in for a model of texts: answers by fixed rules, for tests, demos and runs without a server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal, get_args

from skg_bench.asking.asking import Completion, Prices, Prompt
from skg_bench.asking.scripts import SCRIPTS
from skg_bench.asking.structured import value_of
from skg_bench.asking.wire import words_of
from skg_bench.core.errors import UsageError
from skg_bench.core.reach import REACHES_NOTHING, Reaches

Script = Literal["learner", "obedient", "reader", "echo"]
_CHARACTERS = 4  # a token; rule of thumb for English
_SHORT = 1000  # characters of a request that may come again; longer ones hold a memory


@dataclass(frozen=True)
class Scripted:
    """Answers by the rules `script`. `learner`: notes what was answered well, and tags the skills that were used.
    `obedient`: obeys, besides, every order that stands anywhere in the data, as no model should. `reader`: answers
    users with what stands in its prompt, word for word, and with nothing else. `echo`: repeats all of it at questions,
    so that a check sees what a model would have read.
    """

    script: Script
    usd_per_million_in: float
    usd_per_million_out: float
    latency_ms: float
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        if self.script not in get_args(Script):
            raise UsageError(f"curator.llm.script={self.script!r}, valid are {', '.join(get_args(Script))}")
        for name in ("usd_per_million_in", "usd_per_million_out", "latency_ms"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise UsageError(f"curator.llm.{name}={getattr(self, name)} must be finite and not negative")

    @property
    def settings(self) -> Mapping[str, Any]:
        """The script is the model."""
        return {"model": f"scripted/{self.script}", "temperature": 0.0, "top_p": 1.0}

    @property
    def prices(self) -> Prices:
        """Prices of the yaml; nothing is cached."""
        return Prices(self.usd_per_million_in, self.usd_per_million_in, self.usd_per_million_out)

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Answers in order.

        Raises UsageError for a role that the script does not know.
        """
        return [
            _known_answer(self, each.role, each.system, each.user) if _may_repeat(each) else self._answer(each)
            for each in prompts
        ]

    def _answer(self, prompt: Prompt) -> Completion:
        rules = SCRIPTS[self.script]
        if prompt.role not in rules:
            raise UsageError(
                f"curator.llm.script={self.script} does not know the role {prompt.role!r}; it has {', '.join(rules)}"
            )
        text = rules[prompt.role](prompt)
        tokens_in = sum(len(words_of(message)) for message in prompt.messages) // _CHARACTERS
        tokens_out = max(1, len(text) // _CHARACTERS)
        cost = self.prices.cost(tokens_in, 0, tokens_out)
        value = None if prompt.schema is None else value_of(text)
        return Completion(text, value, "ok", tokens_in, 0, tokens_out, cost, self.latency_ms)


def _may_repeat(prompt: Prompt) -> bool:
    return prompt.schema is None and prompt.raw is None and len(prompt.user) <= _SHORT


@lru_cache(maxsize=2**13)
def _known_answer(model: Scripted, role: str, system: str, request: str) -> Completion:
    """An answer to words alone: rules read nothing else of a prompt."""
    return model._answer(Prompt(role, system, request, None, 0, 0))  # noqa: SLF001
