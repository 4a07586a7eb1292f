"""Corpora by name, and several as one: what each says stays as it is, and what two say differently is refused."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skg_bench.app.api import run as simulate
from skg_bench.core.errors import UsageError
from skg_bench.simulator.answers.corpora_by_name import corpus_of, corpus_parts
from skg_bench.simulator.answers.corpus import (
    ACT,
    ANSWER,
    BUILT_IN,
    LOOK_UP,
    SLOT,
    STABLE,
    STALE,
    Corpus,
    load_corpus,
)
from tests.simulator.answers.test_bad_corpora import TEA, WEATHER, write
from tests.simulator.users import assistant

COFFEE = TEA | {"intent": "coffee", "wordings": ["how long does coffee brew", "coffee time"], "hours": {"6-8": 9}}
RAIN = WEATHER | {"intent": "rain", "follows": ["coffee"], "wordings": ["will {city} be wet", "umbrella in {city}"]}


@pytest.fixture
def two(tmp_path: Path) -> list[str]:
    """Two corpora of two intents each, in the second one of which slots follow a plain one."""
    return [
        write(tmp_path / "one", TEA, WEATHER),
        write(tmp_path / "two", COFFEE, RAIN, one_offs="a button from 1911\n"),
    ]


def said(corpus: Corpus, type_: str) -> list[str]:
    """Wordings of a request type."""
    t = corpus.types.index(type_)
    return [corpus.messages[text] for text in corpus.wordings[t, : corpus.n_wordings[t]]]


def test_the_built_in_corpus_is_the_same_by_each_of_its_names() -> None:
    assert corpus_of(None) is corpus_of("builtin") is corpus_of(["builtin"]) is load_corpus()
    events = [assistant(corpus=name).population(0, np.arange(3, dtype=np.int32), 2) for name in (None, ["builtin"])]
    assert np.array_equal(events[0].text, events[1].text)


def test_several_corpora_say_together_what_each_says(two: list[str]) -> None:
    whole, parts = corpus_of(two), [load_corpus(folder) for folder in two]
    assert whole.types == (*parts[0].types, *parts[1].types)
    assert whole.intents == ("brew_tea", "weather", "coffee", "rain")
    for part in parts:
        for t, type_ in enumerate(part.types):
            at, i = whole.types.index(type_), part.intent[t]
            assert said(whole, type_) == said(part, type_)
            assert whole.answers[at] == part.answers[t]
            j = whole.intent[at]
            assert whole.intents[j] == part.intents[i]
            for mine, theirs in zip(_by_intent(part), _by_intent(whole), strict=True):
                assert np.array_equal(mine[i], theirs[j])
    assert [whole.messages[text] for text in whole.one_offs] == ["a penny with a missing date", "a button from 1911"]
    assert whole.one_offs.tolist() == [*range(len(whole.messages) - 2, len(whole.messages))]
    assert len(set(whole.messages)) == len(whole.messages)
    assert np.argwhere(whole.follows).tolist() == [[1, 0], [3, 2]]
    assert whole.digest != corpus_of(two[::-1]).digest
    assert whole.left_out == {}


def _by_intent(corpus: Corpus) -> list[np.ndarray]:
    return [corpus.kind, corpus.effect, corpus.ttl, corpus.hour_weight, corpus.day_weight]


def test_an_intent_after_a_hyphen_is_left_out_with_its_wordings(two: list[str]) -> None:
    whole = corpus_of([f"{two[0]}-brew_tea", two[1]])
    assert whole.intents == ("weather", "coffee", "rain")
    assert whole.types[0] == "weather|Paris"
    assert said(whole, "weather|Paris") == said(load_corpus(two[0]), "weather|Paris")
    assert "tea time" not in whole.messages
    assert np.argwhere(whole.follows).tolist() == [[2, 1]]
    assert whole.digest != corpus_of(two).digest
    [alone] = corpus_parts([f"{two[0]}-weather"])
    assert alone.without == ("weather",)
    assert corpus_of([f"{two[0]}-weather"]).intents == corpus_of(f"{two[0]}-weather").intents == ("brew_tea",)


def test_a_message_that_two_corpora_have_stays_with_the_first_and_is_counted(tmp_path: Path) -> None:
    names = [
        write(tmp_path / "one", TEA),
        write(tmp_path / "two", COFFEE | {"wordings": ["tea time", "coffee?"]}, one_offs="tea time!\na penny\n"),
        write(tmp_path / "three", RAIN | {"follows": []}, one_offs="a penny\n"),
    ]
    whole = corpus_of(names)
    assert said(whole, "brew_tea") == TEA["wordings"]
    assert said(whole, "coffee") == ["coffee?"]
    assert whole.left_out == {
        "a message that an earlier corpus has": {"rows": 2, "first": [f"1 of {names[1]}", f"5 of {names[2]}"]}
    }
    # what is left out of the first is no reason to leave it out of the second
    other = write(tmp_path / "four", WEATHER | {"follows": []}, one_offs="one more\n")
    both = corpus_of([f"{write(tmp_path / 'five', TEA, RAIN | {'follows': []})}-brew_tea", names[1], other])
    assert said(both, "coffee") == ["tea time", "coffee?"]


BAD: list[tuple[Callable[[str, str], Any], str]] = [
    (
        lambda a, b: [a, b, "nowhere"],
        "nowhere is no corpus: it needs intents/.*; names are builtin, builtin_120, clinc150",
    ),
    (lambda a, b: "nowhere", "nowhere is no corpus: it needs intents/.*; names are builtin, builtin_120, clinc150"),
    (lambda a, b: [a, a], "names '.*one' twice; name each corpus once"),
    (lambda a, b: [a, f"{a}-weather"], "names '.*one' twice"),
    (lambda a, b: [], r"=\[\] must name corpora by texts; valid are builtin, builtin_120, clinc150, and folders"),
    (lambda a, b: [a, 42], r", 42\] must name corpora by texts"),
    (lambda a, b: [""], r"\[''\] must name corpora by texts"),
    (lambda a, b: [[a]], "must name corpora by texts"),
    (lambda a, b: [a, None], "must name corpora by texts"),
    (lambda a, b: [f"{a}-"], "leaves out '', and .*one has no such intent"),
    (lambda a, b: [f"{a}-snow"], "leaves out 'snow', and .*one has no such intent; it has brew_tea, weather"),
    (lambda a, b: [f"{a}-weather-brew_tea"], "leaves out all intents of .*one; leave out the corpus"),
]


@pytest.mark.parametrize(("names", "says"), BAD, ids=[says for _, says in BAD])
def test_names_that_name_nothing_are_refused(names: Callable[[str, str], Any], says: str, two: list[str]) -> None:
    with pytest.raises(UsageError, match=says):
        corpus_of(names(*two))


def test_one_name_for_two_intents_is_refused_with_row_and_a_name_that_is_valid(tmp_path: Path) -> None:
    names = [
        write(tmp_path / "one", TEA, WEATHER, RAIN | {"follows": []}),
        write(tmp_path / "two", COFFEE, TEA | {"wordings": ["cuppa"]}, RAIN | {"wordings": ["wet in {city}"]}),
    ]
    with pytest.raises(UsageError, match=r"one and .*two both have the intent 'brew_tea' \(row 2 of .*two\)") as error:
        corpus_of(names)
    valid = str(error.value).rpartition(" ")[2]
    assert valid == f"{names[1]}-brew_tea-rain"
    assert corpus_of([names[0], valid]).intents == ("brew_tea", "weather", "rain", "coffee")


def test_a_corpus_whose_intents_another_has_all_is_refused_and_a_name_too_long_for_a_folder_too() -> None:
    with pytest.raises(UsageError, match="builtin has all intents of builtin_120; leave builtin_120 out"):
        corpus_of(["builtin", "builtin_120"])
    with pytest.raises(UsageError, match="leaves out 'x', and builtin_120 has no such intent"):
        corpus_of(["builtin_120-" + "-".join("x" * 400)])


def test_a_request_without_a_wording_of_its_own_is_refused(tmp_path: Path) -> None:
    names = [write(tmp_path / "one", TEA), write(tmp_path / "two", COFFEE | {"wordings": ["tea time"]})]
    with pytest.raises(UsageError, match="two: earlier corpora have all wordings of 'coffee'; leave out its intent"):
        corpus_of(names)


def test_users_say_the_messages_of_all_corpora(two: list[str], tmp_path: Path) -> None:
    names = f"simulator.corpus=[{','.join(two)}]"
    run = simulate([names, "embedder=hashing", "users=4", "weeks=2", "workers=1", f"out={tmp_path / 'run'}"])
    assert run.manifest["data"]["simulator"] == corpus_of(two).digest
    with pytest.raises(UsageError, match="texts have no vector in"):
        simulate([names, "users=4", "weeks=2", "workers=1", f"out={tmp_path / 'other'}"])


def test_the_built_in_corpus_is_that_of_120_intents_and_180_further_ones() -> None:
    whole, first, more = corpus_of("builtin"), corpus_of("builtin_120"), load_corpus(BUILT_IN[1])
    joined = corpus_of(["builtin_120", str(BUILT_IN[1])])
    for each in fields(Corpus):
        name = each.name
        if name not in ("digest", "source"):
            assert np.array_equal(getattr(whole, name), getattr(joined, name)), name
    assert len(whole.intents) == len(first.intents) + len(more.intents) == 300
    assert joined.left_out == {}
    assert more.n_wordings.min() >= 12
    assert {*more.kind.tolist()} == {STABLE, SLOT, STALE}
    assert {*more.effect.tolist()} == {ANSWER, LOOK_UP, ACT}


def test_clinc150_comes_beside_the_built_in_corpus(published: Callable[[str], Path]) -> None:
    published("clinc150")
    with pytest.raises(UsageError, match="clinc150-exchange_rate-plug_type"):
        corpus_of(["builtin", "clinc150"])
    whole = corpus_of(["builtin", "clinc150-exchange_rate-plug_type"])
    assert len(whole.intents) == 300 + 148
    assert len(set(whole.messages)) == len(whole.messages)
    assert whole.left_out["a message that an earlier corpus has"]["rows"] == 4
