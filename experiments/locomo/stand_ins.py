"""Memories in a few lines each, which keep what they are told and show some of it at a question."""

import re
from collections import Counter
from datetime import datetime
from typing import Any

import numpy as np

from experiments.locomo.corpus import QUESTION
from skg_bench.assistant.python.contract import Model
from skg_bench.assistant.python.mem0 import Mem0

_WORD = re.compile(r"[a-z0-9']+")


class Nearest:
    """A memory as mem0's without a model: the `most` nearest messages stand in the prompt, the nearest first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._vectors: list[Any] = []
        self._kept: list[str] = []

    def answer(self, user: str, time: datetime, message: str, model: Model) -> str:
        """Words of the model at a question; else nothing is asked."""
        vector = np.array(model.embed(message.removeprefix(QUESTION)))
        if message.startswith(QUESTION):
            order = np.argsort(-np.stack(self._vectors) @ vector, kind="stable")[: self._most].tolist()
            return model("\n".join([*(self._kept[place] for place in order), message]))
        self._vectors.append(vector)
        self._kept.append(message)
        return "Noted."


class Words:
    """A dict of words: the `most` messages with the rarest words in common with the question stand in the prompt."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._places: dict[str, list[int]] = {}
        self._kept: list[str] = []

    def answer(self, user: str, time: datetime, message: str, model: Model) -> str:
        """Words of the model at a question; else nothing is asked."""
        words = set(_WORD.findall(message.removeprefix(QUESTION).lower()))
        if message.startswith(QUESTION):
            weights = Counter[int]()
            for word in sorted(words & self._places.keys()):
                for place in self._places[word]:
                    weights[place] += np.log(len(self._kept) / len(self._places[word]))
            order = sorted(weights, key=lambda place: (-weights[place], place))[: self._most]
            return model("\n".join([*(self._kept[place] for place in order), message]))
        for word in words:
            self._places.setdefault(word, []).append(len(self._kept))
        self._kept.append(message)
        return "Noted."


class Mem0Nearest:
    """mem0 itself: the `most` memories that it finds stand in the prompt, in its order."""

    def __init__(self, most: int) -> None:
        self._memory = Mem0(most)

    def answer(self, user: str, time: datetime, message: str, model: Model) -> str:
        """Words of the model at a question; else nothing is asked."""
        if message.startswith(QUESTION):
            near = self._memory.near(user, message.removeprefix(QUESTION), model)
            return model("\n".join([*(str(each["memory"]) for each in near), message]))
        self._memory.keep(user, message, model)
        return "Noted."
