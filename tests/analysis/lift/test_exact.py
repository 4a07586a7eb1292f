"""Exact lift: what runs without the skill show, to the last bit; and what cannot be played again."""

import csv
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skg_bench
from skg_bench.analysis.counts.metrics import Utility
from skg_bench.analysis.counts.outcomes import worth_of
from skg_bench.analysis.lift.first_order import Lifts, first_order
from skg_bench.app.left_out import exact_lifts
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I64
from skg_bench.engine.cohort import Rollout
from skg_bench.runfolder.run import Run
from tests.analysis.lift.conftest import KTH, NEVER, WORLD, arms
from tests.app.test_cli import call, refused


def exact(run: Run, lifts: Lifts, chosen: I64, arm: str = "everything") -> F64:
    return exact_lifts(run, arm, lifts, chosen, lambda _done, _total: None, trust=False)


def gap_of_runs(run: Run, arm: str, without: str, users: int) -> list[float]:
    """Utility of each user under an arm, less that under another."""
    prices = Utility.of(run.config)
    mine, other = (worth_of(run, each, prices) for each in (arm, without))
    gap, user = mine["utility"].to_numpy() - other["utility"].to_numpy(), mine["user"].to_numpy()
    return [float(gap[user == each].sum()) for each in range(users)]


def test_it_is_what_full_runs_without_the_skill_show(base: Run) -> None:
    lifts = first_order(base, "everything", "never")
    chosen = np.flatnonzero(np.isin(lifts.skill, KTH))
    found = dict(
        zip(zip(lifts.user[chosen], lifts.skill[chosen], strict=True), exact(base, lifts, chosen), strict=True)
    )
    shown = {(u, k): gap for k in KTH for u, gap in enumerate(gap_of_runs(base, "everything", f"without_{k}", 6))}
    assert found == {at: pytest.approx(gap, abs=1e-9) for at, gap in shown.items() if at in found}
    assert [found[at] == 0 for at in found] == [shown[at] == 0 for at in found]
    assert len(found) == len(KTH) * 6
    assert any(value < 0 for value in found.values())
    assert any(value > 0 for value in found.values())


def test_skills_give_the_same_bits_in_any_company(base: Run) -> None:
    lifts = first_order(base, "everything", "never")
    turns = np.bincount(worth_of(base, "never", Utility.of(base.config))["user"])
    few = np.flatnonzero(np.isin(lifts.user, np.argsort(turns)[:2]))  # of users whose runs are short
    chosen = few[np.argsort(lifts.total[few], kind="stable")[[0, 1, 2, -2, -1]]]
    assert len(set(lifts.user[chosen])) == 2
    whole = exact(base, lifts, chosen)
    assert np.array_equal(np.concatenate([exact(base, lifts, part) for part in (chosen[:2], chosen[2:])]), whole)
    assert np.array_equal(exact(base, lifts, chosen[::-1]), whole[::-1])
    assert len(exact(base, lifts, chosen[:0])) == 0


def test_memory_is_flat_in_the_number_of_skills(base: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are played in parts as large as a cohort."""
    lifts = first_order(base, "everything", "never")
    turns = np.bincount(worth_of(base, "never", Utility.of(base.config))["user"])
    skills = np.flatnonzero(lifts.user == turns.argmin())
    monkeypatch.setattr(Run, "manifest", {**base.manifest, "config": {**base.config, "cohort": 4}})
    play = Rollout.to_the_end

    def traced(rollout: Rollout, *given: Any) -> None:
        if not tracemalloc.is_tracing():  # from the first turn on: what is loaded before takes more than all rows
            tracemalloc.start()
        play(rollout, *given)

    monkeypatch.setattr(Rollout, "to_the_end", traced)
    run, peaks = Run(base.path), []
    for many in (1, 4, 12):  # with one what is loaded once
        exact(run, lifts, skills[:: len(skills) // many][:many])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.2 * peaks[1]


def test_a_skill_that_was_never_served_is_worth_nothing_nearly_always(base: Run) -> None:
    """Without it another skill may be captured, or the scorer learn at another turn."""
    lifts = first_order(base, "skg", "never")
    idle = np.flatnonzero(lifts.served.sum(axis=1) == 0)
    worth = exact(base, lifts, idle, "skg")
    assert len(idle) > 15
    assert (worth == 0).mean() > 0.95


def test_a_prompted_arm_is_played_again_too(base: Run) -> None:
    lifts = first_order(base, "prompted", "never")
    served = np.flatnonzero(lifts.served.sum(axis=1) > 0)
    worth = exact(base, lifts, served, "prompted")
    assert np.isclose(worth, lifts.total[served], atol=0.2).mean() > 0.9  # offers, at 0.05 each, come at other turns
    assert np.ptp(worth) > 4


class Costlier(Run):
    """A run whose first turns cost more than the engine says today."""

    def turns(self, arm, columns=None, users=None):  # type: ignore[no-untyped-def]
        table = super().turns(arm, columns, users)
        cost = np.where(table["turn"].to_numpy() == 0, 1.0, table["cost_usd"].to_numpy())
        return table.set_column(table.column_names.index("cost_usd"), "cost_usd", pa.array(cost))


def test_other_code_or_data_than_those_of_the_run_are_noticed(base: Run) -> None:
    lifts = first_order(base, "everything", "never")
    with pytest.raises(UsageError, match=r"no longer gives what the run logged \(user \d, turn 0\)"):
        exact(Costlier(base.path), lifts, np.argsort(-lifts.born)[:3])


def test_other_data_are_named(base: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    lifts = first_order(base, "skg", "never")
    other = {**base.manifest, "data": {**base.manifest["data"], "embedder": "0"}}
    monkeypatch.setattr(Run, "manifest", other)
    with pytest.raises(UsageError, match=r"was made from other data \(embedder\)"):
        exact(Run(base.path), lifts, np.arange(1), "skg")


def test_what_cannot_be_played_again_is_refused_by_name(base: Run, tmp_path: Path) -> None:
    assert "--exact none: give a number of skills from 1 on, or all" in refused(
        "skills", str(base.path), "--exact", "none"
    )
    assert "--exact 0: " in refused("skills", str(base.path), "--exact", "0")
    table = {"never": NEVER, "skg": [], "late": ["fork=skg@40", "curator=everything"]}
    forked = skg_bench.run([*WORLD[1:], "users=2", arms(**table), f"out={tmp_path / 'run'}"], progress=False)
    message = refused("skills", str(forked.path), "--arm", "late", "--exact", "1")
    assert "arm 'late' goes on from another arm (fork)" in message


# ------------------------------------------------------------------------------------------------------ command


def test_the_command_says_how_far_the_first_order_is_to_be_trusted(base: Run, tmp_path: Path) -> None:
    table = tmp_path / "all.csv"
    code, printed, _ = call("skills", str(base.path), "--arm", "skg", "--exact", "2", "--out", str(table))
    assert code == 0
    assert "8 of them drawn at random" in printed
    assert "rank correlation" in printed
    assert "first order: what a skill kept others from being captured is not counted" not in printed
    rows = list(csv.DictReader(table.read_text("utf-8").splitlines()))
    played = [row for row in rows if row["exact"]]
    assert 8 + 2 <= len(played) <= 8 + 6
    best = [float(row["exact"] or row["lift"]) for row in rows]
    assert best == sorted(best)


def test_all_skills_exactly_leave_no_interval(base: Run) -> None:
    code, printed, _ = call("skills", str(base.path), "--arm", "skg", "--exact", "all")
    assert code == 0
    (line,) = (line for line in printed.splitlines() if "mean lift of all" in line)
    lifts = first_order(base, "skg", "never")
    worth = exact(base, lifts, np.arange(len(lifts.skill)), "skg")
    assert f"{worth.mean():+.3f} utility; first order" in line


def test_an_arm_without_skills_has_none_to_play(base: Run) -> None:
    code, printed, _ = call("skills", str(base.path), "--arm", "never", "--exact", "3")
    assert code == 0
    assert "never: 0 skills of 6 users" in printed
    assert "exact" not in printed


def test_users_of_another_world_are_played_again_too(tmp_path: Path) -> None:
    """Its yaml has keys that are no parameters."""
    table = {"never": NEVER, "skg": [], "without": ["curator=without", "curator.skill=1"]}
    run = skg_bench.run(
        ["users=3", "weeks=3", "seed=6", "simulator.users.volume_spread=0.1", "workers=1", "simulator=facts",
         "reference=never", arms(**table), f"out={tmp_path / 'run'}"],
        progress=False,
    )  # fmt: skip
    lifts = first_order(run, "skg", "never")
    chosen = np.flatnonzero(lifts.skill == 1)
    shown = gap_of_runs(run, "skg", "without", 3)
    assert exact(run, lifts, chosen, "skg") == pytest.approx([shown[user] for user in lifts.user[chosen]], abs=1e-9)
    assert any(shown)
