"""Tables of replayed arms, where differences are to a target and not to the log."""

from pathlib import Path

import numpy as np

from skg_bench.analysis.policy_value.decision_sums import LoggedDecisions
from skg_bench.analysis.policy_value.loop_values import REPLAY_SUMS, LoggedRewards, ReplayedSums, loop_values
from skg_bench.analysis.report.estimates_page import EstimateTable
from skg_bench.app.estimating import _in_states_of_log
from skg_bench.app.replay_tables import replay_parts

G, TURNS = 10, 100.0


def replayed(value: float, unknown: float) -> ReplayedSums:
    sums = dict.fromkeys(REPLAY_SUMS, 0.0) | {
        "turns": TURNS, "value": value, "known": TURNS - unknown, "modelled": unknown, "chance": unknown,
        "scale": unknown,
    }  # fmt: skip
    return ReplayedSums(np.array([np.full((G, 7), sums[name]) for name in REPLAY_SUMS]))


def printed(unknown: float) -> tuple[list[list[str]], list[list[str]], list[str]]:
    """Rows of values and of shares, and lines, of a log and two targets against the first, which differs at `unknown`
    turns of a user.
    """
    logged = LoggedRewards(np.full(G, TURNS), np.full(G, 80.0), 0)
    targets = {"first": replayed(85.0, unknown), "second": replayed(82.0, 1.0)}
    parts = replay_parts(Path("run"), loop_values(logged, targets, [], estimand="loop", reference="first"))
    values, shares = (part.rows for part in parts[1:3] if isinstance(part, EstimateTable))
    return [list(row) for row in values], [list(row) for row in shares], [p for p in parts if isinstance(p, str)]


def test_the_log_has_both_intervals_and_the_reference_no_band() -> None:
    values, shares, lines = printed(unknown=5.0)
    log, first, _ = values
    assert (log[0], log[-1], first[-1]) == ("log", "lower", "reference")
    assert "-0.05 to -0.05" in log[4]
    assert first[4] == "-"
    assert [row[5] == "-" for row in shares] == [True, False]
    assert not any("is withheld" in line for line in lines)


def test_a_log_that_is_compared_with_a_withheld_target_is_withheld_with_the_reason() -> None:
    values, _, lines = printed(unknown=50.0)
    assert [row[-1] for row in values] == ["withheld", "reference", "withheld"]
    assert "* log is withheld: first, which it is compared with, is withheld" in lines


def test_targets_that_do_the_same_differ_by_0_in_whatever_order_sums_are_made() -> None:
    logged = LoggedRewards(np.full(G, TURNS), np.full(G, 80.0), 0)
    targets = {"first": replayed(85.0, 0.0), "same": replayed(np.nextafter(85.0, 86.0), 0.0)}
    parts = replay_parts(Path("run"), loop_values(logged, targets, [], estimand="loop", reference="first"))
    values = parts[1]
    assert isinstance(values, EstimateTable)
    assert list(values.rows[2][3:5]) == ["+0 (+0 to +0)", "+0 to +0"]


def test_no_value_in_states_of_the_log_is_held_against_a_target_that_the_log_does_not_carry() -> None:
    user = np.repeat(np.arange(20), 40)
    reward = (np.arange(len(user)) * 7 % 10 < 8).astype(np.float64)
    log = LoggedDecisions(np.full(len(user), 0.5), reward, user=user)
    chances = {"carried": np.full(len(user), 0.5), "else": np.full(len(user), 0.9)}  # else: a mean weight of 1.8
    assert [each.policy for each in _in_states_of_log(log, chances, "carried")] == ["carried"]
    assert not list(_in_states_of_log(log, chances, "else"))
