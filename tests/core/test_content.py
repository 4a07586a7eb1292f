"""What a skill says, as a value and as a text of the run."""

import json
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skg_bench.core.content import Content
from skg_bench.core.errors import UsageError
from skg_bench.core.text import text_hash
from skg_bench.core.texts import Texts

STEPS = Content("math", "long sums go wrong", "add in steps", ("sum", "steps"))
words = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1).filter(str.strip)
keyword = words.map(lambda word: "".join(word.lower().lower().split())).filter(lambda w: w and w == w.lower())
contents = st.builds(
    Content, words, words, st.none() | words, st.lists(keyword, unique=True, max_size=4).map(tuple)
)  # fmt: skip


@given(contents)
def test_the_canonical_text_of_a_content_says_all_of_it(content: Content) -> None:
    values = json.loads(content.canonical)
    assert Content(**values | {"keywords": tuple(values["keywords"])}) == content
    assert content.key == text_hash(content.canonical)
    assert list(json.loads(content.canonical)) == ["insight", "issue", "keywords", "section"]


@given(contents, contents)
def test_two_contents_have_one_key_only_if_they_are_the_same(one: Content, other: Content) -> None:
    assert (one.key == other.key) == (one == other)


def test_the_order_of_keywords_counts() -> None:
    assert Content("a", "b", None, ("c", "d")).key != Content("a", "b", None, ("d", "c")).key


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ((" ", "issue"), "section=' ', valid is a text that is not blank"),
        (("math", 7), "issue=7, valid is a text"),
        (("math", "issue", 7), "insight=7, valid is a text"),
        (("math", "issue", None, "sum"), "keywords='sum', valid is a list of words"),
        (("math", "issue", None, ("Sum",)), "keyword 'Sum': valid are words in lower case without blanks"),
        (("math", "issue", None, ("long sum",)), "keyword 'long sum': valid are words in lower case without blanks"),
        (("math", "issue", None, ("sum", "sum")), "has a word twice; name each once"),
        (("math", "a\ud800b"), r"holds the character U\+D800"),
        (("math", "a\x00b"), r"holds the character U\+0000"),
        (("m" * 2_000_000 + "\x07", "b"), r"\(2,000,003 characters|2,000,00[0-9] characters\)"),
    ],
)
def test_what_no_skill_can_say_is_refused_with_the_value(values: Sequence[object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Content(*values)  # type: ignore[arg-type]


def test_contents_are_texts_of_the_run_and_are_read_by_their_keys() -> None:
    texts = Texts(["a message"], ["a-name"], None)
    key = texts.contents.add(STEPS)
    assert texts.contents.add(STEPS) == key == STEPS.key
    assert len(texts) == 3
    assert texts.read(np.array([2], np.int32)) == [STEPS.canonical]
    assert texts.contents.of(np.array([0, key, key], np.uint64)) == [None, STEPS, STEPS]
    assert texts.contents.shown(np.array([key, 0], np.uint64)) == [STEPS, None]


def test_a_key_that_nobody_added_is_an_error() -> None:
    contents = Texts([], ["a-name"], None).contents
    for read in (contents.of, contents.shown, contents.check):
        with pytest.raises(ValueError, match="7 is the key of no content of this run"):
            read(np.array([7], np.uint64))


def test_logs_of_redacted_runs_show_each_field_redacted_and_hashes_are_of_what_they_show() -> None:
    contents = Texts([], ["a-name"], None, lambda texts: [f"<{len(text)}>" for text in texts]).contents
    key = np.array([contents.add(STEPS), 0], np.uint64)
    shown = Content("<4>", "<18>", "<12>", ("<3>", "<5>"))
    assert contents.of(key) == [STEPS, None]
    assert contents.shown(key) == [shown, None]
    assert contents.logged(key).tolist() == [shown.key, 0]
    clear = Texts([], ["a-name"], None).contents
    assert clear.logged(np.array([clear.add(STEPS), 0], np.uint64)).tolist() == [STEPS.key, 0]
