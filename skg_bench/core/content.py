"""Content of a skill: section, issue, insight and keywords of ACE's skillbooks, as a text of the run."""

import json
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Protocol

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I32, I64, U64
from skg_bench.core.text import text_hash

_SHOWN = 40  # characters of a wrong value in an error


@dataclass(frozen=True, slots=True)
class Content:
    """Content of a skill: the fields of ACE's schema 2. In books of its counter era, and of Pause, a skill has one text
    beside its section, `content`: that is the issue here.

    Raises UsageError for values of another type, empty sections and issues, characters that no text may have, and
    keywords that are not lower case, hold a blank, or come twice.
    """

    section: str
    issue: str
    insight: str | None = None
    keywords: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _text("section", self.section)
        _text("issue", self.issue)
        if self.insight is not None:
            _text("insight", self.insight)
        if not isinstance(self.keywords, tuple):
            raise UsageError(f"keywords={_short(self.keywords)}, valid is a list of words")
        for keyword in self.keywords:
            _text("keywords", keyword)
            if keyword != keyword.lower() or any(character.isspace() for character in keyword):
                raise UsageError(f"keyword {_short(keyword)}: valid are words in lower case without blanks")
        if len(set(self.keywords)) < len(self.keywords):
            raise UsageError(f"keywords={_short(self.keywords)} has a word twice; name each once")

    @property
    def canonical(self) -> str:
        """The content as one text: JSON with sorted fields and without blanks."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return json.dumps(values, ensure_ascii=False, sort_keys=True, separators=(",", ":"))

    @property
    def key(self) -> int:
        """64 bits of blake2b over the canonical text; never 0, which stands for no content."""
        return _key(self)

    @property
    def size(self) -> int:
        """Characters of all fields together."""
        return len(self.section) + len(self.issue) + len(self.insight or "") + sum(map(len, self.keywords))

    def changed(self, change: Callable[[str], str]) -> "Content":
        """Content with each text replaced."""
        insight = None if self.insight is None else change(self.insight)
        return Content(change(self.section), change(self.issue), insight, tuple(map(change, self.keywords)))


@lru_cache(maxsize=2**16)
def _key(content: Content) -> int:
    return text_hash(content.canonical) or 1


NAMES = tuple(f.name for f in fields(Content))


class TextStore(Protocol):
    """Methods that contents need of the texts of a run (core/texts.py)."""

    def add(self, texts: Sequence[str]) -> I32:
        """Ids of texts."""
        ...

    def read(self, text: I32, row: I64 | I32 | None = None) -> list[str]:
        """The words of texts."""
        ...

    def show(self, texts: Sequence[str]) -> Sequence[str]:
        """Texts as logs have them."""
        ...

    @property
    def redacts(self) -> bool:
        """Do logs show other texts?"""
        ...


@dataclass(eq=False)
class Contents:
    """The texts of a run that are contents, by their keys. Append-only; a key depends on the content alone."""

    _texts: TextStore
    _known: dict[int, Content | None] = field(default_factory=lambda: {0: None})  # by key
    _logged: dict[int, int] = field(default_factory=lambda: {0: 0})  # key of what logs show of it

    def add(self, content: Content) -> int:
        """The key of the content, for `Batch.content`."""
        key = content.key
        if key not in self._known:
            self._logged[key] = self._shown(content).key
            self._texts.add([content.canonical])
            self._known[key] = content
        return key

    def knows(self, key: int) -> bool:
        """Did somebody add the content of this key? Making a key takes 15 us, asking nothing."""
        return key in self._known

    def of(self, keys: U64) -> list[Content | None]:
        """The contents of keys `[n]`; of 0: None.

        Raises ValueError for a key that nobody added.
        """
        self.check(keys)
        return [self._known[key] for key in keys.tolist()]

    def shown(self, keys: U64) -> list[Content | None]:
        """The contents of keys `[n]` as logs have them."""
        return [content and self._shown(content) for content in self.of(keys)]

    def check(self, keys: U64) -> None:
        """Raises ValueError for a key of keys `[n]` that nobody added; 0 is none."""
        if unknown := [key for key in keys.tolist() if key not in self._logged]:
            raise ValueError(
                f"{min(unknown)} is the key of no content of this run; WrittenTexts.contents.add gives keys"
            )

    def logged(self, keys: U64) -> U64:
        """Keys of what logs show of the contents of keys `[n]`: state hashes have these, as logs rebuild these."""
        if not self._texts.redacts or not keys.any():
            return keys
        distinct, index = np.unique(keys, return_inverse=True)
        logged: U64 = np.array([self._logged[key] for key in distinct.tolist()], np.uint64)[index]
        return logged

    def _shown(self, content: Content) -> Content:
        return content.changed(lambda text: self._texts.show([text])[0]) if self._texts.redacts else content


def _text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"{name}={_short(value)}, valid is a text that is not blank")
    for character in value:
        category = unicodedata.category(character)
        if category == "Cs" or (category == "Cc" and character not in "\n\r\t"):
            raise UsageError(
                f"{name}={_short(value)} holds the character U+{ord(character):04X}; valid are all but lone surrogates "
                "and control characters other than line breaks and tabs"
            )


def _short(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text):,} characters)"
