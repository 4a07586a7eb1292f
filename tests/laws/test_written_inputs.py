"""Law 6: whoever writes into what is handed out moves neither the world's clock nor the log, and is refused by name."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from skg_bench.core.assistant import Experience, Message, Reply
from skg_bench.core.deciding import Candidates
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import F64, I64
from skg_bench.core.types import Observation, Query, Shortlist, Skillbooks
from skg_bench.core.world import FALLBACK, Reaction
from skg_bench.curator.everything import Everything
from skg_bench.policy.threshold import Threshold
from skg_bench.router.maxsim import MaxSim
from tests.arms import changed
from tests.laws import world
from tests.laws.cheats import Answers, Verbatim
from tests.laws.test_known_cheats import USERS, plan_of, utility


@dataclass(frozen=True, eq=False)
class Rewinding(Verbatim):
    """Puts the clock back while it answers, so that its answers never expire, and right again before it is logged."""

    unlocks: bool
    clock: dict[str, I64] = field(default_factory=dict)

    def answer(self, query: Message, state: Answers) -> tuple[Answers, Reply]:
        self.clock["time"] = query.time.copy()
        self._set(query.time, np.zeros_like(query.time))
        return super().answer(query, state)

    def learn(self, seen: Experience, feedback: KnownFeedback, state: Answers) -> Answers:
        self._set(seen.message.time, self.clock["time"])
        return super().learn(seen, feedback, state)

    def _set(self, array: I64, values: I64) -> None:
        if self.unlocks:
            array.flags.writeable = True
        array[:] = values


@dataclass(frozen=True, eq=False)
class Tidying(Verbatim):
    """Changes in the end what it said in the beginning, and how it was rated."""

    unlocks: bool

    def learn(self, seen: Experience, feedback: KnownFeedback, state: Answers) -> Answers:
        state = super().learn(seen, feedback, state)
        for array, value in ((seen.reply.how, FALLBACK), (seen.rating, 0)):
            if self.unlocks:
                array.flags.writeable = True
            array[:] = value
        return state


@pytest.mark.parametrize("cheat", [Rewinding, Tidying])
def test_an_assistant_that_writes_into_what_it_is_given_is_refused(tmp_path: Path, cheat: type[Any]) -> None:
    with pytest.raises(UsageError, match=rf"test_written_inputs\.{cheat.__name__} writes into a read-only array"):
        utility(plan_of(cheat(unlocks=False)), tmp_path / "run")


@pytest.mark.parametrize("cheat", [Rewinding, Tidying])
def test_an_assistant_that_unlocks_it_first_gains_nothing_and_changes_no_log(tmp_path: Path, cheat: type[Any]) -> None:
    runs = [
        world.carry_out(plan_of(assistant), tmp_path / name, USERS, 1000)
        for name, assistant in (("honest", Verbatim()), ("cheat", cheat(unlocks=True)))
    ]
    columns = ["time", "serving", "user_satisfaction", "answer_correct"]
    honest, cheating = (run.turns("never", columns).to_pandas() for run in runs)
    assert (honest["serving"] == "stored").any()
    assert honest.equals(cheating)


# ------------------------------------------------------------------------------------------------ parts of pipelines


@dataclass(frozen=True)
class HoursRouter:
    """Wants hours and makes them of the seconds in place."""

    top_k: ClassVar[int] = 5
    sees_truth: ClassVar[bool] = False

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        hours = query.time
        hours //= 3600
        return MaxSim(self.top_k).route(query, books)


@dataclass(frozen=True)
class EagerPolicy(Threshold):
    """Sets the scores that it is given to 1."""

    def propensities(self, candidates: Candidates, state: None) -> F64:
        candidates.combined[:] = 1.0
        return super().propensities(candidates, state)


@dataclass(frozen=True)
class PleasedCurator(Everything):
    """Takes every rating for an ok."""

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: None
    ) -> tuple[None, Any]:
        np.maximum(seen.rating, 0, out=seen.rating)
        return super().curate(seen, reaction, known, books, state)


@pytest.mark.parametrize("beside", [(), ("never",)])  # alone a part has views, beside other arms copies of some
@pytest.mark.parametrize(
    ("part", "component"),
    [("router", HoursRouter()), ("policy", EagerPolicy(0.5)), ("curator", PleasedCurator())],
)
def test_a_part_that_writes_into_what_it_is_given_is_refused(
    tmp_path: Path, part: str, component: object, beside: tuple[str, ...]
) -> None:
    made = world.plan(USERS, ("skg", *beside))
    arms = (changed(made.arms[0], **{part: component}), *made.arms[1:])
    says = rf"test_written_inputs\.{type(component).__name__} writes into a read-only array"
    with pytest.raises(UsageError, match=says):
        world.carry_out(replace(made, arms=arms), tmp_path / "run", USERS, 1000)
