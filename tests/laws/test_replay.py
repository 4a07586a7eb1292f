"""Law 8: the logged operations rebuild every past skillbook of every user; law 9: no turn is missing."""

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from skg_bench.core.calendar import EPOCH
from skg_bench.engine.excerpt import events_of_user
from skg_bench.runfolder.run import Run
from skg_bench.skillbook.skillbook import Skillbook, rebuild
from tests.laws import world
from tests.laws.conftest import USERS

SOME = range(USERS)
TIMES = ["time", "born"]


def logged(run: Run, arm: str) -> dict[int, list[dict[str, Any]]]:
    """Rows of the update log by user, times in seconds."""
    table = run.updates(arm, users=SOME)
    seconds = [
        [None if at is None else at // 1000 - EPOCH for at in table[c].cast(pa.int64()).to_pylist()] for c in TIMES
    ]
    by_user: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row, *times in zip(table.drop_columns(TIMES).to_pylist(), *seconds, strict=True):
        by_user[row["user"]].append(row | dict(zip(TIMES, times, strict=True)))
    return by_user


@pytest.mark.parametrize("arm", world.ALL)
@pytest.mark.req("P40", "K18")
def test_the_log_rebuilds_every_book_and_the_turns_carry_its_hash(base: Run, arm: str) -> None:
    turns = base.turns(arm, ["book_hash", "book_version", "book_size"], users=SOME).to_pylist()
    of_turn = {(row["user"], row["turn"]): row for row in turns}
    last = dict(of_turn.keys())
    rng, batches = np.random.default_rng(0), 0
    updates = logged(base, arm)
    for user in SOME:
        rows = updates.get(user, [])
        for until in {last[user], int(rng.integers(0, last[user] + 1))}:
            book, n = rebuild(rows, until)  # which compares the hash after each batch
            row = of_turn[user, until]
            assert (book.hash, book.version) == (row["book_hash"], row["book_version"])
            assert sum(s.active for s in book.skills) == row["book_size"]
        batches += n
    assert (batches > 0) == (arm not in ("deaf", "band"))


def test_turns_without_an_update_keep_version_and_hash(base: Run) -> None:
    for arm in ("skg", "random", "oracle"):
        turns = base.turns(arm, ["book_hash", "book_version"])
        user, version = turns["user"].to_numpy(), turns["book_version"].to_numpy()
        hashes = np.array(turns["book_hash"].to_pylist())
        same_user = user[1:] == user[:-1]
        step = np.diff(version)[same_user]
        assert set(step.tolist()) == {0, 1}
        assert ((hashes[1:] == hashes[:-1])[same_user] == (step == 0)).all()
        updates = base.updates(arm, ["book_version"])
        batches = updates.select(["user", "turn"]).group_by(["user", "turn"]).aggregate([]).num_rows
        first = np.r_[True, user[1:] != user[:-1]]
        assert batches == (step == 1).sum() + (version[first] == 1).sum()


def test_every_event_is_a_turn_under_every_arm(base: Run) -> None:
    """And none is there twice."""
    simulator = world.plan(USERS).simulator
    tables = [events_of_user(simulator, 7, user, 1) for user in range(USERS)]
    counts = np.array([int(table.n[0]) for table in tables])
    for arm in world.ALL:
        turns = base.turns(arm, ["message", "user_msg_id"])
        assert turns.num_rows == counts.sum()
        user, turn = turns["user"].to_numpy(), turns["turn"].to_numpy()
        assert np.array_equal(np.bincount(user), counts)
        assert np.array_equal(turn, np.concatenate([np.arange(n) for n in counts]))
        assert turns["user_msg_id"].to_pylist() == [f"u{u}-t{t}" for u, t in zip(user, turn, strict=True)]
    messages = np.array(simulator.messages, dtype=object)
    texts = np.concatenate([table.text[0] for table in tables])
    assert base.turns("skg", ["message"])["message"].to_pylist() == messages[texts].tolist()


@pytest.mark.req("K14", "K12")
def test_the_logs_of_a_run_agree_with_each_other(base: Run) -> None:
    for arm in ("skg", "answer", "prompted", "epsilon", "oracle"):
        turns, updates = base.turns(arm), base.updates(arm)
        key = turns["user"].to_numpy().astype(np.int64) * 10_000 + turns["turn"].to_numpy()
        at = np.searchsorted(key, updates["user"].to_numpy().astype(np.int64) * 10_000 + updates["turn"].to_numpy())
        op = np.array(updates["op"].cast(pa.string()).to_pylist())
        learned = np.zeros(len(key), np.bool_)
        learned[at[np.isin(op, ["ADD", "UPDATE"])]] = True
        assert np.array_equal(turns["skill_learned"].to_numpy(), learned)
        # an example is the message of its turn; its name was given at the offer
        captured = np.isin(op, ["ADD", "UPDATE"])
        texts = updates["message"].cast(pa.string()).to_pylist()
        messages = turns["message"].cast(pa.string()).to_pylist()
        assert all(texts[i] == messages[at[i]] for i in np.flatnonzero(captured))
        assert np.array_equal(updates["source_turn"].to_numpy()[captured], updates["turn"].to_numpy()[captured])
        # a use is tagged in its turn
        used = updates["uses"].to_numpy() == 1
        hits = ~turns["fallback_to_llm"].to_numpy()
        assert np.array_equal(np.sort(at[used]), np.flatnonzero(hits))
        assert np.array_equal(turns["skill"].to_numpy()[at[used]], updates["skill"].to_numpy()[used])
        # what answered stood in the shortlist, with the score that is logged
        places = turns["shortlist"].combine_chunks().flatten().to_numpy().reshape(len(key), -1)
        combined = turns["combined"].combine_chunks().flatten().to_numpy().reshape(len(key), -1)
        chosen = places == turns["skill"].to_numpy()[:, None]
        assert (chosen[hits].sum(axis=1) == 1).all()
        assert np.array_equal(combined[hits][chosen[hits]], turns["skill_score"].to_numpy()[hits])
        assert pc.all(pc.is_null(turns["matched_skill"])).as_py() or hits.any()
        assert np.array_equal(turns["matched_skill"].is_valid().to_numpy(), hits)
        assert np.array_equal(turns["skill_correct"].is_valid().to_numpy(), hits)


def test_an_empty_log_is_an_empty_book() -> None:
    assert rebuild([]) == (Skillbook(), 0)
