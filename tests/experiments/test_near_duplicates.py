"""Near-duplicates of corpora: pairs by vectors, and a list of corpora without them that is taken."""

from pathlib import Path

import numpy as np
import pytest

from experiments.routing_quality import near_duplicates
from experiments.routing_quality.near_duplicates import ALIKE, alike_pairs, analyse, sampled
from skg_bench.app.experiment_report import Table
from skg_bench.embedder.hashing import Hashing
from skg_bench.simulator.answers.corpora_by_name import corpus_of
from skg_bench.simulator.answers.corpus import load_corpus
from tests.simulator.answers.test_bad_corpora import TEA, WEATHER, write


def test_messages_as_near_to_another_intent_as_to_their_own_make_a_pair() -> None:
    near = np.array([[100, 0, 0], [99, 5, 0], [98, 9, 0], [97, 12, 0], [0, 0, 100], [0, 9, 100]], np.int16)
    [pair] = alike_pairs(near, np.array([0, 0, 1, 1, 2, 2], np.int32))
    assert (pair.one, pair.other) == (0, 1)
    unit = near / np.linalg.norm(near, axis=1, keepdims=True)
    assert pair.likeness == pytest.approx(float((unit[2] @ unit[1] + unit[3] @ unit[1]) / 2 / (unit[2] @ unit[3])))
    assert pair.likeness >= ALIKE


def test_an_intent_is_sampled_from_few_slot_values_and_its_neighbour_from_others() -> None:
    corpus = load_corpus()
    groups = sampled(corpus)
    assert [len(group) for group in groups] == [
        min(near_duplicates.MOST, int(corpus.n_wordings[corpus.intent == i].sum())) for i in range(len(groups))
    ]
    assert all(len(set(group)) == len(group) for group in groups)


def test_what_two_corpora_have_in_common_is_named_and_the_list_without_it_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(near_duplicates, "MiniLM", lambda: Hashing(384, 0))
    again = TEA | {"intent": "steep", "wordings": ["how long does a tea steep", "tea time now"]}
    other = TEA | {"intent": "moon", "wordings": ["is there a full moon", "full moon when"]}
    names = [
        write(tmp_path / "one", TEA, WEATHER),
        write(tmp_path / "two", again, other, WEATHER | {"follows": [], "wordings": ["{city} sky", "sky of {city}"]}),
    ]
    report = analyse(names)
    corpora, between = (part for part in report.parts if isinstance(part, Table) and part.title != "Within a corpus")
    assert [row[:2] for row in corpora.rows] == [(names[0], "2"), (names[1], "3")]
    assert ("brew_tea", "steep") in [(row[1], row[3]) for row in between.rows]
    [words] = [part for part in report.parts if isinstance(part, str)]
    assert "in two corpora: weather." in words
    listed = words.split("`simulator.corpus=[")[1].removesuffix("]`").split(",")
    kept = corpus_of(listed).intents
    assert "steep" not in kept
    assert {"brew_tea", "weather", "moon"} <= set(kept)
