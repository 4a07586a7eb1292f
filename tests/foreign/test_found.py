"""What random faults found in the readers of other people's files, and limits on what these may hold."""

import base64
import json
import zlib
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skg_bench.asking import frames
from skg_bench.core import foreign
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import LONGEST_TEXT, json_of, lines_of, plain, text_of
from skg_bench.simulator.logs import recorded_parquet
from skg_bench.simulator.logs.recorded_parquet import parquet_rows
from skg_bench.simulator.logs.recorded_rows import LeftOut, flaw, turns_of_table
from skg_bench.simulator.yaml_files import yaml_of
from tests.foreign.files import READERS, lines, text
from tests.foreign.mutations import FOLDER
from tests.foreign.test_any_bytes import above, refusal
from tests.simulator.logs.logs import SMALL, recorded, turn

__all__ = ["above"]  # a fixture
DEEP = json.loads("[" * 150 + "]" * 150)
BEYOND = 2**70


def changed(name: str, file: str, *path: Any, to: Any) -> dict[str, bytes]:
    """Files of a reader, with one value of a JSON file replaced; a line of JSON lines is named by its number."""
    files = dict(READERS[name].files())
    rows = [json.loads(line) for line in files[file].splitlines()] if isinstance(path[0], int) else None
    node = value = json.loads(files[file]) if rows is None else rows
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = to
    return files | {file: lines(value) if rows is not None else text(value)}


AGENTROPY, BOOK = "agentropy skillbook", ("agentropy skillbook", "skills.jsonl", 0, "skg_bench")
RAIN = ("corpus", "intents/b.yaml", "intents", 0)
FAULTS: list[tuple[tuple[Any, ...], Any, str]] = [  # reader, file and place; what stands there; what is said
    ((*BOOK, "uses"), BEYOND, "beyond 64 bits"),
    ((*BOOK, "born"), 2**40, "born is 1099511627776"),
    ((*BOOK, "hours"), [1], "hours are 8 numbers"),
    ((*BOOK, "hours"), None, "is not of its form"),
    ((AGENTROPY, "skills.jsonl", 0, "examples"), [1], "is not of its form"),
    ((AGENTROPY, "skg_bench.json", "archived"), [{}], "is not of its form"),
    ((AGENTROPY, "skg_bench.json", "version"), "4", "version is '4'"),
    (("agentropy log", "signals.jsonl", 0, "message"), "\ud800", "half a surrogate pair"),
    (("ace v2", "book.json", "next_id"), 10**400, "next_id is 1000"),
    (("batch", "batch.json", "reasoning"), "\ud800", "surrogates only whole pairs"),
    ((*RAIN, "ttl_hours"), 10**17, "must be a number above 0, at most"),
    ((*RAIN, "follows"), [[]], "must be a list of intents"),
    ((*RAIN, "hours"), {"0-" + "9" * 900: 1}, "FROM-TO: WEIGHT"),
    (("baseline", "baseline.json", "budget"), 10**400, "beyond 64 bits"),
    (("baseline", "baseline.json", "made", "config"), [], "made.config is"),
    (("baseline", "baseline.json", "anchor", "made", "compositions"), {}, "is corrupt"),
    (("baseline", "baseline.json", "users", "0", 0), 10**12, "has 1000000000000 turns"),
    (("recording", "1-a.jsonl.zst", 0, "key"), "zz", "names no ask by 64 hex digits"),
    (("recording", "1-a.jsonl.zst", 0, "answer"), None, "it.answer is None"),
    (("recording", "1-a.jsonl.zst", 0, "cost_usd"), 10**400, "a cost or a latency"),
    (("pool", "arm.json", "arrays", "hidden"), [[[0.5]]], "does not hold the numbers"),
    (("findings", "experiment.json", "findings", 0), {"id": "K01"}, "is no file of findings"),
    (("case", "case.json", "events", 0, "number"), 2**40, "is no counterexample"),
    (("case", "case.json", "events", 0, "time"), "noon", "events[0].time is 'noon'"),
    (("case", "case.json", "place", "weeks"), 10**9, "weeks is 1000000000"),
    (("case", "case.json", "expected", "arm"), [], "as many rows are expected"),
    (("run", "manifest.json", "arms"), ["skg", "../never"], "different names without a slash"),
    (("run", "manifest.json", "users"), "2", "users is '2'"),
    (("run", "summary.json", "arms", "skg", "utility", "mean"), {}, "is not as it was written"),
    (
        ("case", "case.json", "sides", "reference", "compositions", "skg", "decline_is_miss"),
        "ok",
        "decline_is_miss='ok'",
    ),
    (("run", "manifest.json", "config"), DEEP, "levels deep"),
]
WHOLE: list[tuple[str, str, bytes, str]] = [  # reader, file; what stands in it; what is said
    ("agentropy log", "signals.jsonl", b"\xff\n", "is no whole JSON"),
    ("ace v2", "book.json", b"[" * 10_000, "nested too deeply"),
    ("ace v2", "book.json", FOLDER, "is no file"),
    ("corpus", "intents/a.yaml", b"intents: !!bool x", "is not valid yaml"),
    ("corpus", "intents/a.yaml", b"&a [*a]", "levels deep"),
    (
        "clinc150",
        "table.yaml",
        b"{stable: , slot: , stale: , also_slot: , acts: 3}",
        "must be a list of intents",
    ),
    ("clinc150", "said.json", b"[" * 10_000, "nested too deeply"),
    ("pool", "arm.json", b"[" * 10_000, "is no model of a pool"),
    ("sgd", "dialogues_001.json", b"[" * 10_000, "nested too deeply"),
    ("uss", "uss.txt", b"USER\t\xff\tX\t3\n", "is not UTF-8"),
    ("strategies", "kinds.toml", b"a = " + b"[" * 5_000, "is not valid TOML"),
]


@pytest.mark.parametrize(("place", "value", "says"), FAULTS, ids=[f"{place[0]}: {says}" for place, _, says in FAULTS])
def test_a_value_that_no_reader_can_take_is_refused(place: tuple[Any, ...], value: Any, says: str, above: Path) -> None:
    assert says in refusal(place[0], changed(*place, to=value), above)


@pytest.mark.parametrize(("name", "file", "raw", "says"), WHOLE, ids=[f"{w[0]}: {w[3]}" for w in WHOLE])
def test_a_file_that_is_none_of_its_kind_is_refused(name: str, file: str, raw: bytes, says: str, above: Path) -> None:
    assert says in refusal(name, {**READERS[name].files(), file: raw}, above)


# --------------------------------------------------------------------------------------------- rows are left out

ODD_ROWS: list[tuple[dict[str, Any], str | None]] = [
    ({"message": "x" * (LONGEST_TEXT + 1)}, f"message has more than {LONGEST_TEXT:,} characters"),
    ({"answer": "x" * (LONGEST_TEXT + 1)}, f"answer has more than {LONGEST_TEXT:,} characters"),
    ({"message": "half \ud83d"}, "message holds half a surrogate pair, which no text has"),
    ({"user": "\ude00"}, "user holds half a surrogate pair, which no text has"),
    ({"message": {"text": "hello"}}, "message is no text"),
    ({"user": ["a", "b"]}, "user is no text"),
    ({"intent": DEEP}, "intent is no text"),
    ({"time": "9999-12-31T23:59:59-12:00"}, "a time that cannot be read"),
    ({"time": "0001-01-01T00:30:00+14:00"}, "a time that cannot be read"),
    ({"time": 10**400}, "a time that cannot be read"),
    ({"time": float("nan")}, "no time"),
    ({"message": "x" * LONGEST_TEXT}, None),
]


@pytest.mark.parametrize(("odd", "why"), ODD_ROWS, ids=[str(why) for _, why in ODD_ROWS])
def test_a_row_that_is_no_turn_is_left_out_and_counted(odd: dict[str, Any], why: str | None, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    rows = [turn("ann", f"2024-03-0{i}T09:00:00+01:00", f"message {i}", answer="yes", intent="a") for i in (4, 5, 6)]
    log.write_bytes(lines([rows[0], {**rows[1], **odd}, rows[2]]))
    record = recorded(log, columns={"answer": "answer", "intent": "intent"}).record
    assert record.left_out == ({} if why is None else {why: {"rows": 1, "first": [2]}})
    assert record.turns == 3 - record.left_out.get(why or "", {"rows": 0})["rows"]


def test_lines_that_are_not_utf8_or_too_deep_are_left_out(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(lines(SMALL) + b'{"user": "\xff"}\n' + b"[" * 10_000 + b"\n" + b'{"a": 1' + b"0" * 5_000 + b"}\n")
    assert recorded(log).record.left_out == {
        "not UTF-8": {"rows": 1, "first": [5]}, "no whole JSON object": {"rows": 2, "first": [6, 7]},
    }  # fmt: skip


CELLS: list[tuple[Any, str | None]] = [
    (pa.array([b"a", b"b"]), "user is no text"),
    (pa.array([Decimal("1.5"), Decimal(2)]), None),
    (pa.array([date(2024, 1, 1), date(9999, 12, 31)]), None),
    (pa.array([0, 2**62], pa.timestamp("us")), "user cannot be read"),
    (pa.array([0, 2**62], pa.timestamp("us", tz="Nowhere/Land")), "user cannot be read"),
    (pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())), "user cannot be read"),
    (pa.array([{"a": "b"}, None]), "user is no text"),
    (pa.array(["a", "b"]).dictionary_encode(), None),
    (pa.array(["a", "b"], pa.large_string()), None),
]


@pytest.mark.parametrize(("users", "why"), CELLS, ids=[str(cells.type) for cells, _ in CELLS])
def test_cells_of_any_type_in_parquet_are_texts_or_cost_their_row(users: Any, why: str | None, tmp_path: Path) -> None:
    more = {"time": ["2024-01-01", "2024-01-02", "2024-01-03"], "message": ["a", "b", "c"]}
    table = pa.table({"user": pa.concat_arrays([users, users[:1]]), **more})
    pq.write_table(table, tmp_path / "log.parquet")
    out = LeftOut()
    rows = turns_of_table(tmp_path / "log.parquet", {name: name for name in ("user", "time", "message")}, out)
    assert {why} <= {flaw(row) for row in rows} <= {why, None}


# ------------------------------------------------------------------------------------------ what a file unpacks to


def a_parquet(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path, compression="gzip", use_dictionary=["user"])
    return path


def test_a_small_parquet_file_that_unpacks_to_gigabytes_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here to megabytes."""
    monkeypatch.setattr(recorded_parquet, "_UNPACKED", 2**20)
    texts = [str(i) + "x" * 500_000 for i in range(28)]
    path = a_parquet(tmp_path / "bomb.parquet", user=["u"] * 28, time=list(range(28)), message=texts)
    assert path.stat().st_size < 40_000
    with pytest.raises(UsageError, match=r"bomb\.parquet has .* and unpacks to 14,[\d,]+; at most 100 times"):
        recorded(path).record  # noqa: B018


def test_a_parquet_file_that_names_one_text_a_million_times_is_refused(tmp_path: Path) -> None:
    rows = 2**20 + 1
    same = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), ["x" * LONGEST_TEXT])
    pq.write_table(pa.table({"user": same, "time": same, "message": same}), tmp_path / "log.parquet")
    with pytest.raises(UsageError, match=r"has 1,048,577 rows in .* at most 1,048,576 rows are read"):
        recorded(tmp_path / "log.parquet").record  # noqa: B018


def test_a_parquet_file_whose_footer_says_of_a_field_that_it_is_never_left_out_ends_no_process(tmp_path: Path) -> None:
    lists: list[Any] = [["a"], [None], [], None]
    written = a_parquet(tmp_path / "log.parquet", message=lists, user=["ann"] * 4).read_bytes()
    end = len(written) - 8
    footer, said = end - int.from_bytes(written[-8:-4], "little"), []
    for at in (at for at in range(footer, end) if written[at] == 2):  # among others, of a field that may be left out
        (tmp_path / "log.parquet").write_bytes(written[:at] + b"\0" + written[at + 1 :])
        try:
            list(parquet_rows(tmp_path / "log.parquet", list))
        except UsageError as error:
            said.append(str(error))
    assert any("level histogram size mismatch" in one for one in said)


def test_texts_that_many_rows_of_parquet_share_are_one_text_in_memory(tmp_path: Path) -> None:
    message = [[{"role": "user", "content": "x" * 1_000}]] * 300
    path = a_parquet(tmp_path / "log.parquet", user=["ann"] * 300, time=list(range(300)), message=message)
    rows = list(parquet_rows(path, list))
    assert len({id(row["user"]) for row in rows}) == 1
    assert len({id(row["message"][0]["content"]) for row in rows}) == 1


def test_outcomes_of_a_baseline_are_unpacked_as_far_as_their_turns_go(above: Path) -> None:
    bomb = base64.b64encode(zlib.compress(bytes(10**8))).decode()
    files = changed("baseline", "baseline.json", "users", "0", 2, to=bomb)
    assert "outcomes are not of as many turns as said" in refusal("baseline", files, above)


def test_a_frame_of_a_recording_is_unpacked_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "_LARGEST", 1_000)
    assert [content for _, content in frames.whole(frames.frame(bytes(1_000)))] == [bytes(1_000)]
    with pytest.raises(ValueError, match="the frame at byte 0 unpacks to more than 1,000 bytes"):
        list(frames.whole(frames.frame(bytes(1_001))))


def test_an_alias_in_yaml_counts_as_what_it_stands_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "_MANY", 10_000)
    laughs = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    (tmp_path / "laughs.yaml").write_text(laughs)
    with pytest.raises(UsageError, match=r"laughs\.yaml: .* holds more than 10,000 values"):
        yaml_of(tmp_path / "laughs.yaml")


# ------------------------------------------------------------------------------------------------------ the guard


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"a": [1, {"b": "\ud800"}]}, "it: a[1].b holds half a surrogate pair"),
        ({"a": {"\ud800": 1}}, "it: a key of a holds half a surrogate pair"),
        ({"a": float("inf")}, "it: a is inf, and a finite number is needed"),
        ([2**63], "it: [0] is a number beyond 64 bits"),
        (DEEP, "is nested more than 100 levels deep"),
    ],
    ids=str,
)
def test_values_that_no_reader_expects_are_named_by_their_path(value: Any, says: str) -> None:
    with pytest.raises(UsageError) as error:
        plain(value, "it")
    assert says in str(error.value)


def test_plain_values_pass_as_they_are() -> None:
    value = {"a": [1, -(2**63), 2**63 - 1, 0.5, None, True, "ü😀"], "b": {"c": {}}}
    assert plain(value, "it") is value


@pytest.mark.parametrize(("raw", "says"), [(b"\xff", "is not UTF-8"), (FOLDER, "cannot be read: Is a directory")])
def test_a_file_that_is_no_text_is_named(raw: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.mkdir() if raw == FOLDER else path.write_bytes(raw)
    with pytest.raises(UsageError, match=f"{path} {says}"):
        text_of(path)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(UsageError, match=r"has 1,099,511,627,776 bytes; at most 1,073,741,824 are read"):
        text_of(tmp_path / "sparse")


def test_a_line_that_is_too_long_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"a\n" + b"x" * (2**24 + 5) + b"\nb")
    assert list(lines_of(path)) == [(1, b"a\n"), (2, None), (3, b"b")]


def test_json_of_numbers_with_thousands_of_digits_is_refused() -> None:
    with pytest.raises(UsageError, match="it is no whole JSON"):
        json_of("1" * 5_000, "it")
