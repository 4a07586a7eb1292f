"""Answers as somebody outside reads them: words that end in a reference which no other answer has."""

import re

import numpy as np

from skg_bench.core.assistant import Message
from skg_bench.core.draws import fold
from skg_bench.core.grid import I32, U64

_REFERENCE = re.compile(r"\[answer ([0-9a-f]{16})\]\s*\Z")


class References:
    """The answers that the users of a cohort were shown in words.

    The reference is the key of the event at which the answer was minted. So the words of an answer lead to what the
    world knows of it, though two right answers would say the same.
    """

    def __init__(self, keys: U64) -> None:
        self._keys = keys
        self._answers: list[dict[str, int]] = [{} for _ in keys]

    def words(self, query: Message, answer: I32, text: I32 | None) -> list[str]:
        """Words said to the users: answers `answer` (handles `[B]`) in words; where these are -1, the assistant's
        own words `text` (text ids `[B]`, -1: none).
        """
        keys = fold(self._keys[: len(answer)], answer).tolist()
        requests = query.store.texts.read(query.text)
        out = []
        for row, (handle, key, request) in enumerate(zip(answer.tolist(), keys, requests, strict=True)):
            reference = f"{key:016x}"
            if handle >= 0:
                self._answers[row][reference] = handle
            out.append(f"Answer to {request!r} [answer {reference}]" if handle >= 0 else "")
        if text is not None and (unjudged := ((answer < 0) & (text >= 0)).nonzero()[0]).size:
            for row, words in zip(unjudged.tolist(), query.store.texts.read(text[unjudged]), strict=True):
                out[row] = words
        return out

    def handles(self, query: Message, text: I32) -> I32:
        """The answers `[B]` to which texts `[B]` refer; -1: to none that this user was shown."""
        out = np.full(len(text), -1, np.int32)
        rows = (text >= 0).nonzero()[0]
        for row, words in zip(rows.tolist(), query.store.texts.read(text[rows]), strict=True):
            match = _REFERENCE.search(words)
            out[row] = self._answers[row].get(match[1], -1) if match else -1
        return out
