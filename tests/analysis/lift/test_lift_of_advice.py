"""Lift of advice, by its worth to the user: what is planted shows, and the sum is the whole difference."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import skg_bench
from skg_bench.analysis.counts.metrics import Utility
from skg_bench.analysis.counts.outcomes import worth_of
from skg_bench.analysis.lift.first_order import Lifts, first_order, removal
from skg_bench.runfolder.run import Run
from skg_bench.skillbook.library.strategies import packaged
from tests.app.test_cli import call

BAD, GOOD = "values-check", "total-cost"
SHAM = ["curator=sham", "curator.curator=reflective", "curator.tags=coin", "curator.says=any"]


def planted(text: str, kind: str, persuades: float, discerns: float) -> str:
    """Kinds of strategy, one of which does so much."""
    start = text.index(f"[kind.{kind}]")
    end = text.find("[kind.", start + 1)
    table = re.sub(r"persuades = \S+", f"persuades = {persuades}", text[start:end])
    return text[:start] + re.sub(r"discerns = \S+", f"discerns = {discerns}", table) + text[end:]


@pytest.fixture(scope="module")
def advised(once: Callable[..., Path]) -> Run:
    """The Guardian's world, where users listen to one kind about always if the purchase is not wanted, and to another
    one about always, wanted or not; purchases held back that were wanted are dear.
    """

    def make(folder: Path) -> Run:
        kinds = folder.with_name("planted")
        shutil.copytree(packaged(), kinds)
        text = (kinds / "kinds.toml").read_text()
        (kinds / "kinds.toml").write_text(planted(planted(text, BAD, 3.0, 0.0), GOOD, 3.0, 6.0))
        library = f"curator.strategies={kinds}"
        arms = f"live: [curator.remove_after=null, '{library}'], never: [policy=never, curator=none]"
        two = [
            f"draw{i}: [{','.join(SHAM)}, curator.draw={i}, 'curator.curator.{library[8:]}', '{library}']"
            for i in (0, 1)
        ]
        return skg_bench.run([
            "experiment=guardian", f"simulator.strategies={kinds}", "simulator.blocked=3", "policy=uniform",
            f"arms={{{', '.join([arms, *two])}}}", "reference=never", "contrasts=[]", "users=60", "weeks=16",
            "workers=1", f"out={folder}",
        ], progress=False)  # fmt: skip

    return Run(once("advised", make))


def a_serving(lifts: Lifts) -> dict[str, float]:
    """Mean lift per serving of the skills of each kind, named as the reflector names what it learns."""
    names = np.array(lifts.name)
    served = lifts.served.sum(axis=1)
    return {
        name: float(lifts.total[names == name].sum() / served[names == name].sum())
        for name in set(lifts.name)
        if served[names == name].sum() > 50
    }


def test_a_planted_harmful_kind_has_the_lowest_lift_and_a_planted_good_one_the_highest(advised: Run) -> None:
    lift = a_serving(first_order(advised, "live", "never"))
    assert len(lift) >= 10
    assert min(lift, key=lambda name: lift[name]) == BAD
    assert max(lift, key=lambda name: lift[name]) == GOOD
    assert lift[BAD] < 0 < lift[GOOD]


def test_lifts_of_advice_and_the_rest_are_the_whole_difference_in_worth(advised: Run) -> None:
    lifts, prices = first_order(advised, "live", "never"), Utility.of(advised.config)
    mine, alone = (worth_of(advised, arm, prices)["utility"].to_numpy().sum() for arm in ("live", "never"))
    assert lifts.whole == pytest.approx(mine - alone, abs=1e-6)


def test_one_draw_of_a_sham_is_equivalent_to_another(advised: Run) -> None:
    """Sham skills differ by chance alone, so that 95 % intervals of users hold no difference."""
    first, second = (first_order(advised, f"draw{i}", "never") for i in (0, 1))
    gap = np.bincount(first.user, first.total, len(first.users)) - np.bincount(
        second.user, second.total, len(second.users)
    )
    assert abs(gap.mean()) < 2 * gap.std(ddof=1) / np.sqrt(len(gap))


def test_counters_are_read_where_users_rate_nothing(advised: Run) -> None:
    lifts = first_order(advised, "live", "never")
    assert lifts.ratings[:, 1].sum() > 500
    assert (lifts.ratings >= 0).all()
    assert (lifts.ratings[:, 0] <= lifts.ratings[:, 1]).all()
    gone = removal(lifts)
    assert gone.skills > 20
    assert gone.by_lift.mean > gone.by_coin.mean  # what hurt in some weeks is worse than a coin's choice in others


def test_the_command_counts_advice_and_says_why_it_plays_none_again(advised: Run) -> None:
    code, out, _ = call("skills", str(advised.path), "--arm", "live")
    assert code == 0
    assert "together the whole difference" in " ".join(out.split())
    assert "offers" not in out
    code, _, error = call("skills", str(advised.path), "--arm", "live", "--exact", "3")
    assert (code, "leave out --exact" in " ".join(error.split())) == (2, True)
