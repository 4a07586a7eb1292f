"""What every reranker that `conf/reranker` offers must hold, found there; F = 32 features, as invariance at toy shapes
has missed a bug.
"""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from skg_bench.app.building import build
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, snap
from skg_bench.core.types import Reranker, Scorer, TrainingRows
from tests.reranker.turns import served, turns

CONF = Path(__file__).resolve().parents[2] / "conf" / "reranker"
F, B, K = 32, 12, 5
NAMES = [f"f{i}" for i in range(F - 1)] + ["constant"]
EVERYONE = np.arange(B)


def reranker(name: str) -> Reranker:
    made: Reranker = build("reranker", yaml.safe_load((CONF / f"{name}.yaml").read_text("utf-8")), COMMAND_LINE)
    return made


ALL = sorted(path.stem for path in CONF.glob("*.yaml"))
LEARNING = [name for name in ALL if name != "permuted" and reranker(name).start(1, NAMES) is not None]
each = pytest.mark.parametrize("name", LEARNING)


def started(made: Reranker, users: int = B) -> Scorer:
    scorer = made.start(users, NAMES)
    assert scorer is not None
    return scorer


def some_turns(seed: int, users: int = B, n: int = 40 * B) -> TrainingRows:
    """Rated turns, each user's in order."""
    ratings = turns(np.random.default_rng(seed), users, n, F, K)
    ratings.features[:, :, -1] = np.arange(K) < ratings.candidates[:, None]
    return ratings.rows(np.argsort(ratings.row, kind="stable"))


def shortlists(seed: int, users: int = B) -> F64:
    x = snap(np.random.default_rng(seed).random((users, K, F)))
    x[:, :, -1] = 1.0
    return x


def arrays(scorer: Scorer) -> list[Any]:
    return [getattr(scorer, f.name) for f in fields(scorer)]  # type: ignore[arg-type]


def same(first: Scorer, other: Scorer) -> bool:
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(arrays(first), arrays(other), strict=True))


def part(scorer: Scorer, rows: Any) -> Scorer:
    """The scorer of these users."""
    columns = {f.name: getattr(scorer, f.name)[rows] for f in fields(scorer)}  # type: ignore[arg-type]
    return replace(scorer, **columns)  # type: ignore[type-var]


def test_those_that_learn_are_found() -> None:
    assert {"linear", "mlp", "lambdarank"} <= set(LEARNING)
    assert set(ALL) - set(LEARNING) == {"identity", "permuted"}  # no signal, and a placebo


@each
@pytest.mark.req("K10")
def test_scores_are_float64_on_the_grid_and_all_alike_before_anything_is_known(name: str) -> None:
    made = reranker(name)
    blank = started(made)
    fitted = made.fit(blank, EVERYONE, some_turns(0))
    for scorer in (blank, fitted):
        logits = scorer.score(shortlists(1))
        assert logits.dtype == np.float64
        assert logits.shape == (B, K)
        assert np.array_equal(logits * 2.0**36, np.rint(logits * 2.0**36))
    if name != "linucb":  # which tells them apart by how little is known of them
        assert not blank.score(shortlists(1)).any()
    assert (np.ptp(fitted.score(shortlists(1)), axis=1) > 0).mean() > 0.5
    assert isinstance(made.window, int)
    assert made.window >= 0


@each
@pytest.mark.req("K19")
def test_a_refit_concerns_those_who_are_refitted_and_returns_new_values(name: str) -> None:
    made = reranker(name)
    scorer = made.fit(started(made), EVERYONE, some_turns(0))
    before, x = [a.tobytes() for a in arrays(scorer)], shortlists(1)
    logits = scorer.score(x)
    rows = np.array([7, 4])
    later = made.fit(scorer, rows, some_turns(2, 2, 80))
    assert [a.tobytes() for a in arrays(scorer)] == before
    assert not any(np.shares_memory(a, b) for a in arrays(later) for b in arrays(scorer))
    changed = (later.score(x) != logits).any(axis=1)
    assert np.flatnonzero(changed).tolist() == [4, 7]


@each
def test_a_users_scores_are_the_same_bits_among_any_others(name: str) -> None:
    """Together, one by one, in another order, and with those gone who have no more turns."""
    made = reranker(name)
    ratings, x = some_turns(0), shortlists(1)
    many = made.fit(started(made), EVERYONE, ratings)
    logits = many.score(x)
    for user in (0, 3, B - 1):
        user_ratings = ratings.rows(ratings.row == user)
        single = made.fit(started(made, 1), np.arange(1), replace(user_ratings, row=np.zeros_like(user_ratings.row)))
        assert same(single, part(many, slice(user, user + 1)))
        assert np.array_equal(single.score(x[[user]]), logits[[user]])
    order = np.random.default_rng(0).permutation(B)
    mixed = made.fit(started(made), order, replace(ratings, row=np.argsort(order)[ratings.row].astype(np.int32)))
    assert same(mixed, many)
    assert np.array_equal(many.score(x[:5]), logits[:5])


@each
def test_a_candidates_score_depends_on_it_alone(name: str) -> None:
    """Not on its place, nor on what else is there, nor on how long the shortlist could be."""
    made = reranker(name)
    scorer = made.fit(started(made), EVERYONE, some_turns(0))
    x = shortlists(1)
    logits = scorer.score(x)
    order = np.array([3, 0, 4, 1, 2])
    assert np.array_equal(scorer.score(x[:, order]), logits[:, order])
    assert np.array_equal(scorer.score(x[:, :2]), logits[:, :2])
    wide = np.concatenate([x, np.zeros((B, 3, F))], axis=1)
    assert np.array_equal(scorer.score(wide)[:, :K], logits)
    behind = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 2, 0)), 0, 2)  # as the engine lays features out
    assert np.array_equal(scorer.score(behind), logits)


@each
def test_empty_places_of_a_shortlist_teach_nothing(name: str) -> None:
    made = reranker(name)
    ratings = some_turns(0)
    assert (ratings.candidates < K).any()
    wide = np.concatenate([ratings.features, np.zeros((len(ratings.row), 3, F))], axis=1)
    assert same(
        made.fit(started(made), EVERYONE, ratings), made.fit(started(made), EVERYONE, replace(ratings, features=wide))
    )


@each
def test_the_same_ratings_give_the_same_bits_again(name: str) -> None:
    def twice() -> Scorer:
        made = reranker(name)
        return made.fit(made.fit(started(made), EVERYONE, some_turns(0)), EVERYONE, some_turns(1))

    assert same(twice(), twice())


@each
@pytest.mark.parametrize("label", [0.0, 0.5, 1.0])
def test_ratings_of_one_kind_move_scores_their_way_and_no_further_than_to_a_number(name: str, label: float) -> None:
    made: Any = reranker(name)
    if name == "linucb":  # its guess; the width falls with every rating
        made = replace(made, alpha=0.0)
    ratings = some_turns(0)
    ratings = replace(ratings, label=np.full_like(ratings.label, label))
    logits = made.fit(started(made), EVERYONE, ratings).score(shortlists(1))
    assert np.isfinite(logits).all()
    assert label == 0.5 or (logits.mean() > 0) == (label == 1.0)


@each
def test_a_single_rated_turn_is_enough_to_be_fitted(name: str) -> None:
    made = reranker(name)
    scorer = made.fit(started(made), EVERYONE[:1], some_turns(0, 1, 1))
    assert np.isfinite(scorer.score(shortlists(1))).all()


@each
def test_constant_features_and_candidates_that_are_all_alike_are_no_trouble(name: str) -> None:
    made = reranker(name)
    ratings = some_turns(0)
    ratings.features[:, :, 3] = 0.25 * (np.arange(K) < ratings.candidates[:, None])
    x = shortlists(1)
    x[:, :, 3] = 0.25
    assert np.isfinite(made.fit(started(made), EVERYONE, ratings).score(x)).all()
    alike = replace(ratings, features=np.where(ratings.features > 0, 0.5, 0.0))
    logits = made.fit(started(made), EVERYONE, alike).score(np.full_like(x, 0.5))
    assert np.isfinite(logits).all()
    assert (logits == logits[:, :1]).all()


@each
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_feature_that_is_no_number_is_refused(name: str, bad: float) -> None:
    made = reranker(name)
    ratings = some_turns(0)
    ratings.features[5, 0, 3] = bad
    with pytest.raises(UsageError, match="feature number 3 is NaN or infinite for 1 of"):
        made.fit(started(made), EVERYONE, ratings)


@each
def test_a_scorer_of_another_kind_is_not_continued(name: str) -> None:
    other: Any = object()
    with pytest.raises(TypeError, match=f"reranker={name} continues"):
        reranker(name).fit(other, EVERYONE, some_turns(0))


def easy_world(seed: int, taste: F64, n: int) -> tuple[TrainingRows, F64]:
    """`n` turns a user: one candidate or none is right, by what the user likes; which one is served is chance."""
    rng, users = np.random.default_rng(seed), len(taste)
    row = np.repeat(np.arange(users), n)
    x = snap(rng.random((users * n, K, F)))
    x[:, :, -1] = 1.0
    liked = np.einsum("nkf,nf->nk", x - 0.5, taste[row])
    weight = np.exp(np.concatenate([liked, np.zeros((len(row), 1))], axis=1))
    right = (rng.random((len(row), 1)) > np.cumsum(weight / weight.sum(axis=1, keepdims=True), axis=1)).sum(axis=1)
    place = rng.integers(0, K, len(row)).astype(np.int32)
    label = (right == place).astype(np.float64)
    event = rng.integers(0, 2**64, len(row), np.uint64)
    return TrainingRows(row.astype(np.int32), x, np.full(len(row), K, np.int32), place, label, event), label


@each
@pytest.mark.req("K10", "K28")
def test_it_beats_chance_where_users_like_different_things(name: str) -> None:
    rng = np.random.default_rng(5)
    taste = np.zeros((8, F))
    taste[:, :3] = rng.choice([-9.0, 9.0], (8, 3))
    ratings, _ = easy_world(0, taste, 300)
    made = reranker(name)
    scorer = made.fit(started(made, 8), np.arange(8), ratings)
    queries, label = easy_world(1, taste, 400)
    features = queries.features.reshape(8, 400, K, F)
    logits = scorer.score(features.reshape(8, 400 * K, F)).reshape(8 * 400, K)[np.arange(3200), queries.place]
    right = [order(logits[queries.row == u], label[queries.row == u]) for u in range(8)]
    assert np.mean(right) > 0.7, right
    others = scorer.score(features[::-1].reshape(8, 400 * K, F)).reshape(8 * 400, K)
    asked_of = queries.place.reshape(8, 400)[::-1].reshape(-1)
    swapped = [
        order(others[np.arange(3200), asked_of][queries.row == u], label[queries.row == 7 - u]) for u in range(8)
    ]
    assert np.mean(swapped) < np.mean(right) - 0.1


def order(score: F64, label: F64) -> float:
    """Share of pairs in the right order; 0.5 by chance."""
    ahead = score[label == 1][:, None] - score[label == 0][None]
    return float(((ahead > 0) + 0.5 * (ahead == 0)).mean())


@each
@pytest.mark.req("K31")
def test_what_an_offset_explains_is_not_learned_again(name: str) -> None:
    """Served skills alone, right in 19 of 20 turns, and the offset says so: there is next to nothing left to learn."""
    made = reranker(name)
    label = np.tile([1.0] * 19 + [0.0], 20)
    x = np.ones((400, F)) * 0.5
    ratings = served(np.zeros(400, np.int32), x, label)
    alone = made.fit(started(made, 1), np.arange(1), ratings).score(x[None, :1])
    explained = replace(ratings, offset=np.full((400, 1), snap(np.log(np.full(1, 19.0)))[0]))
    rest = made.fit(started(made, 1), np.arange(1), explained).score(x[None, :1])
    assert alone[0, 0] > 0.5
    assert abs(rest[0, 0]) < alone[0, 0] / 3
