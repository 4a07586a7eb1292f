"""Scorers of a pool: on whom they are fitted, what stays constant, what is learned on top, files that do not fit."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare
from skg_bench.assistant.pipeline import decision, ensemble
from skg_bench.assistant.pipeline.components import Scope, components
from skg_bench.assistant.pipeline.pretraining import (
    Pretrained,
    PretrainedScorer,
    load_scorer,
    ratings_of_pool,
    save_scorer,
)
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import snap
from skg_bench.engine import pools
from skg_bench.engine.cohort import Rollout, Setting, cohort_of
from skg_bench.engine.pools import Pool, fitted
from skg_bench.engine.vectors import Rows
from skg_bench.reranker.identity import Identity
from skg_bench.reranker.lambdarank import LambdaRank
from skg_bench.reranker.linear import Linear, LinearScorer
from skg_bench.reranker.mlp import MLP
from skg_bench.runfolder.run import Run
from tests.arms import changed
from tests.laws import world

USERS = 12
RECIPES = (
    Linear(1.0),
    MLP(units=8, steps=5, rate=0.02, l2=1.0, window=300, seed=0, device="cpu"),
    LambdaRank(trees=5, more=2, most=10, rate=0.1, min_rows=5, l2=1.0, window=300),
)
each = pytest.mark.parametrize("recipe", RECIPES, ids=lambda r: type(r).__name__)


def plan(scope: Scope = "pool", people: int | str = 6, **change: Any) -> Any:
    """The dense world with one arm, which serves a skill whenever it has one, so that much is rated."""
    made = world.plan(USERS, ("always",))
    return replace(made, arms=(changed(made.arms[0], scope=scope, pool=people, **change),))


def setting_of(made: Any) -> Setting:
    vectors = made.embedder.embed(made.simulator.messages)
    return Setting(made.seed, made.simulator, lambda: Rows(vectors), made.weeks)


def run(made: Any, out: Path, cohort: int = 256, workers: int = 1) -> Run:
    return world.carry_out(made, out, made.users, cohort, workers)


def everyones_scores(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The scorer at each turn of the runs that follow."""
    seen: list[Any] = []
    decide = decision.choose_skills

    def noting(stack: Any, query: Any, books: Any, memory: Any, event: Any, **more: Any) -> Any:
        seen.append(memory.scorer)
        return decide(stack, query, books, memory, event, **more)

    monkeypatch.setattr(ensemble, "choose_skills", noting)
    return seen


# ---------------------------------------------------------------------------------------------------- the pool


@pytest.mark.req("K31")
def test_a_pool_is_people_who_are_in_no_run_whoever_is(tmp_path: Path) -> None:
    people: list[int] = []
    made = plan()

    class Noting:
        def __getattr__(self, name: str) -> Any:
            return getattr(made.simulator, name)

        def begin(self, seed: int, users: Any, weeks: int) -> Any:
            people.extend(users.tolist())
            return made.simulator.begin(seed, users, weeks)

    noted = replace(made, simulator=Noting())
    run(noted, tmp_path / "few")
    assert sorted(people) == [*range(USERS), *range(2**29, 2**29 + 6)]
    run(replace(plan(), users=USERS + 30), tmp_path / "many", cohort=7)
    files = [(tmp_path / name / "pool" / "always.json").read_bytes() for name in ("few", "many")]
    assert files[0] == files[1]


def test_the_ratings_of_a_pool_are_the_same_however_it_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    made = plan()
    whole = ratings_of_pool(made.arms[0], 6, Pool(setting_of(made)).simulate)
    monkeypatch.setattr(pools, "_TOGETHER", 4)
    parts = ratings_of_pool(made.arms[0], 6, Pool(setting_of(made)).simulate)
    assert len(whole.label) > 50
    assert set(whole.row.tolist()) == {0}
    for name in ("features", "candidates", "place", "label", "event"):
        assert np.array_equal(getattr(whole, name), getattr(parts, name)), name


def test_the_shared_scorer_is_the_recipes_own_on_all_of_their_ratings(tmp_path: Path) -> None:
    made = plan()
    fitted(made, tmp_path, made.embedder.embed(made.simulator.messages))
    arm = made.arms[0]
    names = components(arm).signals.names
    scorer = load_scorer(tmp_path / "pool" / "always.json", components(arm).reranker, names)
    training = ratings_of_pool(arm, 6, Pool(setting_of(made)).simulate)
    served = training.features[np.arange(len(training.place)), training.place]
    assert isinstance(scorer, LinearScorer)
    assert np.array_equal(scorer.gram[0], served.T @ served)
    assert np.array_equal(scorer.moment[0], served.T @ (training.label - 0.5))
    assert json.loads((tmp_path / "pool" / "always.json").read_text("utf-8"))["rated_turns"] == len(training.label)


def test_a_pool_that_rates_nothing_leaves_the_scorer_blank(tmp_path: Path) -> None:
    made = plan(policy=components(world.plan(USERS, ("never",)).arms[0]).policy)
    out = run(made, tmp_path)
    scores = out.turns("always", ["score"])["score"].combine_chunks().flatten().to_numpy()
    assert set(scores.tolist()) == {0.5}


# -------------------------------------------------------------------------------------------- what users get


@pytest.mark.req("K31")
def test_the_scorer_of_a_pool_is_there_from_the_first_turn_and_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = everyones_scores(monkeypatch)
    run(plan(), tmp_path)
    seen = [scorer for scorer in seen if len(scorer.weights) == USERS]  # those of the pool are 6
    assert seen
    first = seen[0].weights.tobytes()
    assert seen[0].weights[0].any()
    assert (seen[0].weights == seen[0].weights[:1]).all()
    assert all(scorer.weights.tobytes() == first for scorer in seen)


@pytest.mark.req("K31")
def test_a_cold_start_begins_with_the_pools_scorer_and_goes_on_to_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = everyones_scores(monkeypatch)
    run(plan("pool+user"), tmp_path)
    scorers = [scorer for scorer in seen if isinstance(scorer, PretrainedScorer)]
    assert not scorers[0].own.weights.any()  # type: ignore[attr-defined]
    assert (scorers[-1].own.weights != 0).any(axis=1).mean() > 0.8  # type: ignore[attr-defined]
    assert all(scorer.shared is scorers[0].shared for scorer in scorers)
    x = snap(np.random.default_rng(0).random((USERS, 5, scorers[0].shared.weights.shape[1])))  # type: ignore[attr-defined]
    assert np.array_equal(scorers[-1].score(x), scorers[-1].shared.score(x) + scorers[-1].own.score(x))


def test_a_model_of_another_run_serves_as_the_pool_of_this_one(tmp_path: Path) -> None:
    here = run(plan(), tmp_path / "here")
    copy = run(plan(people=str(tmp_path / "here" / "pool" / "always.json")), tmp_path / "there")
    assert world.differences(here, copy, range(USERS)) == []
    assert not (tmp_path / "there" / "pool").exists()
    alone = run(plan("user"), tmp_path / "alone")
    assert world.differences(here, alone, range(USERS)) != []


def test_a_run_that_goes_on_keeps_the_scorer_that_it_began_with(tmp_path: Path) -> None:
    whole = run(plan(), tmp_path / "whole")
    run(plan(), tmp_path / "cut")
    for log in ("turns", "updates", "feedback", "learning"):
        for shard in (tmp_path / "cut" / log).iterdir():
            shard.unlink()
    before = (tmp_path / "cut" / "pool" / "always.json").stat().st_mtime_ns
    again = run(plan(), tmp_path / "cut", workers=2)
    assert (tmp_path / "cut" / "pool" / "always.json").stat().st_mtime_ns == before
    assert world.differences(whole, again, range(USERS)) == []


def test_a_pooled_arm_is_not_run_without_its_pool() -> None:
    made = plan()
    with pytest.raises(UsageError, match="arm 'always' shares a pool's scorer"):
        Rollout(setting_of(made), made.arms, cohort_of(setting_of(made), np.arange(2, dtype=np.int32)))


# --------------------------------------------------------------------------------------------------- the file


@each
def test_a_scorer_that_is_saved_and_loaded_scores_the_same_bits(recipe: Any, tmp_path: Path) -> None:
    made = plan()
    training = ratings_of_pool(made.arms[0], 6, Pool(setting_of(made)).simulate)
    names = components(made.arms[0]).signals.names
    scorer = recipe.fit(recipe.start(1, names), np.zeros(1, np.int64), training)
    save_scorer(tmp_path / "model.json", scorer, names, len(training.label))
    again = load_scorer(tmp_path / "model.json", recipe, names)
    x = training.features[None].reshape(1, -1, len(names))
    assert np.ptp(scorer.score(x)) > 0
    assert np.array_equal(again.score(x), scorer.score(x))
    everyone = Pretrained(recipe, str(tmp_path / "model.json"), learns=False).start(3, names)
    assert everyone is not None
    assert np.array_equal(everyone.score(np.repeat(x, 3, axis=0)), np.repeat(scorer.score(x), 3, axis=0))


def spoiled(**change: Any) -> Callable[[Path], None]:
    def spoil(file: Path) -> None:
        file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | change), "utf-8")

    return spoil


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (
            spoiled(features=["similarity", "height"]),
            "a model of other features: similarity, height; this",
        ),
        (spoiled(scorer="TreeScorer"), "holds a TreeScorer, and this arm's reranker makes a LinearScorer"),
        (spoiled(arrays={}), "does not hold the numbers of a LinearScorer"),
        (spoiled(arrays={"weights": [[1, "x"]], "gram": [], "moment": []}), "does not hold the numbers"),
        (spoiled(arrays={"weights": [1.0], "gram": [[[1.0]]], "moment": [[1.0]]}), "an array of shape"),
        (spoiled(rated_turns=7), "is not as it was written; fit it again"),
        (lambda file: file.write_text("[1]"), "is no model of a pool"),
        (lambda file: file.write_text("{"), "is no model of a pool"),
        (lambda file: file.unlink(), "is no model of a pool"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(tmp_path: Path, spoil: Callable[[Path], None], reason: str) -> None:
    file, made = tmp_path / "model.json", plan()
    names = components(made.arms[0]).signals.names
    scorer = components(made.arms[0]).reranker.start(1, names)
    assert scorer is not None
    save_scorer(file, scorer, names, 0)
    spoil(file)
    with pytest.raises(UsageError, match=reason):
        run(plan(people=str(file)), tmp_path / "run")


def test_what_scores_nothing_has_no_pool(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="this reranker makes none; take scope=user"):
        run(plan(reranker=Identity()), tmp_path)


@pytest.mark.parametrize(
    ("override", "reason"),
    [
        ("scope=everyone", "must be user, pool or pool"),
        ("pool=0", "must be a whole number from 1"),
        ("pool=''", "must be a number of users, or the file"),
    ],
)
def test_bad_scopes_are_refused(override: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        compose([override])
    arm = plan().arms[0]
    for change, why in (({"scope": "all"}, "scope='all', valid are user, pool, pool"), ({"pool": 0}, "pool=0 must be")):
        with pytest.raises(UsageError, match=why):
            changed(arm, **change)


def test_a_file_is_part_of_what_a_run_is(tmp_path: Path) -> None:
    file = tmp_path / "model.json"
    overrides = [
        "profile=smoke",
        "arms={skg: [scope=pool]}",
        "reference=skg",
        f"pool={file}",
        f"out={tmp_path / 'run'}",
    ]
    with pytest.raises(UsageError, match=r"arm 'skg': pool=.*model\.json is no file"):
        prepare(compose(overrides))
    file.write_text("1", "utf-8")
    identity = prepare(compose(overrides)).identity
    assert prepare(compose(overrides)).identity == identity
    file.write_text("2", "utf-8")
    assert prepare(compose(overrides)).identity != identity
