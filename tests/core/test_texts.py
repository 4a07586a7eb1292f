"""Texts are content: the same words have the same id, hash and vector, whenever they were written."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I16, I32
from skg_bench.core.growing import Growing
from skg_bench.core.text import text_hash
from skg_bench.core.texts import Embedding, Texts
from skg_bench.core.vocabulary import vocabulary_of
from skg_bench.embedder.hashing import Hashing

MESSAGES = ["turn on the light", "play jazz", "what is my balance"]
NAMES = ["light", "play jazz", "light", "unnamed"]
HASHING = Hashing(64, 0)


class Counting:
    """Hashed vectors, and a record of the texts of each call."""

    digest = "counting"

    def __init__(self, pure: bool = True) -> None:
        self.pure, self.calls = pure, list[list[str]]()

    def embed(self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None) -> I16:
        self.calls.append(list(texts))
        return HASHING.embed(texts)


def ids(*numbers: int) -> I32:
    return np.array(numbers, np.int32)


def texts(embedder: Any = HASHING, **more: Any) -> Texts:
    vectors = HASHING.embed(MESSAGES)
    return Texts(MESSAGES, NAMES, Embedding(lambda: vectors, embedder), **more)


def test_known_words_have_the_id_that_they_have_and_others_the_next() -> None:
    some = texts()
    assert some.add(["note", "play jazz", "light", "note", "other"]).tolist() == [7, 1, 3, 7, 8]
    assert some.add(["other", "unnamed", "third"]).tolist() == [8, 6, 9]
    assert some.add([]).tolist() == []
    assert (len(some), some.names, some.n_messages) == (10, range(3, 7), 3)
    assert some.read(ids(9, 0, 5, 7)) == ["third", "turn on the light", "light", "note"]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(st.sampled_from([*"abcdefgh", *MESSAGES, *NAMES]), max_size=9), max_size=9))
def test_ids_and_words_are_one_to_one_and_hashes_are_of_the_words(batches: list[list[str]]) -> None:
    some = texts()
    first = len(some)
    for batch in batches:
        assert some.read(some.add(batch)) == batch
    written = some.read(np.arange(first, len(some), dtype=np.int32))
    assert len(set(written)) == len(written)
    assert not set(written) & {*MESSAGES, *NAMES}
    assert some.hash.tolist() == [text_hash(word) for word in (*MESSAGES, *NAMES, *written)]


def test_where_a_log_is_redacted_what_is_written_from_it_is_too() -> None:
    some = texts(shows=lambda words: [f"<{len(word)}>" for word in words])
    note = some.add(["note: play jazz", "play jazz"])
    assert some.shown(np.append(note, ids(3))) == ["<15>", "<9>", "light"]
    assert some.read(note) == ["note: play jazz", "play jazz"]
    assert some.hash[note].tolist() == [text_hash("<15>"), text_hash("<9>")]


@pytest.mark.parametrize("wrong", ["\ud800", b"bytes", None])
def test_what_is_no_text_is_refused_and_nothing_is_added(wrong: Any) -> None:
    some = texts()
    with pytest.raises(UsageError, match="was written as a text; valid is a str that UTF-8 can encode"):
        some.add(["fine", wrong])
    assert (len(some), len(some.hash)) == (7, 7)
    assert some.add(["fine"]).tolist() == [7]


def test_the_id_of_no_text_has_no_words() -> None:
    with pytest.raises(ValueError, match="-1 is the id of no text"):
        texts().read(ids(-1))


def test_what_becomes_an_example_is_embedded_once_and_in_one_call() -> None:
    counting = Counting()
    some = texts(counting)
    note = some.add(["first", "second", "a name", "third"])
    some.know(ids(0, 1, 2))
    assert (counting.calls, some.grown) == ([], False)
    some.know(np.append(note[:2], ids(1)))
    some.know(np.append(note[1:2], note[3:]))
    some.know(ids(3))  # the world's name, as an example
    assert counting.calls == [["first", "second"], ["third"], ["light"]]
    assert some.grown
    every = np.concatenate([note[[3, 0, 1]], ids(2, 3, 0)]).reshape(2, 3)
    words = ["third", "first", "second", MESSAGES[2], "light", MESSAGES[0]]
    assert np.array_equal(some.vectors(every), HASHING.embed(words).reshape(2, 3, 64))


def test_examples_have_words_as_messages_have() -> None:
    some = texts()
    note = some.add(["play the new jazz", ""])
    some.know(note)
    whole = vocabulary_of([*MESSAGES, *NAMES, "play the new jazz", ""])
    for name in ("words", "start", "term", "size"):
        assert np.array_equal(getattr(some.vocabulary, name), getattr(whole, name)), name


def test_an_embedder_that_is_not_pure_is_refused_when_a_written_text_needs_a_vector() -> None:
    some = texts(Counting(pure=False))
    note = some.add(["note"])
    with pytest.raises(UsageError, match=r"Counting does not declare .*\(`pure`\).*'note'.*take embedder=hashing"):
        some.know(note)
    silent: Any = Counting()
    del silent.pure
    with pytest.raises(UsageError, match=r"does not declare .*\(`pure`\)"):
        texts(silent).know(note * 0 + 3)


def test_where_nothing_can_be_embedded_that_is_said() -> None:
    some = Texts(MESSAGES, NAMES, None)
    some.know(ids(0))
    with pytest.raises(UsageError, match="no embedder for a text written in a run: 'note'"):
        some.know(some.add(["note"]))


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 5), max_size=12))
def test_an_array_grows_and_what_was_handed_out_stays(sizes: list[int]) -> None:
    growing, whole = Growing(np.zeros((2, 3))), np.zeros((2, 3))
    views: list[tuple[np.ndarray, np.ndarray]] = []
    for i, n in enumerate(sizes):
        more = np.full((n, 3), i + 1.0)
        growing.add(more)
        whole = np.concatenate([whole, more])
        views.append((growing.rows, whole))
        assert all(np.array_equal(view, copy) for view, copy in views)


def test_a_written_text_is_no_message_that_was_left_out_when_messages_were_embedded() -> None:
    class Only(Hashing):
        unsaid = frozenset({"b"})

    embedder = Only(64, 0)
    vectors = embedder.embed(["a", "c", "c"])  # the row of "b" holds another vector
    texts = Texts(["a", "b", "c"], ["name"], Embedding(lambda: vectors, embedder))
    ids = texts.add(["a", "b", "b"])
    assert ids.tolist() == [0, 4, 4]
    texts.know(ids)
    assert texts.vectors(ids).tolist() == embedder.embed(["a", "b", "b"]).tolist()
