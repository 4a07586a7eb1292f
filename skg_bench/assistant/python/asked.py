"""The arm's model, as an object calls it."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from skg_bench.core.spoken import answer_words

Prompt = str | Sequence[Mapping[str, Any]]  # words, or chat messages with `content`


class Model(Protocol):
    """The arm's model, for one message."""

    def __call__(self, prompt: Prompt) -> str:
        """Its words, which end in a reference; each call is counted and metered."""
        ...


class AskedModel:
    """The model for one message, and the prompts with which it was asked."""

    __slots__ = ("_key", "_message", "_over", "prompts")

    def __init__(self, message: str, key: int) -> None:
        self._message, self._key, self._over = message, key, False
        self.prompts: list[str] = []

    def __call__(self, prompt: Prompt) -> str:
        if self._over:
            raise RuntimeError("this model was given for one message, and that is answered; call the one of this call")
        self.prompts.append(prompt if type(prompt) is str else _words(prompt))
        return answer_words(self._message, self._key)

    def end(self) -> None:
        """The message is answered."""
        self._over = True


def _words(prompt: Any) -> str:
    """Words of chat messages; parts that are no text have none.

    Raises TypeError for anything else.
    """
    if isinstance(prompt, str):
        return str(prompt)
    if not isinstance(prompt, list | tuple) or not all(isinstance(each, Mapping) for each in prompt):
        raise TypeError(
            f"model was given a {type(prompt).__qualname__}; valid is a text, or a list of chat messages such as "
            "[{'role': 'user', 'content': message}]"
        )
    return "\n".join(filter(None, (_content(each.get("content")) for each in prompt)))


def _content(content: Any) -> str:
    """Words of one chat message: a text, or parts with texts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list | tuple) else ()
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return "\n".join(text for text in texts if isinstance(text, str))
