"""The experiment on memories of facts: its table, of a small run."""

from pathlib import Path

import pytest

import skg_bench
from experiments.facts.analysis import analyse, arm_facts
from skg_bench.core.errors import UsageError

ARMS = "arms={never: [policy=never, curator=none], facts_oracle: [assistant=recall, assistant.recalls=about]}"
SMALL = ("users=8", "weeks=3", "embedder=hashing", ARMS)


def test_the_table_says_what_the_oracle_of_facts_gains(tmp_path: Path) -> None:
    run = skg_bench.run(["experiment=facts", *SMALL, "learner=null", f"out={tmp_path / 'run'}"])
    never, oracle = arm_facts(run, "never"), arm_facts(run, "facts_oracle")
    assert never.told <= 0.1 < 0.8 < oracle.told
    assert oracle.losses["told_not_kept"] == oracle.losses["outdated"] == 0 < never.losses["told_not_kept"]
    assert analyse(run).holds


def test_a_run_without_facts_is_refused(tmp_path: Path) -> None:
    run = skg_bench.run(["users=1", "weeks=1", "arms={never: [policy=never]}", f"out={tmp_path / 'run'}"])
    with pytest.raises(UsageError, match="run experiment=facts"):
        analyse(run)
