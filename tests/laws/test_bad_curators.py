"""Law 6: curators change the books of their own users alone, with texts that these met; what is no batch is refused."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from skg_bench.core.batch import ADD, TAG, Batch
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.types import Observation, Skillbooks
from skg_bench.core.world import Reaction
from skg_bench.curator.everything import Everything
from tests.arms import changed
from tests.laws import world

USERS = 6


def _set(name: str, op: int, value: int) -> Callable[[Batch, Observation], Any]:
    def change(batch: Batch, seen: Observation) -> Batch:
        getattr(batch, name)[batch.op == op] = value
        return batch

    return change


def _next_turn(batch: Batch, seen: Observation) -> Batch:
    batch.source[batch.op == ADD] = seen.turn + 1
    return batch


def _unsaid(batch: Batch, seen: Observation) -> Batch:
    """Examples that nobody has said: the corpus, one text after the other."""
    batch.text[batch.op == ADD] = np.arange((batch.op == ADD).sum())
    return batch


def _of_others(batch: Batch, seen: Observation) -> Batch:
    """What one user said, in the book of another."""
    batch.row[batch.op == ADD] = batch.row[batch.op == ADD][::-1]
    return batch


WRONG: Mapping[str, tuple[Callable[[Batch, Observation], Any], str]] = {
    "last row": (_set("row", ADD, -1), r"user \d+, turn 0: gave Batch\.row=-1 at operation 0 of \d+; valid are 0 to 5"),
    "no row": (_set("row", ADD, 10**6), r"gave Batch\.row=1000000 at"),
    "next turn": (_next_turn, r"gave Batch\.source=1 at operation 0 of \d+; valid are 0 to 0, turns of the user"),
    "no skill": (
        _set("skill", TAG, 999),
        r"gave Batch\.skill=999 at operation \d+ of \d+; valid are ids of the skills",
    ),
    "no rating": (_set("rating", TAG, -5), r"gave Batch\.rating=-5 at"),
    "many uses": (_set("uses", TAG, 1000), r"gave Batch\.uses=1000 at operation \d+ of \d+; valid are 0 and 1"),
    "no reason": (_set("reason", ADD, 9), r"gave Batch\.reason=9 at operation \d+ of \d+; valid are 0 to 3"),
    "unsaid": (_unsaid, r"turn 0: read the text 0, which this user never said"),
    "of others": (_of_others, r"turn 0: read the text \d+, which this user never said"),
    "floats": (
        lambda batch, _: replace(batch, row=batch.row.astype(np.float64)),
        r"curate gave a Batch with \d+ operat",
    ),
    "nothing": (lambda *_: None, r"curate gave \(a NoneType, a NoneType\); valid is a memory and a Batch of arrays"),
}


@dataclass(frozen=True)
class BadCurator(Everything):
    """Everything, but for one thing."""

    wrong: str = ""

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: None
    ) -> tuple[None, Any]:
        _, batch = super().curate(seen, reaction, known, books, state)
        return None, WRONG[self.wrong][0](batch, seen)


@dataclass(frozen=True)
class Unsure(Everything):
    """Asks users by half."""

    reasons: ClassVar[Any] = Everything.reasons

    def offers(self, seen: Observation, state: None) -> Any:
        return np.full(len(seen.text), 0.5)


def refused(curator: object, folder: Path, *beside: str) -> str:
    """The error that ends a run with this curator."""
    made = world.plan(USERS, ("always", *beside))
    arms = (*made.arms[1:], changed(made.arms[0], curator=curator))
    with pytest.raises(UsageError) as caught:
        world.carry_out(replace(made, arms=arms), folder, USERS, 1000)
    return str(caught.value)


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("beside", [(), ("never",)])  # alone, and with rows of its own among those of others
def test_a_batch_that_is_none_is_refused_by_name(tmp_path: Path, wrong: str, beside: tuple[str, ...]) -> None:

    error = refused(BadCurator(wrong=wrong), tmp_path / "run", *beside)
    assert "tests.laws.test_bad_curators.BadCurator" in error
    assert re.search(WRONG[wrong][1], error), error


def test_offers_that_are_no_mask_are_refused(tmp_path: Path) -> None:
    error = refused(Unsure(), tmp_path / "run")
    assert (
        "test_bad_curators.Unsure.offers gave an array [6] of float64; valid is an array of true and false [6]" in error
    )
