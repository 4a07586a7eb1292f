"""How much users ask, and how much of it again. Each parameter is one for all, or one for each user."""

from dataclasses import dataclass, fields

import numpy as np

from skg_bench.core.grid import F64, I64


@dataclass(frozen=True)
class Habits:
    """Meaning and unit of the parameters stand in `conf/simulator/assistant.yaml`; all are numbers, or all `[B]`."""

    messages_per_day: float | F64
    volume_spread: float | F64
    active_low: float | F64
    active_high: float | F64
    taste_spread: float | F64
    one_off_share: float | F64
    concentration: float | F64
    discount: float | F64
    lag_scale: float | F64
    lag_power: float | F64

    def of(self, rows: I64 | slice) -> "Habits":
        """Those of some users, where each has their own."""
        if not isinstance(self.discount, np.ndarray):
            return self
        return Habits(*(np.asarray(getattr(self, f.name))[rows] for f in fields(self)))


def column(parameter: float | F64) -> float | F64:
    """`[B]` to `[B, 1]`; a number stays one."""
    return parameter[:, None] if isinstance(parameter, np.ndarray) else parameter
