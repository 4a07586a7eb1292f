"""A corpus of one's own that is wrong is refused with the file, the intent and what is valid."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from skg_bench.core.errors import UsageError
from skg_bench.simulator.answers.corpus import load_corpus

TEA = {
    "intent": "brew_tea", "kind": "stable", "hours": {"7-9": 4}, "weekdays": "any", "follows": [],
    "answer": "Four minutes.", "wordings": ["how long does tea steep", "tea time"],
}  # fmt: skip
WEATHER = {
    "intent": "weather", "kind": "stale", "ttl_hours": 3, "hours": {}, "weekdays": "workdays", "follows": ["brew_tea"],
    "slot": {"city": ["Paris", "Osaka"]}, "answer": "Sun in {city}.", "wordings": ["rain in {city}?", "{City} {city}"],
}  # fmt: skip


def write(folder: Path, *intents: Any, one_offs: str = "a penny with a missing date\n") -> str:
    """A corpus in its format."""
    (folder / "intents").mkdir(parents=True, exist_ok=True)
    (folder / "intents" / "all.yaml").write_text(yaml.safe_dump({"intents": list(intents)}, sort_keys=False))
    (folder / "one_offs.txt").write_text(one_offs)
    return str(folder)


def test_a_small_corpus_is_read_as_written(tmp_path: Path) -> None:
    corpus = load_corpus(write(tmp_path, TEA, WEATHER))
    assert corpus.types == ("brew_tea", "weather|Paris", "weather|Osaka")
    assert corpus.messages == (
        "how long does tea steep", "tea time", "rain in paris?", "{City} Paris", "rain in osaka?", "{City} Osaka",
        "a penny with a missing date",
    )  # fmt: skip
    assert corpus.answers == ("Four minutes.", "Sun in Paris.", "Sun in Osaka.")
    assert corpus.ttl.tolist() == [np.iinfo(np.int64).max, 3 * 3600]
    assert corpus.hour_weight[0].tolist() == [1.0] * 7 + [4.0] * 2 + [1.0] * 15
    assert corpus.follows.tolist() == [[False, False], [True, False]]
    assert corpus.one_offs.tolist() == [6]


def test_an_intent_that_is_asked_more_often_weighs_more_at_every_hour(tmp_path: Path) -> None:
    plain, often = (load_corpus(write(tmp_path / str(n), TEA | {"asked": n}, WEATHER)) for n in (1, 3))
    assert plain.hour_weight.tolist() == load_corpus(write(tmp_path / "none", TEA, WEATHER)).hour_weight.tolist()
    assert often.hour_weight[0].tolist() == [3.0] * 7 + [12.0] * 2 + [3.0] * 15
    assert often.hour_weight[1].tolist() == plain.hour_weight[1].tolist()


def test_the_digest_sees_every_change(tmp_path: Path) -> None:
    digests = {load_corpus(write(tmp_path, TEA, WEATHER)).digest}
    for i, (field, value) in enumerate(
        [
            ("answer", "Five."),
            ("wordings", ["tea time"]),
            ("hours", {"7-9": 5}),
            ("weekdays", "weekend"),
            ("intent", "t"),
            ("effect", "act"),
        ]
    ):
        (tmp_path / str(i)).mkdir()
        digests.add(load_corpus(write(tmp_path / str(i), TEA | {field: value})).digest)
    assert len(digests) == 7


CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"wordings": []}, "brew_tea: it has no wordings"),
    ({"wordings": "tea"}, "brew_tea: it has no wordings"),
    ({"wordings": ["tea", 12]}, "quote numbers"),
    ({"kind": "fresh"}, "kind='fresh', valid are stable, slot, stale"),
    ({"kind": ["stable"]}, "valid are stable, slot, stale"),
    ({"effect": "lookup"}, "effect='lookup', valid are answer, look-up, act"),
    ({"kind": "slot"}, "kind slot needs a `slot`"),
    ({"kind": "stale"}, "`ttl_hours` belongs to kind stale"),
    ({"ttl_hours": 3}, "`ttl_hours` belongs to kind stale"),
    ({"kind": "stale", "ttl_hours": 0}, "ttl_hours=0, must be a number above 0"),
    ({"kind": "stale", "ttl_hours": "soon"}, "ttl_hours='soon'"),
    ({"kind": "stale", "ttl_hours": float("inf")}, "ttl_hours is inf, and a finite number is needed"),
    ({"asked": 0}, "asked=0, must be a number above 0, at most 1,000,000; 1 is as often as others"),
    ({"asked": "often"}, "asked='often', must be a number above 0"),
    ({"weekdays": "monday"}, "weekdays='monday', valid are any, workdays, weekend"),
    ({"weekdays": ["any"]}, "valid are any, workdays, weekend"),
    ({"hours": {"7": 2}}, "hours: 7: 2; valid is FROM-TO"),
    ({"hours": {"9-7": 2}}, "hours: 9-7: 2"),
    ({"hours": {"20-25": 2}}, "hours: 20-25: 2"),
    ({"hours": {"7-9": 0}}, "hours: 7-9: 0"),
    ({"hours": {"7-9": -1}}, "hours: 7-9: -1"),
    ({"hours": {"7-9": "often"}}, "hours: 7-9: 'often'"),
    ({"hours": "7-9"}, "hours: 7-9: None"),
    ({"follows": "weather"}, "follows='weather' must be a list"),
    ({"follows": ["wether"]}, "brew_tea: follows unknown intent 'wether'"),
    ({"answer": 4}, "must be texts; quote them"),
    ({"intent": 4}, "must be texts; quote them"),
    ({"slots": {}}, "unknown fields .'slots'."),
    ({"slot": {"a": ["b"], "c": ["d"]}}, "`slot` takes one name with a non-empty list"),
    ({"slot": {"a": []}}, "`slot` takes one name with a non-empty list"),
    ({"slot": ["a"]}, "`slot` takes one name"),
    ({"slot": {"a": [1]}}, "quote numbers"),
    ({"slot": {"cup": ["mug"]}}, "wording 'how long does tea steep' lacks the slot .cup."),
    (
        {"wordings": ["tea", "tea"]},
        "1 messages occur twice, first 'tea', of brew_tea and of brew_tea; every message must be",
    ),
    (
        {"wordings": ["a penny with a missing date"]},
        "occur twice, first 'a penny with a missing date', of brew_tea and of one-offs",
    ),
]


@pytest.mark.parametrize(("change", "says"), CHANGES, ids=[says for _, says in CHANGES])
def test_what_is_wrong_with_an_intent_is_said(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        load_corpus(write(tmp_path, TEA | change))


@pytest.mark.parametrize("field", list(TEA))
def test_a_missing_field_is_named_with_file_and_intent(tmp_path: Path, field: str) -> None:
    with pytest.raises(UsageError, match=rf"all\.yaml: .*: field `{field}` is missing"):
        load_corpus(write(tmp_path, {k: v for k, v in TEA.items() if k != field}))


def _no_folder(folder: Path) -> None:
    for file in folder.rglob("*.yaml"):
        file.unlink()


FILES: list[tuple[Callable[[Path], object], str]] = [
    (_no_folder, "is no corpus: it needs intents/.*yaml, and one_offs.txt"),
    (lambda f: (f / "one_offs.txt").write_bytes(b"\xff\xfe"), "one_offs.txt is not UTF-8"),
    (lambda f: (f / "intents" / "all.yaml").write_bytes(b"\xff\xfe\xff"), "all.yaml is not"),
    (lambda f: (f / "intents" / "b.yaml").write_text("intents: [: {"), "b.yaml is not valid yaml"),
    (lambda f: (f / "intents" / "b.yaml").write_text("- brew"), "b.yaml has no list `intents`"),
    (lambda f: (f / "intents" / "b.yaml").write_text("intents: []"), "b.yaml has no list `intents`"),
    (lambda f: (f / "intents" / "b.yaml").write_text(""), "b.yaml has no list `intents`"),
    (lambda f: (f / "intents" / "b.yaml").write_text("intents: [brew]"), "'brew': each intent is a mapping"),
    (
        lambda f: (f / "intents" / "b.yaml").write_text(yaml.safe_dump({"intents": [TEA]})),
        r"b\.yaml: intent 1: 'brew_tea' is also the name of .*all\.yaml: intent 1; rename one of them",
    ),
]


@pytest.mark.parametrize(("damage", "says"), FILES, ids=[says for _, says in FILES])
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, damage: Callable[[Path], object], says: str) -> None:
    write(tmp_path, TEA)
    damage(tmp_path)
    with pytest.raises(UsageError, match=says):
        load_corpus(str(tmp_path))
