"""mem0 2.2.1 as a Python object: its own memory and search, with the run's vectors and model."""

import logging
import os
import warnings
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Never

from skg_bench.assistant.python.contract import Model
from skg_bench.core.errors import UsageError

_VECTORS = 384  # numbers of a vector of MiniLM


class Mem0:
    """The memories nearest to a message stand in the model's prompt; each message is then kept with its answer.

    Messages are kept as they are (`infer=False`): no model makes facts of them. mem0's search by keywords needs models
    that it would download, and is off. Memory and history lie in this process, so that it can be neither frozen nor
    saved.
    """

    def __init__(self, memories: int = 1, threshold: float = 0.0, vectors: int = _VECTORS) -> None:
        self._memories, self._threshold, self._width = memories, threshold, vectors
        self._memory: Any = None  # made at the first message: nothing is imported before

    def answer(self, user: str, time: datetime, message: str, model: Model) -> str:
        """Words of the model, whose prompt holds what is near."""
        past = [f"{each['memory']}\n{each['metadata']['answer']}" for each in self.near(user, message, model)]
        words = model([*({"role": "system", "content": text} for text in past), {"role": "user", "content": message}])
        self.keep(user, message, model, answer=words)
        return words

    def near(self, user: str, message: str, model: Model) -> Sequence[Mapping[str, Any]]:
        """Memories of a user that are nearest to a message, the nearest first."""
        memory = self._with(model)
        near: Sequence[Mapping[str, Any]] = memory.search(
            message, filters={"user_id": user}, top_k=self._memories, threshold=self._threshold
        )["results"]
        return near

    def keep(self, user: str, message: str, model: Model, **metadata: str) -> None:
        """Keeps a message of a user, with what is said of it."""
        self._with(model).add(message, user_id=user, metadata=metadata, infer=False)

    def _with(self, model: Model) -> Any:
        """The memory, with vectors of a message's model."""
        if self._memory is None:
            self._memory = _memory(self._width)
        self._memory.embedding_model = _Vectors(model)
        return self._memory

    def __deepcopy__(self, _copies: object) -> Never:
        raise TypeError("mem0 cannot be copied: its memory has locks of this process")


class _Vectors:
    """Vectors of the run's embedder, as mem0 asks for them."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """Vector of a text."""
        return self._model.embed(text)


def _memory(width: int) -> Any:
    """An empty memory. Raises UsageError where mem0 is not installed."""
    os.environ["MEM0_TELEMETRY"] = "False"  # it would report to its makers; read when it is imported
    try:
        from mem0 import Memory
        from qdrant_client import QdrantClient
    except ImportError as error:
        raise UsageError(
            f"mem0 needs {error.name}, which is not installed; `make peers-assistants` makes an environment for it, or "
            "take pip install mem0ai==2.2.1"
        ) from error
    logging.getLogger("mem0").setLevel(logging.ERROR)  # it warns at each message of what is not installed
    store = {"client": QdrantClient(":memory:"), "embedding_model_dims": width}
    nowhere = {"provider": "openai", "config": {"api_key": "none"}}  # neither of both is ever asked
    settings = {
        "vector_store": {"provider": "qdrant", "config": store},
        "embedder": nowhere,
        "llm": nowhere,
        "history_db_path": ":memory:",
    }
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # of indexes, which only a server has
        return Memory.from_config(settings)
