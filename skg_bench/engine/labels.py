"""The words behind the ids in the logs, as columns whose dictionaries do not depend on the process's past."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skg_bench.core.content import NAMES, Content
from skg_bench.core.domain import Domain, OutcomeField
from skg_bench.core.grid import I32, U64
from skg_bench.core.record import Replay
from skg_bench.core.texts import Texts
from skg_bench.runfolder.encoding import encoded


@dataclass(frozen=True)
class Labels:
    """The words behind the ids in the logs. Two ids may have the same word, as two skills may have the same name."""

    texts: Texts
    messages: pa.Array  # of the world
    names: pa.Array  # of the world
    intents: pa.Array
    types: pa.Array
    reasons: pa.Array
    domain: Domain
    log: Replay | None = None  # that is replayed

    def message(self, text: I32) -> pa.DictionaryArray:
        """Texts in words, as a rule messages of the world; of negative ids: null."""
        return self._text(text, 0, self.messages)

    def name(self, text: I32) -> pa.DictionaryArray:
        """Texts in words, as a rule names of the world; of negative ids: null."""
        return self._text(text, self.texts.names.start, self.names)

    def contents(self, key: U64) -> dict[str, pa.DictionaryArray]:
        """Contents of skills, one column for each field; of key 0: null."""
        distinct, index = np.unique(key, return_inverse=True)
        shown = self.texts.contents.shown(distinct)
        return {name: _sorted([_field(content, name) for content in shown], index) for name in NAMES}

    def written(self, text: I32) -> pa.DictionaryArray:
        """Texts that were written in the run, in words; of negative ids: null."""
        return _words_of(text, self.texts.shown)

    def plain(self, text: I32) -> pa.DictionaryArray:
        """The same of texts that nobody's words can be in, which no log hides."""
        return _words_of(text, self.texts.read)

    def feedback(self, kind: I32, value: I32) -> dict[str, pa.Array]:
        """Kinds of feedback and what each says, `[n]` each, in words; of negative values: null."""
        levels = self.domain.feedback()
        first = np.cumsum([0, *map(len, levels.values())])
        words = pa.array([level for each in levels.values() for level in each])
        place = np.where(value < 0, -1, first[kind] + value)
        return {"kind": encoded(kind, pa.array(list(levels))), "value": encoded(place, words)}

    def outcome(self, each: OutcomeField, values: np.ndarray) -> pa.Array:
        """A field of the domain's outcome as a column of the turn log."""
        if each.stored == "words":
            return encoded(values, pa.array(list(each.levels), pa.string()))
        return pa.array(values, mask=np.isnan(values)) if each.stored == "float" else pa.array(values)

    def _text(self, text: I32, first: int, words: pa.Array) -> pa.DictionaryArray:
        """Column of texts, in order of words if others are among them: ids depend on the process's past."""
        some = text >= 0
        ids, codes = text[some], np.full(len(text), -1, np.int32)
        if not len(ids) or (ids.min() >= first and ids.max() < first + len(words)):
            codes[some] = ids - first
            return encoded(codes, words)
        return _words_of(text, self.texts.shown)


def _field(content: Content | None, name: str) -> str | None:
    """A field of a content as logs have it."""
    if content is None:
        return None
    word: str | None = " ".join(content.keywords) if name == "keywords" else getattr(content, name)
    return word


def _words_of(text: I32, read: Callable[[I32], Sequence[str]]) -> pa.DictionaryArray:
    used, index = np.unique(text, return_inverse=True)
    known = used[used >= 0]  # ids ascend: those of no text come first
    return _sorted([*[None] * (len(used) - len(known)), *read(known)], index)


def _sorted(words: Sequence[str | None], index: np.ndarray) -> pa.DictionaryArray:
    """`words[index]`, whose dictionary is in order of the words; None is null."""
    ordered = sorted({word for word in words if word is not None})
    rank = {word: i for i, word in enumerate(ordered)}
    codes = np.array([-1 if word is None else rank[word] for word in words], np.int32)
    return encoded(codes[index], pa.array(ordered, pa.string()))
