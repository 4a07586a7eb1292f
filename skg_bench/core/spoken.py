"""Answers in words: those of a simulated model, each with a reference that no other one has, and models that answer in
words of their own.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from skg_bench.core.types import Completions

_REFERENCE = re.compile(r"\[answer ([0-9a-f]{16})\]")
_OPENS = "[answer "
ANSWER_FRAME = 4
"""Words of an answer beside those of the message that it answers."""
UNCHECKED = "labels"  # check of tasks that leaves judging to people and programs
_BAR = " | "  # between the kind of a task and its reference


def answer_words(request: str, key: int) -> str:
    """Words of the model's answer to `request`; `key` is that of the event at which it is given (`Message.event`)."""
    return f"Answer to {request!r} {answer_reference(key)}"


def answer_reference(key: int) -> str:
    """Reference to the answer that was given at the event with this key."""
    return f"{_OPENS}{key:016x}]"


def references(words: str) -> Sequence[int]:
    """Keys of the answers to which words refer, in order, wherever they stand."""
    return [int(key, 16) for key in _REFERENCE.findall(words)] if _OPENS in words else ()


def task_name(kind: str, reference: str | None) -> str:
    """Name of a task: its kind, and what is right as an answer, if it has a reference."""
    plain = kind.replace(_BAR, " / ")
    return plain if reference is None else f"{plain}{_BAR}{reference}"


def task_reference(task: str) -> str:
    """Reference in the name of a task; empty: it has none."""
    return task.partition(_BAR)[2]


@dataclass(frozen=True, slots=True)
class PromptParts:
    """A message, and what a model is given beside it."""

    message: str  # or a prompt of the assistant's own, which holds its memory
    skill: str  # what the served skill says; empty: none, or it says nothing
    earlier: tuple[tuple[str, str], ...]  # earlier messages in the prompt, and what was said to them


@dataclass(frozen=True, slots=True)
class WordsAsk:
    """Ask of a model that answers in words."""

    about: PromptParts
    draw: int  # 63 bits: which sample, above temperature 0
    recorded: bool  # it holds messages of people
    redacted: bool  # no file may hold it


@runtime_checkable
class SpeakingLLM(Protocol):
    """Model that answers users in words of its own, which a world of a domain `in_words` judges."""

    def say(self, asks: Sequence[WordsAsk]) -> tuple[list[str], Completions]:
        """Words in order, empty where nothing came, and the cost of each, `[n]`."""
        ...


def unasked(_row: int, _prompt: str) -> str:
    """Raises ValueError: no model comes with this message."""
    raise ValueError("this message has no model that could be asked")
