"""Corpora as they are published: which columns hold what, which split is said, what is left out and refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from skg_bench.core.errors import UsageError
from skg_bench.simulator.answers.corpus import ACT, ANSWER, LOOK_UP, SLOT, STABLE, STALE
from tests.simulator.logs.published import INTENTS, banking77, hwu64, labelled, pairs

FEW = [("is my card lost", "card_lost"), ("where is my card", "card_lost"), ("dollars please", "exchange_rate")]


def test_a_table_of_texts_and_categories_is_a_corpus_of_stable_intents_without_answers(tmp_path: Path) -> None:
    corpus = labelled(banking77(tmp_path)).load()
    assert corpus.intents == corpus.types == tuple(sorted(INTENTS))
    assert corpus.n_wordings.tolist() == [40] * len(INTENTS)
    for kind, row in enumerate(corpus.wordings):
        assert [(corpus.messages[i], corpus.types[kind]) for i in row] == [
            pair for pair in pairs() if pair[1] == corpus.types[kind]
        ]
    assert set(corpus.kind.tolist()) == {STABLE}
    assert set(corpus.effect.tolist()) == {ANSWER}
    assert set(corpus.answers) == {""}
    assert len(corpus.one_offs) == 0
    assert (corpus.source, corpus.left_out) == ("test.csv", {})


def test_of_folders_of_lines_and_labels_the_test_split_is_said_unless_another_is_named(tmp_path: Path) -> None:
    folder = hwu64(tmp_path / "hwu")
    for split, parameter in (("test", None), ("train", "train")):
        corpus = labelled(folder, split=parameter).load()
        assert set(corpus.messages) == {text for text, _ in pairs(split=split)}
        assert corpus.source == f"hwu/{split}"
    assert labelled(folder / "valid").load().source == "valid"


def test_corpora_by_name_stand_beside_a_file(tmp_path: Path) -> None:
    alone = labelled(banking77(tmp_path)).load()
    whole = labelled(banking77(tmp_path), also=["builtin-exchange_rate"]).load()
    assert whole.intents[: len(INTENTS)] == alone.intents
    assert len(whole.intents) == len(INTENTS) + 299
    assert len(whole.one_offs) == 1500
    assert whole.source == "test.csv and builtin"
    assert whole.digest != alone.digest
    again = labelled(banking77(tmp_path, [*FEW, FEW[0]]), also=["builtin_120-exchange_rate"]).load()
    assert again.left_out == {"a text that an earlier row has": {"rows": 1, "first": [5]}}
    with pytest.raises(
        UsageError, match=r"test.csv and builtin both have the intent 'exchange_rate' .*builtin-exchange_"
    ):
        labelled(banking77(tmp_path), also=["builtin"]).load()


def test_massives_columns_are_known(tmp_path: Path) -> None:
    row = {"id": "0", "locale": "en-US", "partition": "test", "scenario": "card", "intent": "card_lost"}
    row |= {"utt": "my card?", "annot_utt": "my [thing : card]?"}
    (tmp_path / "en-US.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    corpus = labelled(tmp_path / "en-US.jsonl").load()
    assert (corpus.intents, corpus.messages) == (("card_lost",), ("my card?",))


def test_any_form_of_a_table_gives_the_same_corpus(tmp_path: Path) -> None:
    rows = [{"utterance": text, "intent": name} for text, name in FEW]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    (tmp_path / "a.jsonl").write_text(lines, "utf-8")
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "b.parquet")
    (tmp_path / "c.csv").write_text("\ufeffutterance;intent\r\n" + "".join(f"{t};{n}\r\n" for t, n in FEW), "utf-8")
    (tmp_path / "d.tsv").write_text("utterance\tintent\n" + "".join(f"{t}\t{n}\n" for t, n in FEW), "utf-8")
    (tmp_path / "split").mkdir()
    (tmp_path / "split" / "test.jsonl").write_text(lines, "utf-8")
    (tmp_path / "split" / "train.jsonl").write_text(lines.replace("card", "purse"), "utf-8")
    names = ("a.jsonl", "b.parquet", "c.csv", "d.tsv", "split")
    digests = {labelled(tmp_path / name).load().digest for name in names}
    assert len(digests) == 1
    assert labelled(tmp_path / "split", split="train").load().digest not in digests


def test_hwu64s_table_of_annotations_names_an_intent_by_scenario_and_intent(tmp_path: Path) -> None:
    (tmp_path / "all.csv").write_text("userid;scenario;intent;answer\n1;alarm;set;wake me at six\n2;music;play;jazz\n")
    corpus = labelled(tmp_path / "all.csv").load()
    assert corpus.intents == ("alarm_set", "music_play")
    assert set(corpus.messages) == {"wake me at six", "jazz"}


def test_columns_of_other_names_are_said(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("what,area,about\nhi,small,greeting\nbye,small,leaving\n")
    with pytest.raises(
        UsageError, match=r"own\.csv has the columns what, area, about; which .*simulator\.corpus\.text="
    ):
        labelled(tmp_path / "own.csv").load()
    assert labelled(tmp_path / "own.csv", text="what", label=["area", "about"]).load().intents == (
        "small_greeting", "small_leaving",
    )  # fmt: skip


def test_rows_that_are_no_new_message_are_left_out_by_reason_and_place(tmp_path: Path) -> None:
    rows = [*FEW, ("", "card_lost"), ("no intent", " "), FEW[0], (FEW[1][0], "exchange_rate")]
    path = banking77(tmp_path, rows)
    path.write_text(path.read_text("utf-8") + "one,two,three\n", "utf-8")
    corpus = labelled(path).load()
    assert len(corpus.messages) == len(FEW)
    assert corpus.left_out == {
        "no text": {"rows": 1, "first": [5]},
        "no label": {"rows": 1, "first": [6]},
        "a text that an earlier row has": {"rows": 1, "first": [7]},
        "a text that an earlier row has, of another intent": {"rows": 1, "first": [8]},
        "another number of fields than the heading has": {"rows": 1, "first": [9]},
    }


def test_messages_that_are_labelled_as_about_nothing_else_are_one_offs(tmp_path: Path) -> None:
    corpus = labelled(banking77(tmp_path, [*FEW, ("how deep is the sea", "oos")])).load()
    assert "oos" not in corpus.intents
    assert [corpus.messages[i] for i in corpus.one_offs] == ["how deep is the sea"]
    assert "oos" in labelled(tmp_path / "test.csv", one_offs=[]).load().intents


def test_a_table_of_intents_says_what_a_corpus_does_not_and_need_not_list_all(tmp_path: Path) -> None:
    table = {
        "stable": ["top_up"],
        "slot": ["limits"],
        "stale": {"exchange_rate": 3},
        "also_slot": [],
        "acts": ["top_up"],
    }
    (tmp_path / "table.yaml").write_text(yaml.safe_dump(table), "utf-8")
    corpus = labelled(banking77(tmp_path), table=str(tmp_path / "table.yaml"), values=2).load()
    labels = dict(zip(corpus.intents, zip(corpus.kind.tolist(), corpus.effect.tolist(), strict=True), strict=True))
    assert labels == {
        "card_lost": (STABLE, ANSWER), "exchange_rate": (STALE, LOOK_UP), "limits": (SLOT, ANSWER),
        "pin_blocked": (STABLE, ANSWER), "top_up": (STABLE, ACT), "transfer_late": (STABLE, ANSWER),
    }  # fmt: skip
    assert {name for name in corpus.types if "|" in name} == {"limits|1", "limits|2"}
    assert corpus.ttl[corpus.intents.index("exchange_rate")] == 3 * 3600
    (tmp_path / "table.yaml").write_text(yaml.safe_dump(table | {"stable": ["topup"], "acts": []}), "utf-8")
    with pytest.raises(UsageError, match=r"lists 'topup', and test\.csv has no such intent; it has card_lost, "):
        labelled(tmp_path / "test.csv", table=str(tmp_path / "table.yaml")).load()


@pytest.mark.parametrize(
    ("name", "content", "changes", "message"),
    [
        ("a.csv", None, {}, r"simulator\.corpus\.path=.*a\.csv does not exist; .*path=hf:"),
        ("a.txt", "hi", {}, r"is no corpus: a file ends in \.csv"),
        ("a.csv", "text,label\n", {}, r"a\.csv holds no message with an intent \(it is empty\)"),
        ("a.csv", "text,label\nhi,\n", {}, r"holds no message with an intent \(no label\)"),
        ("a.csv", "text,label\nhi,x\n", {"split": "train"}, r"is one split, leave it out"),
        ("a.csv", "text,label\nhi,x\n", {"subset": "full"}, r"subset=full is of a data set \(hf:NAME\)"),
        ("a.csv", "text,label\nhi,x\n", {"values": 0}, r"values=0 must be at least 1"),
        ("a.parquet", "text", {}, r"a\.parquet is torn or no Parquet file"),
        ("a.jsonl", '{"text": "hi", "label', {}, r"a\.jsonl is torn or no jsonl file"),
    ],
)  # fmt: skip
def test_what_is_no_corpus_is_refused(
    tmp_path: Path, name: str, content: str | None, changes: dict[str, Any], message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(UsageError, match=message):
        labelled(tmp_path / name, **changes).load()


def test_a_message_may_hold_what_looks_like_the_end_of_a_line(tmp_path: Path) -> None:
    rows = [("one\u2028line", "x"), ("two\nlines", "x"), ('"quoted", and more', "y")]
    assert set(labelled(banking77(tmp_path, rows)).load().messages) == {text for text, _ in rows}
    (tmp_path / "seq.in").write_text("one\u2028line\nother\n", "utf-8")
    (tmp_path / "label").write_text("x\ny\n", "utf-8")
    assert labelled(tmp_path).load().messages == ("one\u2028line", "other")


def test_a_table_of_a_spreadsheet_is_read_and_lines_in_another_encoding_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes('text;label\r\ngrüße;x\r\n"a; b";y\r\n"torn;z\r\n'.encode("cp1252"))
    corpus = labelled(tmp_path / "a.csv").load()
    assert corpus.messages == ("grüße", "a; b")
    assert corpus.left_out == {"a quote that is opened and not closed": {"rows": 1, "first": [4]}}
    (tmp_path / "seq.in").write_bytes("grüße\n".encode("cp1252"))
    (tmp_path / "label").write_text("x\n", "utf-8")
    with pytest.raises(UsageError, match=r"seq\.in is not UTF-8"):
        labelled(tmp_path).load()


def test_lines_that_do_not_belong_together_and_unknown_splits_are_refused(tmp_path: Path) -> None:
    folder = hwu64(tmp_path / "hwu")
    with pytest.raises(UsageError, match=r"split=dev; .*hwu has test, train, valid: name one"):
        labelled(folder, split="dev").load()
    (folder / "test" / "label").write_text("one\n", "utf-8")
    with pytest.raises(UsageError, match=r"seq\.in has 240 lines and label 1; which belongs to which is not known"):
        labelled(folder).load()
    with pytest.raises(UsageError, match=r"simulator\.corpus\.path=null; name a file"):
        replace(labelled(folder), path=None).load()


def test_the_hash_sees_messages_and_labels(tmp_path: Path) -> None:
    digests = set()
    for i, rows in enumerate((FEW, FEW[:2], [(text, "x") for text, _ in FEW], [("other", "card_lost"), *FEW[1:]])):
        (tmp_path / str(i)).mkdir()
        digests.add(labelled(banking77(tmp_path / str(i), rows)).load().digest)
    assert len(digests) == 4
    assert np.all([len(digest) == 32 for digest in digests])
