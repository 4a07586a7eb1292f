"""The script that called this package, which worker processes must not import."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def callers_script_left_alone() -> Iterator[None]:
    """Worker processes import this package, never the script that called it.

    Python's `spawn` would run a script without a `__main__` guard again in every worker, and wait for ever for one that
    cannot be found (`python -`).
    """
    main = sys.modules["__main__"]
    kept: dict[str, Any] = {name: vars(main).pop(name) for name in ("__file__", "__spec__") if name in vars(main)}
    main.__spec__ = None
    try:
        yield
    finally:
        vars(main).update(kept)
