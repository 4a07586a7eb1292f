"""Arms over several runs, aligned on (seed, user, turn)."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

from skg_bench.analysis import summary
from skg_bench.analysis.comparison.compare import cells, compare, headings, verdict_words
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from tests.analysis.synthetic import ARMS, World, make_run
from tests.runs import rewritten, save

CHEAP = {"wrong": 1.0, "usd": 0.0, "second": 0.02, "offer": 0.005}


def test_one_run_gives_the_differences_of_its_summary(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", users=10, weeks=3)
    comparison = compare([run])
    assert comparison.reference == "never"
    assert comparison.gaps == ()
    expected = summary.write_summary(run).differences
    for row in comparison.rows:
        figure = expected[row.arm][row.metric.name]
        if figure.mean is not None:
            assert row.difference.estimate.mean == pytest.approx(figure.mean, rel=1e-8, abs=1e-12)
            expected_p = np.nan if figure.p_holm is None else figure.p_holm
            assert row.difference.p_adjusted == pytest.approx(expected_p, rel=1e-6, nan_ok=True)
        assert row.difference.verdict == figure.verdict


def test_arms_of_two_runs_are_paired_user_by_user(tmp_path: Path) -> None:
    first = make_run(tmp_path / "first", users=10, weeks=3)
    second = make_run(tmp_path / "second", users=10, weeks=3, arms={"better": World(hit_right=1.0), "skg": ARMS["skg"]})
    comparison = compare([first, second], reference="skg")
    assert comparison.reference == "first:skg"
    rows = {(row.arm, row.metric.name): row for row in comparison.rows}
    assert {arm for arm, _ in rows} == {"first:frozen", "first:never", "second:better", "second:skg"}
    again = rows["second:skg", "utility"].difference
    assert (again.estimate.mean, again.estimate.se_new) == (0.0, 0.0)
    assert again.verdict == "identical"
    assert verdict_words(next(row for row in comparison.rows if row.difference is again)) == "identical"
    assert rows["second:better", "correct"].difference.verdict == "better"
    assert rows["second:better", "correct"].reference_mean == rows["second:skg", "correct"].mean


def test_the_reference_can_be_named_with_its_folder(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, users=4, weeks=2) for name in ("first", "second")]
    assert compare(runs, reference="second:skg").reference == "second:skg"


def test_a_gap_in_coverage_is_reported_and_changes_no_difference(tmp_path: Path) -> None:
    full = make_run(tmp_path / "full", users=10, weeks=3)
    part = make_run(tmp_path / "part", users=7, weeks=2)
    comparison = compare([full, part], reference="full:skg")
    lost = full.turns("skg").num_rows - comparison.turns
    assert comparison.reference == "users=10 weeks=3:skg"
    assert comparison.users == 7
    assert len(comparison.gaps) == 1
    assert (
        f"full: {lost:,} of {full.turns('skg').num_rows:,} turns (3 users wholly) are not in all runs"
        in comparison.gaps[0]
    )
    twin = next(row for row in comparison.rows if (row.arm, row.metric.name) == ("users=7 weeks=2:skg", "utility"))
    assert twin.difference.estimate.mean == 0.0


def test_runs_that_share_no_user_are_refused(tmp_path: Path) -> None:
    first, other = (
        make_run(tmp_path / "first", users=4, weeks=1),
        make_run(tmp_path / "other", users=4, weeks=2, seed=1),
    )
    with pytest.raises(
        UsageError, match=r"first and .*other share no user; compare runs of the same seeds, salts and users"
    ):
        compare([first, other])
    far = make_run(tmp_path / "far", users=4, weeks=1, first_user=50)
    with pytest.raises(UsageError, match=r"first and .*far share no user"):
        compare([first, far])


def test_runs_of_several_seeds_are_pooled_user_by_user(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / f"seed{seed}", seed=seed, users=6 + seed, weeks=3) for seed in range(3)]
    for run in runs:  # the same configuration, seed aside
        manifest = run.manifest
        manifest["config"]["users"] = 6
        save(run.path, manifest)
    pooled, alone = compare(runs), [compare([run]) for run in runs]
    assert pooled.seeds == (0, 1, 2)
    assert pooled.users == 6 + 7 + 8
    assert pooled.turns == sum(comparison.turns for comparison in alone)
    assert cells(compare(runs[::-1])) == cells(pooled)
    each = {}
    for run in runs:
        correct = run.turns("skg", ["answer_correct"]).to_pandas().groupby("user")["answer_correct"].mean()
        never = run.turns("never", ["answer_correct"]).to_pandas().groupby("user")["answer_correct"].mean()
        each[run.path.name] = correct - never
    test = stats.ttest_1samp(np.concatenate([difference.to_numpy() for difference in each.values()]), 0.0)
    row = next(row for row in pooled.rows if (row.arm, row.metric.name) == ("skg", "correct"))
    assert row.difference.estimate.interval(new=False) == pytest.approx(tuple(test.confidence_interval(0.95)))
    assert row.wins + row.ties + row.losses == pooled.users
    assert row.wins == sum(int((difference > 1e-12).sum()) for difference in each.values())
    assert row.losses == sum(int((difference < -1e-12).sum()) for difference in each.values())


def test_a_seed_that_one_configuration_lacks_is_a_gap(tmp_path: Path) -> None:
    old = [make_run(tmp_path / f"old{seed}", seed=seed, users=5, weeks=2) for seed in (3, 4)]
    new = [make_run(tmp_path / f"new{seed}", seed=seed, users=5, weeks=2, utility=CHEAP) for seed in (4, 5)]
    comparison = compare([*old, *new], reference="utility.usd=10.0:skg")
    assert comparison.users == 5
    assert comparison.seeds == (3, 4, 5)
    assert len(comparison.gaps) == 2
    assert "(5 users wholly) are not in all runs" in comparison.gaps[0]
    assert {row.arm.split(":")[0] for row in comparison.rows} == {"utility.usd=10.0", "utility.usd=0.0"}
    assert {flipped.examples for flipped in comparison.flips} == {()}
    turn = next(row for row in comparison.rows if (row.arm, row.metric.name) == ("utility.usd=0.0:skg", "correct"))
    assert (turn.wins, turn.ties, turn.losses) == (0, 5, 0)


def _last_first(table: pa.Table) -> pa.Table:
    """Each user's requests, the last one first."""
    user, turn = table["user"].to_numpy(), table["turn"].to_numpy()
    last = np.array([turn[user == u].max() for u in user])
    back = np.lexsort((last - turn, user))
    for column in (c for c in table.column_names if c not in ("user", "turn", "time")):
        table = table.set_column(table.schema.get_field_index(column), column, table[column].take(pa.array(back)))
    return table


def test_the_same_requests_in_another_order_are_paired_by_user(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", users=8, weeks=3)
    moved = make_run(tmp_path / "moved", users=8, weeks=3)
    for file in (moved.path / "turns").iterdir():
        rewritten(file, _last_first)
    comparison = compare([run, moved], reference="run:never")
    assert comparison.gaps == (f"{moved.path}: the same requests in another order; paired by user, not turn by turn",)
    rows = {(row.arm, row.metric.name): row.difference.estimate.mean for row in comparison.rows}
    assert rows["run:skg", "correct"] == pytest.approx(rows["moved:skg", "correct"], abs=1e-12)
    assert rows["moved:never", "correct"] == 0.0
    assert {flipped.arm for flipped in comparison.flips} == {"run:skg", "run:frozen"}


def test_both_corrections_are_over_the_arms(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", users=10, weeks=3)
    raw = {row.arm: row.difference.p_new for row in compare([run]).rows if row.metric.name == "correct"}
    low, high = sorted(raw.values())
    for correction, expected in (("holm", [2 * low, max(2 * low, high)]), ("bh", [min(2 * low, high), high])):
        rows = [row for row in compare([run], correction=correction).rows if row.metric.name == "correct"]
        assert sorted(row.difference.p_adjusted for row in rows) == pytest.approx(np.minimum(expected, 1.0).tolist())


def test_equivalence_is_said_only_within_a_margin(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", users=30, weeks=6, arms={**ARMS, "twin": World(hit_right=0.88)})
    wide, narrow, none = (
        next(r for r in compare([run], "skg", margins=m).rows if (r.arm, r.metric.name) == ("twin", "correct"))
        for m in ({"correct": 0.05}, {"correct": 0.00001}, {})
    )
    estimate = wide.difference.estimate
    assert wide.equivalent is not None
    assert wide.equivalent >= estimate.equivalence(0.05) > 0
    assert verdict_words(wide).endswith("equal within 5.0 pp")
    assert "equal" not in verdict_words(narrow)
    assert none.equivalent is None
    for bootstrap, words in (
        ((-0.01, 0.049), "equal within 5.0 pp"),  # they disagree on 0, and none reaches the margin
        ((-0.01, 0.051), "depends on the interval"),
    ):
        disputed = replace(estimate, bootstrap=bootstrap)
        difference = replace(wide.difference, estimate=disputed, verdict="depends on the interval")
        assert verdict_words(replace(wide, difference=difference)) == words
    far = replace(wide.difference, estimate=replace(estimate, bootstrap=(-0.06, -0.001)))
    assert "equal" not in verdict_words(replace(wide, difference=far))  # of three intervals one leaves the margin


def test_the_bootstrap_agrees_with_students_interval(tmp_path: Path) -> None:
    for row in compare([make_run(tmp_path / "run", users=40, weeks=3)]).rows:
        low, high = row.difference.estimate.interval(new=False)
        if low == low:
            assert row.bootstrap == pytest.approx((low, high), abs=0.3 * (high - low) + 1e-12)


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


def test_a_run_that_is_given_twice_is_refused_as_its_arms_would_be_corrected_for_themselves(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", users=3, weeks=1)
    (tmp_path / "other").mkdir()
    again = Run(tmp_path / "other" / ".." / "run")
    with pytest.raises(UsageError, match="is given twice; name different runs to compare them"):
        compare([run, again])


def test_an_unknown_reference_names_the_arms(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", users=3, weeks=1)
    with pytest.raises(UsageError, match="reference 'nobody' is no arm of these runs; they have skg, frozen, never"):
        compare([run], reference="nobody")
    with pytest.raises(UsageError, match="name at least one run"):
        compare([])


def test_the_table_never_says_that_there_is_no_difference(tmp_path: Path) -> None:
    compared = compare([make_run(tmp_path / "run", users=6, weeks=2)])
    table = cells(compared)
    assert all(len(row) == len(headings(compared)) for row in table)
    verdicts = {row[-1] for row in table}
    assert "inconclusive" in verdicts
    assert not any("no difference" in verdict for verdict in verdicts)
    hit_rate = next(row for row in table if row[:2] == ("skg", "hit rate"))
    assert hit_rate[2].endswith(" %")
    assert hit_rate[4].startswith("+")
    assert hit_rate[4].endswith(" pp")


def test_no_difference_of_shares_is_beyond_a_whole_and_one_user_has_no_bootstrap(tmp_path: Path) -> None:
    """It was printed: hit rate +68.5 pp (+49.0 to +145.0), and +85.0 to +85.0 by the bootstrap of one user."""
    arms = {"much": World(hit=0.9, hit_right=0.5), "never": ARMS["never"]}
    few = compare([make_run(tmp_path / "few", users=2, weeks=1, arms=arms)])
    (hits,) = [row for row in few.rows if row.metric.name == "hit_rate"]
    whole = [hits.difference.estimate.interval(new=new) for new in (True, False)]
    assert max(high for _, high in whole) > 1.0  # before it is cut
    table = few.to_pandas()
    shares = table[table["metric"].isin([row.metric.name for row in few.rows if row.metric.unit == "share"])]
    assert shares[["low", "low_these"]].min().min() >= -1.0
    assert shares[["high", "high_these"]].max().max() == 1.0
    alone = compare([make_run(tmp_path / "alone", users=1, weeks=1, arms=arms)])
    assert all(np.isnan(row.bootstrap).all() for row in alone.rows)
    column = headings(alone).index("bootstrap")
    assert {row[column] for row in cells(alone)} == {"-"}


def test_users_with_a_better_an_equal_and_a_worse_value_are_counted_by_what_is_better(tmp_path: Path) -> None:
    arms = {"rare": World(hit=0.1, hit_right=0.5), "skg": World(hit=0.2, hit_right=0.6), "never": ARMS["never"]}
    run = make_run(tmp_path / "run", users=40, weeks=2, arms=arms)

    def by_user(arm: str) -> dict[str, pd.Series]:
        turns = run.turns(arm, ["fallback_to_llm", "answer_correct"]).to_pandas()
        hit, wrong = ~turns["fallback_to_llm"], ~turns["answer_correct"].astype(bool)
        sums = (
            pd.DataFrame({"turns": 1, "hit": hit, "wrong": wrong, "wrong_hit": hit & wrong})
            .groupby(turns["user"])
            .sum()
        )
        return {"hit_rate": sums["hit"] / sums["turns"], "err_per_hit": sums["wrong_hit"] / sums["hit"],
                "err_per_request": sums["wrong"] / sums["turns"]}  # fmt: skip

    rare, skg = by_user("rare"), by_user("skg")
    assert rare["err_per_hit"].isna().any()  # users without hits are in none of the three
    for row in compare([run], reference="skg").rows:
        if row.arm == "rare" and row.metric.name in rare:
            difference = (rare[row.metric.name] - skg[row.metric.name]).dropna()
            up, down = int((difference > 0).sum()), int((difference < 0).sum())
            lower = row.metric.name != "hit_rate"
            assert (row.wins, row.losses) == ((down, up) if lower else (up, down)), row.metric.name
            assert row.ties == len(difference) - up - down
            assert min(row.wins + row.losses, row.ties) > 0
