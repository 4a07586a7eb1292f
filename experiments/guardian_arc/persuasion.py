"""The world in which acceptance rises as the article has it, and users are worse off."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import yaml

from experiments.guardian import chart
from experiments.guardian.lives import Difference, Draw, Life, Lives, mean, over_users, paired
from experiments.guardian.study import Study, lives
from experiments.guardian_arc.measure import accepted, utility
from skg_bench.app.experiment_report import Table
from skg_bench.core.grid import F64

FILE = Path(__file__).with_name("persuasion.yaml")
NAMES = {"live": "learns", "frozen": "learns nothing"}
TURNS = tuple((first, first + 5) for first in range(0, 60, 5))  # windows of interactions
TITLE = "A world in which acceptance rises as claimed, and users are worse off"


def world(whole: Study) -> Lives:
    """What became of its users where the assistant learns, and where it does not."""
    values: Mapping[str, float] = yaml.safe_load(FILE.read_text("utf-8"))
    two = replace(whole, arms=tuple(arm for arm in whole.arms if arm.name in NAMES))
    return lives(two, Draw(0, values))


def worse_off(two: Lives) -> tuple[Difference, Difference]:
    """Learning less not learning, in the same users: what is accepted, and utility a trigger."""
    live, frozen = two["live"], two["frozen"]
    return over_users(accepted(live) - accepted(frozen)), paired(live, frozen, lambda life: life.utility)


def table(two: Lives) -> Table:
    """Acceptance and utility by interaction, and over all."""
    windows = {"first 5": (0, 5), "next 5": (5, 10), "last 20": (40, 60), "all": (0, 60)}
    rows = [
        (NAMES[arm], *(f"{100 * mean(accepted(life, turns)):.0f} %" for turns in windows.values()),
         *(f"{mean(utility(life, turns)):+.3f}" for turns in windows.values()))
        for arm, life in two.items()
    ]  # fmt: skip
    head = ("the assistant", *(f"accepted, {name}" for name in windows), *(f"utility, {name}" for name in windows))
    return Table(TITLE, head, rows)


def words(two: Lives) -> str:
    """The same in a sentence."""
    more, lost = worse_off(two)
    return (
        f"In this world ([`persuasion.yaml`](../experiments/guardian_arc/persuasion.yaml)) {100 * more.mean:.0f} "
        f"points more are accepted where the assistant learns, and its users' utility changes by {lost.mean:+.3f} a "
        f"trigger (standard error {lost.error:.3f}): it learns to talk people out of what they want."
    )


def picture(two: Lives) -> str:
    """Acceptance and utility by interaction: means over users, and their 95 % intervals."""
    how = [
        "Most purchases are really wanted here, and no strategy sees which. An assistant that learns from what users",
        "accept becomes persuasive: they accept ever more, and get ever less of what they want. Across: interactions.",
    ]
    x = [str(last) for _, last in TURNS]
    accepts = {NAMES[arm]: [_interval(accepted(life, turns)) for turns in TURNS] for arm, life in two.items()}
    worth = {NAMES[arm]: [_sum(life, last) for _, last in TURNS] for arm, life in two.items()}
    each = [chart.Curves("Accepted: what the article shows", x, accepts, percent=True),
            chart.Curves("Utility up to here: what users have of it", x, worth)]  # fmt: skip
    return chart.panels(TITLE, how, each)


def _sum(life: Life, last: int) -> chart.Spread:
    return _interval(np.where(life.there[:, :last], life.utility[:, :last], 0.0).sum(axis=1))


def _interval(values: F64) -> chart.Spread:
    each = over_users(values)
    return each.mean - 1.96 * each.error, each.mean, each.mean + 1.96 * each.error
