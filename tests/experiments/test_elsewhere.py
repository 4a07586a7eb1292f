"""Assistants of others: their tables are the figures of the run, identities are found, and where they break."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.elsewhere.analysis import MISLED, PROMPTS, analyse, beyond
from skg_bench.analysis import summary
from skg_bench.app import outside_sources
from skg_bench.app.api import run as simulate
from skg_bench.app.compose import compose
from skg_bench.app.experiment_report import Report, Table
from skg_bench.app.launch import prepare
from skg_bench.app.packages import Package
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run

SIZE = ("experiment=elsewhere", "users=3", "workers=1", "weeks=1", "simulator.messages_per_day=3")


@pytest.fixture(scope="module")
def run(once: Callable[..., Path]) -> Run:
    return Run(once("elsewhere", lambda folder: simulate([*SIZE, f"out={folder}"])))


def rows(report: Report, number: int) -> list[list[str]]:
    match report.parts[number]:
        case Table(rows=cells):
            return [list(row) for row in cells]
    raise AssertionError


def test_each_system_is_told_with_the_figures_of_its_run(run: Run) -> None:
    known = summary.read_summary(run).arms
    table = rows(analyse([run]), 0)
    assert {"pass_on", "dict", "litellm_rule_80", "gptcache_rule_80"} <= {row[0] for row in table}
    for arm, _, hits, *_ in table:
        assert float(hits.removesuffix(" %")) / 100 == pytest.approx(known[arm]["hit_rate"].mean, abs=6e-4)


def test_the_three_identities_hold_and_the_report_fails_where_one_does_not(run: Run, tmp_path: Path) -> None:
    report = analyse([run])
    pairs = {(row[0], row[1]): row[3:] for row in rows(report, 1)}
    assert set(pairs) == {("pass_on", "never"), ("dict", "exact"), ("gptcache_rule_90", "litellm_rule_80")}
    assert all(found == ["0", "yes"] for found in pairs.values())
    assert report.holds
    arms = compose([*SIZE]).root["arms"]
    paired = {name: arms[name] for pair in pairs for name in pair}
    other = {"dict": ["assistant=python", "assistant.target=experiments.elsewhere.stand_ins.PassOn"]}
    few = f"arms={json.dumps({**paired, **other})}"
    broken = analyse([simulate([*SIZE, few, f"out={tmp_path / 'run'}"])])
    assert not broken.holds
    assert [row[-1] for row in rows(broken, 1)] == ["yes", "no", "yes"]


def test_what_a_threshold_is_worth_follows_from_how_often_a_wrong_prompt_misleads(run: Run) -> None:
    report = analyse([run])
    told = [(row[0], row[2]) for row in rows(report, 2)]
    assert told == [(kind, share) for kind in PROMPTS for share in ("0", "0.2", "0.6", "1")]
    without = beyond(run, [f"mem0_rule{ending}" for ending in MISLED])
    worth = [each.utility.mean for each in without.values()]
    assert worth == sorted(worth, reverse=True)
    assert worth[1] < beyond(run, ["mem0_rule_80"])["mem0_rule_80"].utility.mean
    assert str(report.parts[3]).startswith("**The difference is the threshold** (3 users, 1 weeks).")


def test_a_run_of_another_experiment_is_refused(tmp_path: Path) -> None:
    arms = "arms={never: [policy=never], a: []}"
    other = simulate(
        ["experiment=assistant_growth", "users=2", "workers=1", "weeks=1", arms, f"out={tmp_path / 'run'}"]
    )
    with pytest.raises(UsageError, match="has none of the arms of elsewhere"):
        analyse([other])


def test_a_package_of_many_arms_is_asked_for_its_version_and_commit_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def state(package: Package) -> dict[str, str | None]:
        asked.append(package.name)
        return {"version": "1"}

    monkeypatch.setattr(outside_sources, "package_state", state)
    plan = prepare(compose(["experiment=elsewhere"])).plan
    assert outside_sources.outside_packages(plan.arms) == {"experiments": {"version": "1"}}
    assert asked == ["experiments"]
