"""Law 5: nothing is used before it is known; law 9: what is never known is counted."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from skg_bench.analysis import summary
from skg_bench.core.calendar import EPOCH
from skg_bench.core.world import World
from skg_bench.runfolder.run import Run
from skg_bench.runfolder.shards import LogName
from tests.laws import world
from tests.laws.conftest import SOME, USERS
from tests.laws.worlds_apart import Moody

DAY = 86_400


def seconds(column: pa.ChunkedArray) -> np.ndarray:
    """A time column as seconds of the run."""
    since: np.ndarray = column.cast(pa.int64()).to_numpy() // 1000 - EPOCH
    return since


def until(run: Run, log: LogName, arm: str, cut: int) -> pa.Table:
    """Rows of turns up to a time; of feedback those known by then."""
    table = world.rows(run, log, arm, range(SOME))
    known = {"feedback": "known_at", "learning": "start"}.get(log, "time")
    return table.filter(pa.array(seconds(table[known]) <= cut))


@pytest.mark.parametrize("cut", [2 * DAY + 15 * 3600, pytest.param(5 * DAY + 12 * 3600, marks=pytest.mark.soak)])
@pytest.mark.req("P27")
def test_a_rating_changes_nothing_before_it_is_known(base: Run, tmp_path: Path, cut: int) -> None:
    arms = tuple(arm for arm in world.ALL if arm != "mlp_pool")  # all that the people of a pool said is known before
    plan = world.plan(SOME, arms)
    moody = replace(plan, simulator=cast("World[Any]", Moody(plan.simulator, cut)))
    second = world.carry_out(moody, tmp_path / "second", SOME, 256)
    later = set()
    for arm in arms:
        for log in world.LOGS:
            a, b = until(base, log, arm, cut), until(second, log, arm, cut)
            assert a.num_rows > 0 or log in ("updates", "learning")
            assert world.unlike(a, b) == [], (arm, log)
        later |= {
            difference for difference in world.differences(base, second, range(SOME), [arm]) if " turns " in difference
        }
    for arm in ("skg", "frozen_book", "prompted", "epsilon", "identity", "random", "always"):
        assert f"{arm} turns preference" in later  # and afterwards it does change something
    for arm in ("skg", "frozen_book"):
        assert f"{arm} turns score" in later


@pytest.mark.req("P27", "K15")
def test_every_rating_comes_with_the_turn_or_later_and_none_is_lost(base: Run, tmp_path: Path) -> None:
    arms = ("skg", "prompted", "always", "random", "never")
    some = world.summed(base, tmp_path / "run", USERS, arms)
    summary.write_summary(some)
    pending = summary.read_summary(some).totals
    for arm in arms:
        turns = base.turns(arm, ["time", "user_satisfaction", "skill"])
        feedback = base.feedback(arm)
        key = feedback["user"].to_numpy().astype(np.int64) * 10_000 + feedback["turn"].to_numpy()
        assert len(np.unique(key)) == len(key)
        at = np.searchsorted(turns["user"].to_numpy().astype(np.int64) * 10_000 + turns["turn"].to_numpy(), key)
        assert np.array_equal(turns["time"].to_numpy()[at], feedback["time"].to_numpy())
        assert np.array_equal(turns["skill"].to_numpy()[at], feedback["skill"].to_numpy())
        now = pc.equal(feedback["known_at"], feedback["time"]).to_numpy()
        rating = np.array(feedback["value"].cast("string").to_pylist())
        ratings = np.array(turns["user_satisfaction"].cast("string").to_pylist(), dtype=object)
        expected = np.full(len(ratings), None, dtype=object)
        expected[at[now]] = rating[now]
        assert (ratings == expected).all()
        assert (seconds(feedback["known_at"])[~now] > seconds(feedback["time"])[~now]).all()

        # ratings of uses: known with the turn or by the user's last turn they are in the updates, else pending
        user, last = turns["user"].to_numpy(), np.zeros(2000)
        np.maximum.at(last, user, seconds(turns["time"]))
        used = feedback["skill"].to_numpy() >= 0
        known = seconds(feedback["known_at"]) <= last[feedback["user"].to_numpy()]
        tags = base.updates(arm)
        rated = tags.filter(pc.is_valid(tags["rating"]))
        assert rated.num_rows == (used & known).sum()
        for value in ("ok", "partial", "miss"):
            assert rated["rating"].to_pylist().count(value) == ((rating == value) & used & known).sum()
        assert pending[arm]["pending"] == (seconds(feedback["known_at"]) >= 7 * DAY).sum() > 0
