"""Answers in words, as somebody outside of the program reads them. Each ends in a reference that no other one has."""

import re
from collections.abc import Sequence

_REFERENCE = re.compile(r"\[answer ([0-9a-f]{16})\]")
_OPENS = "[answer "


def answer_words(request: str, key: int) -> str:
    """Words of the model's answer to `request`; `key` is that of the event at which it is given (`Message.event`)."""
    return f"Answer to {request!r} [answer {key:016x}]"


def references(words: str) -> Sequence[int]:
    """Keys of the answers to which words refer, in order, wherever they stand."""
    return [int(key, 16) for key in _REFERENCE.findall(words)] if _OPENS in words else ()
