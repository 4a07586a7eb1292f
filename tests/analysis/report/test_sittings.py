"""A user who answers several questions in one sitting, on the page: learning jobs beside one another."""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from skg_bench.analysis import report, summary
from skg_bench.analysis.report.outcome_turns import outcome_turns
from skg_bench.analysis.report.people import CAP
from skg_bench.app.api import run as simulate
from skg_bench.core.learning_jobs import COURSE_COUNTS
from skg_bench.runfolder.run import Run
from tests.analysis.advised import drawn, make_advice_run
from tests.analysis.report.conftest import turns_shown

Visit = Callable[..., Page]
WORLD = (
    "experiment=guardian", "arms={live: [], frozen: [curator=none]}", "contrasts=[]", "users=4", "weeks=9", "workers=1",
    "simulator.sitting_days=7", "curator.misses=0", "jobs=model_calls", "jobs.conflict=blind", "jobs.call_seconds=15",
    "jobs.timeout_seconds=60",
)  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Blind writes of slow jobs, so that some are lost."""
    return simulate([*WORLD, f"out={tmp_path_factory.mktemp('sittings') / 'run'}"])


def sittings(run: Run) -> list[list[dict[str, Any]]]:
    """The learning jobs of `live` that began within a minute of one another and are logged at the same turn."""
    groups: list[list[dict[str, Any]]] = []
    for job in sorted(run.learning("live").to_pylist(), key=lambda row: (row["user"], row["turn"], row["start"])):
        last = groups[-1][-1] if groups else None
        together = last and (last["user"], last["turn"]) == (job["user"], job["turn"])
        if last and together and job["start"] - last["start"] <= timedelta(minutes=1):
            groups[-1].append(job)
        else:
            groups.append([job])
    return [group for group in groups if len(group) > 1]


@pytest.mark.req("P18", "P25")
def test_a_sitting_shows_what_each_job_read_and_wrote_and_what_the_conflict_rule_did(visit: Visit, run: Run) -> None:
    group = max(sittings(run), key=lambda jobs: (len(jobs) >= 5, sum(job["overwritten"] for job in jobs)))
    assert len(group) >= 5
    user, turn = group[0]["user"], group[0]["turn"]
    page = visit(report.write_page(run, [user]), f"#user={user}&turn={turn}")
    table = page.locator("#person .turn[open] .sitting").filter(has_text=f"of turn {group[0]['about']}")
    assert table.locator("caption").inner_text() == f"{len(group)} jobs beside one another. Conflict rule: blind"
    for row, job in zip(table.locator("tbody tr").all(), group, strict=True):
        said, ran, read, wrote, meanwhile, ruled = row.locator("th, td").all_inner_texts()
        assert said == f"{job['value'].replace('_', ' ')}, of turn {job['about']}"
        assert [float(seconds) for seconds in re.findall(r"[\d.]+", ran)] == pytest.approx(
            [(at - group[0]["start"]).total_seconds() for at in (job["start"], job["end"])], abs=0.11
        )
        assert int(read) == job["version_read"]
        assert wrote == (
            str(job["version_written"]) if job["version_written"] >= 0 else job["result"].replace("_", " ")
        )
        assert int(meanwhile) == job["meanwhile"]
        assert (f"{job['overwritten']} operation" in ruled) == (job["overwritten"] > 0)
    assert sum(job["overwritten"] for job in group) > 0


def test_turns_with_such_jobs_can_be_picked(visit: Visit, run: Run) -> None:
    user = sittings(run)[0][0]["user"]
    page = visit(report.write_page(run, [user]))
    page.locator("[data-filter=sittings]").click()
    assert turns_shown(page) == len({group[0]["turn"] for group in sittings(run) if group[0]["user"] == user})


def test_a_strategy_that_a_job_wrote_before_the_decision_is_named_by_its_text(run: Run) -> None:
    packed = outcome_turns(run, "live", range(4), CAP)
    assert not [word for user in packed.values() for word in user.words if re.fullmatch(r"skill \d+", word)]
    courses = [job.course or () for user in packed.values() for job in user.jobs]
    assert {len(course) for course in courses} == {4 + len(COURSE_COUNTS)}
    logged = run.learning("live", list(COURSE_COUNTS)).to_pylist()
    assert [sum(course[4 + k] for course in courses) for k in range(len(COURSE_COUNTS))] == [
        sum(job[name] for job in logged) for name in COURSE_COUNTS
    ]


def test_where_learning_takes_no_time_there_are_no_jobs_beside_one_another(visit: Visit, tmp_path: Path) -> None:
    lives = drawn(4, 20, 0.5)
    made = make_advice_run(tmp_path / "run", {"guardian": lives, "never": lives})
    summary.write_summary(made)
    courses = [job[9] for user in outcome_turns(made, "guardian", range(4), CAP).values() for job in user.jobs]
    assert courses == [None] * made.learning("guardian").num_rows
    assert visit(report.write_page(made)).locator("[data-filter=sittings]").count() == 0
