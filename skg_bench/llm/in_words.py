"""A model that answers users in words, in worlds that judge words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from skg_bench.asking.asking import Prompt, TextModel, check_writes, metered, naming_model
from skg_bench.asking.prompts import PromptFile, load_prompt
from skg_bench.core.draws import fold
from skg_bench.core.errors import UsageError
from skg_bench.core.reach import Reach, Reaches
from skg_bench.core.spoken import PromptParts, WordsAsk
from skg_bench.core.types import Completions

ANSWER_ROLE = "answer"
ANSWER_DATA = ("message", "skill", "earlier")
_SHORT = 500  # characters of a message that may come again; longer ones hold a memory


@dataclass(frozen=True)
class InWordsLLM:
    """Asks `llm` in the words of `answer.md`.

    It is given the message, what the served skill says, and earlier answers with the messages that they answered. A
    prompt of an assistant's own stands in the place of the message. An answer that did not come (a time limit, an
    error, a refusal) is no words, which is a wrong answer.
    """

    llm: TextModel
    answer_tokens: int
    sample: int
    prompts: str | None
    reaches: ClassVar[Reaches] = {"prompts": Reach(("reads",))}

    def __post_init__(self) -> None:
        check_writes(self.llm, "llm.llm")
        if self.answer_tokens < 1:
            raise UsageError(f"llm.answer_tokens={self.answer_tokens} must be at least 1")
        if self.sample < 0:
            raise UsageError(f"llm.sample={self.sample} must not be negative")
        if self.sample and not self.llm.settings["temperature"]:
            raise UsageError(
                f"llm.sample={self.sample} needs a temperature above 0, such as llm.llm.temperature=0.7: at 0 equal "
                "prompts have one answer"
            )
        self._file()

    @property
    def digest(self) -> str:
        """Hash of the prompt file."""
        return self._file().digest[:16]

    def say(self, asks: Sequence[WordsAsk]) -> tuple[list[str], Completions]:
        """Words in order, empty where nothing came, and the cost of each, `[n]`."""
        file = self._file()
        with naming_model("llm.llm"):
            completions = self.llm.complete([self._prompt(file, ask) for ask in asks])
        return [each.text.strip() if each.end == "ok" else "" for each in completions], metered(completions)

    def _prompt(self, file: PromptFile, ask: WordsAsk) -> Prompt:
        about = ask.about
        alone = not about.skill and not about.earlier and len(about.message) <= _SHORT
        request = _of_message(file, about.message) if alone else file.filled(_data(about))
        draw = int(fold(np.array(ask.draw, np.uint64), self.sample)) >> 1 if self.sample else ask.draw
        return Prompt(file.role, file.system, request, None, draw, self.answer_tokens, ask.recorded, ask.redacted)

    def _file(self) -> PromptFile:
        file = load_prompt(ANSWER_ROLE, self.prompts, ANSWER_DATA)
        if file.schema is not None:
            raise UsageError(f"llm.prompts={self.prompts}: {ANSWER_ROLE}.md has a schema; answers are any text: null")
        return file


@lru_cache(maxsize=2**13)
def _of_message(file: PromptFile, message: str) -> str:
    """The request of a message without anything beside it: users ask the same question again and again."""
    return file.filled(_data(PromptParts(message, "", ())))


def _data(exchange: PromptParts) -> Mapping[str, Any]:
    earlier = [{"user": message, "assistant": words} for message, words in exchange.earlier]
    return {"message": exchange.message, "skill": exchange.skill or None, "earlier": earlier}
