"""Working directory of the process, which code of somebody else has to leave as it was."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from skg_bench.core.errors import UsageError


@contextmanager
def unmoved(what: str) -> Iterator[None]:
    """Puts the working directory back after the block, in which code of somebody else runs.

    Raises UsageError where it was changed: a run writes to its folder by a path from there. `what`: what ran.
    """
    before = _working_directory()
    now = before
    try:
        yield
    finally:
        if before is not None and (now := _working_directory()) != before:
            os.chdir(before)
    if now != before:
        raise UsageError(
            f"{what} changes the working directory, from {before} to {now}, and the files of the run would go there; "
            "leave out os.chdir, and open files by whole paths, such as Path(__file__).parent / 'prompt.txt'"
        )


def _working_directory() -> Path | None:
    with suppress(FileNotFoundError):  # it was removed
        return Path.cwd()
    return None
