"""The simulated reader: exact shares, what each weight does, and what it remembers of ratings that are kept apart."""

from dataclasses import replace
from math import exp
from typing import Any

import numpy as np
import pytest

from skg_bench.core.batch import ADD, NONE_RENEWED, UPDATE
from skg_bench.core.deciding import Candidates
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import AFTERWARDS, feedback
from skg_bench.policy.chooser import Chooser, RatedAfterwards
from tests.policy.played import candidates, decided, keys, renewing

READER = Chooser(rating=3.0, similarity=2.0, position=0.7, none=1.5, temperature=0.5)


def shelf(**columns: Any) -> Candidates:
    """Three skills of one user that nobody has rated, all as near."""
    given = {"skill": [[0, 1, 2]], "similarity": [[0.5] * 3], "ok": [[0.0] * 3], "rated": [[0] * 3], "miss": [[0] * 3]}
    given |= columns
    kinds = {"similarity": np.float64, "ok": np.float64}
    arrays: dict[str, Any] = {name: np.array(x, kinds.get(name, np.int32)) for name, x in given.items()}
    return replace(candidates(0, 1, 3), **arrays)


def share(reader: Chooser, shown: Candidates, state: RatedAfterwards | None = None) -> list[float]:
    made: list[float] = reader.propensities(shown, state or reader.start(1))[0].tolist()
    return made


@pytest.mark.req("P45")
def test_shares_are_exact_and_may_go_to_no_skill() -> None:
    shown = shelf(similarity=[[0.5, 0.25, 1.0]], ok=[[3.0, 0.5, 0.0]], rated=[[4, 1, 2]], miss=[[1, 0, 2]])
    ratings = [4 / 6, 1 / 2, 1 / 4]  # three helpful of four; one that is neutral; two harmful
    scores = [1.5, *(3 * r + 2 * s + 0.7 / k for r, s, k in zip(ratings, (0.5, 0.25, 1.0), (1, 2, 3), strict=True))]
    weights = [exp(score / 0.5) for score in scores]
    assert share(READER, shown) == pytest.approx([weight / sum(weights) for weight in weights], rel=1e-12)


@pytest.mark.parametrize("name", ["rating", "similarity", "position"])
def test_a_weight_of_none_hides_what_it_weighs(name: str) -> None:
    shown, same = (
        shelf(similarity=[[0.1, 0.5, 0.9]], ok=[[5.0, 1.0, 0.0]], rated=[[5, 2, 5]], miss=[[0, 1, 5]]),
        shelf(),
    )
    hidden = replace(READER, **{n: 0.0 for n in ("rating", "similarity", "position") if n != name})
    assert len(set(np.round(share(hidden, shown), 9)[1:])) == 3
    blind = replace(READER, **{name: 0.0})
    if name == "rating":
        shown, same = (replace(s, similarity=same.similarity) for s in (shown, same))
    elif name == "similarity":
        shown = shelf(similarity=[[0.1, 0.5, 0.9]])
    else:
        shown, same = shelf(skill=[[0, 1, -1]]), shelf(skill=[[1, 0, -1]])
        assert share(blind, shown)[1] == share(blind, shown)[2]
    assert share(blind, shown) == share(blind, same)


@pytest.mark.req("P45")
def test_ratings_that_are_kept_apart_are_shown_as_the_mean_of_both_means() -> None:
    shown = shelf(ok=[[2.0, 2.0, 2.0]], rated=[[2, 2, 2]])
    decision = decided(READER, shown, READER.start(1), 0, keys(0, 1))
    one, row = np.ones(1, np.int32), np.zeros(1, np.int32)
    state, before = READER.start(1), share(READER, shown)
    for value in (2, 2, 1):  # the second skill turned out to harm twice, and once neither
        state = READER.learn(state, decision, feedback(row, 0, AFTERWARDS, value * one, one), NONE_RENEWED)
    displayed = [0.75, (0.75 + 0.25) / 2, 0.75]
    scores = [1.5, *(3 * r + 2 * 0.5 + 0.7 / k for r, k in zip(displayed, (1, 2, 3), strict=True))]
    weights = [exp(score / 0.5) for score in scores]
    after = share(READER, shown, state)
    assert after == pytest.approx([weight / sum(weights) for weight in weights], rel=1e-12)
    assert after[2] < before[2]


def test_what_is_remembered_of_a_skill_survives_another_skills_arrival_and_not_its_own_renewal() -> None:
    shown = shelf()
    decision = decided(READER, shown, READER.start(1), 0, keys(0, 1))
    row, one = np.zeros(1, np.int32), np.ones(1, np.int32)
    state = READER.learn(READER.start(1), decision, feedback(row, 0, AFTERWARDS, row, one), NONE_RENEWED)
    judged = share(READER, shown, state)
    state = READER.learn(state, decision, feedback(row, 0, AFTERWARDS, row, 40 * one), renewing([0], [50], ADD))
    assert share(READER, shown, state) == judged != share(READER, shown)
    reworded = renewing([0], [1], source=-1)
    state = READER.learn(state, decision, feedback(row[:0], 0, AFTERWARDS, row[:0], row[:0]), reworded)
    assert share(READER, shown, state) == judged
    state = READER.learn(
        state, decision, feedback(row[:0], 0, AFTERWARDS, row[:0], row[:0]), renewing([0], [1], UPDATE)
    )
    assert share(READER, shown, state) == share(READER, shown)


def test_a_skill_that_is_not_yet_in_the_memory_has_no_later_ratings() -> None:
    shown, far = shelf(), shelf(skill=[[0, 1, 900]])
    state = RatedAfterwards(np.full((1, 3, 3), 5, np.int32))
    state.count[:, :2] = 0
    assert share(READER, far, state) == share(READER, shown)
    assert share(READER, shown, state) == pytest.approx(share(READER, shown))  # 5 to 5 is as good as nothing
    state.count[:, 2, 0] = 50
    assert share(READER, far, state) == share(READER, shelf())


def test_cold_it_takes_the_largest_score() -> None:
    cold = replace(READER, temperature=0.001, none=100.0)
    assert share(cold, shelf()) == [1.0, 0.0, 0.0, 0.0]
    assert share(replace(cold, none=-100.0), shelf()) == pytest.approx([0, 1, 0, 0])  # the first of the prompt


@pytest.mark.parametrize("name", ["rating", "similarity", "position", "none"])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1e7])
def test_weights_that_are_not_finite_are_refused_by_name(name: str, bad: float) -> None:
    with pytest.raises(UsageError, match=f"policy.{name}={bad} must be finite"):
        replace(READER, **{name: bad})


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_a_temperature_that_is_none_is_refused_by_name(bad: float) -> None:
    with pytest.raises(UsageError, match=f"policy.temperature={bad} must be finite and at least 0.001"):
        replace(READER, temperature=bad)
