"""Rules of other people's assistants in a few lines each: they need none of the packages, and give the same rows."""

from datetime import datetime
from typing import Any

import numpy as np


class PassOn:
    """A gateway that only passes on."""

    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        """Words of the model."""
        return str(model(message))


class ExactCache:
    """A dict of messages and their answers. `hours`: an answer is forgotten after so long."""

    def __init__(self, hours: float | None = None) -> None:
        self._seconds = float("inf") if hours is None else 3600 * hours
        self._memory: dict[str, tuple[datetime, str]] = {}

    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        """Words that were kept for the same message, or new ones."""
        if message not in self._memory or (time - self._memory[message][0]).total_seconds() > self._seconds:
            self._memory[message] = time, str(model(message))
        return self._memory[message][1]


class Nearest:
    """Earlier messages with their answers. The nearest counts from a cosine on, which is `threshold` on this scale:
    `cosine` (LiteLLM), or `half` (GPTCache), on which 0.9 is a cosine of 0.8.
    """

    def __init__(self, threshold: float, scale: str = "cosine") -> None:
        self._lowest = threshold if scale == "cosine" else 2 * threshold - 1
        self._vectors: list[Any] = []
        self._pairs: list[tuple[str, str]] = []

    def near(self, vector: Any) -> tuple[str, str] | None:
        """Message and answer that are near enough."""
        if not self._vectors:
            return None
        cosines = np.stack(self._vectors) @ vector
        best = int(cosines.argmax())
        return self._pairs[best] if cosines[best] >= self._lowest else None

    def keep(self, vector: Any, message: str, words: str) -> None:
        """Keeps an answer."""
        self._vectors.append(vector)
        self._pairs.append((message, words))


class SemanticCache(Nearest):
    """A semantic cache: an answer that is near enough is given again, and new ones are kept."""

    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        """Words of an earlier answer, or new ones."""
        vector = _unit(model.embed(message))
        if (pair := self.near(vector)) is not None:
            return pair[1]
        self.keep(vector, message, str(model(message)))
        return self._pairs[-1][1]


class NearestInPrompt(Nearest):
    """A memory as mem0's: what is near enough stands in the model's prompt, and each message is kept."""

    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        """Words of the model."""
        vector = _unit(model.embed(message))
        pair = self.near(vector)
        past = [] if pair is None else [{"role": "system", "content": "\n".join(pair)}]
        words = str(model([*past, {"role": "user", "content": message}]))
        self.keep(vector, message, words)
        return words


def _unit(vector: list[float]) -> Any:
    made = np.array(vector)
    return made / np.linalg.norm(made)
