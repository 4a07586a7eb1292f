"""The bootstrap of users and intents: known spreads, the same bits, any order of the rows."""

import numpy as np
import pytest

from skg_bench.analysis.statistics import pigeonhole as module
from skg_bench.analysis.statistics.pigeonhole import pigeonhole

USERS, INTENTS = 40, 60
USER, INTENT = np.repeat(np.arange(USERS), INTENTS), np.tile(np.arange(INTENTS), USERS)


def test_where_only_users_or_only_intents_differ_it_is_as_wide_as_they_make_it() -> None:
    rng = np.random.default_rng(1)
    for effects, index in ((rng.normal(size=USERS), USER), (rng.normal(size=INTENTS), INTENT)):
        score = (effects - effects.mean())[index] / USER.size
        low, high = pigeonhole(USER, INTENT, score, 0.025)
        error = effects.std() / len(effects) ** 0.5
        assert high - low == pytest.approx(2 * 1.96 * error, rel=0.15)


def test_a_skewed_world_has_a_skewed_interval() -> None:
    effects = np.zeros(INTENTS)
    effects[:3] = -1.0
    low, high = pigeonhole(USER, INTENT, (effects - effects.mean())[INTENT] / USER.size, 0.025)
    assert -low > 1.2 * high > 0


def test_it_is_the_same_bits_in_any_order_of_the_rows_and_turns_with_the_sign() -> None:
    rng = np.random.default_rng(2)
    score = rng.normal(size=USER.size)
    score -= score.mean()
    ends, order = pigeonhole(USER, INTENT, score, 0.025), rng.permutation(USER.size)
    assert pigeonhole(USER[order], INTENT[order], score[order], 0.025) == ends
    assert pigeonhole(USER, INTENT, -score, 0.025) == pytest.approx((-ends[1], -ends[0]))


def test_counts_that_are_kept_are_those_that_are_drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    score = np.random.default_rng(3).normal(size=USER.size)
    score -= score.mean()
    kept = pigeonhole(USER, INTENT, score, 0.025)
    monkeypatch.setattr(module, "_KEPT", 0)
    assert pigeonhole(USER, INTENT, score, 0.025) == kept


def test_nothing_that_differs_has_no_width() -> None:
    assert pigeonhole(USER, INTENT, np.zeros(USER.size), 0.025) == (0.0, 0.0)
