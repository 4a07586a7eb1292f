"""What a conflict costs in runs whose learning takes time, and the verdicts on P18, P25, P26 and P42."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from experiments.bench.locking import analysis, event_time
from experiments.bench.locking.analysis import findings
from experiments.bench.locking.event_time import (
    AT_ONCE,
    SITTINGS,
    Losses,
    Setting,
    against_at_once,
    lived,
    losses,
    settings,
)
from experiments.bench.locking.held import Held
from experiments.bench.locking.processes import Outcome
from experiments.bench.locking.writers import JobEnd
from skg_bench.analysis.comparison.assay import Measured
from skg_bench.analysis.comparison.findings import Finding
from skg_bench.core.errors import UsageError
from skg_bench.skillbook.skillbook import Operation
from skg_bench.skillbook.storing import Rule

JOB: dict[str, Any] = {
    "user": 0, "result": "applied", "operations": 2, "refused": 0, "meanwhile": 0, "overwritten": 0, "duplicated": 0,
    "misdirected": 0, "merged": 0, "aside": 0, "latency_ms": 8000.0,
}  # fmt: skip


def run_of(*jobs: dict[str, Any], users: int = 3) -> Any:
    """A run with these learning jobs; `end` in ms."""
    rows = [JOB | {"end": 100_000 * nth} | job for nth, job in enumerate(jobs)]
    table = pa.Table.from_pylist(rows) if rows else pa.table({"user": pa.array([], pa.int32())})
    if rows:
        table = table.set_column(table.schema.get_field_index("end"), "end", table["end"].cast(pa.timestamp("ms")))
    manifest = {"users": users, "weeks": 4, "seed": 0, "commit": "abc", "dirty": False}
    return SimpleNamespace(learning=lambda *_: table, manifest=manifest, path="runs/x")


def test_losses_are_per_operation_that_a_job_proposed() -> None:
    run = run_of(
        {"meanwhile": 3, "overwritten": 3, "misdirected": 1}, {"user": 1, "operations": 4, "refused": 2},
        {"user": 1, "result": "timed_out", "operations": 0, "refused": 4, "meanwhile": None, "overwritten": None},
    )  # fmt: skip
    result = losses(run, "blind")
    assert [result.total(name) for name in ("jobs", "conflicts", "operations", "overwritten", "timed_out")] == [
        3, 1, 10, 3, 4,
    ]  # fmt: skip
    assert result.share("overwritten").value == 0.3
    assert result.share("conflicts", "jobs").value == pytest.approx(1 / 3)
    assert len(result.users) == 3  # one of them had no job


def test_a_share_has_an_interval_for_new_users_and_none_seen_is_not_none_at_all() -> None:
    losing = {"users": pd.DataFrame({"operations": [10] * 40, "overwritten": [0, 2] * 20, "merged": [0] * 40})}
    share = Losses(**losing).share("overwritten")
    assert [share.low, share.high] == pytest.approx([0.07, 0.13], abs=0.02)
    assert Losses(**losing).share("merged") == Measured(0.0, 0.0, 3 / 400, "share")


@pytest.mark.parametrize(("ends", "met"), [((0, 40, 80, 90), 4), ((0, 50, 90, 500), 0), ((0, 100, 200, 300), 0)])
@pytest.mark.req("P26")
def test_three_tries_may_fail_where_three_others_write_in_the_same_moment(ends: Sequence[int], met: int) -> None:
    jobs = [{"end": end} for end in ends]
    assert losses(run_of(*jobs), "replay").total("met") == met
    others = [{"end": end, "user": nth % 2} for nth, end in enumerate(ends)]
    assert losses(run_of(*others), "replay").total("met") == 0
    late = [{"end": end, "result": "timed_out", "operations": 0} for end in ends]
    assert losses(run_of(*late), "replay").total("met") == 0


def test_an_arm_without_jobs_is_refused() -> None:
    with pytest.raises(UsageError, match=r"arm blind has no learning jobs; take more users or weeks"):
        losses(run_of(), "blind")


def made(overwritten: int = 3, timed_out: int = 1, met: int = 0) -> list[Setting]:
    """A setting for each arm; `blind` loses in sittings only."""
    results = []
    for days in SITTINGS:
        for arm in event_time.arms(days):
            if arm == AT_ONCE:
                continue
            lost = overwritten if "blind" in arm and days else 0
            columns = {
                "jobs": 10, "conflicts": 1, "met": met, "operations": 20, "overwritten": lost, "duplicated": 0,
                "misdirected": 1, "merged": 0, "aside": 0, "timed_out": timed_out, "late": 1,
            }  # fmt: skip
            table = pd.DataFrame([columns] * 30)
            results.append(Setting(run_of({}), days, arm, Losses(table), None))
    return results


def outcomes(lost: int = 0, given_up: int = 0, blind: int = 50) -> list[Outcome]:
    """Each rule in each database."""
    end = JobEnd("anna", 0, (Operation("TAG", 0, 0, rating="ok"),), 0, 0, 0, 0, 1)
    gone: Mapping[Rule, dict[str, int]] = {"rebase": {"TAG": lost}, "replay": {}, "blind": {"TAG": blind}}
    return [
        Outcome(database, rule, 200, [replace(end, given_up=given_up * (rule == "replay"))],
                Held({"TAG": 200}, gone[rule], {}), 1, 2.0)
        for database in ("SQLite", "PostgreSQL")
        for rule in gone
    ]  # fmt: skip


WAITS = {"latency_ms": Measured(1.0, -4.0, 6.0, "ms"), "utility": Measured(0.0, -0.1, 0.1, "utility per purchase")}


def judged(**given: Any) -> dict[str, Finding]:
    values: dict[str, Any] = {"made": made(), "results": outcomes(), "waits": WAITS} | given
    results = findings(values["made"], values["results"], values["waits"], "the command")
    return {each.claimed: each for each in results}


@pytest.mark.req("P18", "P25", "P26", "P42")
def test_each_claim_has_its_verdict_and_p42_one_for_each_half() -> None:
    results = judged()
    assert {claimed: (each.id, each.verdict) for claimed, each in results.items()} == {
        "nobody waits for learning": ("P18", "reproduced"),
        "a version check keeps all that is stored": ("P25", "reproduced"),
        "three tries suffice for one user's jobs": ("P26", "reproduced"),
        "three tries suffice for 8 writers at the same moment": ("P26", "reproduced"),
        "without locks later writes overwrite earlier ones": ("P42", "reproduced"),
        "with reload and retry nothing learned is lost": ("P42", "not reproduced"),
    }
    words = results["without locks later writes overwrite earlier ones"].words
    assert "0.0 each when it is due, 150.0 in one sitting a day, 150.0 in one sitting a week" in words
    assert "lost 100 of 400" in words
    assert "lose 50 per 1,000, and 50 with a model" in results["with reload and retry nothing learned is lost"].words


@pytest.mark.parametrize(
    ("given", "claimed", "verdict"),
    [
        ({"waits": WAITS | {"latency_ms": Measured(900.0, 800.0, 999.0, "ms")}}, "nobody waits", "not reproduced"),
        ({"waits": WAITS | {"latency_ms": Measured(50.0, -9.0, 999.0, "ms")}}, "nobody waits", "not testable here"),
        ({"results": outcomes(lost=1)}, "a version check", "not reproduced"),
        ({"made": made(met=1)}, "three tries suffice for one", "not reproduced"),
        ({"results": outcomes(given_up=3)}, "three tries suffice for 8", "not reproduced"),
        ({"made": made(overwritten=0)}, "without locks", "not testable here"),
        ({"made": made(timed_out=0)}, "with reload", "not testable here"),
    ],
)
def test_a_verdict_follows_what_was_measured(given: dict[str, Any], claimed: str, verdict: str) -> None:
    assert [each.verdict for words, each in judged(**given).items() if words.startswith(claimed)] == [verdict]


@pytest.mark.parametrize("lost", [0, 1])
def test_a_rule_that_loses_what_it_said_to_be_stored_ends_with_failure(
    lost: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = {
        "lived": lambda *_: run_of({}), "settings": lambda _: made(), "learners": lambda *_: {},
        "outcomes": lambda *_: outcomes(lost=lost), "against_at_once": lambda _: WAITS,
    }  # fmt: skip
    for name, part in parts.items():
        monkeypatch.setattr(analysis, name, part)
    report = analysis.analyse(profile="smoke", folder=tmp_path)
    assert report.holds == (lost == 0)
    assert "`skg-bench experiment locking --profile smoke --write reports`" in report.page
    assert "| in one sitting a week | 15 s | blind |" in report.page
    assert "P42, with reload and retry nothing learned is lost: 5 % (5 to 5), not reproduced." in report.page
    assert report.findings is not None
    assert [each.id for each in report.findings()] == ["P18", "P25", "P26", "P26", "P42", "P42"]


def test_runs_of_the_guardian_are_held_against_serial_and_against_learning_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(event_time, "arms", lambda _: ["serial", "slow_serial", "slow_blind", AT_ONCE, "rebase"])
    run = lived("smoke", 2, 7)
    results = {each.arm: each for each in settings({7: run})}
    assert list(results) == ["serial", "slow_serial", "slow_blind", "rebase"]
    assert all(each.losses.total("jobs") > 10 for each in results.values())
    assert (results["serial"].cost, results["slow_serial"].cost) == (None, None)
    assert results["rebase"].cost is not None
    assert results["serial"].losses.total("conflicts") == 0
    late = [results[arm].losses.share("timed_out").value for arm in ("slow_blind", "rebase")]
    assert late[0] > 0.5 > late[1]
    assert set(against_at_once(run)) == {"utility", "latency_ms"}
    rows = event_time.table([*results.values()]).rows
    assert rows[2][:3] == ("in one sitting a week", "15 s", "blind")
    assert {len(row) for row in rows} == {len(event_time.HEADINGS)}


def test_a_share_of_a_count_lies_in_its_interval() -> None:
    none, some = analysis._share(0, 300), analysis._share(30, 300)
    assert (none.value, none.low) == (0.0, 0.0)
    assert 0.01 < none.high < 0.014
    assert [some.low, some.high] == pytest.approx([0.071, 0.139], abs=0.002)
