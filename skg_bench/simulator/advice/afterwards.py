"""Later answers of users to `Was it worth it?` (Pause's Ghost Cards). They answer in sittings, several old
purchases at once.
"""

from dataclasses import dataclass

import numpy as np

from skg_bench.core.draws import Purpose, draw, fold, uniform
from skg_bench.core.feedback import Feedback, feedback_rows
from skg_bench.core.grid import I32, I64, U64, Bool
from skg_bench.simulator.advice.levels import ACCEPTED, NOT_SURE, OVERRIDDEN, REGRET_IT, SATISFACTION, WAIT, WORTH_IT

_DAY = 86_400
_APART = 6  # seconds between two answers of one sitting


@dataclass(frozen=True)
class Afterwards:
    """Meaning and unit of the parameters stand in `conf/simulator/guardian.yaml`."""

    answered: float
    asked_after_hours: float
    sitting_days: float
    not_sure: float
    mistaken: float

    def said(self, code: I32, content: Bool, now: I64, turn: int, key: U64, event: U64) -> Feedback:
        """Answers of users; `content`: the turn ended as they want; `key` of the user, `event` of the event; `[B]`
        each. Asked after: accepted, wait, overridden.
        """
        decisions = (code == ACCEPTED) | (code == WAIT) | (code == OVERRIDDEN)
        unsure, wrong, answers = (uniform(fold(fold(event, int(Purpose.SATISFIED)), nth)) for nth in range(3))
        pleased = content ^ (wrong < self.mistaken)
        value = np.where(unsure < self.not_sure, NOT_SURE, np.where(pleased, WORTH_IT, REGRET_IT))
        value = np.where(decisions & (answers < self.answered), value, -1).astype(np.int32)
        return feedback_rows(SATISFACTION, value, self._delay(now, turn, key))

    def _delay(self, now: I64, turn: int, key: U64) -> I64:
        """Seconds until the user's next sitting after the question was asked."""
        question = now + round(self.asked_after_hours * 3600)
        if not self.sitting_days:
            return np.full(len(now), max(round(self.asked_after_hours * 3600), 1))
        period = round(self.sitting_days * _DAY)
        phase = (draw(key, 0, Purpose.SITTING) * period).astype(np.int64)
        sitting = question + (phase - question) % period
        later: I64 = np.maximum(sitting - now, 1) + _APART * (turn % 64)
        return later
