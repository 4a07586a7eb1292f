"""How much users ask, how much of it again, and in which words. Each parameter is one for all, or one for each user."""

from dataclasses import dataclass, fields

import numpy as np

from skg_bench.core.draws import Purpose, draw, normal
from skg_bench.core.grid import F64, I32, I64, U64


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
    habit: float | F64

    def of(self, rows: I64 | slice) -> "Habits":
        """Habits of some users, where each has their own."""
        if not isinstance(self.discount, np.ndarray):
            return self
        return Habits(*(np.asarray(getattr(self, f.name))[rows] for f in fields(self)))

    def one_offs_again(self, messages: I32, one_offs: int) -> float:
        """Expected share of a user's one-offs that come again where there are so few; mean over users of so many
        `messages` `[B]`.
        """
        wanted = messages * self.one_off_share
        return float((np.maximum(wanted - one_offs, 0) / np.maximum(wanted, 1e-9)).mean())


def as_column(parameter: float | F64) -> float | F64:
    """`[B]` to `[B, 1]`; a number stays one."""
    return parameter[:, None] if isinstance(parameter, np.ndarray) else parameter


def messages_by_day(habits: Habits, keys: U64, weeks: int, *, most: float, weekend: float, spread: float) -> I64:
    """Number of messages of users with these keys on each day, `[B, days]`, by the parameters `max_per_day`,
    `weekend_activity` and `day_spread`.
    """
    volume = np.minimum(habits.messages_per_day * np.exp(habits.volume_spread * normal(keys, 0, Purpose.VOLUME)), most)
    share = habits.active_low + (habits.active_high - habits.active_low) * draw(keys, 0, Purpose.ACTIVE_SHARE)
    day = np.arange(weeks * 7, dtype=np.int64)[None, :]
    activity = np.where(day % 7 >= 5, weekend, 1.0)
    active = draw(keys[:, None], day, Purpose.DAY_ACTIVE) < share[:, None] * activity
    wanted = volume[:, None] * np.exp(spread * normal(keys[:, None], day, Purpose.DAY_COUNT))
    capped = np.rint(np.minimum(wanted, 4 * np.ceil(most)))
    count = np.where(active, np.maximum(1, capped), 0).astype(np.int64)
    count[:, 0] = np.maximum(count[:, 0], 1)  # everyone says something on the first day
    return count
