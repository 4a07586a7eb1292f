"""The linear reranker: its algebra against a library's, learning in pieces, and a world that it must learn."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import WEIGHT_UNIT, snap
from skg_bench.core.types import Scorer, TrainingRows
from skg_bench.reranker.identity import Identity
from skg_bench.reranker.linear import Linear, LinearScorer
from tests.reranker.turns import chosen, served, turns

F = 6
NAMES = [f"f{i}" for i in range(F)]
seeds = st.integers(0, 2**32)


def rated(rng: np.random.Generator, users: int, n: int) -> TrainingRows:
    return turns(rng, users, n, F)


def started(users: int) -> Scorer:
    scorer = Linear(1.0).start(users, NAMES)
    assert scorer is not None
    return scorer


def content(scorer: Scorer) -> tuple[bytes, bytes, bytes]:
    assert isinstance(scorer, LinearScorer)
    return scorer.weights.tobytes(), scorer.gram.tobytes(), scorer.moment.tobytes()


@pytest.mark.req("K10")
def test_before_anything_is_known_every_candidate_scores_the_same() -> None:
    logits = started(3).score(snap(np.random.default_rng(0).random((3, 5, F))))
    assert logits.shape == (3, 5)
    assert logits.dtype == np.float64
    assert not logits.any()


@settings(deadline=None, max_examples=20)
@given(seed=seeds, l2=st.floats(0.1, 20))
@pytest.mark.req("K10")
def test_weights_are_those_of_the_formula_on_their_grid(seed: int, l2: float) -> None:
    rng = np.random.default_rng(seed)
    ratings = rated(rng, 4, 200)
    made = Linear(l2).fit(started(4), np.arange(4), ratings)
    assert isinstance(made, LinearScorer)
    for u in range(4):
        x, y = chosen(ratings)[ratings.row == u], ratings.label[ratings.row == u]
        w = np.linalg.solve(x.T @ x / 4 + l2 * np.eye(F), x.T @ (y - 0.5))
        assert np.abs(made.weights[u] - w).max() <= WEIGHT_UNIT
    units = made.weights / WEIGHT_UNIT
    assert np.array_equal(units, np.rint(units))


@settings(deadline=None, max_examples=20)
@given(seed=seeds, cuts=st.lists(st.integers(0, 300), max_size=6))
@pytest.mark.req("K19")
def test_fitting_in_pieces_and_in_any_order_is_fitting_at_once_to_the_bit(seed: int, cuts: list[int]) -> None:
    rng = np.random.default_rng(seed)
    ratings, everyone = rated(rng, 5, 300), np.arange(5)
    once = Linear(1.0).fit(started(5), everyone, ratings)
    scorer = started(5)
    for piece in np.split(rng.permutation(300), sorted(cuts)):
        scorer = Linear(1.0).fit(scorer, everyone, ratings.rows(piece))
    assert content(scorer) == content(once)


@pytest.mark.req("K19")
def test_a_refit_concerns_the_users_who_are_refitted_and_leaves_the_old_scorer_as_it_was() -> None:
    rng = np.random.default_rng(0)
    first = Linear(1.0).fit(started(5), np.arange(5), rated(rng, 5, 100))
    before = content(first)
    rows = np.array([3, 1])
    ratings = rated(rng, 2, 60)
    second = Linear(1.0).fit(first, rows, ratings)
    assert content(first) == before
    assert isinstance(first, LinearScorer)
    assert isinstance(second, LinearScorer)
    changed = (first.weights != second.weights).any(axis=1)
    assert changed.tolist() == [False, True, False, True, False]
    alone = LinearScorer(first.weights[[3]], first.gram[[3]], first.moment[[3]])
    again = Linear(1.0).fit(alone, np.array([0]), ratings.rows(ratings.row == 0))
    assert isinstance(again, LinearScorer)
    assert np.array_equal(again.weights[0], second.weights[3])


@settings(deadline=None, max_examples=20)
@given(seed=seeds)
def test_a_score_is_the_exact_product_and_knows_no_other_user(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scorer = Linear(1.0).fit(started(7), np.arange(7), rated(rng, 7, 200))
    assert isinstance(scorer, LinearScorer)
    x = snap(rng.random((7, 5, F)))
    whole = scorer.score(x)
    units = np.rint(scorer.weights * 2**20).astype(np.int64)
    exact = (np.rint(x * 2**16).astype(np.int64) * units[:, None, :]).sum(axis=2)
    assert np.array_equal(whole * 2.0**36, exact)
    assert np.array_equal(scorer.score(x[:3]), whole[:3])  # those who are still here are the first
    assert np.array_equal(scorer.score(x[:, ::-1]), whole[:, ::-1])


@pytest.mark.req("K10", "K28")
def test_it_learns_which_of_several_skills_will_please() -> None:
    rng = np.random.default_rng(0)
    taste = rng.standard_normal((20, F)) * 6

    def world(n: int) -> tuple[np.ndarray, np.ndarray]:
        x = snap(rng.random((20, n, F)))
        chance = 1 / (1 + np.exp(-np.einsum("unf,uf->un", x - 0.5, taste)))
        return x, (rng.random((20, n)) < chance).astype(float)

    x, y = world(200)
    x[:, :, F - 1] = 1.0  # a constant
    ratings = served(np.repeat(np.arange(20), 200), x.reshape(-1, F), y.reshape(-1))
    scorer = Linear(1.0).fit(started(20), np.arange(20), ratings)
    x, y = world(300)
    x[:, :, F - 1] = 1.0
    logits = scorer.score(x)
    right = [
        (logits[u][y[u] == 1][:, None] > logits[u][y[u] == 0][None]).mean() for u in range(20)
    ]  # share of pairs in the right order: 0.5 by chance
    assert np.mean(right) > 0.75
    assert min(right) > 0.6
    swapped = scorer.score(x[::-1])  # another user's weights order them no better than chance
    other = [(swapped[u][y[19 - u] == 1][:, None] > swapped[u][y[19 - u] == 0][None]).mean() for u in range(20)]
    assert np.mean(other) < 0.65


@pytest.mark.req("K10")
def test_partial_is_worth_half() -> None:
    x = np.ones((4, F))
    rows = np.zeros(4, np.int32)
    halves = Linear(1.0).fit(started(1), np.arange(1), served(rows, x, np.full(4, 0.5)))
    assert not halves.score(x[None]).any()
    mixed = Linear(1.0).fit(started(1), np.arange(1), served(rows, x, np.array([1.0, 0.0, 1.0, 1.0])))
    assert (mixed.score(x[None]) > 0).all()


@pytest.mark.req("K11")
def test_the_identity_gives_no_signal() -> None:
    assert Identity().start(5, NAMES) is None
    scorer = started(1)
    assert Identity().fit(scorer, np.arange(1), rated(np.random.default_rng(0), 1, 3)) is scorer


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan")])
def test_a_penalty_that_is_not_above_zero_is_refused_by_name(bad: float) -> None:
    with pytest.raises(UsageError, match=rf"reranker\.l2={bad} must be above 0"):
        Linear(bad)


def test_a_scorer_of_another_kind_is_not_continued() -> None:
    other: Any = Identity()
    with pytest.raises(TypeError, match="continues a LinearScorer, not a Identity"):
        Linear(1.0).fit(other, np.arange(1), rated(np.random.default_rng(0), 1, 3))
