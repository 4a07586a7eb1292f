"""Errors that persist: shares of a model's luck that belong to the request type and to the wording, for all users.

A draw of the turn decides to which of the three the luck belongs, so that a model is right as often as without.
"""

from dataclasses import dataclass, replace

import numpy as np

from skg_bench.core.draws import Purpose, draw, fold, uniform
from skg_bench.core.grid import F64, I32, U64, Bool
from skg_bench.core.world import Draws


@dataclass(frozen=True)
class Persistence:
    """Meaning and source of the shares stand in `conf/simulator/facts.yaml`."""

    persists_by_type: float
    persists_by_wording: float
    correction_repairs: float

    def luck(self, draws: Draws, model: U64, type_: I32, text: I32, *, lasts: Bool, corrected: Bool) -> Draws:
        """Draws in which the model's luck may be that of the type (-1: a one-off, of the wording), or of the wording.

        `model` `[B]` is the key of the model; `lasts`: requests at which its errors persist; `corrected`: a right
        answer to the same request stands in the prompt, which repairs a persistent error with a declared probability.
        """
        if not self.persists_by_type + self.persists_by_wording:
            return draws
        u = _of_event(draws.event, Purpose.PERSISTS)
        by_type, by_wording = u < self.persists_by_type, u < self.persists_by_type + self.persists_by_wording
        repaired = corrected & (_of_event(draws.event, Purpose.REPAIRED) < self.correction_repairs)
        topic = np.where(by_type & (type_ >= 0), type_.astype(np.int64), -2 - text.astype(np.int64))
        lasting = draw(model, topic, Purpose.PERSISTENT)

        def mixed(luck: F64) -> F64:
            return np.where(lasts & by_wording & ~repaired, lasting, luck)

        return replace(draws, llm_right=mixed(draws.llm_right), skill_right=mixed(draws.skill_right))


def _of_event(event: U64, purpose: Purpose) -> F64:
    return uniform(fold(fold(fold(event, int(purpose)), 0), 0))
