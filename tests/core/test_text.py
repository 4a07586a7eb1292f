"""Text for terminals."""

from hypothesis import given
from hypothesis import strategies as st

from skg_bench.core.spoken import ANSWER_FRAME, answer_words
from skg_bench.core.text import plural, text_table, word_count, wrapped

LINES = st.lists(st.text("ab-/. ", max_size=60), max_size=3).map("\n".join)


@given(LINES, st.integers(5, 30))
def test_lines_are_broken_between_words_and_a_longer_word_stays_whole(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert lines.split() == text.split()
    for line in lines.split("\n"):
        assert len(line) <= width or len(line.split()) <= 1


def test_words_are_parted_by_white_space_and_an_answer_has_four_more_than_its_message() -> None:
    spelled = {"": 0, "one": 1, " one  two\tthree\nfour\u00a0five ": 5}
    assert {text: word_count(text) for text in spelled} == spelled
    for message in ("one", "do you know it?", 'say "it\'s one"'):
        assert word_count(answer_words(message, 7)) == word_count(message) + ANSWER_FRAME


def test_one_is_no_plural() -> None:
    assert [plural(n, "such row") for n in (0, 1, 2, 1000)] == [
        "0 such rows",
        "1 such row",
        "2 such rows",
        "1,000 such rows",
    ]


def test_what_is_broken_stays_indented() -> None:
    assert wrapped("one\n  two three four", 10) == "one\n  two\n  three\n  four"


def test_columns_of_a_table_stand_below_one_another() -> None:
    assert text_table(["arm", "p"], ["a", "0.1"], ["longer", "-"]) == "arm     p\na       0.1\nlonger  -"
