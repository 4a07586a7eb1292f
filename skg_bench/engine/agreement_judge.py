"""A judge that reads two answers and says whether they say the same: feedback `agrees`.

A comparison of two texts does not know which of them is right. The world knows whether both are; a judge is a model, so
it errs, and each question to it has a price.
"""

from dataclasses import dataclass, replace

import numpy as np

from skg_bench.core.draws import Purpose, fold, uniform
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import AGREES, Feedback
from skg_bench.core.grid import F64, U64


@dataclass(frozen=True, slots=True)
class AgreementJudge:
    """`errs`: share of verdicts that are wrong. `usd`: price of one."""

    errs: float = 0.15
    usd: float = 0.004

    def __post_init__(self) -> None:
        if not 0 <= self.errs <= 0.5:
            raise UsageError(f"comparison.errs={self.errs} must lie in [0, 0.5]: at 0.5 a verdict says nothing")
        if not 0 <= self.usd < np.inf:
            raise UsageError(f"comparison.usd={self.usd} must be a price in USD, not negative")

    def judged(self, given: Feedback, event: U64) -> tuple[Feedback, F64 | None]:
        """The feedback with what the judge says in the place of what is true, and what each of the users with event
        keys `event` `[B]` pays; None: nothing was compared.
        """
        rows = (given.kind == AGREES).nonzero()[0]
        if not len(rows):
            return given, None
        user = given.row[rows]
        errs = uniform(fold(fold(fold(event[user], int(Purpose.COMPARED)), 0), 0)) < self.errs
        value, paid = given.value.copy(), np.zeros(len(event))
        value[rows] = np.where(errs, 1 - value[rows], value[rows])
        paid[user] = self.usd
        return replace(given, value=value), paid


JUDGE = AgreementJudge()  # that of conf/config.yaml
