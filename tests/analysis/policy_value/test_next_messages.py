"""Test of whether users react to answers: as many false alarms as its level, and reactions that are found."""

from math import isnan

import numpy as np
import pytest

from skg_bench.analysis.policy_value.estimates import STREAM_LEVEL
from skg_bench.analysis.policy_value.next_messages import NEXT_FEATURES, ChanceDecisions, stream_check
from skg_bench.core.grid import F64
from skg_bench.study.replications import generator

N = 600


def decisions(seed: int, *, chances: str = "coins", reaction: float = 0.0, n: int = N) -> ChanceDecisions:
    """Decisions whose features depend on the state, as chances do, and on the answer by `reaction`."""
    rng = generator(5, seed)
    chance: F64 = np.where(rng.random(n) < 0.1, 0.9, 0.08) if chances == "rare" else np.full(n, 0.5)
    stored = rng.random(n) < chance
    following = np.column_stack([
        rng.beta(0.5, 2.0, n) + chance, rng.random(n) < 0.05 + reaction * stored,
        np.log1p(rng.exponential(1.0, n) ** 3), rng.poisson(8.0, n),
    ])  # fmt: skip
    return ChanceDecisions(stored, chance, following)


@pytest.mark.parametrize("chances", ["coins", "rare"])
def test_logs_of_users_who_do_not_react_are_taken_for_reactive_as_often_as_the_level_says(chances: str) -> None:
    p = np.array([stream_check(decisions(i, chances=chances)).p for i in range(1500)])
    for level in (STREAM_LEVEL, 0.05):
        error = np.sqrt(level / len(p))
        assert level / 2 - 3 * error < (p < level).mean() < level + 3 * error


def test_users_who_ask_again_after_a_stored_answer_are_found() -> None:
    checks = [stream_check(decisions(i, reaction=0.2)) for i in range(50)]
    assert np.mean([each.reactive for each in checks]) > 0.95
    assert {(each.feature, each.z > 0) for each in checks if each.reactive} == {(NEXT_FEATURES[1], True)}


def test_a_state_that_decides_both_is_no_reaction() -> None:
    """Stored answers come where the next message is like this one anyway, by the chance that the log states."""
    given = decisions(1, chances="rare", n=20_000)
    assert np.corrcoef(given.skill, given.following[:, 0])[0, 1] > 0.3
    assert not stream_check(given).reactive


def test_too_few_decisions_say_nothing() -> None:
    check = stream_check(decisions(1, n=20))
    assert isnan(check.p)
    assert not check.reactive
