"""Datasets of others: what `data/manifest.toml` says of them, and where their files lie on this machine.

They are looked for under `$SKG_BENCH_SHARED/datasets` (default `../shared`), then where `skg-bench data get` puts them.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import bytes_of, text_of
from skg_bench.core.package import DATA


class DatasetAbsent(UsageError):  # noqa: N818  nothing is wrong with the data
    """File of a dataset that is not on this machine."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """Data of others, as their publisher gives them out."""

    name: str
    what: str
    licence: str
    source: str  # whom to cite, and where it is described
    address: str  # of its folder; a file's own is this and its name
    loader: str  # what reads it here
    files: Mapping[str, str]  # name to SHA-256, hex

    def checked(self, file: str, raw: bytes, location: Path | str) -> bytes:
        """`raw`, which was read at `location`.

        Raises UsageError unless it is the file that the manifest describes.
        """
        if (digest := sha256(raw).hexdigest()) != self.files[file]:
            raise UsageError(
                f"{location} is not the {file} of {self.name} that is known here: SHA-256 {digest[:16]}..., expected "
                f"{self.files[file][:16]}... ({len(raw):,} bytes); it is torn or another version, get it again"
            )
        return raw

    def read(self, file: str) -> bytes:
        """A file of it, as published.

        Raises DatasetAbsent, with what to do, if it is not on this machine; UsageError if its checksum is another.
        """
        location = next((path for path in self.locations(file) if path.is_file()), None)
        if location is None:
            raise DatasetAbsent(
                f"{file} of {self.name} is not here; get it: skg-bench data get {self.name} (with --from FOLDER if you "
                "have a copy)"
            )
        return self.checked(file, bytes_of(location), location)

    def locations(self, file: str) -> tuple[Path, Path]:
        """Places where the file may lie; it is put into the last."""
        shared = Path(os.environ.get("SKG_BENCH_SHARED", "../shared"))
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "skg_bench"
        return shared / "datasets" / self.name / file, home / "datasets" / self.name / file


@cache
def datasets() -> Mapping[str, Dataset]:
    """All that the manifest names."""
    listed = tomllib.loads(text_of(DATA / "manifest.toml"))
    return {name: Dataset(name, **entry) for name, entry in listed.items()}
