"""The files of a recording: what they hold, and what is said of those that are torn, edited or in contradiction."""

import json
import logging
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from skg_bench.asking import frames, recorded_asks, recording
from skg_bench.core.errors import UsageError
from skg_bench.llm.recorded import RecordedModel
from tests.llm.models import Whole, prompt, prompts, sent


@pytest.fixture(autouse=True)
def online(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OFFLINE", raising=False)


@pytest.fixture
def model(tmp_path: Path) -> Whole:
    return Whole(str(tmp_path / "sent"))


def recorded(model: Whole, folder: Path) -> RecordedModel:
    return RecordedModel(model, "both", str(folder))


def file_of(folder: Path) -> Path:
    (path,) = folder.glob("*.jsonl.zst")
    return path


def lines_of(path: Path) -> list[bytes]:
    return b"".join(text for _, text in frames.whole(path.read_bytes())).splitlines(keepends=True)


def a_file(model: Whole, folder: Path, frame_sizes: tuple[int, ...] = (2, 1, 2)) -> Path:
    """A file of so many frames, with so many asks each, made in one process."""
    first = 0
    kept = recording.Recording(folder)
    for size in frame_sizes:
        asks = [recorded_asks.Ask(ask, model.settings) for ask in prompts(size, first)]
        kept.add([(ask.key, ask, model.answer(ask.prompt)) for ask in asks])
        first += size
    return file_of(folder)


def read(folder: Path) -> recording.Recording:
    kept = recording.Recording(folder)
    kept.refresh()
    return kept


def test_a_line_tells_the_ask_and_its_answer(model: Whole, tmp_path: Path) -> None:
    recorded(replace(model, temperature=0.5), tmp_path / "asked").complete([prompt("Wie spät ist es?", draw=7)])
    (line,) = lines_of(file_of(tmp_path / "asked"))
    fields = json.loads(line)
    assert {len(fields.pop(name)) for name in ("digest", "key", "schema")} == {64}
    assert fields == {
        "version": 1, "role": "reflector", "system": "You reflect.", "user": "Wie spät ist es?", "model": "m",
        "temperature": 0.5, "top_p": 1.0, "limit": 100, "draw": 7, "answer": '{"says": "Wie sp\\u00e4t ist es?7"}',
        "end": "ok", "reason": "", "served": "", "tokens_in": 10, "tokens_cached": 3, "tokens_out": 5, "cost_usd": 0.5,
        "latency_ms": 123.456,
    }  # fmt: skip


def test_texts_of_any_characters_come_back(model: Whole, tmp_path: Path) -> None:
    texts = ["\ud800 half a pair", "line\nbreak\r\u2028", "\x00", "naïve 🙂", '"}\n{"']
    first = recorded(model, tmp_path / "asked").complete([prompt(text, schema=None) for text in texts])
    recording.opened_recording.cache_clear()
    played = RecordedModel(model, "play", str(tmp_path / "asked")).complete(
        [prompt(text, schema=None) for text in texts]
    )
    assert played == first


def test_only_the_user_may_read_the_folder_and_its_files(model: Whole, tmp_path: Path) -> None:
    recorded(model, tmp_path / "asked").complete(prompts(1))
    assert (tmp_path / "asked").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "asked").iterdir()} == {0o600}


@pytest.mark.skipif(shutil.which("zstd") is None, reason="needs the command zstd")
def test_the_command_zstd_reads_a_file_of_many_frames(model: Whole, tmp_path: Path) -> None:
    path = a_file(model, tmp_path / "asked")
    done = subprocess.run(["zstd", "-dcq", path], capture_output=True, check=True)
    assert [json.loads(line)["user"] for line in done.stdout.splitlines()] == [ask.user for ask in prompts(5)]


def test_a_process_adds_to_its_file_and_another_one_has_its_own(model: Whole, tmp_path: Path) -> None:
    a_file(model, tmp_path / "asked", (1, 1))
    other = recording.Recording(tmp_path / "asked")
    ask = recorded_asks.Ask(prompt("new"), model.settings)
    other.add([(ask.key, ask, model.answer(ask.prompt))])
    assert len(list((tmp_path / "asked").glob("*.jsonl.zst"))) == 2
    assert len(read(tmp_path / "asked")) == 3


def test_what_another_process_recorded_meanwhile_is_played(model: Whole, tmp_path: Path) -> None:
    mine = recorded(model, tmp_path / "asked")
    mine.complete(prompts(2))
    other = recording.Recording(tmp_path / "asked")
    ask = recorded_asks.Ask(prompt("new"), model.settings)
    other.add([(ask.key, ask, replace(model, salt="other").answer(ask.prompt))])
    assert mine.complete([prompt("new")])[0].text == '{"says": "newother"}'
    assert len(sent(model)) == 2


def test_the_first_of_two_answers_that_come_at_the_same_time_counts_for_both(model: Whole, tmp_path: Path) -> None:
    ask = recorded_asks.Ask(prompt("same"), model.settings)
    one, two = (recording.Recording(tmp_path / "asked") for _ in range(2))
    first = model.answer(ask.prompt)
    given = one.add([(ask.key, ask, first)])
    assert two.add([(ask.key, ask, replace(model, salt="other").answer(ask.prompt))]) == given
    assert read(tmp_path / "asked").get(ask.key) == replace(first, value=None)


def test_a_file_that_is_torn_at_any_byte_keeps_its_whole_frames(
    model: Whole, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = a_file(model, tmp_path / "asked").read_bytes()
    ends = [0, *(end for end, _ in frames.whole(data))]
    assert ends[-1] == len(data)
    asks = dict(zip(ends, (0, 2, 3, 5), strict=True))
    (tmp_path / "torn").mkdir()
    torn = tmp_path / "torn" / "1-a.jsonl.zst"
    for size in range(len(data) + 1):
        torn.write_bytes(data[:size])
        caplog.clear()
        kept = read(tmp_path / "torn")
        kept.refresh()
        assert len(kept) == asks[max(end for end in ends if end <= size)]
        warnings = [record.message for record in caplog.records if record.levelno == logging.WARNING]
        assert [f"{torn} is torn" in line for line in warnings] == [True] * (size not in ends)  # once


def test_what_a_torn_file_lost_is_asked_again_into_another_file(model: Whole, tmp_path: Path) -> None:
    path = a_file(model, tmp_path / "asked")
    path.write_bytes(path.read_bytes()[:-3])
    answers = recorded(model, tmp_path / "asked").complete(prompts(5))
    assert sent(model) == ["question 3 1", "question 4 1"]
    recording.opened_recording.cache_clear()
    assert replace(recorded(model, tmp_path / "asked"), mode="play").complete(prompts(5)) == answers


def test_a_file_that_is_changed_at_any_byte_is_refused_or_torn_or_the_same(model: Whole, tmp_path: Path) -> None:
    """No damage changes an answer. Of that in the last frame some cannot be told from a torn one."""
    whole = a_file(model, tmp_path / "asked", (1, 1))
    data = bytearray(whole.read_bytes())
    asks = [recorded_asks.Ask(ask, model.settings) for ask in prompts(2)]
    known = [read(tmp_path / "asked").get(ask.key) for ask in asks]
    first_end = next(end for end, _ in frames.whole(bytes(data)))
    refused = []
    for at in range(0, len(data), 3):
        data[at] ^= 0xFF
        whole.write_bytes(data)
        data[at] ^= 0xFF
        try:
            kept = read(tmp_path / "asked")
        except UsageError as error:
            refused.append(str(error))
            continue
        assert [kept.get(ask.key) for ask in asks] in (known, [known[0], None])
        assert at >= first_end or kept.get(asks[1].key) is not None
    assert len(refused) > len(data) // 6
    assert all(str(whole) in error for error in refused)


def test_a_file_that_is_torn_in_the_middle_is_refused(model: Whole, tmp_path: Path) -> None:
    path = a_file(model, tmp_path / "asked")
    data = path.read_bytes()
    first = next(end for end, _ in frames.whole(data))
    for cut in range(1, first):
        path.write_bytes(data[: first - cut] + data[first:])
        with pytest.raises(UsageError, match=f"{path.name} cannot be read after line 0"):
            read(tmp_path / "asked")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"question 1", b"question 8", "line 2 was changed after it was recorded"),
        (b'"tokens_in": 10', b'"tokens_in": 11', "line 1 was changed after it was recorded"),
        (b'{"digest":', b'{"digest": ', "line 1 was changed after it was recorded"),
        (b'"version": 1', b'"version": 2', r"line 1 is of version 2; this skg_bench reads version 1"),
        (b'"version"', b'"vision"', "line 1 is no line of a recording"),
        (b'{"digest"', b'["digest"', "line 1 is no JSON"),
    ],
)
def test_an_edit_by_hand_is_refused_with_file_line_and_what_to_do(
    old: bytes, new: bytes, message: str, model: Whole, tmp_path: Path
) -> None:
    path = a_file(model, tmp_path / "asked")
    lines = b"".join(lines_of(path))
    assert old in lines
    path.write_bytes(frames.frame(lines.replace(old, new, 1)))
    with pytest.raises(UsageError, match=rf"{path.name}, {message}.*take the file from a copy"):
        recorded(model, tmp_path / "asked").complete(prompts(1))
    assert not sent(model)


def test_a_file_of_another_kind_is_refused(model: Whole, tmp_path: Path) -> None:
    (tmp_path / "asked").mkdir()
    (tmp_path / "asked" / "mine.jsonl.zst").write_bytes(b"{}\n")
    with pytest.raises(
        UsageError, match=r"mine\.jsonl\.zst cannot be read after line 0: there is no zstd frame at byte 0"
    ):
        recorded(model, tmp_path / "asked").complete(prompts(1))


def test_files_with_different_answers_to_an_ask_are_refused(model: Whole, tmp_path: Path) -> None:
    first = a_file(model, tmp_path / "one")
    second = a_file(replace(model, salt="other"), tmp_path / "two")
    same = a_file(model, tmp_path / "same")
    shutil.copy(same, tmp_path / "one")
    assert len(read(tmp_path / "one")) == 5
    first.rename(first.with_name("1-a.jsonl.zst"))
    shutil.copy(second, tmp_path / "one" / "2-b.jsonl.zst")
    with pytest.raises(UsageError, match=r"2-b\.jsonl\.zst, line 1: its ask has another answer in this folder"):
        read(tmp_path / "one")


def test_a_frame_that_could_be_written_in_part_only_is_taken_back(
    model: Whole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_file(model, tmp_path / "asked", (1,))
    kept = recording.Recording(tmp_path / "asked")
    asked = []
    for ask in prompts(3, 10):
        known = recorded_asks.Ask(ask, model.settings)
        asked.append((known.key, known, model.answer(ask)))
    kept.add(asked[:1])
    write = os.write

    def half(descriptor: int, data: bytes) -> int:
        if len(data) < 200:
            raise OSError(28, "No space left on device")
        return write(descriptor, data[:100])

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", half)
        with pytest.raises(UsageError, match="No space left on device"):
            kept.add(asked[1:2])
    assert kept.get(asked[1][0]) is None
    kept.add(asked[2:])
    again = read(tmp_path / "asked")
    assert [again.get(key) is not None for key, _, _ in asked] == [True, False, True]


def test_a_folder_that_was_taken_away_is_begun_again(model: Whole, tmp_path: Path) -> None:
    first = recorded(model, tmp_path / "asked").complete(prompts(2))
    shutil.rmtree(tmp_path / "asked")
    assert recorded(model, tmp_path / "asked").complete(prompts(2)) == first
    assert len(sent(model)) == 4
    assert len(read(tmp_path / "asked")) == 2


def test_a_recording_is_played_from_a_folder_that_cannot_be_written(
    model: Whole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = recorded(model, tmp_path / "asked").complete(prompts(2))
    (tmp_path / "asked" / "lock").unlink()
    (tmp_path / "asked").chmod(0o500)
    recording.opened_recording.cache_clear()
    try:
        assert replace(recorded(model, tmp_path / "asked"), mode="play").complete(prompts(2)) == first
        assert not (tmp_path / "asked" / "lock").exists()
    finally:
        (tmp_path / "asked").chmod(0o700)
