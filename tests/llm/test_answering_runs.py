"""Whole runs whose users are answered by a server: recorded, killed, played again without it, out of money."""

import re
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import skg_bench
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from tests.llm.server import Day, Server
from tests.llm.test_learning_runs import begun, contents, run

ARMS = (
    "arms={never: [policy=never, curator=none], everything: [assistant=recall], "
    "book: [serving=prompted, router=recipe, curator=everything]}"
)

ASKING = """
class Mine:
    def answer(self, user, time, message, model): return model(message)
"""


def overrides(server: Server | None, out: Path, *more: str) -> list[str]:
    """A small run; without a server: whatever stands in the recording."""
    address = "http://127.0.0.1:9/v1" if server is None else server.address
    return [
        "simulator=told", "llm.llm=recorded", f"llm.llm.address={address}", "llm.llm.model=toy",
        "llm.llm.key_from=null",
        ARMS, "reference=never", "users=4", "weeks=2", "cohort=12", "workers=1", f"out={out}", *more,
    ]  # fmt: skip


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Server]:
    """The run, its recording, and the server that was asked and is gone."""
    folder = tmp_path_factory.mktemp("recorded")
    with Server(script="reader") as server:
        ended = run(overrides(server, folder / "run", f"llm.llm.folder={folder / 'recording'}"))
    assert ended.code == 0, ended.text
    return folder / "run", folder / "recording", server


def test_what_a_server_said_is_judged_and_played_again_without_it_to_the_byte(
    recorded: tuple[Path, Path, Server], tmp_path: Path
) -> None:
    first, recording, server = recorded
    assert server.requests > 100
    assert set(server.seen.values()) == {1}  # equal prompts are asked once
    turns = Run(first).turns("everything").to_pandas()
    told = turns[turns["need"] == "told"]
    assert len(told) > 5
    assert (told["states"] == "right").all()
    assert not (Run(first).turns("never").to_pandas()["states"] == "right").any()
    texts = overrides(None, tmp_path / "again", f"llm.llm.folder={recording}", "cohort=3", "workers=2")
    again = run(texts, OFFLINE="1")
    assert again.code == 0, again.text
    assert contents(tmp_path / "again") == contents(first)


def test_a_killed_run_goes_on_without_asking_what_was_answered(
    recorded: tuple[Path, Path, Server], tmp_path: Path
) -> None:
    out = tmp_path / "killed"
    with Server(script="reader", seconds=0.03) as server:
        texts = overrides(server, out, "llm.llm.in_flight=3")
        process = begun(texts)
        while server.requests < 0.5 * recorded[2].requests and process.poll() is None:
            time.sleep(0.01)
        alive = process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.communicate()
        ended = run(texts)
    assert alive
    assert ended.code == 0, ended.text
    assert sum(server.seen.values()) - len(server.seen) <= 3  # those in flight, whose answers no process had
    for arm in ("never", "everything", "book"):
        mine, first = (Run(path).turns(arm).drop_columns(["latency_ms"]) for path in (out, recorded[0]))
        assert mine.equals(first), arm


def test_a_prompt_that_is_not_recorded_is_named_with_what_differs(
    recorded: tuple[Path, Path, Server], tmp_path: Path
) -> None:
    more = "llm.answer_tokens=40"
    refused = run(overrides(None, tmp_path / "out", f"llm.llm.folder={recorded[1]}", more), OFFLINE="1")
    assert refused.code == 2
    assert "is not recorded" in refused.text
    assert "Traceback" not in refused.text


def test_a_budget_that_ends_stops_the_run_and_a_larger_one_goes_on(tmp_path: Path) -> None:
    with Server(script="reader") as server:
        ended = run(overrides(server, tmp_path / "out", "llm.llm.tokens=9000"))
        assert ended.code == 3, ended.text
        assert "the budget of 9,000 tokens is spent" in ended.text
        assert "with a larger llm.llm.tokens to go on" in " ".join(ended.text.split())
        asked = server.requests
        ended = run(overrides(server, tmp_path / "out", "llm.llm.tokens=9000000"))
    assert ended.code == 0, ended.text
    assert asked > 10
    assert set(server.seen.values()) == {1}


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(("day", "more"), [("refused", {}), ("500", {"times": 3})])
def test_on_a_servers_bad_day_answers_that_did_not_come_are_wrong(
    tmp_path: Path, day: Day, more: Mapping[str, Any]
) -> None:
    with Server(day, script="reader", **more) as server:
        made = skg_bench.run(overrides(server, tmp_path / "out", "users=2", "weeks=1", "llm.llm.seconds=10"))
    turns = made.turns("never").to_pandas()
    lost = turns["said"].isna()
    assert lost.all() if day != "500" else not lost.any()
    assert not turns.loc[lost, "answer_correct"].any()


def test_answers_that_did_not_come_are_said_after_the_verdict(tmp_path: Path) -> None:
    """A server that failed at every ask ended with *everything serves its users better than never* and no word more."""
    with Server("500", script="reader") as server:
        ended = run(overrides(server, tmp_path / "out", "users=2", "weeks=1", "llm.llm.tries=1"))
    assert ended.code == 0, ended.text
    made = Run(tmp_path / "out")
    n = made.turns("everything").num_rows
    begins = f"No words came at {n:,} of {n:,} turns of"
    sentences = skg_bench.explain(made)
    assert [text for text in sentences if text.startswith(f"{begins} everything: its model failed")]
    assert [text for text in skg_bench.compare(made).gaps if text.startswith(f"{begins} everything")]
    page = re.sub(r"<[^>]+>", "", (made.path / "report.html").read_text("utf-8"))
    assert f"{begins} everything: its model failed" in page


def test_nothing_is_said_of_failures_where_all_answers_came(recorded: tuple[Path, Path, Server]) -> None:
    assert not any("No words came" in text for text in skg_bench.explain(Run(recorded[0])))


@pytest.mark.parametrize("parameter", ["address=http://127.0.0.1:9/v2", "seconds=30", "tries=1"])
def test_arms_whose_answers_one_recording_cannot_tell_apart_are_refused(parameter: str, tmp_path: Path) -> None:
    """The second server was never asked, and its arm was *identical* to the one whose answers it was given."""
    arms = f"arms={{one: [assistant=recall], two: [assistant=recall, llm.llm.{parameter}]}}"
    texts = [*overrides(None, tmp_path / "out"), "reference=one", arms]
    value = parameter.partition("=")[2]
    with pytest.raises(UsageError, match=f"arms one and two ask toy with .* and {value}.*folder of its own"):
        skg_bench.run(texts)
    assert not (tmp_path / "out").exists()


def test_arms_at_two_servers_have_their_own_answers_with_a_folder_each(tmp_path: Path) -> None:
    with Server(script="reader") as first, Server(script="reader") as second:
        two = f"two: [assistant=recall, 'llm.llm.address={second.address}', llm.llm.folder={tmp_path / 'second'}]"
        texts = [*overrides(first, tmp_path / "out", "users=2", "weeks=1"), "reference=one"]
        ended = run([*texts, f"arms={{one: [assistant=recall], {two}}}"])
    assert ended.code == 0, ended.text
    assert first.requests == second.requests > 10


@pytest.mark.usefixtures("bare")
def test_a_class_is_played_with_a_server_whose_waiting_times_differ(tmp_path: Path) -> None:
    """Its controls called the waiting times a fault of skg_bench, after the first asks had been paid."""
    (tmp_path / "my.py").write_text(ASKING)
    mine = f"mine: [assistant=python, 'assistant.file={tmp_path}/my.py:Mine']"
    with Server(script="reader") as server:
        texts = [*overrides(server, tmp_path / "out"), "llm.llm=endpoint", "users=2", "weeks=1"]
        made = skg_bench.run([*texts, f"arms={{never: [policy=never, curator=none], {mine}}}"])
    said = [made.turns(arm, ["said"])["said"].to_pylist() for arm in ("never", "mine")]
    assert said[0] == said[1]
    assert None not in said[0]


@pytest.mark.parametrize("key", ["llm.llm", "policy.llm", "curator.llm"])
def test_errors_of_a_model_name_the_key_at_which_it_stands(key: str, tmp_path: Path) -> None:
    """All of them named `curator.llm`, which such a run may not have."""
    parts = f"policy=llm_chooser, curator=reflecting, {key}=recorded, {key}.usd=-1"
    with pytest.raises(UsageError, match=rf"arm 'asked': {key}\.usd=-1 must be more than 0"):
        skg_bench.run(["simulator=told", f"arms={{asked: [{parts}]}}", "reference=asked", f"out={tmp_path / 'out'}"])


def test_calls_of_a_model_that_failed_are_not_saved(tmp_path: Path) -> None:
    """A class that asked at every turn had no LLM calls, and saved all of them, where the server was down."""
    (tmp_path / "my.py").write_text(ASKING)
    mine = f"mine: [assistant=python, 'assistant.file={tmp_path}/my.py:Mine']"
    with Server("500", script="reader") as server:
        texts = [*overrides(server, tmp_path / "out", "llm.llm.tries=1"), "users=2", "weeks=1"]
        ended = run([*texts, f"arms={{never: [policy=never, curator=none], {mine}}}"])
    assert ended.code == 0, ended.text
    made = Run(tmp_path / "out")
    (calls,) = [row for row in skg_bench.compare(made).rows if row.metric.name == "llm_calls"]
    assert (calls.mean, calls.reference_mean) == (1, 1)
    n = made.turns("mine").num_rows
    assert any(text.startswith(f"mine asked its model at {n} of {n} turns") for text in skg_bench.explain(made))
