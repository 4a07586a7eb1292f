"""Asked again: the next message of the same user in the same conversation, by its text and the log's intents."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import skg_bench
from skg_bench.app.building import build
from skg_bench.app.compose import compose
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.simulator.logs.recorded import Recorded
from skg_bench.simulator.logs.recorded_again import alike
from tests.app.test_cli import call
from tests.simulator.logs.logs import turn, write_csv

OPEN = "When do you open?"


def signs(folder: Path, rows: Sequence[tuple[str, str, str, str, str]], *more: str) -> list[bool | None]:
    """Signs of rows (user, conversation, message, intent, answer), which come a minute apart."""
    log = [
        turn(user, f"2026-05-04T10:{i:02d}:00", message) | {"chat": chat, "intent": intent, "answer": answer}
        for i, (user, chat, message, intent, answer) in enumerate(rows)
    ]
    path = write_csv(folder / "log.csv", log)
    columns = "{user: user, time: time, message: message, session: chat, intent: intent, answer: answer}"
    words = ["simulator=recorded", f"simulator.path={path}", f"simulator.columns={columns}", *more]
    simulator: Recorded = build("simulator", compose(words).root["simulator"], COMMAND_LINE)
    known = dict[int, bool | None]()
    for user in range(simulator.record.users):
        n = int(simulator.count(0, np.array([user], np.int32), simulator.record.weeks)[0])
        events = np.arange(n, dtype=np.int32)
        logged = simulator.logged(np.full(n, user, np.int32), events, np.full(n, -1, np.int32))
        known |= dict(zip(logged["logged_row"].to_pylist(), logged["asked_again"].to_pylist(), strict=True))
    return [known[row] for row in sorted(known)]


@pytest.mark.parametrize(
    ("second", "again"),
    [
        ("ann,a,When do you open on Saturday?,hours", True),
        ("ann,a,WHEN do you OPEN,hours", True),
        ("ann,a,Thank you,hours", False),
        ("ann,b,When do you open?,hours", False),  # another conversation
        ("bob,a,When do you open?,hours", False),  # somebody else
        ("ann,a,When do you open?,directions", False),  # about something else
        ("ann,,When do you open?,hours", False),
    ],
)
def test_the_next_message_of_a_conversation_asks_the_same(tmp_path: Path, second: str, again: bool) -> None:
    user, chat, message, intent = second.split(",")
    first = ("ann", "a", OPEN, "hours", "At nine.")
    assert signs(tmp_path, [first, (user, chat, message, intent, "At ten.")])[0] is again


def test_only_the_next_message_counts_whatever_stands_between_of_other_conversations(tmp_path: Path) -> None:
    rows = [
        ("ann", "a", OPEN, "hours", "At nine."),
        ("ann", "b", "How do I get there?", "way", "By bus."),
        ("ann", "a", OPEN, "hours", "At ten."),
        ("ann", "a", "And the price?", "price", "Two."),
        ("ann", "a", OPEN, "hours", ""),
    ]
    assert signs(tmp_path, rows) == [True, False, False, False, None]  # the last has no answer


def test_without_conversations_nothing_is_invented(tmp_path: Path) -> None:
    rows = [("ann", "", OPEN, "", "At nine."), ("ann", "", OPEN, "", "At ten.")]
    assert signs(tmp_path, rows) == [None, None]


def test_a_log_without_intents_goes_by_the_messages_alone(tmp_path: Path) -> None:
    rows = [("ann", "a", OPEN, "", "At nine."), ("ann", "a", f"{OPEN} Please", "", "At ten.")]
    assert signs(tmp_path, rows) == [True, False]


@pytest.mark.parametrize("other", ["?", "", "We moved house last year", "x"])
def test_messages_that_have_little_in_common_are_not_alike(other: str) -> None:
    assert not alike(OPEN, other)
    assert alike(other, other)


def test_conversations_in_a_row_and_dialogues_have_their_own(tmp_path: Path) -> None:
    chat = [{"role": "user", "content": OPEN}, {"role": "assistant", "content": "At nine."}]
    (tmp_path / "chats.jsonl").write_text(json.dumps({"conversation": chat * 2}) + "\n")
    words = ["simulator=conversations", f"simulator.path={tmp_path / 'chats.jsonl'}", "simulator.redact=false"]
    simulator: Recorded = build("simulator", compose(words).root["simulator"], COMMAND_LINE)
    logged = simulator.logged(*(np.array(each, np.int32) for each in ([0, 0], [0, 1], [-1, -1])))
    assert logged["asked_again"].to_pylist() == [True, False]
    assert "session" in simulator.record.knows


def test_data_check_finds_the_column_and_says_where_there_is_none(tmp_path: Path) -> None:
    rows = [
        turn(f"u{i % 2}", f"2026-05-04T10:{i:02d}:00", f"what is {i}")
        | {"answer": "a", "conversation_id": f"c{i // 2}"}
        for i in range(8)
    ]
    write_csv(tmp_path / "log.csv", rows)
    code, out, _ = call("data", "check", str(tmp_path / "log.csv"))
    assert code == 0
    assert "session: conversation_id" in out
    assert "where a user asked the same again in a conversation: a sign" in out
    for row in rows:
        row.pop("conversation_id")
    write_csv(tmp_path / "log.csv", rows)
    assert (
        "no conversations: whether somebody asked again is not known"
        in call("data", "check", str(tmp_path / "log.csv"))[1]
    )


def test_a_run_keeps_the_sign_and_rates_nothing_by_it(tmp_path: Path) -> None:
    rows = [
        turn("ann", f"2026-05-{4 + i // 2:02d}T10:{i % 2:02d}:00", OPEN)
        | {"answer": "At nine.", "session": f"c{i // 2}"}
        for i in range(6)
    ]
    path = write_csv(tmp_path / "log.csv", rows)
    columns = "{answer: answer, session: session}"
    run = skg_bench.run(
        ["simulator=recorded", f"simulator.path={path}", f"simulator.columns={columns}", f"out={tmp_path / 'run'}",
         "embedder=hashing",
         "arms={all: [curator=everything], never: [policy=never, curator=none]}", "reference=never"],
        progress=False,
    )  # fmt: skip
    table = run.turns("all", ["asked_again", "user_satisfaction"])
    assert table["asked_again"].to_pylist() == [True, False] * 3
    assert table["user_satisfaction"].null_count == 6
    assert pa.types.is_boolean(table["asked_again"].type)
