"""The built-in corpus is large enough, is worded as people word things, and is neither trivial nor noise."""

from collections import Counter

import numpy as np

from skg_bench.core.grid import F64, I32
from skg_bench.embedder.precomputed import Precomputed
from skg_bench.simulator.answers import corpus as corpora

CORPUS = corpora.load_corpus()
FIRST = corpora.load_corpus(corpora.BUILT_IN[0])


def wordings(intent: int) -> list[str]:
    """An intent's wordings, with its first slot value."""
    row = CORPUS.wordings[np.flatnonzero(CORPUS.intent == intent)[0]]
    return [CORPUS.messages[text].lower() for text in row[row >= 0]]


def neighbour_accuracy() -> F64:
    """`[N]` 1 where the nearest message, this wording with any slot value left out, has the intent. NaN: a one-off, and
    six of seven others, as each is compared with all.
    """
    intent: I32 = np.full(len(CORPUS.messages), -1, np.int32)
    wording = intent.copy()
    for type_, row in enumerate(CORPUS.wordings):
        intent[row[row >= 0]] = CORPUS.intent[type_]
        wording[row[row >= 0]] = np.arange((row >= 0).sum())
    which = intent * 100 + wording
    typed = np.flatnonzero(intent >= 0)
    vectors = Precomputed(None).embed([CORPUS.messages[text] for text in typed]).astype(np.float32)
    right = np.full(len(CORPUS.messages), np.nan)
    for first in range(0, len(typed), 7 * 1024):
        some = slice(first, first + 7 * 1024, 7)
        dots = vectors[some] @ vectors.T
        dots[which[typed[some]][:, None] == which[typed]] = -np.inf
        right[typed[some]] = intent[typed[dots.argmax(1)]] == intent[typed[some]]
    return right


def test_there_are_enough_intents_types_wordings_and_one_offs() -> None:
    assert len(CORPUS.intents) == 300
    assert len(CORPUS.types) >= 1_500
    slotted = sum((CORPUS.intent == i).sum() > 1 for i in range(len(CORPUS.intents)))
    assert 0.4 <= slotted / len(CORPUS.intents) <= 0.6
    assert CORPUS.n_wordings.min() >= 12
    assert len(CORPUS.one_offs) == 1_500
    assert set(CORPUS.kind.tolist()) == {corpora.STABLE, corpora.SLOT, corpora.STALE}
    assert CORPUS.follows.any(1).sum() >= 30
    assert (CORPUS.hour_weight != 1).any(1).sum() >= 80
    assert (CORPUS.day_weight < 1).any(1).sum() >= 20
    assert all(CORPUS.answers)


def test_no_message_type_or_intent_occurs_twice() -> None:
    assert len({m.casefold() for m in CORPUS.messages}) > 0.999 * len(CORPUS.messages)
    for names in (CORPUS.messages, CORPUS.types, CORPUS.intents):
        assert len(set(names)) == len(names)


def test_no_slot_is_left_unfilled() -> None:
    assert not [text for text in (*CORPUS.messages, *CORPUS.answers) if "{" in text or "}" in text]


def test_wordings_of_an_intent_open_and_end_differently() -> None:
    for i, name in enumerate(FIRST.intents):
        words = [text.split() for text in wordings(i)]
        assert max(Counter(tuple(w[:2]) for w in words).values()) <= 2, name
        assert len({w[0] for w in words}) > len(words) / 2, name
        assert len({len(w) for w in words}) >= 6, name


def test_the_nearest_message_has_the_right_intent_often_but_not_always() -> None:
    right = neighbour_accuracy()
    intent = np.full(len(right), -1)
    for type_, row in enumerate(CORPUS.wordings):
        intent[row[row >= 0]] = CORPUS.intent[type_]
    by_intent = [np.nanmean(right[intent == i]) for i in range(len(CORPUS.intents))]
    assert 0.75 < np.mean(by_intent) < 0.95
    assert 0.75 < np.nanmean(right) < 0.95


def test_stale_intents_alone_have_a_time_to_live() -> None:
    acts = CORPUS.effect == corpora.ACT
    assert ((CORPUS.ttl < 366 * 86_400) == ((CORPUS.kind == corpora.STALE) | acts)).all()
    assert (CORPUS.ttl[acts] == 0).all()
    assert [np.bincount(each.effect).tolist() for each in (FIRST, CORPUS)] == [[63, 46, 11], [158, 108, 34]]
    assert CORPUS.ttl[~acts].min() >= 60


def test_another_reading_of_the_same_files_is_the_same_corpus() -> None:
    again = corpora.load_corpus(f"{corpora.BUILT_IN[0]}/")
    assert again.digest == FIRST.digest == "b53159e2073797732e9a93ba60551adc"  # that of all runs before there were 300
    assert again.messages == FIRST.messages
    assert CORPUS.intents[:120] == FIRST.intents
