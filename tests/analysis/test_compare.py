"""Arms over several runs, aligned on (seed, user, turn)."""

from pathlib import Path

import pytest

from skg_bench.analysis import summary
from skg_bench.analysis.compare import HEADINGS, cells, compare, said
from skg_bench.core.errors import UsageError
from tests.analysis.synthetic import ARMS, World, make_run


def test_one_run_gives_the_differences_of_its_summary(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", users=10, weeks=3)
    found = compare([run])
    assert found.reference == "never"
    assert found.gaps == ()
    expected = summary.write(run)["differences"]
    for row in found.rows:
        of = expected[row.arm][row.metric.name]
        if of["mean"] is not None:
            assert row.difference.estimate.mean == pytest.approx(of["mean"], rel=1e-8, abs=1e-12)
            assert row.difference.p_holm == pytest.approx(of["p_holm"], rel=1e-6)
        assert row.difference.verdict == of["verdict"]


def test_arms_of_two_runs_are_paired_user_by_user(tmp_path: Path) -> None:
    first = make_run(tmp_path / "first", users=10, weeks=3)
    second = make_run(tmp_path / "second", users=10, weeks=3, arms={"better": World(hit_right=1.0), "skg": ARMS["skg"]})
    found = compare([first, second], reference="skg")
    assert found.reference == "first:skg"
    rows = {(row.arm, row.metric.name): row for row in found.rows}
    assert {arm for arm, _ in rows} == {"first:frozen", "first:never", "second:better", "second:skg"}
    again = rows["second:skg", "utility"].difference
    assert (again.estimate.mean, again.estimate.se_new) == (0.0, 0.0)
    assert again.verdict == "inconclusive"
    assert said(again) == "equal for every user"
    assert rows["second:better", "correct"].difference.verdict == "better"
    assert rows["second:better", "correct"].reference_mean == rows["second:skg", "correct"].mean


def test_the_reference_can_be_named_with_its_folder(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, users=4, weeks=2) for name in ("first", "second")]
    assert compare(runs, reference="second:skg").reference == "second:skg"


def test_a_gap_in_coverage_is_reported_and_changes_no_difference(tmp_path: Path) -> None:
    full = make_run(tmp_path / "full", users=10, weeks=3)
    part = make_run(tmp_path / "part", users=7, weeks=2)
    found = compare([full, part], reference="full:skg")
    lost = full.turns("skg").num_rows - found.turns
    assert found.users == 7
    assert len(found.gaps) == 1
    assert (
        f"full: {lost:,} of {full.turns('skg').num_rows:,} turns (3 users wholly) are not in all runs" in found.gaps[0]
    )
    twin = next(row for row in found.rows if (row.arm, row.metric.name) == ("part:skg", "utility"))
    assert twin.difference.estimate.mean == 0.0


def test_runs_that_share_no_user_are_refused(tmp_path: Path) -> None:
    first, other = (
        make_run(tmp_path / "first", users=4, weeks=1),
        make_run(tmp_path / "other", users=4, weeks=1, seed=1),
    )
    with pytest.raises(UsageError, match=r"has seed 1, .*first has seed 0: they share no user"):
        compare([first, other])
    far = make_run(tmp_path / "far", users=4, weeks=1, first_user=50)
    with pytest.raises(UsageError, match=r"first and .*far share no user"):
        compare([first, far])


def test_runs_whose_shared_events_differ_are_refused(tmp_path: Path) -> None:
    first, other = (
        make_run(tmp_path / "first", users=4, weeks=2),
        make_run(tmp_path / "other", users=4, weeks=2, stream=1),
    )
    with pytest.raises(UsageError, match=r"differ in the time of .* \(first: user 0, turn 0\)"):
        compare([first, other])
    reworded = make_run(tmp_path / "reworded", users=4, weeks=2, types=59)
    with pytest.raises(UsageError, match="differ in the"):
        compare([first, reworded])


def test_an_unknown_reference_names_the_arms(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", users=3, weeks=1)
    with pytest.raises(UsageError, match="reference 'nobody' is no arm of these runs; they have skg, frozen, never"):
        compare([run], reference="nobody")
    with pytest.raises(UsageError, match="name at least one run"):
        compare([])


def test_the_table_never_says_that_there_is_no_difference(tmp_path: Path) -> None:
    table = cells(compare([make_run(tmp_path / "run", users=6, weeks=2)]))
    assert all(len(row) == len(HEADINGS) for row in table)
    verdicts = {row[-1] for row in table}
    assert "no difference shown (inconclusive)" in verdicts
    assert "no difference" not in verdicts
    hit_rate = next(row for row in table if row[:2] == ("skg", "hit rate"))
    assert hit_rate[2].endswith(" %")
    assert hit_rate[4].startswith("+")
    assert hit_rate[4].endswith(" pp")
