"""Guardian's worlds whose truth is known: nothing to learn is found at most as often as stated, and a stated difference
is covered.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from skg_bench.analysis.comparison.compare import compare
from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare
from skg_bench.core.package import DATA
from skg_bench.engine import execute as engine
from skg_bench.launcher.local import Local
from skg_bench.runfolder import schema
from skg_bench.runfolder.run import Run
from skg_bench.simulator.advice.guardian import Guardian
from skg_bench.skillbook.library.strategies import strategies
from tests.runs import save

RUNS, USERS, WEEKS = 30, 40, 5
ALIKE = [f"simulator.{name}=0" for name in ("kinds_apart", "fits", "liking", "liking_here", "discerns", "unsound")]
ALIKE += ["simulator.generic=-0.4", "simulator.persuades=-0.4"]
NO_MOOD = ["simulator.habit=0", "simulator.annoyance=0"]
SHAM = ["curator=sham", "curator.curator=reflective", "curator.tags=coin", "curator.says=any"]
FREE = ["utility.usd=0", "utility.second=0"]


class Group(Run):
    """Some users of a run. Users do not know one another, so that each group is a run of its own."""

    def __init__(self, path: Path, users: range) -> None:
        super().__init__(path)
        self.users = users

    def turns(self, arm: str, columns: Sequence[str] | None = None, users: Sequence[int] | None = None) -> pa.Table:
        return super().turns(arm, columns, self.users)


def runs(out: Path, arms: dict[str, list[str]], *more: str, groups: int = RUNS) -> list[Group]:
    """The same arms for so many groups of users, all in step: a run of each group takes fifteen times as long."""
    composed = compose(
        ["experiment=guardian", "contrasts=[]", f"users={USERS * groups}", f"weeks={WEEKS}",
         f"arms={json.dumps(arms)}", f"reference={next(iter(arms))}", *FREE, *more]
    )  # fmt: skip
    plan = prepare(composed).plan
    out.mkdir(parents=True, exist_ok=True)
    known = {"schema": schema.SCHEMA_VERSION, "arms": list(arms), "config": composed.root, "question": "", "seed": 0}
    known |= {"compositions": composed.arms, "domain": plan.simulator.domain.plain(), "stream": "stateful", "data": {}}
    save(out, {**known, "identity": "0", "users": USERS * groups, "weeks": WEEKS})
    cohort = len(arms) * USERS * groups
    engine.execute(plan, out, cohort=cohort, workers=1, launcher=Local(), progress=lambda *_: None, run=Run(out).key)
    return [Group(out, range(group * USERS, (group + 1) * USERS)) for group in range(groups)]


def differences(some: list[Group]) -> list[Any]:
    """Of utility, of the second arm from the first, with their verdicts."""
    rows = [row for run in some for row in compare([run]).rows if row.metric.name == "utility"]
    assert len(rows) == len(some)
    return [row.difference for row in rows]


def test_where_all_that_can_be_said_is_alike_learning_changes_nothing(tmp_path: Path) -> None:
    live: list[str] = []
    run = runs(tmp_path, {"frozen": ["curator=none"], "live": live}, *ALIKE, *NO_MOOD, groups=1)[0]
    names = ["outcome", "worth", "worth_expected"]
    assert run.turns("live", names).select(names).equals(run.turns("frozen", names).select(names))
    assert not run.turns("live", ["skill"]).equals(run.turns("frozen", ["skill"]))


def test_between_two_placebos_a_difference_is_found_at_most_at_the_nominal_rate(tmp_path: Path) -> None:
    found = [d.significant for d in differences(runs(tmp_path, {"one": SHAM, "other": [*SHAM, "curator.draw=1"]}))]
    assert sum(found) <= stats.binom.ppf(0.999, RUNS, 0.05)


def book(folder: Path, kind: str) -> Path:
    """A skillbook of the first sound strategy of a kind."""
    table = strategies()
    place = next(i for i, k in enumerate(table.kind) if table.kinds[k] == kind and table.sound[i])
    content, whole = table.contents[place], json.loads((DATA / "guardian" / "rookie.v2.json").read_text("utf-8"))
    entry = next(iter(whole["skills"].values()))
    entry |= {"section": content.section, "issue": content.issue, "insight": content.insight}
    entry |= {"keywords": list(content.keywords), "used_count": 0, "helpful_count": 0, "harmful_count": 0}
    entry["neutral_count"] = 0
    file = folder / f"{kind}.json"
    sections = {entry["section"]: [entry["id"]]}
    file.write_text(json.dumps({**whole, "skills": {entry["id"]: entry}, "sections": sections}))
    return file


def _world() -> Guardian:
    simulator = prepare(compose(["experiment=guardian", *NO_MOOD])).plan.simulator
    assert isinstance(simulator, Guardian)
    return simulator


def expected(better: str, other: str, users: int = 3000) -> float:
    """Mean over users of the mean over their triggers of how much more one kind is worth than another."""
    world = _world()
    state = world.begin(2**20, np.arange(users, dtype=np.int32), WEEKS)
    about = np.tile(np.array([[world.kinds.index(better), world.kinds.index(other)]], np.int32), (users, 1))
    total, turns = np.zeros(users), state.events.n
    for turn in range(int(turns.max())):
        worth = world.worth(state, world.events(state, turn), about, np.ones(about.shape, np.bool_))
        total += np.where(turn < turns, worth[:, 0] - worth[:, 1], 0.0)
    return float((total / turns).mean())


@pytest.mark.req("P03")
def test_the_interval_covers_how_much_better_one_kind_is_than_another(tmp_path: Path) -> None:
    better, other = "cooling-off", "impulse-check-generic"
    truth = expected(better, other)
    assert truth > 0.03
    always = ["curator=none", "policy=always"]
    arms = {name: [*always, f"seeds={book(tmp_path, name)}"] for name in (other, better)}
    found = differences(runs(tmp_path / "runs", arms, *NO_MOOD))
    covered = [low <= truth <= high for low, high in (d.estimate.interval(new=True) for d in found)]
    assert sum(covered) >= stats.binom.ppf(0.001, RUNS, 0.95)
    assert sum(d.verdict == "better" for d in found) > RUNS / 2
