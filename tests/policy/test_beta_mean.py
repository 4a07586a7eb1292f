"""The rule beside the simulated reader: which candidates it looks at, what it takes of them, and when it takes none."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skg_bench.core.deciding import Candidates
from skg_bench.core.errors import UsageError
from skg_bench.policy.beta_mean import BetaMean
from tests.policy.played import candidates

RULE = BetaMean(near=0.5, least=0.0, prior_ok=1.0, prior_miss=1.0)


def place(rule: BetaMean, shown: Candidates) -> list[int]:
    share = rule.propensities(shown, None)
    assert np.isin(share, [0.0, 1.0]).all()
    taken: list[int] = (share.argmax(axis=1) - 1).tolist()
    return taken


def shelf(**columns: Any) -> Candidates:
    """Three skills of one user: helped in 3 of 4 uses, in 4 of 4, and in none of 2."""
    given = {"similarity": [[0.0] * 3], "ok": [[3.0, 4.0, 0.0]], "rated": [[4, 4, 2]], "miss": [[1, 0, 2]]} | columns
    kinds = {"similarity": np.float64, "ok": np.float64}
    arrays: dict[str, Any] = {name: np.array(x, kinds.get(name, np.int32)) for name, x in given.items()}
    return replace(candidates(0, 1, 3), skill=np.array([[4, 1, 7]], np.int32), **arrays)


@pytest.mark.req("P45")
def test_what_was_learned_in_such_a_place_comes_before_what_helped_more_elsewhere() -> None:
    assert place(RULE, shelf()) == [1]
    assert place(RULE, shelf(similarity=[[0.0, 0.49, 0.5]])) == [2]
    assert place(RULE, shelf(similarity=[[0.9, 0.0, 0.9]])) == [0]


def test_a_skill_that_was_not_tried_counts_as_one_that_helped_as_often_as_not() -> None:
    untried = shelf(ok=[[1.0, 0.0, 2.0]], rated=[[3, 0, 3]], miss=[[2, 0, 1]])
    assert place(RULE, untried) == [2]
    assert place(RULE, replace(untried, ok=np.array([[1.0, 0.0, 1.0]]), miss=np.array([[2, 0, 2]], np.int32))) == [1]


def test_a_use_that_neither_helped_nor_harmed_counts_neither_way() -> None:
    neutral = shelf(ok=[[3.0, 5.5, 0.0]], rated=[[4, 7, 2]], miss=[[1, 0, 2]])  # 4 helped, 3 did neither
    assert place(RULE, neutral) == [1]
    assert place(RULE, shelf(ok=[[1.0, 1.5, 0.0]], rated=[[1, 3, 2]], miss=[[0, 1.0, 2]])) == [0]


def test_nothing_is_said_where_no_mean_is_large_enough() -> None:
    assert place(replace(RULE, least=5 / 6), shelf()) == [1]
    assert place(replace(RULE, least=0.84), shelf()) == [-1]
    assert place(replace(RULE, least=0.7), shelf(similarity=[[0.6, 0.0, 0.0]])) == [-1]  # 4 / 6, and no other is near


@given(seed=st.integers(0, 2**32))
def test_it_takes_what_a_loop_over_the_shortlist_takes(seed: int) -> None:
    shown = candidates(seed)
    for u, taken in enumerate(place(RULE, shown)):
        listed = [k for k in range(shown.skill.shape[1]) if shown.skill[u, k] >= 0]
        pool = [k for k in listed if shown.similarity[u, k] >= 0.5] or listed
        options = []
        for k in pool:
            harmful = int(shown.miss[u, k])
            partial = round(2 * (shown.rated[u, k] - shown.ok[u, k] - harmful))
            helpful = int(shown.rated[u, k]) - partial - harmful
            options.append((-Fraction(helpful + 1, helpful + harmful + 2), int(shown.skill[u, k]), k))
        assert taken == (min(options)[2] if options else -1)


@pytest.mark.parametrize(
    ("name", "bad"), [("near", -0.1), ("near", 1.1), ("least", float("nan")), ("prior_ok", 0.0), ("prior_miss", 1e7)]
)
def test_a_parameter_that_makes_no_sense_is_refused_by_name(name: str, bad: float) -> None:
    with pytest.raises(UsageError, match=rf"policy.{name}={bad} must be"):
        replace(RULE, **{name: bad})
