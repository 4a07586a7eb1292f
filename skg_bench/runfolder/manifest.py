"""The manifest of a run: written with a digest of what it holds, and read back as what readers take it for."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from skg_bench.core.draws import salted
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import bytes_of, json_file, text_in
from skg_bench.core.shapes import shaped
from skg_bench.core.temporary import replace_whole
from skg_bench.runfolder import schema

MANIFEST = "manifest.json"
BESIDE = ("out", "workers", "cohort", "part", "launcher", "tracker")  # change how a run is made, never what comes out
TABLES = ("summary.json", "curves.csv", "timings.json", "report.html")  # what a finished run has beside its logs
_AGAIN = "the command that made the run writes it again, from the logs beside it"

_KINDS: Mapping[str, Any] = {
    "arms": Sequence[str], "changed": Sequence[str], "seed": int, "users": int, "weeks": int, "question": str,
    "config": Mapping[str, Any], "identity": str, "stream": str, "incomplete": bool, "domain": Mapping[str, Any],
    "overrides": Sequence[str] | None,
    "compositions": Mapping[str, Mapping[str, Any]], "data": Mapping[str, Any], "log": Mapping[str, Any] | None,
    "versions": Mapping[str, str], "packages": Mapping[str, Any], "commit": str | None, "dirty": str | None,
    "code": str | None, "beside": Sequence[Sequence[str]], "shards": Mapping[str, Sequence[str]],
    "files": Mapping[str, str], "digest": str, "salt": str | None, "salt_hash": str,
    "removed_users": int, "told_truth": Sequence[str],
}  # fmt: skip
_MOST = {"users": 2**31 - 1, "weeks": 100_000, "removed_users": 2**31 - 1}


class Manifest(dict[str, Any]):
    """Content of a manifest; a missing key is named with its file."""

    def __init__(self, content: Mapping[str, Any], file: Path) -> None:
        super().__init__(content)
        self._file = file

    def __missing__(self, key: str) -> Any:
        raise UsageError(
            f"{self._file} lacks {key!r}, which every manifest has; its `skg-bench run` command writes it again"
        )


def write_manifest(folder: Path, content: Mapping[str, Any]) -> None:
    """Write `manifest.json` of a run, with its digest, whole or not at all."""
    content = {key: value for key, value in content.items() if key != "digest"}
    whole = json.dumps({**content, "digest": _digest(content)}, indent=1, ensure_ascii=False)
    replace_whole(folder / MANIFEST, (whole + "\n").encode())


@contextmanager
def accepting(folder: Path, seen: Mapping[str, Any], *names: str) -> Iterator[None]:
    """Notes, in the manifest, the digests of files that the block makes from the logs.

    `seen`: the manifest when the logs were read. Raises UsageError, before the block, where the run went on since.
    """
    _check_current(folder, seen)
    yield
    content = _check_current(folder, seen)
    write_manifest(folder, {**content, "files": {**content.get("files", {}), **file_digests(folder, names)}})


def _check_current(folder: Path, seen: Mapping[str, Any]) -> Mapping[str, Any]:
    content = manifest_of(folder / MANIFEST)
    if any(content.get(key) != seen.get(key) for key in ("incomplete", "shards")):
        raise UsageError(f"{folder} went on while its logs were read; give the same command again")
    return content


def file_digests(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """SHA-256 of files in the folder of a run, as the manifest notes them."""
    return {name: hashlib.sha256(bytes_of(folder / name)).hexdigest() for name in names}


def accepted(folder: Path, name: str, files: Mapping[str, str]) -> bool:
    """Is a file the one that `files` of the manifest has the digest of?

    Raises UsageError for one that cannot be read.
    """
    return hashlib.sha256(bytes_of(folder / name)).hexdigest() == files.get(name)


def accepted_text(folder: Path, name: str, files: Mapping[str, str]) -> str | None:
    """Text of a file, read once; None if it is not the one that `files` of the manifest has the digest of.

    Raises UsageError for one that cannot be read.
    """
    content = bytes_of(folder / name)
    return text_in(content, folder / name) if hashlib.sha256(content).hexdigest() == files.get(name) else None


def identity_of(content: Mapping[str, Any]) -> str:
    """Identity of a run (64 hex digits): hash of its configuration, data and models, and code."""
    return hashlib.sha256(json.dumps(counted_of(content), sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def counted_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """Keys that count for the identity: all but BESIDE and the places in `beside`, which change no result."""
    config = {key: value for key, value in content["config"].items() if key not in BESIDE}
    whole = {"config": config, **{key: content[key] for key in ("compositions", "data", "code")}}
    counted: dict[str, Any] = _without(whole, [tuple(place) for place in content["beside"]])
    return counted


def users_left(content: Mapping[str, Any]) -> int:
    """Number of users of a run, without those who were removed."""
    return int(content["users"]) - int(content.get("removed_users", 0))


def run_key(content: Mapping[str, Any]) -> str:
    """Key of the shards of a run: its identity, the versions of the libraries that made them, hash of its salt, and how
    many users were removed: shards with and without somebody are never taken for those of one run.
    """
    made = [content.get("identity"), content.get("versions"), content.get("salt_hash")]
    made += [content["removed_users"]] if "removed_users" in content else []
    return hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()[:32]


def salted_seed(content: Mapping[str, Any], source: Path | str) -> int:
    """Seed and salt of a run, from which its events can be made again (core/draws.py).

    Raises UsageError where the manifest does not tell the salt.
    """
    if (salt := content.get("salt", "0x0")) is None:
        raise UsageError(
            f"{source} does not tell its salt (hash {content.get('salt_hash')}), so that its events cannot be made "
            "again; take a run with a public salt, or one with salt=draw that has ended"
        )
    return salted(int(content["seed"]), int(salt, 16))


UNNAMED = run_key({})  # of a run whose manifest names neither


def _without(node: Any, places: Sequence[tuple[str, ...]]) -> Any:
    """Content without what stands at some places, each the keys from the top."""
    if not places:
        return node
    if isinstance(node, Mapping):
        here = {place[0] for place in places if len(place) == 1}
        return {
            key: _without(value, [place[1:] for place in places if place[0] == key and len(place) > 1])
            for key, value in node.items()
            if key not in here
        }
    if isinstance(node, list):
        return [
            _without(inner, [place[1:] for place in places if place[0] == str(at)]) for at, inner in enumerate(node)
        ]
    return node


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def manifest_of(file: Path) -> Manifest:
    """The manifest in a file.

    Raises UsageError for what is none, for fields of another kind, and for one that was changed after it was written.
    """
    try:
        content = json_file(file)
    except UsageError as error:
        raise UsageError(f"{error}; {_AGAIN}") from error
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
    _check_unchanged(content, file)
    return Manifest(content, file)


def _check_unchanged(content: Mapping[str, Any], file: Path) -> None:
    if content.get("schema") != schema.SCHEMA_VERSION:
        return  # of another version, which Run refuses
    known = {key: value for key, value in content.items() if key != "digest"}
    if content.get("digest") != _digest(known):
        raise UsageError(f"{file} is not as it was written: its digest is of other content; {_AGAIN}")
    if "identity" in content and content["identity"] != identity_of(content):
        raise UsageError(f"{file} has an identity that its configuration, data and code do not give; {_AGAIN}")
