"""Texts are alike by the words that they share, in any company."""

import numpy as np

from skg_bench.skillbook.word_cosines import WordCosines

TABLE = ("wait until tomorrow", "show the hours of work", "wait for the work to end")


def test_a_text_is_most_like_itself_and_more_like_one_that_shares_rare_words() -> None:
    cosines = WordCosines(TABLE)
    whole = cosines.of(TABLE)
    assert (whole.argmax(axis=1) == [0, 1, 2]).all()
    assert np.abs(np.diag(whole) - 1).max() < 0.001
    assert np.array_equal(whole, whole.T)
    rare, common = cosines.of(["tomorrow", "wait"])[:, 0]
    assert rare > common > 0


def test_endings_and_capitals_do_not_count() -> None:
    cosines = WordCosines(TABLE)
    assert np.array_equal(cosines.of(["Waiting, WORKED"]), cosines.of(["wait work"]))


def test_a_text_without_a_known_word_is_like_none_of_the_table() -> None:
    assert not WordCosines(TABLE).of(["", "蝶", "butterfly"]).any()
    assert WordCosines(TABLE).of([]).shape == (0, 3)


def test_a_cosine_is_the_same_bits_in_any_company_and_on_the_grid() -> None:
    rng = np.random.default_rng(0)
    words = [f"w{i}x" for i in range(300)]
    texts = [" ".join(rng.choice(words, 40)) for _ in range(240)]
    cosines = WordCosines(texts)
    whole = cosines.of(texts)
    assert (whole * 65_536 % 1 == 0).all()
    for some in (range(0, 240, 7), [3], range(239, -1, -1)):
        assert np.array_equal(cosines.of([texts[i] for i in some]), whole[list(some)])
