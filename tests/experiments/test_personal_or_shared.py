"""What is personal of what is learned: found where users differ, and not where they are alike."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from experiments.personal_or_shared import analysis, measure
from experiments.personal_or_shared.batch import rated, shared
from skg_bench.simulator.advice.levels import OVERRIDDEN, WAIT
from skg_bench.study.guardian import study
from skg_bench.study.guardian.drawing import Drawn, DrawRequest
from skg_bench.study.guardian.lives import Draw, Lives
from skg_bench.study.guardian.replays import later, life_with

NAME, TRIGGERS = "personal_or_shared", 44
LOUD = (  # what moves a choice: ratings, little else
    "simulator.wanted_share=0.1", "simulator.habit=0", "simulator.annoyance=0", "policy.rating=8",
    "policy.temperature=0.3", "curator.misses=0", "curator.adds=0.9",
)  # fmt: skip


def lives(users: int, *overrides: str, draw: int = 0) -> tuple[study.DrawStudy, Lives]:
    """Those of a draw, with all that is replayed."""
    whole = study.study(NAME, [f"users={users}", *overrides], triggers=TRIGGERS)
    lived = study.lives(whole, whole.draw(draw))
    return whole, {**lived, **measure.replayed(whole, whole.draw(draw), lived)}


def figures(every: Lives) -> dict[str, float]:
    """Of a draw, whose parameters do not matter."""
    return dict(measure.measure(Draw(0, {}), every))


@pytest.fixture(scope="module")
def alike() -> tuple[study.DrawStudy, Lives]:
    """Users who do not differ."""
    return lives(60, *LOUD, *analysis.ALIKE)


@pytest.mark.req("P02")
def test_where_users_like_different_kinds_another_users_book_is_worth_less() -> None:
    row = figures(lives(60, *LOUD, "simulator.liking=2")[1])
    assert row["own_less_donor"] > 1.96 * row["own_less_donor_error"]
    assert row["own_less_frozen"] > 1.96 * row["own_less_frozen_error"]
    assert 0 < row["personal_donor"] == row["own_less_donor"] / row["own_less_frozen"]


@pytest.mark.req("P01", "P02")
def test_where_users_are_all_alike_nothing_personal_is_found(alike: tuple[study.DrawStudy, Lives]) -> None:
    row = figures(alike[1])
    assert abs(row["own_less_donor"]) < 3.5 * row["own_less_donor_error"]
    assert row["own_less_donor_error"] > 0
    assert row["own_less_batch"] < 1.96 * row["own_less_batch_error"]  # of all users more can be learned


# -------------------------------------------------------------------------------------------------- the shared book


@pytest.mark.req("P01")
def test_a_shared_book_has_each_kind_once_with_the_ratings_of_all_users(
    alike: tuple[study.DrawStudy, Lives],
) -> None:
    whole, every = alike
    setting, books = study.opened(whole, whole.draw(0)), every["live_30"].books
    pool, book = rated(setting, books), shared(setting, books, 3)
    assert setting.reading is not None
    kind = setting.reading.about(book.content)[0]
    n = int(book.n_skills[0])
    assert sorted(kind[0, :n].tolist()) == np.unique(pool.kind).tolist()
    assert (book.hash == book.hash[0]).all()
    for skill in range(n):
        mine = pool.kind == kind[0, skill]
        assert book.ok[0, skill] == round(pool.ok[mine].sum())
        assert book.miss[0, skill] == round(pool.miss[mine].sum())
        assert book.content[0, skill] in pool.content[mine]
    assert pool.ok.sum() + pool.miss.sum() == (books.ok + books.partial + books.miss).sum()


@pytest.mark.req("P03")
def test_an_example_of_a_context_goes_to_the_kind_that_was_rated_best_there(
    alike: tuple[study.DrawStudy, Lives],
) -> None:
    whole, every = alike
    setting, books = study.opened(whole, whole.draw(0)), every["live_30"].books
    pool, book = rated(setting, books), shared(setting, books, 1)
    table = whole.world.table
    placed = {}
    for text, skill in zip(book.example[0, : book.n_examples[0]], book.example_skill[0], strict=False):
        context = table.context_of(setting.texts.read(np.array([text], np.int32))[0])
        assert context not in placed  # one kind a context
        placed[context] = int(setting.reading.about(book.content[0, skill])[0])  # type: ignore[union-attr]
    assert len(placed) > 5

    def rating(kind: int, context: int) -> float:
        mine, here = pool.kind == kind, (pool.kind == kind) & (pool.context == context)
        mean = (pool.ok[mine].sum() + 1) / (pool.ok[mine].sum() + pool.miss[mine].sum() + 2)
        return float((pool.ok[here].sum() + 5 * mean) / (pool.ok[here].sum() + pool.miss[here].sum() + 5))

    for context, kind in placed.items():
        assert rating(kind, context) == pytest.approx(max(rating(k, context) for k in np.unique(pool.kind)))


@pytest.mark.req("P01")
def test_a_batch_of_night_k_is_served_from_trigger_k_on(alike: tuple[study.DrawStudy, Lives]) -> None:
    every = alike[1]
    together = measure.worths(every)["batch"]
    for t, name in ((0, "frozen"), (1, "batch_1"), (2, "batch_1"), (3, "batch_3"), (29, "batch_10"), (40, "batch_30")):
        assert np.array_equal(together[:, t], every[name].fresh[:, t], equal_nan=True), t
    parts = {0: every["frozen"], 3: every["own"]}
    assert np.array_equal(life_with(parts, "fresh")[:, :3], every["frozen"].fresh[:, :3], equal_nan=True)


@pytest.mark.req("P01")
def test_after_a_test_of_two_cohorts_all_have_the_book_under_which_more_was_listened_to(
    alike: tuple[study.DrawStudy, Lives],
) -> None:
    every = dict(alike[1])
    first = ~later(every["frozen"], measure.HALF)
    for winner, loser in (("frozen", "pro"), ("pro", "frozen")):
        for name, code in ((winner, WAIT), (loser, OVERRIDDEN)):
            every[name] = replace(every[name], outcome=np.full_like(every[name].outcome, code))
        worth = measure.cohorts(every)
        assert np.array_equal(worth[~first], every[winner].fresh[~first], equal_nan=True)
        for cohort, name in enumerate(("frozen", "pro")):
            assert np.array_equal(worth[cohort::2, 5], every[name].fresh[cohort::2, 5], equal_nan=True)


# ----------------------------------------------------------------------------------------------------------- report


def test_the_report_tells_every_claim_and_is_as_expected_where_nothing_personal_is_found(
    alike: tuple[study.DrawStudy, Lives],
) -> None:
    whole, every = alike
    table = pd.DataFrame([{"draw": n, **whole.draw(n).values, **figures(every)} for n in range(4)])
    none = table.assign(own_less_donor=0.0)
    told = analysis.report(
        Drawn(whole, table, DrawRequest(NAME, measure.measure), whole.setup.manifest()),
        Drawn(whole, none, DrawRequest(NAME, measure.measure), whole.setup.manifest()),
    )
    assert told.holds
    assert told.findings is not None
    assert {finding.id for finding in told.findings()} == {"P01", "P02", "P03"}
    assert "## Users who are all alike" in told.page
    assert "median of 4 draws" in told.page
    assert "<svg" in told.figures["personal_or_shared.svg"]
    personal = table.assign(own_less_donor=1.0)
    assert not analysis.report(
        Drawn(whole, table, DrawRequest(NAME, measure.measure), whole.setup.manifest()),
        Drawn(whole, personal, DrawRequest(NAME, measure.measure), whole.setup.manifest()),
    ).holds
