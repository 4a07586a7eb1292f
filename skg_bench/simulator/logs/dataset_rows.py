"""Rows of a data set, read by the `datasets` library (extra `datasets`): of the hub, or of a folder on this machine.

`hf:NAME`, `hf:NAME@REVISION` and `hf:FOLDER`; a folder that the library saved needs no prefix. Code that a data set
brings along is never run: the library has refused it since version 4, and has no switch for it any more.

The hub is asked for the commit first, and a hub that does not answer within seconds is an error: the library itself
tries again for 25 s. What is read then is that commit, whatever `main` becomes meanwhile. Rows are streamed; offline
(HF_HUB_OFFLINE=1) they come from the library's cache.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from importlib.util import find_spec
from itertools import islice
from logging import CRITICAL, getLogger
from pathlib import Path
from typing import Any

from skg_bench.core.errors import UsageError, install_hint
from skg_bench.core.foreign import blocks_of
from skg_bench.simulator.logs.recorded_rows import LOG_SUFFIXES

PREFIX = "hf:"
_SAVED = ("dataset_info.json", "dataset_dict.json")  # what `save_to_disk` leaves in a folder
_READABLE = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet", ".arrow")
_SPLITS = {"data", "train", "training", "validation", "valid", "val", "dev", "test", "testing", "eval", "evaluation"}
_MOST = 10_000  # files and folders in a folder that nobody calls a data set
_NAMED = 5  # of them
_PATIENCE = 2.5  # seconds to connect, and seconds until the answer comes
_ROWS = 1000  # read at once
_SLICED = re.compile(r"(?P<name>[^\[\]]+)\[:(?P<rows>[1-9]\d*)\]")
_COPY = (
    "save it where there is a network, with the library's save_to_disk(FOLDER), and name that folder; what this "
    "machine has loaded before is read with HF_HUB_OFFLINE=1 in the environment"
)

DatasetRow = Mapping[str, Any]


def is_dataset(path: str) -> bool:
    """Is it one that the library reads, by its prefix or by what the library left in the folder?"""
    return path.startswith(PREFIX) or any((Path(path) / file).is_file() for file in _SAVED)


def holds_tables(folder: Path) -> bool:
    """Is it a folder with files that the library can read?

    Raises UsageError for one of too many files, and for tables beside folders with others: the library would take the
    most frequent kind of all of them.
    """
    if not folder.is_dir():
        return False
    files, whole = list(islice(folder.rglob("*"), _MOST + 1)), f"{PREFIX}{folder} if all of it is a data set"
    if len(files) > _MOST:
        raise UsageError(f"{folder} is a folder of more than {_MOST:,} files; name the log in it, or {whole}")
    tables = [file.relative_to(folder) for file in files if file.suffix in _READABLE and file.is_file()]
    logs = sorted(file.name for file in tables if len(file.parts) == 1 and file.suffix in LOG_SUFFIXES)
    others = sorted({file.parts[0] for file in tables if len(file.parts) > 1} - _SPLITS)
    others = [name for name in others if not name.startswith(".")]
    if logs and others:
        raise UsageError(
            f"{folder} is a folder; it holds {', '.join(logs[:_NAMED])}, and other tables in "
            f"{', '.join(others[:_NAMED])}: name the log, {folder}/FILE, or {whole}"
        )
    return bool(tables)


def chosen_split(splits: Sequence[str], wanted: str | None, parameter: str, path: str, usual: str | None = None) -> str:
    """The split that is wanted, or else the only one, or the usual one.

    Raises UsageError for one that is not there, and where one has to be named.
    """
    if wanted in splits:
        return str(wanted)
    if wanted is None and len(splits) == 1:
        return splits[0]
    if wanted is None and usual in splits:
        return str(usual)
    raise UsageError(f"{parameter}={'null' if wanted is None else wanted}; {path} has {', '.join(splits)}: name one")


@dataclass(frozen=True)
class DatasetSplit:
    """One split of a data set. `where`: of its parameters, such as `simulator`."""

    path: str
    subset: str | None
    split: str | None  # NAME, or NAME[:N] for its first N rows
    where: str
    usual: str | None = None  # the split where none is named and there are several

    @property
    def _given(self) -> str:
        return self.path.removeprefix(PREFIX)

    @property
    def _folder(self) -> Path | None:
        return Path(self._given) if Path(self._given).is_dir() else None

    @property
    def title(self) -> str:
        """Name, commit or fingerprint, subset and split."""
        name = self._given.partition("@")[0] if self._folder is None else self._folder.name
        return f"{name}@{self.revision} ({', '.join(filter(None, (self.subset, self._wanted)))})"

    @cached_property
    def revision(self) -> str:
        """Commit of the hub, or hash of the folder's files."""
        if self._folder is not None:
            return hashed(self._folder)[:16]
        if find_spec("datasets") is None:
            raise UsageError(f"{self.where}.path={self.path} needs the package datasets: {install_hint('datasets')}")
        return self._offline or self._commit()

    @cached_property
    def _offline(self) -> str:
        """Mark in place of a commit, which nobody can be asked for; empty if the hub may be asked."""
        from huggingface_hub import constants

        return (self._given.partition("@")[2] or "cached") if constants.HF_HUB_OFFLINE else ""

    def _commit(self) -> str:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError

        name, _, revision = self._given.partition("@")
        try:
            return str(HfApi().dataset_info(name, revision=revision or None, timeout=_PATIENCE).sha)
        except (HfHubHTTPError, HFValidationError) as error:
            raise self._failed("the hub has no such data set, or not for you (a token: HF_TOKEN)", error) from error
        except Exception as error:  # whatever its client raises
            raise self._failed("the hub does not answer", error, _COPY) from error

    @property
    def _wanted(self) -> str:
        """Split that is wanted, of several."""
        return self.split or self._opened[0]

    @cached_property
    def _opened(self) -> tuple[str, Any, int | None]:
        """Name of the split, the library's object, and how many rows of it are wanted."""
        if find_spec("datasets") is None:
            raise UsageError(f"{self.where}.path={self.path} needs the package datasets: {install_hint('datasets')}")
        import datasets  # 2 to 5 s

        sliced = _SLICED.fullmatch(self.split or "")
        wanted, rows = (sliced["name"], int(sliced["rows"])) if sliced else (self.split, None)
        datasets.disable_progress_bars()
        for library in ("datasets", "huggingface_hub"):  # what they would say, they raise too
            getLogger(library).setLevel(CRITICAL)
        folder, revision = self._folder, self.revision
        with self._told():
            if folder is not None and any((folder / file).is_file() for file in _SAVED):
                loaded = datasets.load_from_disk(str(folder))
            elif folder is not None:
                loaded = datasets.load_dataset(str(folder), self.subset, streaming=True)
            else:
                name, _, given = self._given.partition("@")
                commit = given or None if self._offline else revision
                loaded = datasets.load_dataset(name, self.subset, revision=commit, streaming=not self._offline)
        if not isinstance(loaded, dict):
            loaded = {wanted or "all": loaded}
        name = chosen_split(list(loaded), wanted, f"{self.where}.split", self.path, self.usual)
        return name, loaded[name], rows

    def rows(self) -> Iterator[tuple[int, DatasetRow]]:
        """Rows and their positions, from 1; what are numbers of classes there have the classes' names here.

        Raises UsageError for what cannot be read.
        """
        _, opened, most = self._opened
        classes = dict(opened.features or {})
        with self._told():
            batches = opened.with_format("arrow").iter(batch_size=_ROWS)
            plain = (row for batch in batches for row in batch.to_pylist())
            for position, row in enumerate(islice(plain, most), 1):
                yield position, {name: _worded(value, classes.get(name)) for name, value in row.items()}

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of the library, and of what it reads, as errors of ours."""
        try:
            yield
        except UsageError:
            raise
        except Exception as error:  # whatever it raises
            hint = _COPY if self._folder is None else "check the folder, subset and split"
            raise self._failed("it cannot be read", error, hint) from error

    def _failed(self, what: str, error: Exception, hint: str = "check its name and revision") -> UsageError:
        why = " ".join(str(error).split())[:300]
        return UsageError(f"{self.where}.path={self.path}: {what} ({type(error).__name__}: {why}); {hint}")


def records(value: Any) -> list[Any]:
    """A list of mappings, which some data sets keep as a mapping of lists."""
    if isinstance(value, Mapping):
        return [dict(zip(value, row, strict=True)) for row in zip(*value.values(), strict=True)]
    return value if isinstance(value, list) else []


def _worded(value: Any, feature: Any) -> Any:
    """A value with names of classes in place of their numbers, at any depth."""
    if value is None or feature is None:
        return value
    if hasattr(feature, "int2str"):
        return feature.int2str(value) if isinstance(value, int) and value >= 0 else None
    if isinstance(value, list):
        inner = getattr(feature, "feature", feature[0] if isinstance(feature, list) else None)
        return [_worded(item, inner) for item in value]
    if isinstance(value, dict):
        features = getattr(feature, "feature", feature)  # of a mapping of lists, in older versions
        return {key: _worded(item, features.get(key)) for key, item in value.items()} if features else value
    return value


def hashed(path: Path) -> str:
    """Hash of a file, or of all files of a folder."""
    digest = blake2b(digest_size=16)
    for file in sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]:
        digest.update(f"{file.relative_to(path)}\0".encode())
        for part in blocks_of(file):
            digest.update(part)
    return digest.hexdigest()
