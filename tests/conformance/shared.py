"""Runs that all components of arms share: by itself, each takes a second to run in all the ways that are compared."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

from skg_bench.app.launch import prepare
from skg_bench.core.errors import UsageError
from skg_bench.engine import tasks
from skg_bench.engine.ensembles import stacks
from skg_bench.engine.plan import Plan
from skg_bench.runfolder.run import Run
from tests.conformance import suite, worlds
from tests.conformance.suite import Case
from tests.laws import world

TRUTH = "truth.json"


@dataclass(frozen=True)
class Shared:
    """The runs `together`, in stacks, each component beside its fork and all others, by one process; and `apart`, each
    component a stack of its own in small cohorts, killed after the first and gone on with by two processes.
    """

    folder: Path

    def differing(self, case: Case) -> list[str]:
        """Where the rows of a component differ between the runs, or from those of its fork."""
        together, apart, users = Run(self.folder / "together"), Run(self.folder / "apart"), range(worlds.USERS)
        itself, fork = (name(case, arm) for arm in ("itself", "fork"))
        assert together.turns(itself).num_rows / len(users) > suite.FORK
        return [*suite.forked(together, users, (itself, fork)), *world.differences(together, apart, users, [itself])]

    def plays(self, case: Case) -> bool:
        """Did the component take part?"""
        return (self.folder / "apart").exists() and name(case, "itself") in Run(self.folder / "apart").arms

    def blind(self, case: Case) -> bool:
        """Does it decide the same where the truth is another?"""
        told = json.loads((self.folder / TRUTH).read_text("utf-8")) if (self.folder / TRUTH).exists() else {}
        return name(case, "itself") in told and not told[name(case, "itself")]


def name(case: Case, arm: str) -> str:
    """Name of an arm of a component in these runs."""
    return f"{case.seam}-{case.option}-{arm}"


def play(every: Sequence[Case], unplayed: Sequence[Case], folder: Path) -> None:
    """Make the runs of all components that can be made here; of those unplayed also where the truth is another.

    A run that fails is left out: each of its components then plays by itself, which names the one that fails.
    """
    folder.mkdir(parents=True)
    here = [case for case in every if _is_here(case, folder)]
    with suppress(Exception):
        _apart(here, folder / "apart.part")
        suite.run(plan_beside(here, forks=True), folder / "together", 10**6)
        (folder / "apart.part").rename(folder / "apart")
    told: dict[str, list[str]] = {}
    blind = [case for case in here if case in unplayed and not suite.oracle(case, folder)]
    for stack in stacks(plan_beside(blind).arms):
        some = [blind[place] for place in stack]
        with suppress(Exception):
            differing, _ = suite.told_otherwise(partial(plan_beside, some), folder / some[0].option)
            arms = [name(case, "itself") for case in some]
            told |= {arm: [where for where in differing if where.startswith(f"{arm} ")] for arm in arms}
    (folder / TRUTH).write_text(json.dumps(told), "utf-8")


def _is_here(case: Case, folder: Path) -> bool:
    """Can it be made here? Else its own test says what is amiss."""
    if str(case) in {**suite.SERVED, **suite.SKIPPED}:
        return False
    try:
        suite.oracle(case, folder)
    except UsageError:
        return False
    return True


def plan_beside(every: Sequence[Case], *, forks: bool = False) -> Plan:
    """An arm of each of these components, which are made anew, and its fork."""
    packages = {case.package for case in every}
    composed = suite.of_arms(tuple(case for case in suite.cases() if case.package in packages))
    arms = {name(case, "itself"): composed.arms[f"{case.seam}-{case.option}"] for case in every}
    if forks:
        arms |= {
            name(case, "fork"): {**arms[name(case, "itself")], "fork": f"{name(case, 'itself')}@{suite.FORK}"}
            for case in every
        }
    root = {**composed.root, "arms": dict.fromkeys(arms), "reference": next(iter(arms)), "contrasts": []}
    return prepare(replace(composed, root=root, arms=arms)).plan


def _apart(every: Sequence[Case], out: Path) -> None:
    """Cohorts of few users by one process, which ends when each component has had its first; then two go on."""

    def kill() -> None:
        if len(list((out / "pieces").iterdir())) >= len(every):
            raise suite.KilledError

    with patch.object(tasks, "stacks", lambda arms: [[place] for place in range(len(arms))]):
        with suppress(suite.KilledError):
            suite.run(plan_beside(every), out, suite.SMALL, tick=kill)
            raise AssertionError("the world is too small to be killed between cohorts")
        suite.run(plan_beside(every), out, suite.SMALL, 2)
