"""The placebo of feedback: as many ratings, of the same user, at the same times, that say nothing of the turn."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I64
from skg_bench.core.types import Scorer, TrainingRows
from skg_bench.reranker.identity import Identity
from skg_bench.reranker.linear import Linear
from skg_bench.reranker.permuted import Permuted, PermutedScorer
from tests.reranker.test_conformance import NAMES, F, K, easy_world, order, shortlists
from tests.reranker.turns import turns

B = 12
EVERYONE = np.arange(B)
seeds = st.integers(0, 2**32)


@dataclass(frozen=True)
class Hearing:
    """A recipe that keeps what it was told."""

    window: int = 0
    heard: list[TrainingRows] = field(default_factory=list)

    def start(self, n_users: int, features: Sequence[str]) -> Scorer | None:
        return Linear(1.0).start(n_users, features)

    def fit(self, scorer: Scorer, rows: I64, training: TrainingRows) -> Scorer:
        self.heard.append(training)
        return scorer


def told(seed: int, users: int = B, n: int = 20 * B) -> TrainingRows:
    """Rated turns, each user's in order; labels that tell one turn from another."""
    some = turns(np.random.default_rng(seed), users, n, F, K)
    some = some.rows(np.argsort(some.row, kind="stable"))
    return replace(some, label=np.arange(n) / n)


def started(made: Permuted, users: int = B) -> PermutedScorer:
    scorer = made.start(users, NAMES)
    assert isinstance(scorer, PermutedScorer)
    return scorer


@settings(deadline=None, max_examples=20)
@given(seed=seeds, draw=st.integers(0, 3), cut=st.integers(1, 20 * B - 1))
def test_each_turn_gets_a_rating_that_the_same_user_gave_before_it(seed: int, draw: int, cut: int) -> None:
    inside, training = Hearing(), told(seed)
    made = Permuted(inside, draw)
    scorer: Scorer = started(made)
    for piece in (training.rows(np.arange(cut)), training.rows(np.arange(cut, len(training.row)))):
        rows = np.unique(piece.row)  # those who have something new, in an order of their own
        rows = rows[::-1]
        place = np.searchsorted(-rows, -piece.row).astype(np.int32)
        scorer = made.fit(scorer, rows.astype(np.int64), replace(piece, row=place))
    label = np.concatenate([batch.label for batch in inside.heard])
    for user in range(B):
        user_rows = np.flatnonzero(training.row == user)
        for nth, i in enumerate(user_rows):
            assert label[i] in (training.label[user_rows[:nth]] if nth else training.label[user_rows[:1]])
    assert np.array_equal(np.concatenate([batch.features for batch in inside.heard]), training.features)


@settings(deadline=None, max_examples=10)
@given(seed=seeds)
def test_fitting_in_pieces_is_fitting_at_once_and_a_user_alone_hears_the_same(seed: int) -> None:
    training = told(seed)
    made = Permuted(Linear(1.0), 0)
    once = made.fit(started(made), EVERYONE, training)
    scorer: Scorer = started(made)
    for user in np.random.default_rng(seed).permutation(B):
        user_ratings = training.rows(training.row == user)
        for piece in np.array_split(np.arange(len(user_ratings.row)), 3):
            some = user_ratings.rows(piece)
            if len(piece):
                scorer = made.fit(scorer, np.array([user]), replace(some, row=np.zeros_like(some.row)))
    x = shortlists(1)
    assert np.array_equal(scorer.score(x), once.score(x))


def test_with_a_window_the_turns_that_come_along_are_those_to_choose_from() -> None:
    inside = Hearing(window=5)
    made, training = Permuted(inside, 0), told(3, users=1, n=12)
    assert made.window == 5
    scorer: Scorer = started(made, 1)
    for end in (4, 8, 12):
        scorer = made.fit(scorer, np.arange(1), training.rows(np.arange(max(end - 5, 0), end)))
    for end, heard in zip((4, 8, 12), inside.heard, strict=True):
        before = training.label[max(end - 5, 0) : end]
        assert heard.label[0] == before[0]
        assert all(heard.label[i] in before[:i] for i in range(1, len(before)))


def test_every_earlier_turn_is_as_likely() -> None:
    counts, training = np.zeros(8), told(4, users=1, n=9)
    for draw in range(1600):
        inside = Hearing()
        made = Permuted(inside, draw)
        made.fit(started(made, 1), np.arange(1), training)
        counts[np.flatnonzero(training.label == inside.heard[0].label[-1])] += 1
    assert ((counts - 200) ** 2 / 200).sum() < 30  # chi-square with 7 degrees of freedom


def test_a_draw_repeats_and_another_one_differs() -> None:
    training, x = told(5), shortlists(1)
    a, again, b = (
        Permuted(Linear(1.0), d).fit(started(Permuted(Linear(1.0), d)), EVERYONE, training) for d in (0, 0, 1)
    )
    assert np.array_equal(a.score(x), again.score(x))
    assert not np.array_equal(a.score(x), b.score(x))


def test_an_old_scorer_stays_as_it_was() -> None:
    made = Permuted(Linear(1.0), 0)
    first = made.fit(started(made), EVERYONE, told(0))
    assert isinstance(first, PermutedScorer)
    before = first.label.tobytes(), first.n.tobytes(), first.score(shortlists(1)).tobytes()
    made.fit(first, np.array([3]), replace(told(1, users=1, n=40)))
    assert (first.label.tobytes(), first.n.tobytes(), first.score(shortlists(1)).tobytes()) == before


def test_nothing_is_learned_of_what_pleases_but_how_satisfied_the_user_is() -> None:
    rng = np.random.default_rng(5)
    users = 40
    taste = np.zeros((users, F))
    taste[:, :3] = rng.choice([-9.0, 9.0], (users, 3))
    training, _ = easy_world(0, taste, 150)
    queries, label = easy_world(1, taste, 100)

    def right(recipe: Any) -> tuple[float, F64]:
        scorer = recipe.fit(recipe.start(users, NAMES), np.arange(users), training)
        logits = scorer.score(queries.features.reshape(users, 100 * K, F)).reshape(-1, K)
        served_logits = logits[np.arange(len(queries.row)), queries.place]
        return float(
            np.mean([order(served_logits[queries.row == u], label[queries.row == u]) for u in range(users)])
        ), served_logits

    live, placebo = right(Linear(1.0)), right(Permuted(Linear(1.0), 0))
    assert live[0] > 0.75
    assert abs(placebo[0] - 0.5) < 0.03
    satisfied, level = training.label.mean(), 1 / (1 + np.exp(-placebo[1].mean()))
    assert abs(level - satisfied) < 0.1 < abs(0.5 - satisfied)


def test_a_recipe_that_gives_no_signal_gives_none_here() -> None:
    assert Permuted(Identity(), 0).start(3, NAMES) is None


def test_a_negative_draw_is_refused_by_name_and_a_scorer_of_another_kind_is_not_continued() -> None:
    with pytest.raises(UsageError, match=r"reranker\.draw=-1 must not be negative"):
        Permuted(Linear(1.0), -1)
    inside = Linear(1.0).start(B, NAMES)
    assert inside is not None
    with pytest.raises(TypeError, match="reranker=permuted continues a PermutedScorer, not a LinearScorer"):
        Permuted(Linear(1.0), 0).fit(inside, EVERYONE, told(0))
