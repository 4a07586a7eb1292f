"""Archiving by the lift that feedback tells: what it counts, and how it scores against truth."""

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import skg_bench
from skg_bench.core.batch import REMOVE, UPDATE
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import RATING, RETRACTED, KnownFeedback
from skg_bench.core.types import RATINGS
from skg_bench.curator.lift import LiftLimit
from skg_bench.curator.oracle import RightAnswers
from skg_bench.runfolder.run import Run
from skg_bench.skillbook.library.strategies import packaged
from tests.curator.test_curators import PAPER, curated, operations, turn

OK, MISS = RATINGS.index("ok"), RATINGS.index("miss")
KIND = "impulse-check-generic"
RULES = "curator.curator.remove_after=null, curator.deviations=1, curator.least=3"


def known(*rows: tuple[int, int, int, int]) -> KnownFeedback:
    """Rows of user, kind, value and skill."""
    columns = np.array(rows, np.int32).reshape(-1, 4).T
    return KnownFeedback(columns[0], np.zeros(len(rows), np.int32), columns[1], columns[2], columns[3])


def archived(limit: LiftLimit, said: KnownFeedback) -> list[tuple[int, int]]:
    seen, offer, name, _, books = turn(3)
    inside = curated(PAPER, seen, offer, name, said, books)
    batch = curated(limit, seen, offer, name, said, books)
    assert [int(op) for op in batch.op[: len(inside.op)]] == [int(op) for op in inside.op]
    reason = len(limit.reasons) - 1
    return [(op["row"], op["skill"]) for op in operations(batch, REMOVE) if op["reason"] == reason]


def candidate() -> tuple[int, int]:
    """A skill that is active, and that the curator inside leaves alone."""
    seen, offer, name, _, books = turn(3)
    batch = curated(PAPER, seen, offer, name, known(), books)
    touched = {(op["row"], op["skill"]) for op in (*operations(batch, UPDATE), *operations(batch, REMOVE))}
    row, skill = next((u, s) for u, s in zip(*np.nonzero(books.active), strict=True) if (u, s) not in touched)
    return int(row), int(skill)


def test_a_skill_goes_when_its_user_rates_all_else_better_for_certain() -> None:
    row, skill = candidate()
    bad, good = [(row, RATING, MISS, skill)] * 8, [(row, RATING, OK, -1)] * 8
    limit = LiftLimit(PAPER, 1.64, 5)
    assert (row, skill) in archived(limit, known(*bad, *good))
    assert (row, skill) not in archived(limit, known(*bad, *[(row, RATING, MISS, -1)] * 8))
    assert (row, skill) not in archived(limit, known(*bad[:4], *good))  # too few ratings
    assert (row, skill) not in archived(limit, known(*bad, *good[:4]))  # too few of all else
    assert (row, skill) not in archived(LiftLimit(PAPER, 20.0, 5), known(*bad, *good))
    back = [(row, RETRACTED, MISS, skill)] * 4
    assert (row, skill) not in archived(limit, known(*bad, *good, *back))  # ratings that no longer count


def test_it_wraps_no_oracle_and_takes_numbers_alone() -> None:
    with pytest.raises(UsageError, match="cannot wrap a curator that sees the truth"):
        LiftLimit(RightAnswers(), 1.0, 5)
    with pytest.raises(UsageError, match="deviations=-1"):
        LiftLimit(PAPER, -1, 5)
    with pytest.raises(UsageError, match="least=0"):
        LiftLimit(PAPER, 1, 0)


def shoppers(folder: Path, persuades: float, out: Path, *more: str) -> Run:
    """The Guardian's world in which one kind of strategy persuades so much less or more, with three ways to archive."""
    shutil.copytree(packaged(), folder)
    text = (folder / "kinds.toml").read_text()
    start = text.index(f"[kind.{KIND}]")
    (folder / "kinds.toml").write_text(
        text[:start] + re.sub(r"persuades = \S+", f"persuades = {persuades}", text[start:], count=1)
    )
    arms = f"live: [curator.remove_after=null], counters: [], lift: [curator=lift, curator.curator=reflective, {RULES}]"
    given = f"curator.curator.strategies={folder}"
    arms = arms.replace(RULES, f"{RULES}, '{given}'")
    own = f"'curator.strategies={folder}'"
    arms = arms.replace("remove_after=null]", f"remove_after=null, {own}]").replace(
        "counters: []", f"counters: [{own}]"
    )
    return skg_bench.run([
        "experiment=guardian", f"simulator.strategies={folder}",
        f"arms={{{arms}, never: [policy=never, curator=none]}}",
        "reference=never", "contrasts=[]", "users=60", "weeks=26", "simulator.volume_spread=0.05",
        "workers=1", f"out={out}", *more,
    ])  # fmt: skip


def scored(run: Run, arm: str, kind: str | None = None) -> tuple[float, float, int]:
    """Share of bad skills among all that were rated, among those that were archived, and how many these are. Bad is of
    the planted kind, or else worth less than the generic question at the events at which it was said.
    """
    columns = ["skill", "worth_expected", "strategy"]
    mine, never = run.turns(arm, columns), run.turns("never", columns)
    skill, user = mine["skill"].to_numpy(), mine["user"].to_numpy()
    gain = mine["worth_expected"].to_numpy() - never["worth_expected"].to_numpy()
    if kind is not None:
        gain = -(np.array(mine["strategy"].to_pylist(), object) == kind).astype(np.float64)
    sums: dict[tuple[int, int], list[float]] = {}
    for u, s, g in zip(user.tolist(), skill.tolist(), gain.tolist(), strict=True):
        if s >= 0:
            sums.setdefault((u, s), []).append(g)
    bad = {key: float(np.mean(values)) < (0 if kind is None else -0.5) for key, values in sums.items()}
    heard = {(row["user"], row["skill"]) for row in run.feedback(arm).to_pylist() if row["skill"] >= 0} & set(bad)
    rows: list[dict[str, Any]] = run.updates(arm, ["user", "op", "skill"]).to_pylist()
    gone = {(row["user"], row["skill"]) for row in rows if row["op"] == "REMOVE"} & set(bad)
    shares = [float(np.mean([bad[key] for key in keys])) if keys else float("nan") for keys in (heard, gone)]
    return shares[0], shares[1], len(gone)


@pytest.mark.usefixtures("bare")
def test_a_planted_kind_is_archived_more_often_than_by_a_coin(tmp_path: Path) -> None:
    """Users listen to an average kind in 73 % of cases, to the planted one in 5 %, and skills are chosen at random: a
    chooser that reads ratings leaves a bad skill alone before it has enough of them.
    """
    changes = ("simulator.persuades=1.0", "policy=uniform", "~arms.live")
    run = shoppers(tmp_path / "strategies", -4.0, tmp_path / "run", *changes)
    coin, share, count = scored(run, "lift", KIND)
    assert count > 100
    assert share > 2 * coin
    coin, share, count = scored(run, "counters", KIND)
    assert count > 100
    assert share > 2 * coin


@pytest.mark.usefixtures("bare")
def test_in_the_guardians_world_neither_rule_makes_users_better_off(tmp_path: Path) -> None:
    run = shoppers(tmp_path / "strategies", -1.2, tmp_path / "run")  # as it is
    worth = {arm: run.turns(arm, ["worth_expected"])["worth_expected"].to_numpy().mean() for arm in run.arms}
    assert max(worth["lift"], worth["counters"]) < worth["live"]
    for arm in ("lift", "counters"):
        coin, share, count = scored(run, arm)
        assert count > 50
        assert share < 2 * coin  # who archives by it archives mostly what was good
