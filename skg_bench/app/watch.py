"""Duration of an attempt at a run, and a check that this process still owns the run."""

from collections.abc import Callable
from time import monotonic

from skg_bench.runfolder.lock import Lock


class Watch:
    """A progress callback that keeps the time of this attempt, and looks whether its lock is still there."""

    def __init__(self, progress: Callable[[int, int], None], lock: Lock) -> None:
        self._progress, self._lock, self._begun = progress, lock, monotonic()
        self._first: int | None = None
        self._done = 0

    def __call__(self, done: int, total: int) -> None:
        self._first = done if self._first is None else self._first
        self._done = done
        self._lock.check()
        self._progress(done, total)

    def timings(self, workers: int, cohort: int) -> dict[str, float]:
        """Seconds and turns of the attempt that finished the run; earlier ones are not counted."""
        seconds, turns = monotonic() - self._begun, self._done - (self._first or 0)
        rate = turns / seconds if seconds > 0 else 0.0
        return {"seconds": seconds, "turns": turns, "turns_per_second": rate, "workers": workers, "cohort": cohort}
