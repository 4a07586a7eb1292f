"""Work of a function as a number that no other process changes: the calls of Python and C functions in it."""

import sys
from collections.abc import Callable
from typing import Any


def calls_in(function: Callable[[], object]) -> int:
    """Calls of functions while `function` runs."""
    events = list[str]()

    def note(_frame: Any, event: str, _argument: Any) -> None:
        if event in ("call", "c_call"):
            events.append(event)

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return len(events)
