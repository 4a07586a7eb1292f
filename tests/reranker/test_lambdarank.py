"""LambdaRank: arrays against LightGBM's own prediction, what continues, and bad parameters."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import WEIGHT_UNIT, snap
from skg_bench.core.types import TrainingRows
from skg_bench.reranker import lambdarank
from skg_bench.reranker.lambdarank import LambdaRank, TreeScorer
from tests.reranker.turns import turns

F = 32
NAMES = [f"f{i}" for i in range(F)]
RANK = LambdaRank(trees=20, more=5, most=30, rate=0.1, min_rows=10, l2=1.0, window=300)


def fitted(recipe: LambdaRank, ratings: TrainingRows, scorer: TreeScorer | None = None, users: int = 1) -> TreeScorer:
    before = scorer or recipe.start(users, NAMES)
    assert before is not None
    made = recipe.fit(before, np.arange(users), ratings)
    assert isinstance(made, TreeScorer)
    return made


def liked(rng: np.random.Generator, n: int) -> TrainingRows:
    """Served skills are ok where feature 3 is high."""
    ratings = turns(rng, 1, n, F)
    x = ratings.features[np.arange(n), ratings.place, 3]
    return replace(ratings, label=(x > 0.5).astype(np.float64))


def test_scores_are_lightgbms_own_less_that_of_the_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    import lightgbm  # takes half a second, in each test process that collects this module

    boosters: list[lightgbm.Booster] = []

    class Kept(lightgbm.Booster):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            boosters.append(self)

    monkeypatch.setattr(lightgbm, "Booster", Kept)
    scorer = fitted(RANK, turns(np.random.default_rng(0), 3, 600, F), users=3)
    x = snap(np.random.default_rng(1).random((3, 40, F)))
    x[:, 20:] = x[:, 20:].round()  # 0 and 1: at the ends
    logits = scorer.score(x)
    assert len(boosters) == 3
    for user, booster in enumerate(boosters):
        theirs = np.asarray(booster.predict(x[user])) - np.asarray(booster.predict(np.zeros((1, F))))
        assert np.ptp(theirs) > 0.1
        assert np.abs(logits[user] - theirs).max() <= 2 * 20 * WEIGHT_UNIT


@pytest.mark.req("K28")
def test_a_group_is_a_turn_with_its_fallback_and_only_the_served_skill_is_rated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import lightgbm

    given: list[Any] = []

    class Kept(lightgbm.Dataset):
        def __init__(self, x: Any, label: Any, **more: Any) -> None:
            super().__init__(x, label, **more)
            given.append((x, label, more["group"], more["init_score"]))

    monkeypatch.setattr(lightgbm, "Dataset", Kept)
    ratings = turns(np.random.default_rng(0), 1, 50, F)
    offset = snap(np.random.default_rng(1).random((50, 5)))
    ratings = replace(ratings, offset=offset)
    fitted(RANK, ratings)
    ((x, label, group, score),) = given
    assert group.tolist() == (ratings.candidates + 1).tolist()
    ends = np.cumsum(group).tolist()
    for turn, (first, end) in enumerate(zip([0, *ends], ends, strict=False)):
        n, place = ratings.candidates[turn], ratings.place[turn]
        assert np.array_equal(x[first : end - 1], ratings.features[turn, :n])
        assert not x[end - 1].any()
        expected = np.ones(n + 1)
        expected[place] = {1.0: 2, 0.5: 1, 0.0: 0}[ratings.label[turn]]
        assert label[first:end].tolist() == expected.tolist()
        assert score[first:end].tolist() == [*offset[turn, :n], 0.0]


@pytest.mark.req("K19")
def test_a_refit_adds_trees_and_begins_afresh_before_there_are_too_many() -> None:
    rng = np.random.default_rng(0)
    scorer = fitted(RANK, liked(rng, 100))
    counts: list[int] = []
    for _ in range(5):
        before = scorer
        scorer = fitted(RANK, liked(rng, 100), scorer)
        counts.append(int(scorer.trees[0]))
        kept = 20 if counts[-1] == 25 else 25
        same = np.array_equal(scorer.leaf[0, :kept], before.leaf[0, :kept])
        assert same == (counts[-1] > 20)
        assert not scorer.leaf[0, counts[-1] :].any()
    assert counts == [25, 30, 20, 25, 30]


@pytest.mark.req("K10")
def test_what_users_like_is_ranked_above_and_below_the_fallback() -> None:
    scorer = fitted(RANK, liked(np.random.default_rng(0), 200))
    x = np.full((1, 2, F), 0.5)
    x[0, :, 3] = 0.1, 0.9
    low, high = scorer.score(x)[0]
    assert low < 0 < high


def test_trees_that_find_nothing_to_split_add_nothing() -> None:
    ratings = turns(np.random.default_rng(0), 1, 3, F)
    assert not fitted(RANK, ratings).score(ratings.features[None, 0]).any()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"trees": 0}, r"reranker\.trees=0 must be at least 1"),
        ({"more": 0}, r"reranker\.more=0"),
        ({"min_rows": 0}, r"reranker\.min_rows=0"),
        ({"window": 0}, r"reranker\.window=0"),
        ({"most": 19}, r"reranker\.most=19 must be at least reranker\.trees=20"),
        ({"rate": 1.5}, r"reranker\.rate=1\.5 must be above 0"),
        ({"l2": -0.5}, r"reranker\.l2=-0\.5"),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        replace(RANK, **change)


def test_without_lightgbm_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lambdarank, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install -c constraints.txt -e '\.\[lightgbm\]'"):
        replace(RANK)
