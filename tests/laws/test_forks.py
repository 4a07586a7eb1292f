"""Forks of one prefix: until the fork the rows are those of the other arm, to the bit, whatever comes after."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import copytree

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from skg_bench.assistant.pipeline.components import components
from skg_bench.core.grid import I64
from skg_bench.core.types import Reranker, Scorer, TrainingRows
from skg_bench.engine.ensembles import stacks
from skg_bench.runfolder.run import Run
from skg_bench.runfolder.shards import LogName
from tests.arms import changed
from tests.laws import world
from tests.laws.conftest import FORKED as USERS
from tests.laws.world import FORK

TRUNK = {name: "identity" if name == "scored" else "daring" if name == "twice" else "skg" for name in world.FORKS}
TURN = {name: FORK + 9 if name in ("twice", "hindsight_later") else 0 if name == "at_once" else FORK for name in TRUNK}
ARMS = world.FORKED


@pytest.fixture(scope="module")
def run(forks: Run) -> Run:
    return forks


def rows(run: Run, log: LogName, arm: str, *, first: int = 0, last: int = 2**30) -> pa.Table:
    """Rows of turns from `first` until before `last`."""
    table = world.rows(run, log, arm, range(USERS))
    here = pc.and_(pc.greater_equal(table["turn"], first), pc.less(table["turn"], last))
    return table.filter(here)


def differing(a: pa.Table, b: pa.Table) -> list[str]:
    """Columns that are not the same to the bit."""
    assert a.num_rows == b.num_rows
    return world.unlike(a.drop_columns(["arm"]), b.drop_columns(["arm"]))


@pytest.mark.parametrize("arm", [name for name in world.FORKS if "hindsight" not in name])
def test_until_the_fork_an_arm_is_the_one_that_it_forks_from(run: Run, arm: str) -> None:
    for log in world.LOGS:
        before = [rows(run, log, name, last=TURN[arm]) for name in (arm, TRUNK[arm])]
        assert differing(*before) == []
        assert before[0].num_rows > 100 or TURN[arm] == 0 or log == "learning"  # no trunk asks a model
    after = [rows(run, "turns", name, first=TURN[arm]) for name in (arm, TRUNK[arm])]
    assert bool(differing(*after)) == (arm != "as_before")


def test_a_fork_that_changes_nothing_changes_nothing(run: Run) -> None:
    for log in world.LOGS:
        assert differing(rows(run, log, "as_before"), rows(run, log, "skg")) == []


def test_a_fork_at_the_first_turn_is_its_own_arm(run: Run) -> None:
    for log in world.LOGS:
        assert differing(rows(run, log, "at_once"), rows(run, log, "always")) == []


def test_a_fork_that_learns_nothing_is_frozen(run: Run) -> None:
    for log in world.LOGS:
        assert differing(rows(run, log, "stopped"), rows(run, log, "frozen_all")) == []


def test_the_components_of_a_fork_are_in_force_from_its_turn_on(run: Run) -> None:
    def values(arm: str, column: str) -> np.ndarray:
        return np.array(rows(run, "turns", arm, first=TURN[arm])[column].to_pylist())

    empty = np.array(values("daring", "shortlist").tolist())[:, 0] < 0
    assert np.array_equal(values("daring", "fallback_to_llm"), empty)
    assert set(values("asking", "serving")) == {"llm", "prompted"}
    assert set(np.rint(values("matched", "max_sim") * 1000)) <= {0, 1000}
    assert np.isnan(np.array(rows(run, "turns", "scored", last=FORK)["score"].to_pylist())[:, :5]).all()
    assert (np.array(values("scored", "shortlist").tolist())[:, 5:] >= 0).any()  # a longer shortlist
    twice = rows(run, "updates", "twice")["turn"].to_numpy()
    assert twice.max() < TURN["twice"]
    assert (twice >= FORK).any()


@dataclass(frozen=True)
class Counting:
    """A reranker that keeps what each fit was given."""

    reranker: Reranker
    fits: list[tuple[int, TrainingRows]]

    @property
    def window(self) -> int:
        return self.reranker.window

    def start(self, n_users: int, features: Sequence[str]) -> Scorer | None:
        return self.reranker.start(n_users, features)

    def fit(self, scorer: Scorer, rows: I64, training: TrainingRows) -> Scorer:
        self.fits.append((len(rows), training))
        return self.reranker.fit(scorer, rows, training)


@pytest.mark.req("K19")
@pytest.mark.parametrize("arm", ["renewed", "scored"])
def test_another_recipe_is_fitted_at_the_fork_on_all_ratings_known_until_then(tmp_path: Path, arm: str) -> None:
    plan = world.plan(USERS, (TRUNK[arm], arm))
    counting = Counting(components(plan.arms[1]).reranker, [])
    counted = replace(plan, arms=(changed(plan.arms[1], reranker=counting),))
    run = world.carry_out(counted, tmp_path / "run", USERS, 256)
    turns, labels = run.turns(arm, ["time"]), {"ok": 1.0, "partial": 0.5, "miss": 0.0}
    before = turns.filter(pc.less(turns["turn"], FORK))
    until = dict(zip(before["user"].to_pylist(), before["time"].to_pylist(), strict=True))  # of the last turn before
    ratings = run.feedback(arm).filter(pc.greater_equal(run.feedback(arm)["skill"], 0)).to_pylist()
    known = [r for r in ratings if r["turn"] < FORK and r["known_at"] <= until[r["user"]]]
    late = [r for r in known if r["known_at"] > r["time"]]
    _, first = counting.fits[0]
    assert sorted(first.label) == sorted(labels[r["value"]] for r in known)
    assert len(known) > 10
    assert len(late) > 2
    assert first.features.any(axis=(1, 2)).all()


# ------------------------------------------------------------------------------------------------ given books


def test_hindsight_serves_all_turns_with_the_book_of_the_fork(run: Run) -> None:
    for arm in ("hindsight", "hindsight_later"):
        assert rows(run, "updates", arm).num_rows == 0
        served, live = rows(run, "turns", arm).to_pylist(), rows(run, "turns", TRUNK[arm]).to_pylist()
        at_fork = {row["user"]: row["book_hash"] for row in live if row["turn"] < TURN[arm]}
        assert all(row["book_hash"] == at_fork[row["user"]] for row in served)
        early = [row for row in served if row["turn"] < FORK and not row["fallback_to_llm"]]
        assert [row["source_turn"] for row in early if row["source_turn"] >= row["turn"]]  # answers from the future
        assert {row["answer_correct"] for row in early} == {True, False}


def test_after_the_fork_hindsight_is_the_frozen_arm(run: Run) -> None:
    """Except at the first turn, for which the frozen arm remembers which skill answered before."""
    later = [rows(run, "turns", arm, first=FORK + 1) for arm in ("hindsight", "frozen_all")]
    assert differing(*later) == []


def test_no_age_is_below_zero_in_hindsight(run: Run) -> None:
    """So that a preference is never above what it is for an answer of this very moment."""
    for arm in ("hindsight", "hindsight_later"):
        early = rows(run, "turns", arm, last=FORK)
        values = [np.array(early[c].to_pylist()) for c in ("preference", "score", "combined")]
        assert all(((v <= 1) | np.isnan(v)).all() for v in values)
        assert np.isfinite(values[1][np.array(early["shortlist"].to_pylist()) >= 0]).all()


def sizes(run: Run, arm: str, turn: int) -> dict[int, tuple[int, bytes]]:
    """Size and hash of the books after a turn, by user."""
    table = rows(run, "turns", arm, first=turn, last=turn + 1).to_pylist()
    return {row["user"]: (row["book_size"], row["book_hash"]) for row in table}


def test_a_donors_book_is_another_one_of_about_the_size_of_the_users_own(run: Run) -> None:
    stopped, given = sizes(run, "stopped", FORK), sizes(run, "donor", FORK)
    assert stopped.keys() == given.keys()
    pairs = [(stopped[u][0], given[u][0]) for u in stopped]
    assert len({hash_ for _, hash_ in given.values()} - {bytes(16)}) > 0.9 * sum(n > 0 for _, n in pairs)
    assert not {h for _, h in stopped.values()} & {h for _, h in given.values()} - {bytes(16)}
    others = np.abs(np.subtract.outer([a for a, _ in pairs], [b for _, b in pairs])).mean()
    assert np.mean([abs(a - b) for a, b in pairs]) < 0.75 * others  # of donors dealt out anyhow
    last = {row["user"]: row["book_hash"] for row in rows(run, "turns", "donor").to_pylist()}
    assert all(last[u] == hash_ for u, (_, hash_) in given.items())
    assert rows(run, "updates", "donor", first=FORK).num_rows == 0


# --------------------------------------------------------------------------------------------------- same bits


def test_forks_lie_in_the_stack_of_their_trunk_unless_they_change_what_all_arms_of_a_stack_share() -> None:
    names = [[ARMS[i] for i in stack] for stack in stacks(world.plan(USERS, ARMS).arms)]
    together = [
        "skg", "frozen_all", "always", "as_before", "at_once", "stopped", "daring", "matched", "asking", "noting",
        "twice", "donor", "repeat_last", "oracle",
    ]  # fmt: skip
    assert names == [together, ["identity"], ["renewed"], ["scored"], ["hindsight", "hindsight_later"]]


@pytest.mark.parametrize(("users", "cohort", "workers"), [(2, 1, 1), (6, 40, 2)])
def test_forks_do_not_depend_on_cohorts_workers_and_who_else_runs(
    run: Run, tmp_path: Path, users: int, cohort: int, workers: int
) -> None:
    other = world.run(tmp_path / "other", users, cohort, workers, ARMS[::-1])
    assert world.differences(run, other, range(users), ARMS) == []


def test_a_fork_is_gone_on_with_when_its_trunk_is_finished(run: Run, tmp_path: Path) -> None:
    copytree(run.path, tmp_path / "cut")
    for shard in (tmp_path / "cut" / "turns").iterdir():
        if shard.name.split(".")[0] in ("stopped", "donor", "twice", "hindsight_later"):
            shard.unlink()
    assert world.differences(run, world.run(tmp_path / "cut", USERS, 300, 1, ARMS), range(USERS)) == []
