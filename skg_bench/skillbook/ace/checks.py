"""Checks of strict books and batches; every refusal names the place, the value and what is valid."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from skg_bench.core.errors import UsageError
from skg_bench.skillbook.ace.book import Json
from skg_bench.skillbook.ace.provenance import ID_KEYS, PROVENANCE_TEXTS, Provenance, merged_provenance, provenance_of
from skg_bench.skillbook.ace.words import keywords_of

_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
LARGEST_COUNTER = 2**31 - 1  # of a counter
_SOURCE = ("trace_uid", "source_system", "trace_id", "display_name", "epoch", *PROVENANCE_TEXTS, *ID_KEYS)


@dataclass(frozen=True, slots=True)
class AceLimits:
    """The most that a strict book takes."""

    text: int = 20_000  # characters of one text
    keywords: int = 100  # of one skill
    sources: int = 1_000  # of one skill or operation
    operations: int = 1_000  # of one batch
    skills: int = 100_000  # of one book


def parsed_json(text: str, where: str) -> Any:
    """Parsed JSON.

    Raises UsageError for torn JSON, a key that stands twice in an object, and numbers that are none.
    """

    def constant(name: str) -> Any:
        raise UsageError(f"{where} holds {name}, which is no JSON number")

    def distinct(pairs: list[tuple[str, Any]]) -> Json:
        keys = [key for key, _ in pairs]
        if len(set(keys)) < len(keys):
            twice = next(key for key, times in Counter(keys).items() if times > 1)
            raise UsageError(f"{where} holds {abridged(twice)} twice in one object; ids and fields stand once")
        return dict(pairs)

    def number(digits: str) -> float:
        if not isfinite(value := float(digits)):
            raise UsageError(f"{where} holds {abridged(digits)}, which is beyond the numbers that JSON is read to")
        return value

    try:
        return json.loads(text, object_pairs_hook=distinct, parse_constant=constant, parse_float=number)
    except ValueError as error:
        raise UsageError(f"{where} is no whole JSON: {error}") from error
    except RecursionError as error:
        raise UsageError(f"{where} is nested too deeply for JSON of a skillbook") from error


def abridged(value: Any) -> str:
    """The value for a message, cut where it is long."""
    try:
        text = ascii(value)
    except (RecursionError, ValueError):  # nested deeply, or a number of more digits than Python prints
        return f"a value of type {type(value).__name__} that is too large to show"
    return text if len(text) <= 60 else f"{text[:57]}..."


def an_object(value: Any, where: str, known: Iterable[str], needed: Iterable[str] = ()) -> Json:
    """An object with these fields only."""
    if not isinstance(value, dict):
        raise UsageError(f"{where} is {abridged(value)}; an object is needed")
    names = tuple(known)
    unknown = [name for name in value if name not in names]
    if unknown:
        raise UsageError(f"{where} has the field {abridged(unknown[0])}; valid: {', '.join(names)}")
    missing = [name for name in needed if value.get(name) is None]
    if missing:
        raise UsageError(f"{where} lacks {', '.join(missing)}")
    return value


def a_text(value: Any, where: str, limits: AceLimits, *, blank: bool = False) -> str:
    """A text that can be written everywhere."""
    if not isinstance(value, str):
        raise UsageError(f"{where} is {abridged(value)}; a text is needed")
    if len(value) > limits.text:
        raise UsageError(f"{where} has {len(value):,} characters; at most {limits.text:,} are taken: shorten it")
    bad = _UNWRITABLE.search(value)
    if bad:
        raise UsageError(
            f"{where} has the character U+{ord(bad[0]):04X} at {bad.start()}; of control characters only "
            "tab and line ends are taken, of surrogates only whole pairs"
        )
    if not blank and not value.strip():
        raise UsageError(f"{where} is {abridged(value)}; it has to say something")
    return value


def a_number(value: Any, where: str, least: int, most: int | None = None) -> int:
    """A whole number."""
    if type(value) is not int or value < least or (most is not None and value > most):
        valid = f"a whole number from {least}" + (f" to {most}" if most is not None else "")
        raise UsageError(f"{where} is {abridged(value)}; {valid} is needed")
    return value


def a_list(value: Any, where: str, most: int) -> list[Any]:
    """A list that is not too long."""
    if not isinstance(value, list):
        raise UsageError(f"{where} is {abridged(value)}; a list is needed")
    if len(value) > most:
        raise UsageError(f"{where} has {len(value):,} entries; at most {most:,} are taken")
    return value


def the_keywords(value: Any, where: str, limits: AceLimits) -> tuple[str, ...]:
    """Keywords, at least one, in lower case with `_` for blanks."""
    words = [a_text(word, f"{where}[{i}]", limits) for i, word in enumerate(a_list(value, where, limits.keywords))]
    if not words:
        raise UsageError(f"{where} is empty; at least one keyword is needed")
    return keywords_of(words)


def the_sources(value: Any, where: str, limits: AceLimits) -> tuple[Provenance, ...]:
    """Provenance records: one object, or a list of them."""
    items = [value] if isinstance(value, Mapping) else a_list(value, where, limits.sources)
    for i, item in enumerate(items):
        fields = an_object(item, f"{where}[{i}]", _SOURCE)
        for name, content in fields.items():
            place = f"{where}[{i}].{name}"
            if name == "epoch":
                a_number(content, place, 0)
            elif content is not None:
                a_text(content, place, limits)
    return merged_provenance((), [provenance_of(item) for item in items])
