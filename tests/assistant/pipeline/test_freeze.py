"""What an arm that stops to learn still lets its curator do, and whether its scorer learns."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from skg_bench.assistant.pipeline.components import refits
from skg_bench.assistant.pipeline.signals import GROUPS, Signals
from skg_bench.assistant.pipeline.stack import Stack, stacked
from skg_bench.core.arms import Freeze
from skg_bench.core.batch import ADD, REMOVE, TAG, UPDATE, Batch
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import I32
from skg_bench.core.types import Curator, Observation, Skillbooks
from skg_bench.core.world import Reaction
from skg_bench.curator.none import NoLearning
from skg_bench.curator.oracle import RightAnswers
from skg_bench.llm.simulated import Simulated
from skg_bench.policy.threshold import Threshold
from skg_bench.reranker.linear import Linear
from skg_bench.router.maxsim import MaxSim
from tests.arms import changed, pipeline_arm
from tests.curator.test_curators import PAPER, B, asked, columns, curated, operations, turn

SIGNALS = Signals(0.6, 0.2, 0.2, 1.0, 1.0, 30, tuple(GROUPS))
MODEL = Simulated(0.9, 0.93, 0.3, 400, 60, 1.3, 120.0, 0.6, 3.0, 15.0, 2000.0, 0.4)
PARTS: Any = (MaxSim(5), Linear(1.0), Threshold(0.5), PAPER, SIGNALS, "stored", "type", 50, True, 1, False)
ARM = pipeline_arm("skg", MODEL, 50.0, *PARTS)


def at_once(stack: Stack, seen: Observation, offer: I32, name: I32, known: KnownFeedback, books: Skillbooks) -> Batch:
    """The operations of a stack at its first turn."""
    return stack.curate(stack.views(seen, books), Reaction(offer, name, name), known, stack.start(len(offer))[1])[1]


@pytest.mark.parametrize("freeze", ["book", "book+scorer", "all"])
def test_before_its_turn_a_freeze_changes_nothing(freeze: Freeze) -> None:
    seen, offer, name, known, books = turn(4)
    frozen = stacked([replace(ARM, freeze=freeze, freeze_at=18)])
    whole = curated(PAPER, seen, offer, name, known, books)
    assert columns(at_once(frozen, seen, offer, name, known, books)) == columns(whole)
    assert set(whole.op.tolist()) == {ADD, UPDATE, TAG, REMOVE}
    assert np.array_equal(frozen.offers(seen, frozen.views(seen, books), frozen.start(B)[1]), asked(PAPER, seen))
    assert frozen.refits(17).tolist() == [True]
    assert frozen.reasons == tuple(PAPER.reasons)


@pytest.mark.parametrize(
    ("freeze", "counts", "learns"), [("book", True, True), ("book+scorer", True, False), ("all", False, False)]
)
def test_from_its_turn_on_a_freeze_lets_through_what_it_says(freeze: Freeze, counts: bool, learns: bool) -> None:
    seen, offer, name, known, books = turn(4)
    frozen = stacked([replace(ARM, freeze=freeze, freeze_at=17)])
    assert asked(PAPER, seen).any()
    assert not frozen.offers(seen, frozen.views(seen, books), frozen.start(B)[1]).any()
    batch = at_once(frozen, seen, offer, name, known, books)
    whole = curated(PAPER, seen, offer, name, known, books)
    assert operations(batch, TAG) == (operations(whole, TAG) if counts else [])
    assert set(batch.op.tolist()) <= {TAG}
    assert [frozen.refits(t).tolist() for t in (16, 17, 99)] == [[True], [learns], [learns]]


@pytest.mark.parametrize("curator", [NoLearning(), RightAnswers()])
def test_where_the_curator_learns_nothing_or_from_the_truth_no_scorer_is_refitted(curator: Curator[Any]) -> None:
    unfrozen = changed(ARM, curator=curator)
    assert not any(refits(unfrozen, t) for t in (0, 9))
    if not curator.sees_truth:
        frozen = replace(unfrozen, freeze="book", freeze_at=5)
        assert not any(refits(frozen, t) for t in (0, 9))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"freeze_at": -1}, "freeze_at=-1 must not be negative"),
        ({"freeze_at": None}, "freeze=all needs the turn of the user at which learning stops"),
        ({"freeze": None}, "freeze_at=5 needs what stops then"),
        ({"freeze": "some"}, "freeze='some', valid are book, book+scorer, all"),
        ({"curator": RightAnswers()}, "freeze=all cannot stop a curator that sees the truth"),
    ],
)
def test_a_bad_freeze_is_refused_by_name(change: dict[str, Any], says: str) -> None:
    bad: dict[str, Any] = {"freeze": "all", "freeze_at": 5} | change
    with pytest.raises(UsageError) as error:
        changed(ARM, **bad)
    assert says in str(error.value)
