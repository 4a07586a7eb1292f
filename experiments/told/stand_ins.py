"""Memories in a few lines each, for a model that reads what stands in its prompt."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import numpy as np

Model = Callable[[str], str]


class Notes:
    """A notebook: it keeps every message that asks for nothing, and shows all of them, the newest first."""

    def __init__(self) -> None:
        self._kept: list[str] = []

    def answer(self, user: str, time: datetime, message: str, model: Model) -> str:
        """Words of the model, which reads the notes before the message."""
        words = model("\n".join([*reversed(self._kept), message]))
        if not message.endswith("?"):
            self._kept.append(message)
        return words

    def save(self) -> bytes:
        """All notes."""
        return "\n".join(self._kept).encode()

    def load(self, user: str, data: bytes) -> None:
        """The notes that were saved."""
        self._kept = data.decode().split("\n") if data else []


class Nearest3:
    """A memory as mem0's: the three nearest messages stand in the prompt, the nearest first, and each one is kept.
    `questions`: those too that only ask.
    """

    def __init__(self, questions: bool = True) -> None:
        self._questions = questions
        self._vectors: list[Any] = []
        self._kept: list[str] = []

    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        """Words of the model, which reads the nearest messages before this one."""
        vector = np.array(model.embed(message))
        order = np.argsort(-np.stack(self._vectors) @ vector, kind="stable").tolist() if self._kept else []
        words = str(model("\n".join([*(self._kept[place] for place in order[:3]), message])))
        if self._questions or not message.endswith("?"):
            self._vectors.append(vector)
            self._kept.append(message)
        return words
