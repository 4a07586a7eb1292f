"""Strategies of a folder: what they say, and what they really are.

Worlds know from here which kind of strategy a skill is, learners what fits in general; the users' own tastes are in
neither. The context of a trigger is its category and its time of day: `category * len(times) + time`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from hashlib import blake2b
from pathlib import Path

import numpy as np

from skg_bench.core.content import Content
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import stamp, text_of
from skg_bench.core.grid import F64, I32, Bool
from skg_bench.core.package import DATA
from skg_bench.skillbook.library.strategy_files import CONTENTS_FILE, KINDS_FILE, read_contents, read_kinds
from skg_bench.skillbook.library.trigger_files import TRIGGERS, TriggerParts, named_context, read_parts, trigger_rows
from skg_bench.skillbook.word_cosines import WordCosines

_LARGEST = 20_000_000  # bytes of a file
_FILES = (KINDS_FILE, CONTENTS_FILE, TRIGGERS)


@dataclass(frozen=True, slots=True)
class Triggers:
    """Events that somebody may be stopped at, M of them."""

    text: tuple[str, ...]  # [M]
    category: I32  # [M]
    time: I32  # [M]
    band: I32  # [M] price band
    price: I32  # [M] USD


@dataclass(frozen=True, eq=False)
class Strategies:
    """K kinds of strategies, N texts of them, and the C contexts in which they are used."""

    kinds: tuple[str, ...]
    categories: tuple[str, ...]
    times: tuple[str, ...]
    persuades: F64  # [K] logit of listening to a kind in a context that suits it neither well nor badly
    discerns: F64  # [K] what that logit loses where what it is about is really wanted, 0 or more
    fit: F64  # [K, C] how a kind suits a context; mean 0 and standard deviation 1 over all cells
    contents: tuple[Content, ...]
    kind: I32  # [N]
    sound: Bool  # [N] is it well made? The others name no reason and no next step
    triggers: Triggers
    digest: str

    def read(self, contents: Sequence[Content]) -> tuple[I32, Bool]:
        """Kind and soundness of texts `[n]`: of those in the table as it says, of others as of the nearest by words.

        The nearest kind is the one whose texts are most alike on average, as one text may be near for what it is about
        (coffee) rather than for what it does; soundness is that of the nearest text of this kind. Sections are not
        read, since formats of books name them differently. What shares no word with the table is of kind 0 and unsound.
        """
        row = np.array([self._row.get(content.key, -1) for content in contents], np.int32)
        kind, sound, new = self.kind[row], self.sound[row], np.flatnonzero(row < 0)
        if len(new):
            cosines = self._cosines.of([_words(contents[i]) for i in new.tolist()])
            member = (self.kind[:, None] == np.arange(len(self.kinds))).astype(np.float64)
            kind[new] = (cosines @ member / member.sum(axis=0)).argmax(axis=1)  # the sums are exact
            theirs = np.where(self.kind == kind[new, None], cosines, -1.0)
            sound[new] = self.sound[theirs.argmax(axis=1)] & cosines.any(axis=1)
        return kind, sound

    def context_of(self, text: str) -> int:
        """The context that a trigger's words name, -1: none.

        Before a colon, or else in all of the text, they must name one category and one time of day; "late-night" is
        "late at night".
        """
        return named_context(text, self.categories, self.times)

    @cached_property
    def _row(self) -> dict[int, int]:
        return {content.key: i for i, content in enumerate(self.contents)}

    @cached_property
    def _cosines(self) -> WordCosines:
        return WordCosines([_words(content) for content in self.contents])


def _words(content: Content) -> str:
    return " ".join((content.issue, content.insight or "", *content.keywords))


@cache
def packaged() -> Path:
    """The folder of strategies that comes with the package."""
    return next(iter(sorted(DATA.glob(f"*/{KINDS_FILE}"))), DATA / KINDS_FILE).parent


def strategies(folder: str | None = None) -> Strategies:
    """Strategies of a folder; None: those that come with the package.

    Raises UsageError for a folder that has none, and for what is missing or wrong in it.
    """
    if folder is None:  # curators ask at each turn
        return _strategies(packaged(), ())
    return _strategies(Path(folder), tuple(stamp(Path(folder) / name) for name in _FILES))


@lru_cache(maxsize=8)
def _strategies(home: Path, _stamps: tuple[object, ...]) -> Strategies:
    texts = {name: _text(home, name) for name in _FILES}
    parts = read_parts(home / TRIGGERS, texts[TRIGGERS])
    names, persuades, discerns, fit = read_kinds(home / KINDS_FILE, texts[KINDS_FILE], parts.categories, parts.times)
    contents, kind, sound = read_contents(home / CONTENTS_FILE, texts[CONTENTS_FILE], names)
    digest = blake2b(digest_size=16)
    for name, text in texts.items():
        digest.update(f"{name}\0{text}\0".encode())
    return Strategies(
        names, parts.categories, parts.times, persuades, discerns, fit, contents, kind, sound, _triggers(parts),
        digest.hexdigest(),
    )  # fmt: skip


def _text(home: Path, name: str) -> str:
    try:
        return text_of(home / name, _LARGEST)
    except UsageError as error:
        raise UsageError(
            f"{home} holds no strategies: {error}; needed are {KINDS_FILE}, {CONTENTS_FILE} and {TRIGGERS}, as in "
            f"{packaged()}"
        ) from error


def _triggers(parts: TriggerParts) -> Triggers:
    rows = trigger_rows(parts)
    columns = np.array([(row.category, row.time, row.band, row.price) for row in rows], np.int32).T
    return Triggers(tuple(row.text for row in rows), *(np.ascontiguousarray(column) for column in columns))
