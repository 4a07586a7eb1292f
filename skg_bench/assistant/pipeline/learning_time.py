"""How long a learning job takes, and what its batch does where another job of the same user wrote meanwhile."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, get_args

import numpy as np

from skg_bench.core.draws import Purpose, fold, normal
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I64, U64, Bool
from skg_bench.core.reach import REACHES_NOTHING, Reaches

Conflict = Literal["rebase", "replay", "blind", "serial"]
_CALLS = 2  # of a job: reflector and skill manager
_LONGEST = 86_400  # of a call, in seconds


@dataclass(frozen=True)
class LearningTime:
    """A job reads the skillbook when it begins, calls a model twice, and writes when it ends.

    Seconds of a call are log-normal; a job with a call that takes longer than `timeout_seconds` writes nothing. Where a
    user says several things at once, `apart_seconds` lie between the jobs that these begin.
    """

    call_seconds: float | None
    spread: float
    timeout_seconds: float
    apart_seconds: float
    conflict: Conflict
    alike: float
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        if self.call_seconds is not None and not 0 <= self.call_seconds <= _LONGEST:
            raise UsageError(
                f"jobs.call_seconds={self.call_seconds}, valid are seconds from 0 to {_LONGEST}, or null: as long as "
                "the model says that it took"
            )
        if not 0 <= self.spread <= 5:
            raise UsageError(f"jobs.spread={self.spread}, valid is a number from 0 to 5")
        for name in ("timeout_seconds", "apart_seconds"):
            if not 0 <= getattr(self, name) <= _LONGEST:
                raise UsageError(f"jobs.{name}={getattr(self, name)}, valid are seconds from 0 to {_LONGEST}")
        if self.conflict not in get_args(Conflict):
            raise UsageError(f"jobs.conflict={self.conflict!r}, valid are {', '.join(get_args(Conflict))}")
        if not 0 < self.alike <= 1:
            raise UsageError(f"jobs.alike={self.alike}, valid is a cosine above 0, at most 1")

    @property
    def at_once(self) -> bool:
        """Do jobs take no time?"""
        return self.call_seconds == 0

    @cached_property
    def apart(self) -> int:
        """Milliseconds between jobs that a user begins at once."""
        return round(self.apart_seconds * 1000)

    def drawn(self, job: U64) -> tuple[I64, Bool] | None:
        """Milliseconds of jobs with these keys, `[n]`, and which of them timed out; None: nothing is drawn."""
        if self.call_seconds is None:
            return None
        calls = np.arange(_CALLS)
        factor = np.exp(self.spread * normal(job[:, None], calls[None], Purpose.CALL_SECONDS))
        seconds = self.call_seconds * factor
        late: Bool = np.any(seconds > self.timeout_seconds, axis=1)
        took = np.minimum(seconds, self.timeout_seconds).sum(axis=1)
        return np.rint(took * 1000).astype(np.int64), late


def job_keys(event: U64, turn: I64) -> U64:
    """Keys of jobs about turns `[n]`, from those of the events at which users spoke of them."""
    return fold(event, turn)
