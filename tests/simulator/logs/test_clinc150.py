"""CLINC150 as a corpus: what is dealt to slot values, what splits keep apart, and what is wrong with a file."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import yaml

from skg_bench.app.compose import compose
from skg_bench.core.errors import UsageError
from skg_bench.core.package import CONF, DATA
from skg_bench.simulator.answers.clinc150_file import Split
from skg_bench.simulator.answers.corpus import ACT, ANSWER, LOOK_UP, SLOT, STABLE, STALE
from skg_bench.simulator.answers.world import AssistantUsers
from skg_bench.simulator.logs.clinc150 import Clinc150

SAID: dict[str, Any] = {
    "train": [
        ["tell me a joke", "joke"], ["make me laugh", "joke"], ["is it raining", "rain"], ["rain in rome", "rain"],
        ["say hello in french", "translate"], ["what is dog in dutch", "translate"], ["bread in thai", "translate"],
    ],
    "oos_train": [["who invented the zip", "oos"], ["why are penguins black", "oos"]],
    "test": [["joke please", "joke"], ["umbrella today", "rain"], ["umbrella in oslo", "rain"],
             ["cat in polish", "translate"], ["thanks in czech", "translate"]],
    "oos_test": [["how deep is the sea", "oos"]],
}  # fmt: skip
TABLE: dict[str, Any] = {"stable": ["joke"], "slot": ["translate"], "stale": {"rain": 3}, "also_slot": ["rain"]}


def corpus(
    folder: Path,
    content: Any = SAID,
    table: Any = TABLE,
    split: Split = "train",
    values: int = 2,
    text: str | None = None,
) -> Clinc150:
    """These messages and labels, as files."""
    (folder / "said.json").write_text(text if text is not None else json.dumps(content), "utf-8")
    (folder / "table.yaml").write_text(yaml.safe_dump(table), "utf-8")
    return Clinc150(str(folder / "said.json"), str(folder / "table.yaml"), split, values)


@pytest.fixture
def data_full(published: Callable[[str], Path]) -> Path:
    """The published file."""
    return published("clinc150") / "data_full.json"


# ----------------------------------------------------------------------------------------------- what it is


def test_messages_of_a_slot_intent_are_dealt_to_values_and_those_of_others_are_one_request(tmp_path: Path) -> None:
    loaded = corpus(tmp_path).load()
    assert loaded.intents == ("joke", "rain", "translate")
    assert loaded.types == ("joke", "rain|1", "rain|2", "translate|1", "translate|2")
    assert loaded.n_wordings.tolist() == [2, 1, 1, 2, 1]
    assert loaded.kind.tolist() == [STABLE, STALE, SLOT]
    assert loaded.ttl.tolist() == [np.iinfo(np.int64).max, 3 * 3600, np.iinfo(np.int64).max]
    for type_, row in enumerate(loaded.wordings):
        wordings = {loaded.messages[i] for i in row[row >= 0]}
        assert wordings <= {text for text, name in SAID["train"] if name == loaded.intents[loaded.intent[type_]]}
    assert [loaded.messages[i] for i in loaded.one_offs] == ["who invented the zip", "why are penguins black"]
    assert sorted(loaded.messages) == sorted(text for name in ("train", "oos_train") for text, _ in SAID[name])


def test_with_one_value_all_messages_of_an_intent_ask_for_the_same(tmp_path: Path) -> None:
    assert corpus(tmp_path, values=1).load().types == ("joke", "rain|1", "translate|1")


def test_what_a_message_is_dealt_to_does_not_depend_on_the_order_of_the_file(tmp_path: Path) -> None:
    mixed = SAID | {"train": SAID["train"][::-1]}
    (tmp_path / "mixed").mkdir()
    plain, other = corpus(tmp_path).load(), corpus(tmp_path / "mixed", mixed).load()
    for t in (t for t, name in enumerate(plain.types) if "|" in name):
        texts = [{c.messages[i] for i in c.wordings[t] if i >= 0} for c in (plain, other)]
        assert texts[0] == texts[1]


def test_the_hash_sees_messages_values_labels_and_hours(tmp_path: Path) -> None:
    made = {
        corpus(tmp_path).load().digest,
        Clinc150(str(tmp_path / "said.json"), str(tmp_path / "table.yaml"), "train", 1).load().digest,
        Clinc150(str(tmp_path / "said.json"), str(tmp_path / "table.yaml"), "test", 2).load().digest,
    }
    for i, table in enumerate((TABLE | {"stale": {"rain": 4}}, TABLE | {"also_slot": []}, TABLE | {"stable": [], "slot":
                               ["translate", "joke"]})):  # fmt: skip
        (tmp_path / str(i)).mkdir()
        made.add(corpus(tmp_path / str(i), table=table).load().digest)
    assert len(made) == 6


def test_acts_are_no_answers_and_what_goes_stale_is_looked_up(tmp_path: Path) -> None:
    loaded = corpus(tmp_path, table=TABLE | {"acts": ["joke"]}).load()
    assert loaded.effect.tolist() == [ACT, LOOK_UP, ANSWER]
    assert loaded.ttl.tolist() == [0, 3 * 3600, np.iinfo(np.int64).max]
    (tmp_path / "without").mkdir()
    assert loaded.digest != corpus(tmp_path / "without").load().digest


def test_no_message_of_one_split_is_said_in_another(data_full: Path) -> None:
    splits = {split: set(Clinc150(str(data_full), None, split, 4).load().messages) for split in get_args(Split)}
    sizes = {split: len(messages) for split, messages in splits.items()}
    assert sizes == {"train": 15_100, "val": 3_100, "test": 5_500}
    document = json.loads(data_full.read_text("utf-8"))
    for split, messages in splits.items():
        assert messages == {text for part in (split, f"oos_{split}") for text, _ in document[part]}


def test_every_intent_of_the_published_file_has_one_label(data_full: Path) -> None:
    table = yaml.safe_load((DATA / "clinc150.yaml").read_text("utf-8"))
    labels = Counter([*table["stable"], *table["slot"], *table["stale"]])
    document = json.loads(data_full.read_text("utf-8"))
    assert set(labels) == {intent for _, intent in document["train"]}
    assert set(labels.values()) == {1}
    assert table["stale"]["weather"] < 24
    assert "translate" in table["slot"]
    assert "tell_joke" in table["stable"]


def test_the_table_holds_names_and_no_message(data_full: Path) -> None:
    text = (DATA / "clinc150.yaml").read_text("utf-8").lower()
    document = json.loads(data_full.read_text("utf-8"))
    long = [message for pairs in document.values() for message, _ in pairs if message.count(" ") >= 3]
    assert len(long) > 20_000
    assert not [message for message in long if message.lower() in text]


def test_a_user_says_each_wording_of_a_request_once_before_any_comes_again(data_full: Path) -> None:
    node = yaml.safe_load((CONF / "simulator" / "assistant.yaml").read_text("utf-8"))
    del node["_target_"]
    users = AssistantUsers(**node | {"corpus": Clinc150(str(data_full), None, "test", 4), "habit": 0.0})
    events = users.population(0, np.arange(24, dtype=np.int32), 4)
    loaded, types = users._corpus, set()
    for text, kind, used_up, n in zip(events.text, events.truth.type, events.truth.used_up, events.n, strict=True):
        for type_ in set(kind[:n].tolist()) - {-1}:
            texts = text[:n][kind[:n] == type_].tolist()
            assert set(texts) <= set(loaded.wordings[type_].tolist())
            fresh = texts[: loaded.n_wordings[type_]]
            assert len(set(fresh)) == len(fresh)
            assert used_up[:n][kind[:n] == type_].sum() == max(0, len(texts) - loaded.n_wordings[type_])
            types.add(type_)
    assert len(types) > 200


def test_it_differs_from_the_assistant_in_its_corpus_and_brings_an_embedder_along() -> None:
    root, plain = compose(["simulator=clinc150"]).root, compose([]).root
    assert {key for key in root if root[key] != plain[key]} == {"simulator", "embedder"}
    assert {key for key in root["simulator"] if root["simulator"][key] != plain["simulator"][key]} == {"corpus"}
    assert root["embedder"] == compose(["embedder=minilm"]).root["embedder"]
    assert compose(["simulator=clinc150", "embedder=corpus_minilm"]).root["embedder"] == plain["embedder"]


# ------------------------------------------------------------------------------------------ what can be wrong


DAMAGED: list[tuple[Callable[[str], str], str]] = [
    (lambda text: text[: len(text) // 2], "is no whole JSON"),
    (lambda text: "", "is no whole JSON"),
    (lambda text: "[]", "has no split 'train'"),
    (lambda text: json.dumps(SAID | {"oos_train": {}}), "has no split 'oos_train'"),
    (lambda text: json.dumps(SAID | {"train": [["a", "joke", "b"]]}), "has no split 'train', a list of .message"),
    (lambda text: json.dumps(SAID | {"train": [["a", 3]]}), "a list of .message, intent. pairs"),
    (lambda text: text.replace("make me laugh", "tell me a joke"), "1 messages occur twice, first 'tell me a joke'"),
    (lambda text: text.replace('laugh", "joke"', 'laugh", "fun"'), "intent 'fun' has no label in the table; add it"),
    (lambda text: text.replace('"rain"]', '"joke"]'), "intent 'rain' has no wordings in split train"),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "says"), DAMAGED, ids=[says for _, says in DAMAGED])
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, damage: Callable[[str], str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        corpus(tmp_path, text=damage(json.dumps(SAID))).load()


TABLES: list[tuple[Any, str]] = [
    (TABLE | {"fresh": ["joke"]}, "valid labels are exactly stable, slot, stale, also_slot"),
    ({k: v for k, v in TABLE.items() if k != "slot"}, "valid labels are exactly"),
    (["joke"], "valid labels are exactly"),
    (TABLE | {"stable": {"joke": 3}}, "stable must be a list of intents"),
    (TABLE | {"stale": ["rain"]}, "stale must be intents with hours"),
    (TABLE | {"stale": {"rain": 0}}, "stale: rain: 0 must be hours, above 0"),
    (TABLE | {"stale": {"rain": "soon"}}, "stale: rain: 'soon' must be hours"),
    (TABLE | {"slot": ["translate", "joke"]}, "'joke' has two labels"),
    (TABLE | {"stable": ["joke", True]}, "stable has True, which is no text; quote it"),
    (TABLE | {"also_slot": ["joke"]}, "also_slot has 'joke', which is not stale"),
    (TABLE | {"acts": ["riddle"]}, "acts has 'riddle', which has no other label"),
    (TABLE | {"stable": ["joke", "riddle"]}, "intent 'riddle' has no wordings in split train"),
]


@pytest.mark.parametrize(("table", "says"), TABLES, ids=[says for _, says in TABLES])
def test_what_is_wrong_with_a_table_is_said(tmp_path: Path, table: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        corpus(tmp_path, table=table).load()


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"simulator\.corpus\.file=.*nowhere\.json cannot be read"):
        Clinc150(str(tmp_path / "nowhere.json"), None, "train", 1).load()
    source = corpus(tmp_path)
    (tmp_path / "table.yaml").write_text("stable: [")
    with pytest.raises(UsageError, match=r"table\.yaml is not valid yaml"):
        source.load()


def test_a_torn_copy_of_the_published_file_is_refused_by_its_checksum(
    tmp_path: Path, data_full: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "datasets" / "clinc150" / "data_full.json"
    place.parent.mkdir(parents=True)
    place.write_bytes(data_full.read_bytes()[:-9])
    monkeypatch.setenv("SKG_BENCH_SHARED", str(tmp_path))
    with pytest.raises(UsageError, match=r"data_full\.json is not the data_full\.json of clinc150 that is known here"):
        Clinc150(None, None, "val", 3).load()


def test_more_values_than_messages_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"values=3, and intent 'rain' has 2 messages in split train; at most 2"):
        corpus(tmp_path, values=3).load()


@pytest.mark.parametrize(("change", "says"), [
    ({"split": "oos"}, r"simulator\.corpus\.split='oos', valid are train, val, test"),
    ({"values": 0}, r"simulator\.corpus\.values=0 must be at least 1"),
])  # fmt: skip
def test_a_parameter_that_makes_no_sense_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Clinc150(**{"file": None, "table": None, "split": "train", "values": 1} | change)


@pytest.mark.parametrize("corpus", [12, {"folder": "x"}])
def test_what_is_neither_a_folder_nor_a_source_is_no_corpus(corpus: Any) -> None:
    node = yaml.safe_load((CONF / "simulator" / "assistant.yaml").read_text("utf-8"))
    del node["_target_"]
    with pytest.raises(UsageError, match=r"simulator\.corpus=.* must be a folder or name, .* with a _target_"):
        AssistantUsers(**node | {"corpus": corpus})
