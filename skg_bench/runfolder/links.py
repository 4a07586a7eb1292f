"""Symbolic links in folders of others: one that leads out would be followed wherever the folder is read or written."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from skg_bench.core.errors import UsageError


def check_links(folder: Path) -> None:
    """Hold a folder, such as a run's, to links that stay inside. The folder itself may be reached by a link.

    Else a run of somebody else could have files of this machine shown or delivered, and files written beside them.
    Raises UsageError that names the link; what is not there, or cannot be listed, has none.
    """
    root = os.path.realpath(folder)
    for link in _links(root):
        target = os.path.realpath(link)
        if os.path.commonpath([root, target]) != root:
            raise UsageError(
                f"{folder / os.path.relpath(link, root)} is a symbolic link that leads out of the folder, to {target}; "
                "a run holds its own files. Remove the link, and the same command makes again what it replaced; or "
                "put the file or folder itself in its place"
            )


def _links(place: str) -> Iterator[str]:
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if entry.is_symlink():
                yield entry.path
            elif entry.is_dir():
                yield from _links(entry.path)
