"""The scatter of a log in which chance decides, held against such logs."""

import numpy as np
import pytest

from skg_bench.analysis.policy_value.paired_turns import PairedTurns
from skg_bench.core.grid import F64

RNG = np.random.default_rng(0)
N, LOGS = 60, 40_000
PAIRS = PairedTurns(np.sort(RNG.integers(0, 3, N)), RNG.normal(size=N), RNG.normal(size=N), RNG.random(N) < 0.7)
FIRST = RNG.uniform(0.2, 0.5, N)
SECOND = RNG.uniform(0.1, 0.4, N)


def logs(first: F64, second: F64) -> tuple[F64, F64]:
    """Differences of users `[LOGS, G]` by inverse propensities, and mean rewards of the logs `[LOGS]`."""
    u = np.random.default_rng(1).random((LOGS, N))
    one, other = u < first, (u >= first) & (u < first + np.where(PAIRS.apart, second, 0.0))
    centre = PAIRS.reference.mean()
    part = np.where(other, (PAIRS.arm - centre) / second, 0.0) - np.where(one, (PAIRS.reference - centre) / first, 0.0)
    worth = np.where(one, PAIRS.reference, np.where(other, PAIRS.arm, -1.0))
    by_user = [np.where(PAIRS.apart, part, 0.0)[:, PAIRS.user == g].sum(axis=1) / PAIRS.turns[g] for g in range(3)]
    value = np.mean([worth[:, PAIRS.user == g].mean(axis=1) for g in range(3)], axis=0)
    return np.stack(by_user, axis=1), value


@pytest.mark.parametrize("half", [True, False])
def test_the_scatter_and_the_worth_of_a_log_are_those_of_logs_that_are_drawn(half: bool) -> None:
    first, second = (np.full(N, 0.5),) * 2 if half else (FIRST, SECOND)
    differences, value = logs(first, second)
    whole = first if half else np.where(PAIRS.apart, first, FIRST)
    assert PAIRS.log_noise(whole, second) == pytest.approx(differences.var(axis=0), rel=0.05)
    assert PAIRS.expected(whole, second, -1.0) == pytest.approx(value.mean(), abs=0.01)


def test_an_answer_that_is_never_taken_leaves_nothing_to_estimate() -> None:
    noise = PAIRS.log_noise(np.ones(N), np.zeros(N))
    assert np.isinf(noise).all()
