"""Answers of routers, scorers and policies that are none are refused by name, with what is valid."""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from skg_bench.assistant.pipeline.part_calls import distribution_by, fitted_by, scores_by, shortlist_by
from skg_bench.core.errors import RowError, UsageError
from skg_bench.core.types import Shortlist

QUERY = cast(Any, SimpleNamespace(text=np.zeros(2, np.int32)))
BOOKS = cast(
    Any, SimpleNamespace(n_skills=np.array([3, 1]), active=np.array([[True, True, False], [True, False, False]]))
)
CANDIDATES = cast(Any, SimpleNamespace(skill=np.array([[1, 0], [0, -1]])))
FEATURES = np.zeros((2, 3, 4))
GOOD = [[1, 0, -1], [0, -1, -1]]


@dataclass(frozen=True)
class Part:
    """A router, a scorer, a reranker and a policy that give this."""

    given: Any
    top_k: int = 3

    def route(self, *_: Any) -> Any:
        return self.given

    score = propensities = fit = route


def listed(skill: Any, similarity: Any = None) -> Shortlist:
    """A shortlist; without similarities, 0.5 wherever a skill stands."""
    ids = np.asarray(skill)
    return Shortlist(cast(Any, ids), np.where(ids >= 0, 0.5, 0.0) if similarity is None else np.asarray(similarity))


def test_what_is_right_is_given_on() -> None:
    made = listed(GOOD)
    assert shortlist_by(Part(made), QUERY, BOOKS) is made
    logits, share = np.zeros((2, 3)), np.array([[0.5, 0.25, 0.25], [0.5, 0.5, 0.0]])
    assert scores_by(Part(logits), FEATURES) is logits
    assert distribution_by(Part(share), CANDIDATES, None) is share
    scorer = Part(logits)
    assert fitted_by(cast(Any, Part(scorer)), Part(None), np.zeros(1, np.int64), cast(Any, None)) is scorer


@pytest.mark.parametrize(
    ("given", "says"),
    [(None, r"Part\.route gave a NoneType; valid is a Shortlist"),
     ((1, 2), r"gave a tuple"),
     (listed(np.array(GOOD, np.float64)), r"gave a Shortlist of an array \[2, 3\] of float64 and"),
     (Shortlist(cast(Any, GOOD), cast(Any, GOOD)), r"gave a Shortlist of a list and a list; valid"),
     (listed([1, 0]), r"gave \(2,\) and \(2,\); valid is \[2, K\]"),
     (listed(np.full((2, 4), -1)), r"gave 4 places; valid are at most router\.top_k=3")],
)  # fmt: skip
def test_a_shortlist_that_is_none_is_refused(given: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        shortlist_by(Part(given), QUERY, BOOKS)


@pytest.mark.parametrize(
    ("given", "says"),
    [(listed([[1, 0, -1], [7, -1, -1]]), r"listed skill 7, and this user's book has 1; valid are ids from 0 on"),
     (listed([[1, 0, -1], [-2, -1, -1]]), r"listed skill -2"),
     (listed(GOOD, [[0.5, 0.5, 0], [np.nan, 0, 0]]), r"gave skill 0 at place 0 the similarity nan; valid are num"),
     (listed(GOOD, [[0.5, 0.5, 0], [2, 0, 0]]), r"the similarity 2\.0"),
     (listed(GOOD, [[0.5, 0.5, 0], [0.5, 0.5, 0]]), r"gave skill -1 at place 1 the similarity 0\.5"),
     (listed([[1, 0, -1], [-1, 0, -1]]), r"listed the skills \[-1, 0, -1\]; valid are active ones of this user, each"),
     (listed([[1, 0, -1], [0, 0, -1]]), r"listed the skills \[0, 0, -1\]")],
)  # fmt: skip
@pytest.mark.parametrize(("rows", "row"), [(None, 1), (np.array([5, 9]), 9)])
def test_skills_that_are_not_the_users_are_refused_for_this_user(given: Any, says: str, rows: Any, row: int) -> None:
    with pytest.raises(RowError, match=says) as caught:
        shortlist_by(Part(given), QUERY, BOOKS, rows)
    assert (caught.value.row, caught.value.component) == (row, f"{Part.__module__}.Part")


def test_an_archived_skill_is_refused() -> None:
    with pytest.raises(RowError, match=r"listed the skills \[2, 0, -1\]; valid are active ones"):
        shortlist_by(Part(listed([[2, 0, -1], [0, -1, -1]])), QUERY, BOOKS)


@pytest.mark.parametrize(
    ("given", "says"),
    [(None, r"Part\.score gave a NoneType; valid is an array of numbers \[2, 3\], a logit for each candidate"),
     ([[0.0] * 3] * 2, r"gave a list"), (np.zeros((1, 3)), r"gave an array \[1, 3\] of float64"),
     (np.float64(1), r"gave a float64"),
     (np.full((2, 3), np.nan), r"gave the logit nan; valid are numbers between"),
     (np.full((2, 3), np.inf), r"gave the logit inf"), (np.full((2, 3), 1e30), r"gave the logit 1e\+30")],
)  # fmt: skip
def test_logits_that_are_none_are_refused(given: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        scores_by(Part(given), FEATURES)


def test_a_fit_that_gives_no_scorer_is_refused() -> None:
    with pytest.raises(UsageError, match=r"Part\.fit gave None; valid is a scorer, such as the one that it was given"):
        fitted_by(cast(Any, Part(None)), Part(None), np.zeros(1, np.int64), cast(Any, None))


@pytest.mark.parametrize(
    ("given", "says"),
    [(None, r"Part\.propensities gave a NoneType; valid is an array of numbers \[2, 3\]"),
     ([[1.0, 0.0, 0.0]] * 2, r"gave a list"), (np.ones((2, 3), np.complex128), r"gave an array \[2, 3\] of complex128"),
     (np.array([[2.0, 0.0, 0.0]] * 2), r"sums from 2 to 2"),
     (np.array([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]]), r"gave place 1 of the shortlist a probability of 0\.5, and no")],
)  # fmt: skip
def test_distributions_that_are_none_are_refused(given: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        distribution_by(Part(given), CANDIDATES, None)


@pytest.mark.parametrize("call", [
    lambda part: shortlist_by(part, QUERY, BOOKS), lambda part: scores_by(part, FEATURES),
    lambda part: distribution_by(part, CANDIDATES, None),
])  # fmt: skip
def test_who_writes_into_what_is_given_is_named(call: Callable[[Any], Any]) -> None:
    class Writing(Part):
        def route(self, *_: Any) -> Any:
            raise ValueError("assignment destination is read-only")

        score = propensities = route

    with pytest.raises(UsageError, match=r"Writing writes into a read-only array"):
        call(Writing(None))
