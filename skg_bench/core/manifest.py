"""The manifest of a run, as it is read back: what is there has the kind that readers take it for."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import json_file
from skg_bench.core.shapes import shaped

_KINDS: Mapping[str, Any] = {
    "arms": Sequence[str], "seed": int, "users": int, "weeks": int, "config": Mapping[str, Any], "question": str,
    "identity": str, "stream": str, "incomplete": bool, "advice": bool, "overrides": Sequence[str] | None,
    "compositions": Mapping[str, Mapping[str, Any]], "data": Mapping[str, Any], "log": Mapping[str, Any] | None,
    "versions": Mapping[str, str], "packages": Mapping[str, Any], "commit": str | None, "dirty": str | None,
    "code": str | None,
}  # fmt: skip
_MOST = {"users": 2**31 - 1, "weeks": 100_000}


class Manifest(dict[str, Any]):
    """What a manifest holds; what it lacks is said with its file."""

    def __init__(self, content: Mapping[str, Any], file: Path) -> None:
        super().__init__(content)
        self._file = file

    def __missing__(self, key: str) -> Any:
        raise UsageError(f"{self._file} lacks {key!r}: it is no whole manifest of a run")


def manifest_of(file: Path) -> Manifest:
    """The manifest in a file.

    Raises UsageError for what is none, and for fields of another kind.
    """
    try:
        content = json_file(file)
    except UsageError as error:
        raise UsageError(f"{file} is not valid json: {error}") from error
    if not isinstance(content, dict):
        raise UsageError(f"{file} holds no mapping; it is no manifest of a run")
    try:
        for key in content.keys() & _KINDS.keys():
            shaped(_KINDS[key], content[key], key)
    except ValueError as error:
        raise UsageError(f"{file} is no manifest of a run: {error}") from error
    for key, most in _MOST.items():
        if not 0 <= content.get(key, 0) <= most:
            raise UsageError(f"{file} has {key}={content[key]}, valid is 0 to {most:,}")
    names = content.get("arms", [])
    if len(set(names)) < len(names) or not all(name and not set(name) & set("/\0") for name in names):
        raise UsageError(f"{file} has the arms {names!r}; valid are different names without a slash")
    return Manifest(content, file)
