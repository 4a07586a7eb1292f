"""Two policies in one log: a coin decides wherever they differ, so that the log can be asked about both of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from skg_bench.core.batch import RenewedSkills
from skg_bench.core.deciding import Candidates, Decision, Policy
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import F64
from skg_bench.core.reach import REACHES_NOTHING, Reaches

PolicyStates = tuple[Any, Any]


@dataclass(frozen=True)
class Interleave:
    """`first` or `second`, each with probability 1/2. Both learn from whatever was done."""

    first: Policy[Any]
    second: Policy[Any]
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        for name, given in (("first", self.first), ("second", self.second)):
            if isinstance(given, str | int | float | None):
                raise UsageError(
                    f"policy.{name}={given!r} is a value, and a policy stands there; set what it has, such as "
                    f"policy.{name}.threshold=0.4"
                )

    @property
    def reads(self) -> Sequence[str]:
        """Feedback that one of them reads."""
        return tuple(dict.fromkeys([*self.first.reads, *self.second.reads]))

    def start(self, n: int) -> PolicyStates:
        """The memories of both."""
        return self.first.start(n), self.second.start(n)

    def propensities(self, candidates: Candidates, state: PolicyStates) -> F64:
        """The mean of both: where they do the same thing for certain, it is certain."""
        first, second = state
        share: F64 = 0.5 * self.first.propensities(candidates, first) + 0.5 * self.second.propensities(
            candidates, second
        )
        return share

    def learn(
        self, state: PolicyStates, decision: Decision, known: KnownFeedback, renewed: RenewedSkills
    ) -> PolicyStates:
        """The memories of both after the same turn."""
        first, second = state
        return self.first.learn(first, decision, known, renewed), self.second.learn(second, decision, known, renewed)
