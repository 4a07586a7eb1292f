"""The texts of a run in one process. An id stands for words: the words alone determine hash and vector, for the world's
messages and for what components write.

The world's messages come first, by the ids of the run (engine/relabel.py), then its names of skills, then written texts
in order of writing. That order differs between workers and after a resume, so no decision, no order and no logged byte
may depend on an id. Logs hold words, and a state hash is made of the hashes of texts.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Protocol, runtime_checkable

import numpy as np

from skg_bench.core.content import Content, Contents
from skg_bench.core.embedding_grid import check
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I16, I32, I64, U64
from skg_bench.core.growing import Growing
from skg_bench.core.text import text_hash
from skg_bench.core.types import Embedder
from skg_bench.core.vocabulary import Vocabulary, vocabulary_of

Shows = Callable[[Sequence[str]], Sequence[str]]
EmbedTexts = Callable[[Sequence[str]], I16]  # vectors of any texts, int16 `[n, D]`


@dataclass(frozen=True, slots=True)
class WrittenBefore:
    """Texts that a process has written, for another one with the same world."""

    texts: list[str]  # in order of their ids
    contents: list[Content]
    place: I32 | None  # of the texts behind the messages: place in `vectors`, -1: none; None: none is an example
    vectors: I16 | None  # [n, D]
    words: int  # texts whose words are in the vocabulary


@runtime_checkable
class LeavesOut(Embedder, Protocol):
    """An embedder that gives no vectors of their own to messages of the world that nobody says in the run."""

    @property
    def unsaid(self) -> frozenset[str]:
        """Texts of these messages: who writes one of them writes a new text."""
        ...


@dataclass(frozen=True)
class Embedding:
    """Source of the vectors of texts."""

    messages: Callable[[], I16]  # vectors of the world's messages, `[N, D]`
    embedder: Embedder


def is_pure(embedder: object) -> bool:
    """Does an embedder declare that a text's vector is the same bits whatever it is embedded with?"""
    return isinstance(embedder, Embedder) and embedder.pure


class Texts:
    """Append-only. `shows` gives texts as logs have them (`redact`); None: as they are. `recorded`: people wrote the
    messages, in a log.

    The world may have the same words at several ids, as two request types may have one name; they are added as the
    first of these.
    """

    def __init__(
        self,
        messages: Sequence[str],
        names: Sequence[str],
        embedding: Embedding | None,
        shows: Shows | None = None,
        recorded: bool = False,
    ) -> None:
        self._messages, self._names, self._written = messages, names, list[str]()
        self._embedding, self._shows, self._recorded = embedding, shows, recorded
        self._ids: dict[str, int] | None = None  # made when the first text is written
        self._place: Growing[np.int32] | None = None  # of the texts behind the messages: place in `_vectors`, -1: none
        self._vectors: Growing[np.int16] | None = None

    @property
    def n_messages(self) -> int:
        """How many messages the world has; a text with a higher id is a name, or was written."""
        return len(self._messages)

    @property
    def names(self) -> range:
        """Ids of the world's names of skills, in its order; the last is that of what nobody named."""
        return range(len(self._messages), len(self._messages) + len(self._names))

    def __len__(self) -> int:
        return len(self._messages) + len(self._names) + len(self._written)

    # ------------------------------------------------------------------------------------------------ content

    def add(self, texts: Sequence[str]) -> I32:
        """Ids of these texts, `[n]`; a known text has the id that it has.

        Raises UsageError for what is no text that UTF-8 can encode.
        """
        if self._ids is None:
            self._ids = {}
            embedder = None if self._embedding is None else self._embedding.embedder
            unsaid = embedder.unsaid if isinstance(embedder, LeavesOut) else frozenset()
            for i, text in enumerate(chain(self._messages, self._names)):
                if text not in unsaid:  # it has no vector of its own: who writes it writes a new text
                    self._ids.setdefault(text, i)
        ids = self._ids
        new = [text for text in dict.fromkeys(texts) if text not in ids]
        if new:
            hashes = _hashes(self.show(_checked(new)))
            ids.update(zip(new, range(len(self), len(self) + len(new)), strict=True))
            self._hash.add(hashes)
            self._written += new
        return np.array([ids[text] for text in texts], np.int32)

    def read(self, text: I32, row: I64 | I32 | None = None) -> list[str]:
        """The words of texts `[n]`; a view checks that users of rows `[n]` have met them (engine/text_view.py)."""
        messages, written, n, first = self._messages, self._written, len(self._messages), self.names.stop
        return [
            messages[i] if 0 <= i < n else written[i - first] if i >= first else self._word(i, messages)
            for i in text.tolist()
        ]

    def shown(self, text: I32) -> list[str]:
        """Texts `[n]` as logs have them."""
        first = self.names.stop
        written = iter(self.show([self._written[i - first] for i in text.tolist() if i >= first]))
        return [next(written) if i >= first else self._word(i, self.shown_messages) for i in text.tolist()]

    @cached_property
    def shown_messages(self) -> Sequence[str]:
        """The world's messages as logs have them, by id."""
        return self.show(self._messages)

    @property
    def hash(self) -> U64:
        """Hash of each text, of what logs show, `[N]`."""
        return self._hash.rows

    @cached_property
    def _hash(self) -> Growing[np.uint64]:
        return Growing(_hashes(chain(self.shown_messages, self._names)))

    def show(self, texts: Sequence[str]) -> Sequence[str]:
        """Any texts as logs have them."""
        return texts if self._shows is None else self._shows(texts)

    @property
    def recorded(self) -> bool:
        """Did people write the messages, in a log?"""
        return self._recorded

    @property
    def redacts(self) -> bool:
        """Do logs show other texts?"""
        return self._shows is not None

    @cached_property
    def contents(self) -> Contents:
        """Texts that are contents of skills."""
        return Contents(self)

    def written(self) -> WrittenBefore:
        """Texts written up to now."""
        place = None if self._place is None else self._place.rows
        vectors = None if self._vectors is None else self._vectors.rows
        contents = list(filter(None, self.contents._known.values()))  # noqa: SLF001  arms have them too, and may list none
        return WrittenBefore(list(self._written), contents, place, vectors, len(self.vocabulary))

    def take_up(self, before: WrittenBefore) -> None:
        """Go on from what another process wrote: the same ids, vectors and words.

        Raises ValueError where something was written already.
        """
        if self._written:
            raise ValueError(f"{len(self._written)} texts were written here before; take up into new texts")
        self.add(before.texts)
        for content in before.contents:
            self.contents.add(content)
        self._place = None if before.place is None else Growing(before.place)
        self._vectors = None if before.vectors is None else Growing(before.vectors)
        more = np.arange(len(self.vocabulary), before.words, dtype=np.int32)
        if len(more):
            self.vocabulary.add(self.read(more))

    def _word(self, text: int, messages: Sequence[str]) -> str:
        if text < 0:
            raise ValueError(f"{text} is the id of no text")
        if text < len(messages):
            return messages[text]
        beyond = text - len(messages)
        return self._names[beyond] if beyond < len(self._names) else self._written[beyond - len(self._names)]

    # ------------------------------------------------------------------------------------------------ meaning

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Words of the messages; once a written text or a name is an example, of all texts up to then."""
        return vocabulary_of(self._messages)

    @property
    def grown(self) -> bool:
        """Has a text that is no message become an example?"""
        return self._vectors is not None

    def know(self, text: I32) -> None:
        """Have vectors and words of texts `[n]`, which become examples; what has none yet is embedded in one call.

        Raises UsageError for an embedder whose vectors are no pure function of a text, and where it fails.
        """
        if not (beyond := text >= self.n_messages).any():
            return
        if self._place is None:
            self._place = Growing(np.zeros(0, np.int32))
        known = len(self._place.rows)
        self._place.add(np.full(len(self) - self.n_messages - known, -1, np.int32))
        place = np.unique(text[beyond]) - self.n_messages
        place = place[self._place.rows[place] < 0]
        if not len(place):
            return
        vectors = self._embedded(self.read(place + self.n_messages))
        if self._vectors is None:
            self._vectors = Growing(vectors[:0])
        self._place.rows[place] = np.arange(len(place)) + len(self._vectors.rows)
        self._vectors.add(vectors)
        self.vocabulary.add(self.read(np.arange(len(self.vocabulary), len(self), dtype=np.int32)))

    def embed(self, texts: Sequence[str]) -> I16:
        """Vectors of any texts, int16 `[n, D]`.

        Raises UsageError for an embedder that has none of a text.
        """
        ids = self.add(texts)
        self.know(ids)
        return self.vectors(ids)

    def vectors(self, text: I32) -> I16:
        """int16 `[..., D]` of messages and of texts that became examples."""
        if self._embedding is None:
            raise UsageError("similarities of these messages were computed elsewhere; there are no vectors here")
        first, n = self._embedding.messages(), self.n_messages
        if self._vectors is None or self._place is None:
            return first[text]
        vectors, beyond = first[np.where(text < n, text, 0)], text >= n
        vectors[beyond] = self._vectors.rows[self._place.rows[text[beyond] - n]]
        return vectors

    def _embedded(self, texts: Sequence[str]) -> I16:
        if self._embedding is None:
            raise UsageError(f"no embedder for a text written in a run: {texts[0]!r}; take a curator that writes none")
        embedder = self._embedding.embedder
        if not is_pure(embedder):
            raise UsageError(
                f"{type(embedder).__module__}.{type(embedder).__qualname__} does not declare that a text's vector is "
                "the same bits whatever it is embedded with (`pure`), and this run writes texts as it goes "
                f"({texts[0]!r}); take embedder=hashing or embedder=minilm, or a curator that writes none"
            )
        try:
            vectors = embedder.embed(texts)
        except UsageError as error:
            raise UsageError(f"no vectors for texts that this run writes as it goes: {error}") from error
        check(vectors, len(texts))
        return vectors


def _hashes(texts: Iterable[str]) -> U64:
    return np.fromiter((text_hash(text) for text in texts), np.uint64)


def _checked(texts: Sequence[str]) -> Sequence[str]:
    for text in texts:
        try:
            text.encode()
        except (AttributeError, UnicodeEncodeError) as error:
            raise UsageError(f"{text!r} was written as a text; valid is a str that UTF-8 can encode") from error
    return texts
