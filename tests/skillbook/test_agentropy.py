"""An agentropy folder holds the paper's fields, comes back as it was written, and is never unpickled."""

import json
import pickle
import struct
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skg_bench.core.content import Content
from skg_bench.core.errors import UsageError
from skg_bench.skillbook.agentropy import (
    AGENTROPY_FIELDS,
    TABLE,
    AgentropyIndex,
    read_agentropy,
    read_fvecs,
    write_agentropy,
    write_fvecs,
)
from skg_bench.skillbook.skillbook import Operation, Skillbook, apply

MONDAY = datetime(2026, 1, 5)


def index() -> AgentropyIndex:
    """Three skills, the second archived; the first has two examples."""
    operations = [
        [Operation("ADD", 0, 3_600, "brew-tea", "how long does tea steep", 0)],
        [Operation("ADD", 1, 7_200, "Wetter in Köln", "Regnet es?", 1)],
        [Operation("TAG", 0, 90_000, rating="ok", uses=1, after=1), Operation("REMOVE", 1, 90_000)],
        [
            Operation("UPDATE", 0, 99_000, message="tea time", source_turn=3),
            Operation("ADD", 2, 99_000, "x", "y\nz", 3),
        ],
    ]
    book = Skillbook()
    for batch in operations:
        book = apply(book, batch)
    vectors = (np.arange(12).reshape(3, 4) / 4000).astype(np.float32)
    signal: dict[str, Any] = dict.fromkeys(TABLE) | {"user_msg_id": "u0-t0", "message": "hi", "max_sim": 0.25}
    return AgentropyIndex(
        book, (("Four minutes.", None), ("Ja.",), (None,)), vectors, (signal | {"time": "2026-01-05T01:00:00"},)
    )


@pytest.mark.req("K21")
def test_what_is_written_is_read_back_equal(tmp_path: Path) -> None:
    before = index()
    write_agentropy(tmp_path, before, MONDAY)
    after = read_agentropy(tmp_path, MONDAY)
    assert after.book == before.book
    assert after.book.hash == before.book.hash
    assert after.answers == before.answers
    assert after.signals == before.signals
    assert after.vectors.dtype == np.float32
    assert np.array_equal(after.vectors, before.vectors)


@pytest.mark.req("K12", "K13", "K14")
def test_lines_have_the_papers_fields(tmp_path: Path) -> None:
    write_agentropy(tmp_path, index(), MONDAY)
    skills = [json.loads(line) for line in (tmp_path / "skills.jsonl").read_text("utf-8").splitlines()]
    assert [skill["name"] for skill in skills] == ["brew-tea", "x"]  # the archived one is not served
    assert set(AGENTROPY_FIELDS) < set(skills[0])
    tea = {name: skills[0][name] for name in AGENTROPY_FIELDS}
    assert tea == {
        "name": "brew-tea", "prompt": "how long does tea steep", "embedding_count": 2, "success_rate": 0.0,
        "examples": [{"message": "how long does tea steep", "answer": "Four minutes."},
                     {"message": "tea time", "answer": None}],
        "last_updated": "2026-01-06T03:30:00",
    }  # fmt: skip
    signals = [json.loads(line) for line in (tmp_path / "signals.jsonl").read_text("utf-8").splitlines()]
    assert set(TABLE) < set(signals[0])


def test_a_folder_of_others_is_read_as_far_as_the_papers_fields_go(tmp_path: Path) -> None:
    write_agentropy(tmp_path, index(), MONDAY)
    (tmp_path / "skg_bench.json").unlink()
    lines = [json.loads(line) for line in (tmp_path / "skills.jsonl").read_text("utf-8").splitlines()]
    plain = [{name: line[name] for name in AGENTROPY_FIELDS} for line in lines]
    plain[1]["last_updated"] = None
    (tmp_path / "skills.jsonl").write_text("".join(json.dumps(line) + "\n" for line in plain), "utf-8")
    skills = read_agentropy(tmp_path, MONDAY).book.skills
    assert [(s.id, s.name, s.examples) for s in skills] == [
        (0, "brew-tea", ("how long does tea steep", "tea time")), (1, "x", ("y\nz",)),
    ]  # fmt: skip
    assert [s.last_ok for s in skills] == [99_000, 0]


@pytest.mark.req("K21")
def test_a_pickled_model_is_never_opened(tmp_path: Path) -> None:
    write_agentropy(tmp_path, index(), MONDAY)

    class Trap:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "sprung",))

    (tmp_path / "rerank-model.pkl").write_bytes(pickle.dumps(Trap()))
    read_agentropy(tmp_path, MONDAY)
    assert not (tmp_path / "sprung").exists()


def test_fvecs_are_a_length_and_so_many_floats_each_time(tmp_path: Path) -> None:
    write_fvecs(tmp_path / "v", np.array([[1, 2], [3, -4]], np.float32))
    assert (tmp_path / "v").read_bytes() == struct.pack("<iffiff", 2, 1, 2, 2, 3, -4)
    write_fvecs(tmp_path / "v", np.zeros((0, 0), np.float32))
    assert read_fvecs(tmp_path / "v").shape == (0, 0)


@pytest.mark.parametrize("raw", [
    struct.pack("<iffif", 2, 1, 2, 1, 3), struct.pack("<iff", 3, 1, 2), struct.pack("<i", 0), b"\x02\x00",
    struct.pack("<iff", 2, 1, 2) + b"\x00", struct.pack("<iffiff", 2, 1, 2, 3, 3, 4), struct.pack("<if", -1, 0),
])  # fmt: skip
def test_torn_vectors_and_vectors_of_other_lengths_are_refused(tmp_path: Path, raw: bytes) -> None:
    write_agentropy(tmp_path, index(), MONDAY)
    (tmp_path / "embeddings.fvecs").write_bytes(raw)
    with pytest.raises(UsageError, match="is torn, or its vectors are not all of"):
        read_agentropy(tmp_path, MONDAY)


@pytest.mark.parametrize(("file", "change", "message"), [
    ("embeddings.fvecs", struct.pack("<iff", 2, 1, 2), "holds 1 vectors for 3 examples"),
    ("skills.jsonl", b'{"name": "x"}\n', r"line 1, lacks prompt, examples"),
    ("skills.jsonl", b'{"name": ', r"skills\.jsonl, line 1, is no whole JSON"),
    ("signals.jsonl", b"[]\n", r"signals\.jsonl, line 1, lacks an object"),
    ("signals.jsonl", b'{"message": "x"}\n', r"line 1, lacks user_msg_id, max_sim"),
    ("skg_bench.json", b'{"version": 4, "hash": "00", "archived": []}', "holds another skillbook"),
    ("skg_bench.json", b"{", "is no whole JSON"),
])  # fmt: skip
def test_a_damaged_folder_is_refused_with_the_place(tmp_path: Path, file: str, change: bytes, message: str) -> None:
    write_agentropy(tmp_path, index(), MONDAY)
    (tmp_path / file).write_bytes(change)
    with pytest.raises(UsageError, match=message):
        read_agentropy(tmp_path, MONDAY)


@pytest.mark.parametrize("file", ["skills.jsonl", "embeddings.fvecs", "signals.jsonl"])
def test_a_missing_file_is_named(tmp_path: Path, file: str) -> None:
    write_agentropy(tmp_path, index(), MONDAY)
    (tmp_path / file).unlink()
    with pytest.raises(UsageError, match=f"{file} is missing"):
        read_agentropy(tmp_path, MONDAY)


def test_a_skill_of_another_form_is_refused(tmp_path: Path) -> None:
    write_agentropy(tmp_path, index(), MONDAY)
    lines = (tmp_path / "skills.jsonl").read_text("utf-8").replace('"message": "tea time"', '"text": "tea time"')
    (tmp_path / "skills.jsonl").write_text(lines, "utf-8")
    with pytest.raises(UsageError, match="skill 1 is not of its form"):
        read_agentropy(tmp_path, MONDAY)


def test_a_strategy_is_written_with_what_it_says_and_with_a_share_of_success(tmp_path: Path) -> None:
    """Advice has no examples, and is rated more often than it counts as used."""
    book = Skillbook()
    says = Content("context", "wait a day", "wanting fades", ("wait",))
    for batch in (
        [Operation("ADD", 0, 60, "wait", content=says), Operation("ADD", 1, 60, "alone")],
        [Operation("TAG", 0, 90, rating="ok", uses=1)],
        [Operation("TAG", 0, 95, rating="ok"), Operation("TAG", 1, 95, rating="miss")],
    ):
        book = apply(book, batch)
    assert [(skill.ok, skill.uses) for skill in book.skills] == [(2, 1), (0, 0)]
    write_agentropy(tmp_path, AgentropyIndex(book, ((), ()), np.zeros((0, 0), np.float32), ()), MONDAY)
    lines = [json.loads(line) for line in (tmp_path / "skills.jsonl").read_text("utf-8").splitlines()]
    assert [line["success_rate"] for line in lines] == [1.0, 0.0]
    assert [line["prompt"] for line in lines] == ["wait a day\n\nwanting fades", "alone"]
    assert read_agentropy(tmp_path, MONDAY).book == book


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("success_rate", 2.0, "success_rate is 2.0, valid is a share, 0 to 1, or null"),
        ("success_rate", -0.1, "success_rate is -0.1"),
        ("success_rate", True, "success_rate is True"),
        ("success_rate", "1", "success_rate is '1'"),
        ("prompt", "", "prompt is empty, valid is a text that says something"),
        ("prompt", " \n", "prompt is empty"),
        ("prompt", None, "prompt is None, valid is a text"),
    ],
)
def test_a_rate_that_is_no_share_and_an_empty_prompt_are_refused(
    field: str, value: Any, message: str, tmp_path: Path
) -> None:
    write_agentropy(tmp_path, index(), MONDAY)
    file = tmp_path / "skills.jsonl"
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    lines[1][field] = value
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    with pytest.raises(UsageError) as error:
        read_agentropy(tmp_path, MONDAY)
    assert f"skills.jsonl: skill 2: {message}" in str(error.value)
