"""Cleaning of texts and keywords in `v2`: texts without outer blanks, keywords in lower case with `_` for blanks."""

import re
from collections.abc import Iterable
from typing import Any

from skg_bench.skillbook.ace.provenance import text_or_none

SECTIONS = ("context", "harness")


def required(value: Any, name: str) -> str:
    """Text without outer blanks; ValueError where nothing is left, as the package raises."""
    text = text_or_none(value)
    if text is None:
        raise ValueError(f"{name} is required and must say something")
    return text


def keywords_of(values: Iterable[Any] | None) -> tuple[str, ...]:
    """Distinct keywords in order of first mention."""
    words: dict[str, None] = {}
    for value in values if values is not None else ():
        text = text_or_none(value)
        if text is not None:
            words[re.sub(r"\s+", "_", text.lower())] = None
    return tuple(words)


def section_of(section: str, words: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Section and keywords: a section of an older book becomes a keyword of `context`."""
    if section in SECTIONS:
        return section, words
    return "context", keywords_of([section, *words])
