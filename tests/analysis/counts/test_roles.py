"""Which arm is whose twin."""

from pathlib import Path
from typing import Any

import pytest

from skg_bench.analysis.counts.roles import roles
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from tests.analysis.synthetic import ARMS, World, make_run
from tests.runs import changed


def _with(run: Run, compositions: dict[str, Any]) -> Run:
    return changed(run, compositions=compositions)


def test_a_frozen_arm_belongs_to_the_arm_that_is_the_same_but_for_the_freezing(tmp_path: Path) -> None:
    run = make_run(
        tmp_path / "run", users=2, weeks=1, arms={**ARMS, "band": World(), "frozen_9": World(learns_until=9)}
    )
    run_roles = roles(run)
    assert run_roles.frozen == {"frozen": ("skg", 30), "frozen_9": ("skg", 9)}
    assert (run_roles.reference, run_roles.never, run_roles.learner) == ("never", "never", "skg")
    assert run_roles.since("skg") == [0, 9, 30]
    assert run_roles.since("frozen") == [0, 30]
    assert run_roles.since("never") == [0]


def test_a_frozen_arm_that_differs_in_more_than_the_freezing_has_no_twin(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", users=2, weeks=1)
    compositions = run.manifest["compositions"]
    compositions["frozen"]["router"] = {"_target_": "skg_bench.router.exact.Exact"}
    assert roles(_with(run, compositions)).frozen == {}


def test_without_frozen_arms_the_question_is_about_the_first_arm_that_is_no_reference(tmp_path: Path) -> None:
    arms = {"never": ARMS["never"], "skg": ARMS["skg"], "band": World(hit=0.5)}
    assert roles(make_run(tmp_path / "run", users=2, weeks=1, arms=arms)).learner == "skg"


def test_the_learner_is_the_configured_arm_else_the_first_that_the_command_changed(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", users=2, weeks=1, arms={**ARMS, "band": World(), "wide": World()})
    changed_arms = changed(run, changed=["never", "frozen", "band", "wide"])
    assert roles(changed_arms).live == "skg"  # which has a twin
    assert roles(changed_arms).learner == "band"  # neither the reference nor a twin that stopped learning
    assert roles(changed(run, config={**run.config, "learner": "frozen"})).learner == "frozen"
    with pytest.raises(UsageError, match="learner='none' is no arm of"):
        roles(changed(run, config={**run.config, "learner": "none"}))


def test_a_fork_that_learns_nothing_is_the_frozen_twin_of_the_arm_that_it_forks_from(tmp_path: Path) -> None:
    arms = {**ARMS, **{name: World() for name in ("stopped", "halted", "swapped", "donor", "far")}}
    run = make_run(tmp_path / "run", users=2, weeks=1, arms=arms)
    compositions = run.manifest["compositions"]
    none, live = {"_target_": "skg_bench.curator.none.NoLearning"}, compositions["skg"]
    compositions["stopped"] = {**live, "fork": "skg@40", "curator": none}
    compositions["halted"] = {**live, "fork": "skg@50", "freeze": "book", "freeze_at": 50}
    compositions["swapped"] = {**live, "fork": "skg@40", "curator": none, "serving": "prompted"}
    compositions["donor"] = {**live, "fork": "skg@40", "curator": none, "book": "donor"}
    compositions["far"] = {**live, "fork": "never@40", "curator": none}
    assert roles(_with(run, compositions)).frozen == {
        "frozen": ("skg", 30), "stopped": ("skg", 40), "halted": ("skg", 50),
    }  # fmt: skip
