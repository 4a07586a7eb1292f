"""LinUCB against the textbook's linear algebra; it tries what is not known, and in the closed loop nothing is drawn."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, UNIT, snap
from skg_bench.reranker.linucb import STEEPNESS, LinUCB
from tests.laws import world
from tests.reranker.turns import chosen, served, turns

F, B = 32, 7
NAMES = [f"f{i}" for i in range(F)]


def bound(x: F64, known: F64, label: F64, alpha: float, l2: float) -> F64:
    """u(x) `[n]` by numpy's own solver."""
    a = l2 * np.eye(x.shape[1]) + known.T @ known
    guess = x @ np.linalg.solve(a, known.T @ (label - 0.5))
    value: F64 = guess + alpha * np.sqrt(np.einsum("nf,nf->n", x, np.linalg.solve(a, x.T).T))
    return value


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 2**32), alpha=st.sampled_from([0.0, 0.5, 3.0]), l2=st.sampled_from([0.1, 1.0, 10.0]))
def test_it_is_the_bound_of_the_textbook_in_whatever_parts_ratings_come(seed: int, alpha: float, l2: float) -> None:
    rng = np.random.default_rng(seed)
    made, ratings = LinUCB(alpha, l2), turns(rng, B, 40 * B, F)
    scorer = made.start(B, NAMES)
    assert scorer is not None
    whole = made.fit(scorer, np.arange(B), ratings)
    for part in np.array_split(np.arange(len(ratings.row)), 5):
        users, row = np.unique(ratings.row[part], return_inverse=True)
        few = ratings.rows(part)
        scorer = made.fit(scorer, users.astype(np.int64), type(few)(row.astype(np.int32), *(
            getattr(few, name) for name in ("features", "candidates", "place", "label", "event")
        )))  # fmt: skip
    x = snap(rng.random((B, 5, F)))
    assert np.array_equal(scorer.score(x), whole.score(x))
    for u in range(B):
        mask = ratings.row == u
        expected = bound(x[u], chosen(ratings)[mask], ratings.label[mask], alpha, l2)
        assert whole.score(x)[u] / STEEPNESS == pytest.approx(expected, abs=2e-4 * (1 + alpha) / l2 + UNIT)


def test_what_was_tried_less_often_is_taken_until_it_is_known() -> None:
    """Two actions, both always rated miss or both partial: neither is taken twice in a row for long."""
    made = LinUCB(1.0, 1.0)
    scorer, x = made.start(1, NAMES[:2]), np.eye(2)[None]
    taken = []
    for _ in range(20):
        assert scorer is not None
        best = int(scorer.score(x)[0].argmax())
        taken.append(best)
        scorer = made.fit(scorer, np.zeros(1, np.int64), served(np.zeros(1, np.int32), x[0, [best]], np.full(1, 0.5)))
    assert sum(taken) == 10
    good = np.array([1.0])
    scorer = made.start(1, NAMES[:2])
    for i in range(60):
        assert scorer is not None
        best = int(scorer.score(x)[0].argmax())
        taken.append(best)
        label = good if best == 1 else 1 - good
        scorer = made.fit(scorer, np.zeros(1, np.int64), served(np.zeros(1, np.int32), x[0, [best]], label))
        assert i < 10 or best == 1  # the better one is found, and kept


def test_without_width_and_with_one_it_differs_by_the_width() -> None:
    rng = np.random.default_rng(0)
    ratings, x = turns(rng, B, 200, F), snap(rng.random((B, 5, F)))
    low, high = (
        made.fit(made.start(B, NAMES), np.arange(B), ratings).score(x)  # type: ignore[arg-type]
        for made in (LinUCB(0.0, 1.0), LinUCB(1.0, 1.0))
    )
    assert (high > low).all()


def test_in_the_closed_loop_choices_are_certain_and_ratings_count_from_when_they_are_known(tmp_path: Path) -> None:
    run = world.run(tmp_path / "run", 12, 256, arms=("linucb",))
    turns = run.turns("linucb", ["propensity", "explored", "fallback_to_llm"]).to_pandas()
    assert (turns.propensity == 1).all()
    assert not turns.explored.any()
    assert 0 < turns.fallback_to_llm.mean() < 1


@pytest.mark.parametrize(
    ("parameters", "says"),
    [((0.5, 0.0), "l2=0"), ((0.5, float("nan")), "l2=nan"), ((-1.0, 1.0), "alpha=-1"), ((99.0, 1.0), "alpha=99")],
)
def test_parameters_without_a_meaning_are_refused_by_name(parameters: tuple[float, float], says: str) -> None:
    with pytest.raises(UsageError, match=rf"reranker\.{says}"):
        LinUCB(*parameters)
