"""Chat exports: conversations in one row each."""

from pathlib import Path

import numpy as np
import pytest

from skg_bench.core.errors import UsageError
from tests.simulator.logs.logs import recorded, turn, write_lines

TIMES = ("2024-03-06T09:00:00", "2024-03-06T10:00:00", "2024-03-06T11:00:00")


def test_a_conversation_is_a_turn_for_each_entry_of_the_user(tmp_path: Path) -> None:
    at = "2024-03-06T09:00:00+00:00"
    conversation = [
        {"role": "user", "content": "hello", "timestamp": None},
        {"role": "assistant", "content": "Hi.", "timestamp": "2024-03-06T08:00:00+00:00"},
        {"role": "user", "content": "and again", "timestamp": None},
        {"role": "assistant", "content": "Yes?", "timestamp": None},
        {"role": "user", "content": "hello", "timestamp": None},
    ]
    rows = [{"hashed_ip": "x1", "timestamp": at, "conversation_hash": "c1", "conversation": conversation}] * 2
    simulator = recorded(write_lines(tmp_path / "chats.jsonl", rows), "wildchat", redact=False)
    events = simulator.population(0, np.arange(simulator.record.users, dtype=np.int32), simulator.record.weeks)
    messages = [simulator.messages[i] for i in events.text[0, :3]]
    assert events.n.tolist() == [3]
    assert messages == ["hello", "and again", "hello"]
    assert (events.time[0, 1] - events.time[0, 0], events.time[0, 2]) == (3600, events.time[0, 1])
    assert simulator.types == ("no intent | answer 1", "no intent | answer 2")
    assert events.truth.type[0, 2] == -1  # it was not answered
    assert simulator.record.left_out == {"an id that an earlier row has": {"rows": 3, "first": [2, 2, 2]}}


def test_a_conversations_rating_belongs_to_no_turn_and_is_refused(tmp_path: Path) -> None:
    rows = [turn("u", TIMES[0], [{"role": "user", "content": "hello"}], stars="ok")]  # type: ignore[arg-type]
    path = write_lines(tmp_path / "chats.jsonl", rows)
    with pytest.raises(UsageError, match="a conversation's satisfaction belongs to none of its turns"):
        recorded(path, columns={"satisfaction": "stars"}).record  # noqa: B018
