"""A cap on tokens: learning stops at it, user by user, and begins again with the next block of turns."""

from dataclasses import replace

import numpy as np
import pytest

from skg_bench.core.batch import OPERATIONS
from skg_bench.core.errors import UsageError
from skg_bench.curator.cheatsheet import Cheatsheet
from skg_bench.curator.metered import MeteredCurator, Metering
from skg_bench.curator.none import NoLearning
from skg_bench.curator.oracle import RightAnswers
from skg_bench.curator.skg import SKG
from skg_bench.curator.writing import Writing
from skg_bench.simulator.advice.levels import OUTCOME, OVERRIDDEN
from tests.curator.advised import TURNS, Turn
from tests.curator.test_writers import LIMITS, Answering, books

TOKENS = 15  # that a job of `Answering` takes


def sheet() -> Cheatsheet:
    return Cheatsheet(Answering(lambda _role, _data: "<cheatsheet>new</cheatsheet>"), LIMITS, 0.5, 8000, 1000, None)


def heard() -> Turn:
    turn = Turn(3)
    books(turn, "one")
    turn.hear(OUTCOME, OVERRIDDEN)
    turn.seen = replace(turn.seen, skill=np.zeros(3, np.int32))
    return turn


def test_jobs_begin_while_less_than_the_cap_is_spent_and_uses_go_on() -> None:
    curator, turn = MeteredCurator(sheet(), 2 * TOKENS, TURNS + 3), heard()
    spent = np.array([0, 2 * TOKENS - 1, 2 * TOKENS], np.int64)
    state = replace(curator.start(3), spent=spent)
    later, batch = turn.curated(curator, state)
    (jobs,) = turn.jobs
    assert jobs.row.tolist() == [0, 1]
    assert later.spent.tolist() == [TOKENS, 3 * TOKENS - 1, 2 * TOKENS]  # the last job goes beyond
    learned = batch.uses == 0
    assert {OPERATIONS[op] for op in batch.op[learned]} == {"ADD", "REMOVE"}
    assert set(batch.row[learned].tolist()) == {0, 1}
    assert sorted(batch.row[~learned].tolist()) == [0, 1, 2]  # each use once
    assert {curator.reasons[reason] for reason in batch.reason[~learned]} == {"used"}


def test_a_cap_that_nobody_reaches_changes_nothing_and_the_next_block_begins_anew() -> None:
    turn = heard()
    _, free = turn.curated(sheet())
    _, capped = turn.curated(MeteredCurator(sheet(), 10**9, 100))
    assert all(np.array_equal(getattr(free, name), getattr(capped, name)) for name in ("row", "op", "skill", "content"))
    short = MeteredCurator(sheet(), 1, TURNS - 1)  # the turn is the first of the second block
    later, _ = turn.curated(short, Metering(short.curator.start(3), np.zeros(3, np.int32), np.full(3, 99, np.int64)))
    assert turn.jobs[-1].row.tolist() == [0, 1, 2]
    assert (later.block.tolist(), later.spent.tolist()) == ([1] * 3, [TOKENS] * 3)


def test_what_has_no_tokens_and_what_is_no_cap_is_refused() -> None:
    with pytest.raises(UsageError, match=r"curator\.tokens=0 must be at least 1"):
        MeteredCurator(sheet(), 0, 100)
    with pytest.raises(UsageError, match=r"curator\.turns=-1"):
        MeteredCurator(sheet(), 1, -1)
    with pytest.raises(UsageError, match="cannot wrap NoLearning, which would learn on above the cap"):
        MeteredCurator(NoLearning(), 1, 100)
    captures = SKG("any", 0.6, "ok", 3, 60)
    asking = Answering(lambda _role, _data: '{"prompt": "new"}')
    for curator in (captures, Writing(captures, asking, 400, 300, None)):  # its ratings and uses count at any turn
        with pytest.raises(UsageError, match=f"cannot wrap {type(curator).__name__}"):
            MeteredCurator(curator, 1, 100)
    with pytest.raises(UsageError, match="sees the truth"):
        MeteredCurator(RightAnswers(), 1, 100)
