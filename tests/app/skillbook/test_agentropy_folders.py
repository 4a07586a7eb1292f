"""Skillbooks of a run, written as agentropy keeps them, are read back equal, and replay as a history."""

import shutil
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import skg_bench
from skg_bench.app.cli import app
from skg_bench.app.skillbook.agentropy_folders import convert_to_agentropy
from skg_bench.app.skillbook.rebuilt import book
from skg_bench.core.calendar import FIRST_MONDAY
from skg_bench.core.errors import UsageError
from skg_bench.embedder.precomputed import Precomputed
from skg_bench.runfolder.run import Run, ratings
from skg_bench.skillbook.agentropy import read_agentropy
from tests.simulator.logs.logs import recorded


@pytest.fixture(scope="module")
def written(tiny_run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("agentropy") / "skg"
    done = CliRunner().invoke(app, ["skillbook", "convert", str(tiny_run.path), "--arm", "skg", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "4 skillbooks of arm skg" in done.output
    return out


@pytest.mark.req("K21")
def test_a_converted_skillbook_is_read_back_equal_with_its_vectors(tiny_run: Run, written: Path) -> None:
    for user in range(4):
        content = read_agentropy(written / f"user-{user}", FIRST_MONDAY)
        assert content.book == book(tiny_run, "skg", user)
        messages = [m for s in content.book.skills if s.active for m in s.examples]
        assert messages
        assert np.array_equal(np.rint(content.vectors * 4000), Precomputed(None).embed(messages))


def test_a_written_skillbook_is_open_to_its_owner_only(written: Path) -> None:
    assert {folder.stat().st_mode & 0o777 for folder in written.iterdir()} == {0o700}


def test_examples_hold_the_answers_that_were_stored_where_these_were_right(tiny_run: Run, written: Path) -> None:
    turns = tiny_run.turns("skg", users=[0]).to_pylist()
    content = read_agentropy(written / "user-0", FIRST_MONDAY)
    texts = [answer for answers in content.answers for answer in answers]
    assert len(texts) == sum(len(s.examples) for s in content.book.skills)
    right = {row["message"] for row in turns if row["answer_correct"] and row["request_type"] is not None}
    for skill, answers in zip(content.book.skills, content.answers, strict=True):
        for message, answer in zip(skill.examples, answers, strict=True):
            assert (answer is not None) <= (message in right)
    assert any(answer is not None for answer in texts)


@pytest.mark.req("K14", "K15")
def test_signals_are_the_turns_of_the_log(tiny_run: Run, written: Path) -> None:
    turns = tiny_run.turns("skg", users=[1]).to_pylist()
    signals = read_agentropy(written / "user-1", FIRST_MONDAY).signals
    assert [line["user_msg_id"] for line in signals] == [row["user_msg_id"] for row in turns]
    assert [datetime.fromisoformat(line["time"]) for line in signals] == [row["time"] for row in turns]
    late = {row["turn"]: row["rating"] for row in ratings(tiny_run.feedback("skg", users=[1])).to_pylist()}
    assert [line["user_satisfaction"] for line in signals] == [late.get(row["turn"]) for row in turns]
    assert {line["user_satisfaction"] for line in signals} <= {"ok", "partial", "miss", None}


def test_a_written_folder_replays_as_a_history(tiny_run: Run, written: Path, tmp_path: Path) -> None:
    again = skg_bench.run(
        ["simulator=agentropy", f"simulator.path={written}", "embedder=corpus_minilm", f"out={tmp_path / 'run'}"]
    )
    assert again.manifest["log"]["users"] == 4
    assert again.manifest["log"]["left_out"] == {}
    before, after = tiny_run.turns("skg"), again.turns("never")
    assert sorted(after["message"].to_pylist()) == sorted(before["message"].to_pylist())
    by_llm = before["fallback_to_llm"].to_numpy()
    rated = {(row["user"], row["turn"]) for row in ratings(tiny_run.feedback("skg")).to_pylist()}
    where = zip(before["user"].to_pylist(), before["turn"].to_pylist(), by_llm, strict=True)
    kept = sum((user, turn) in rated and llm for user, turn, llm in where)
    assert again.feedback("never").num_rows == kept < len(rated)  # what a skill answered, an LLM would not give again


@pytest.mark.req("K21")
def test_a_scorer_that_the_run_has_kept_is_written_beside_in_a_safe_format(tiny_run: Run, tmp_path: Path) -> None:
    copied = tmp_path / "run"
    shutil.copytree(tiny_run.path, copied)
    (copied / "pool").mkdir(exist_ok=True)
    (copied / "pool" / "skg.json").write_text('{"scorer": 1}', "utf-8")
    convert_to_agentropy(copied, "skg", [3], tmp_path / "out")
    assert (tmp_path / "out" / "user-3" / "rerank-model.json").read_text("utf-8") == '{"scorer": 1}'
    convert_to_agentropy(tiny_run.path, "skg", [3], tmp_path / "other")
    assert not (tmp_path / "other" / "user-3" / "rerank-model.json").exists()


def test_one_folder_is_one_user_and_signals_without_times_are_put_an_hour_apart(written: Path, tmp_path: Path) -> None:
    simulator = recorded(written / "user-2", "agentropy")
    assert simulator.record.users == 1
    assert "time" not in simulator.record.assumes
    lines = read_agentropy(written / "user-2", FIRST_MONDAY).signals
    folder = tmp_path / "user-2"
    folder.mkdir()
    for file in (written / "user-2").iterdir():
        text = file.read_bytes()
        (folder / file.name).write_bytes(text.replace(b'"time"', b'"when"') if file.name == "signals.jsonl" else text)
    (folder / "rerank-model.pkl").write_bytes(b"\x80\x04.")
    bare = recorded(folder, "agentropy")
    events = bare.population(0, np.zeros(1, np.int32), bare.record.weeks)
    assert [bare.messages[i] for i in events.text[0]] == [line["message"] for line in lines]
    assert set(np.diff(events.time[0]).tolist()) == {3600}
    assert "invented for user-2" in bare.record.assumes["time"]
    assert "is not opened" in bare.record.assumes["model"]


def test_what_cannot_be_converted_is_refused(tiny_run: Run, written: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="user-0 is there already"):
        convert_to_agentropy(tiny_run.path, "skg", [0], written)
    with pytest.raises(UsageError, match="user=9"):
        convert_to_agentropy(tiny_run.path, "skg", [9], tmp_path)
    with pytest.raises(UsageError, match="has no arm 'x'"):
        convert_to_agentropy(tiny_run.path, "x", [0], tmp_path)
    with pytest.raises(UsageError, match="is no agentropy index"):
        recorded(tmp_path, "agentropy").record  # noqa: B018
    hidden = [f"simulator.path={written}", "simulator.redact=true", "embedder=corpus_minilm", f"out={tmp_path / 'run'}"]
    run = skg_bench.run(["simulator=agentropy", *hidden])
    with pytest.raises(UsageError, match="hashes in place of messages"):
        convert_to_agentropy(run.path, "skg", [0], tmp_path / "out")
    for words in (["convert", str(run.path), "--to", "v2", "--out"], ["push", str(run.path)]):
        ended = CliRunner().invoke(app, ["skillbook", *words, str(tmp_path / "out"), "--arm", "skg"])
        assert (ended.exit_code, "hashes in place of what skills say" in ended.output) == (2, True)
    assert not (tmp_path / "out").exists()
