"""Folders in which experiments keep their draws, each with a manifest that says what the draws were made from.

Finished draws are read as they are, whatever the code has become since: findings then name the commit that made them,
and a small draw tells whether today's code decides the same (`skg-bench claims --check`). Draws of two codes are never
mixed in a folder.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from skg_bench.analysis.comparison.findings import UNCOMMITTED, Evidence, FindingSource
from skg_bench.app.run_identity import provenance, write_json
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import bytes_of, json_file, refusing
from skg_bench.core.shapes import shaped

NAME = "manifest.json"
_KEYS = ("source", "data", "seed", "code", "commit", "dirty")  # that every manifest of draws has


@dataclass(frozen=True)
class DrawSetup:
    """Configuration, data and code from which the draws of a folder are made."""

    overrides: tuple[str, ...]
    content: Mapping[str, Any]  # configuration and code of the package, as `run_identity.described` gives them
    data: Mapping[str, str]  # digests by what they are of
    sizes: Mapping[str, Any]  # seed, users of a draw, and what else a reader of the manifest needs
    files: tuple[Path, ...]  # of experiments, that make and measure draws

    def source(self, keys: Sequence[str] = ()) -> FindingSource:
        """Source of findings; `keys` of the configuration: those that count; none: all."""
        return FindingSource.of(self.overrides, self.content, self.data, keys)

    def code(self) -> str:
        """Digest of the code that makes and measures draws."""
        digest = sha256(str(self.content["code"]).encode())
        for file in sorted(self.files):
            digest.update(bytes_of(file))
        return digest.hexdigest()

    def manifest(self) -> dict[str, Any]:
        """The manifest of draws that are made now, as it is read back."""
        made = {"source": asdict(self.source()), "data": dict(self.data), "code": self.code()}
        manifest: dict[str, Any] = json.loads(json.dumps({**self.sizes, **made, **provenance()}))
        return manifest

    def fits(self, manifest: Mapping[str, Any]) -> bool:
        """Are the draws of a manifest of the same configuration, data and seed? Code is not looked at."""
        kept = _source(manifest)
        same = manifest["data"] == dict(self.data) and manifest["seed"] == self.sizes["seed"]
        return same and kept.configuration == self.source(kept.keys).configuration


def begin(out: Path, setup: DrawSetup, *, complete: bool) -> None:
    """Make the folder with its manifest. `complete`: it holds all draws that are asked for, so that none will be added.

    Raises UsageError for a folder of another configuration, and for one of other code that is not complete.
    """
    file = out / NAME
    if not file.is_file():
        if any(out.glob("draws-*.parquet")):
            raise UsageError(f"{out} holds draws and no {NAME} that says of what; name another folder")
        out.mkdir(parents=True, exist_ok=True)
        write_json(file, setup.manifest())
        return
    kept = kept_manifest(out)
    if not setup.fits(kept):
        raise UsageError(f"{out} holds draws of another prior, configuration or seed; name another folder")
    if not complete and kept["code"] != setup.code():
        raise UsageError(
            f"{out} holds some of the draws, made by the code of commit {kept['commit']}, and today's code may not "
            "add to them; finish them by that code, or name another folder"
        )


def kept_manifest(out: Path) -> Mapping[str, Any]:
    """The manifest of a folder.

    Raises UsageError where there is none, and where it does not say what the draws were made from.
    """
    manifest = json_file(out / NAME)
    with refusing(out / NAME, "make the draws again, in another folder"):
        _source(manifest)
        return {key: manifest[key] for key in (*_KEYS, *manifest)}


def evidence(manifest: Mapping[str, Any], command: str, users: int, weeks: int) -> Evidence:
    """Evidence of findings that follow from the draws of a manifest, of so many users in all."""
    commit = str(manifest["commit"] or "an installed package") + (UNCOMMITTED if manifest["dirty"] else "")
    return Evidence(command, commit, users, weeks, (int(manifest["seed"]),), (_source(manifest),))


def _source(manifest: Mapping[str, Any]) -> FindingSource:
    source: FindingSource = shaped(FindingSource, manifest["source"], "source")
    return source
