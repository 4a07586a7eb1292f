"""First-order lift: it adds up, holds against runs without a skill, and tells a good skill from a harmful one."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import skg_bench
from skg_bench.analysis.counts.metrics import Utility
from skg_bench.analysis.counts.outcomes import worth_of
from skg_bench.analysis.lift.first_order import first_order
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from tests.analysis.lift.conftest import KTH, arms
from tests.app.test_cli import call, refused


@pytest.mark.parametrize("arm", ["everything", "skg", "prompted"])
def test_lifts_and_the_rest_add_up_to_the_whole_difference(base: Run, arm: str) -> None:
    lifts, prices = first_order(base, arm, "never"), Utility.of(base.config)
    mine, alone = (worth_of(base, each, prices)["utility"].to_numpy().sum() for each in (arm, "never"))
    assert lifts.whole == pytest.approx(mine - alone, abs=1e-9)
    assert (lifts.rest == 0) == (arm == "everything")  # who asks nobody differs at hits alone
    hits = ~base.turns(arm, ["fallback_to_llm"])["fallback_to_llm"].to_numpy()
    assert lifts.served.sum() == hits.sum() > 10
    assert lifts.turns.sum() == len(hits)
    assert (lifts.total[lifts.served.sum(axis=1) == 0] == 0).all()


def test_it_is_near_what_a_run_without_the_skill_shows(base: Run) -> None:
    """The same where nothing else was captured in its place: 14 of these 18 skills."""
    lifts, prices = first_order(base, "everything", "never"), Utility.of(base.config)
    whole = worth_of(base, "everything", prices)
    exact, near = list[float](), list[float]()
    for k in KTH:
        without = worth_of(base, f"without_{k}", prices)
        gap = whole["utility"].to_numpy() - without["utility"].to_numpy()
        by_user = np.bincount(whole["user"].to_numpy(), gap)
        for row, user in enumerate(lifts.users.tolist()):
            at = np.flatnonzero((lifts.user == row) & (lifts.skill == k))
            exact.append(by_user[user])
            near.append(float(lifts.total[at].sum()))
    same = np.isclose(exact, near, atol=1e-9)
    assert 0.6 < same.mean() < 1
    assert np.count_nonzero(np.array(exact)[same]) > 0


def test_a_harmful_skill_is_the_worst_and_a_good_one_the_best(base: Run) -> None:
    lifts = first_order(base, "everything", "never")
    share = lifts.right / np.maximum(lifts.served.sum(axis=1), 1)
    served = lifts.served.sum(axis=1) > 1
    worst, best = (at[served[at]] for at in (np.argsort(lifts.total)[:20], np.argsort(-lifts.total)[:20]))
    assert share[worst].max() < 0.5
    assert share[best].min() > 0.8


# ------------------------------------------------------------------------------------------------------ command


def test_the_command_lists_the_worst_and_writes_all(base: Run, tmp_path: Path) -> None:
    code, printed, _ = call("skills", str(base.path), "--arm", "everything", "--out", str(tmp_path / "all.csv"))
    assert code == 0
    lifts = first_order(base, "everything", "never")
    assert f"{len(lifts.skill):,} skills of 6 users" in printed
    assert f"lift of all: {lifts.total.sum():+,.2f} utility beyond never" in printed
    rows = list(csv.DictReader((tmp_path / "all.csv").read_text("utf-8").splitlines()))
    assert len(rows) == len(lifts.skill)
    assert sum(float(row["lift"]) for row in rows) == pytest.approx(lifts.total.sum())
    assert [float(row["lift"]) for row in rows] == sorted(float(row["lift"]) for row in rows)
    assert rows[0]["name"][:9] in printed
    assert "unnamed" not in printed


def test_the_interval_of_a_share_stays_within_all_and_nothing(base: Run) -> None:
    """Of six users, whose shares lie far apart, Student's interval leaves 0 to 100 %."""
    found = [
        re.search(r"([-0-9.]+) % hurt \(([-0-9.]+) % to ([-0-9.]+) %", call("skills", str(base.path), "--arm", arm)[1])
        for arm in ("everything", "skg", "prompted")
    ]
    shares = [[float(share) for share in each.groups()] for each in found if each]
    assert len(shares) == 3
    assert [(low, high) for mean, low, high in shares if not 0 <= low <= mean <= high <= 100] == []
    assert any(low == 0 or high == 100 for _, low, high in shares)


def test_what_has_no_lift_is_refused_by_name(base: Run, tmp_path: Path) -> None:
    assert "--arm nix: valid: " in refused("skills", str(base.path), "--arm", "nix")
    alone = skg_bench.run(
        ["users=2", "weeks=1", arms(skg=[]), "reference=skg", f"out={tmp_path / 'run'}"], progress=False
    )
    assert "'+arms.never=[policy=never,curator=none]'" in refused("skills", str(alone.path))
    with pytest.raises(UsageError, match="have other turns"):
        first_order(Shortened(base.path), "skg", "never")


class Shortened(Run):
    """A run whose arm `never` lacks its last turn."""

    def turns(self, arm, columns=None, users=None):  # type: ignore[no-untyped-def]
        table = super().turns(arm, columns, users)
        return table.slice(0, len(table) - 1) if arm == "never" else table


def test_squares_and_the_decisive_turn_are_those_of_the_servings(base: Run) -> None:
    lifts, prices = first_order(base, "everything", "never"), Utility.of(base.config)
    mine, alone = (worth_of(base, each, prices) for each in ("everything", "never"))
    gain = mine["utility"].to_numpy() - alone["utility"].to_numpy()
    user, turn = mine["user"].to_numpy(), mine["turn"].to_numpy()
    skill = base.turns("everything", ["skill"])["skill"].to_numpy()
    worst = np.argsort(lifts.total, kind="stable")
    for i in (*worst[:5].tolist(), *worst[-5:].tolist()):
        at = (user == lifts.users[lifts.user[i]]) & (skill == lifts.skill[i])
        assert lifts.squares[i] == pytest.approx((gain[at] ** 2).sum())
        extreme = gain[at].min() if lifts.total[i] < 0 else gain[at].max()
        assert gain[at][turn[at] == lifts.decisive[i]].tolist() == [extreme]
    assert ((lifts.decisive < 0) == (lifts.served.sum(axis=1) == 0)).all()


def test_intervals_are_those_of_student_at_the_level_of_bonferroni(base: Run) -> None:
    lifts, prices = first_order(base, "everything", "never"), Utility.of(base.config)
    low, high = lifts.intervals()
    served = lifts.served.sum(axis=1)
    assert (np.isnan(low) == (served < 5)).all()
    i = int(np.argmax(served))
    mine, alone = (worth_of(base, each, prices) for each in ("everything", "never"))
    gain = mine["utility"].to_numpy() - alone["utility"].to_numpy()
    skill = base.turns("everything", ["skill"])["skill"].to_numpy()
    values = gain[(mine["user"].to_numpy() == lifts.users[lifts.user[i]]) & (skill == lifts.skill[i])]
    level = 1 - 0.05 / (served > 0).sum()
    ends = stats.t.interval(level, len(values) - 1, values.mean(), stats.sem(values))
    assert (low[i], high[i]) == pytest.approx(tuple(len(values) * end for end in ends))
