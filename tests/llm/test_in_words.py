"""A model that answers in words: its samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from skg_bench.asking import prompts
from skg_bench.asking.asking import Completion, Prices, Prompt
from skg_bench.asking.scripts import SCRIPTS
from skg_bench.core.errors import UsageError
from skg_bench.core.spoken import PromptParts, WordsAsk
from skg_bench.llm.in_words import InWordsLLM
from skg_bench.llm.scripted import Scripted


@dataclass
class Drawing:
    """A model that says the number of its draw."""

    temperature: float = 1.0
    prices: Prices | None = None
    settings: Mapping[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.settings = {"model": "drawing", "temperature": self.temperature, "top_p": 1.0}

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        return [Completion(str(prompt.draw), None, "ok", 1, 0, 1, 0.0, 1.0) for prompt in prompts]


def said(sample: int, draws: Sequence[int]) -> list[str]:
    asks = [WordsAsk(PromptParts("Where?", "", ()), draw, False, False) for draw in draws]
    return InWordsLLM(Drawing(), 300, sample, None).say(asks)[0]


def test_another_sample_is_another_draw_at_each_message_and_the_same_at_each_repetition() -> None:
    draws = [0, 5, 2**63 - 1]
    assert said(0, draws) == [str(draw) for draw in draws]
    first, second = said(1, draws), said(2, draws)
    assert len({*map(str, draws), *first, *second}) == 9
    assert said(1, draws) == first
    assert all(0 <= int(draw) < 2**63 for draw in first + second)


@pytest.mark.parametrize(
    ("temperature", "sample", "words"),
    [
        (0.0, 1, "llm.sample=1 needs a temperature above 0"),
        (1.0, -1, "llm.sample=-1 must not be negative"),
    ],
)
def test_samples_that_cannot_differ_are_refused(temperature: float, sample: int, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        InWordsLLM(Drawing(temperature), 300, sample, None)


def test_equal_messages_without_a_memory_are_written_and_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    answered, written = list[str](), list[str]()
    rules, block = SCRIPTS["reader"]["answer"], prompts.json_block

    def read(prompt: Prompt) -> str:
        answered.append(prompt.user)
        return rules(prompt)

    def write(data: Mapping[str, Any]) -> str:
        written.append(data["message"])
        return block(data)

    monkeypatch.setattr(prompts, "json_block", write)
    monkeypatch.setitem(SCRIPTS["reader"], "answer", read)
    reader = InWordsLLM(Scripted("reader", 3.0, 15.0, 2001.0), 300, 0, None)
    question, told = "What is the code of my very own test?", "The code of my very own test is k7f3-9q2m."
    asks = [WordsAsk(PromptParts(question, "", ()), draw, False, False) for draw in range(5)]
    asks += [WordsAsk(PromptParts(question, "", ((told, "Noted."),)), 5, False, False)]
    (*without, remembered), spent = reader.say(asks)
    assert set(without) == {"I do not know."}
    assert remembered == told
    assert len(set(spent.tokens_in[:5].tolist())) == 1
    assert spent.tokens_in[5] > spent.tokens_in[0]
    assert len(answered) == len(written) == 2
    reader.say([WordsAsk(PromptParts(f"{question}{'!' * 500}", "", ()), draw, False, False) for draw in range(3)])
    assert len(written) == 5  # long ones hold a memory: they are not kept
