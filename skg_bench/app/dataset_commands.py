"""`skg-bench data`: which datasets of others can be read here, and getting one."""

from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from skg_bench.app import table_blocks
from skg_bench.app.progress import console
from skg_bench.core.errors import UsageError, nearest
from skg_bench.core.foreign import LARGEST_FILE, bytes_of
from skg_bench.simulator.datasets import Dataset, datasets

_PATIENCE = 30  # seconds without a byte


def show_datasets() -> None:
    """Print what there is, and where it lies."""
    screen, rows, places = console(), [], []
    for dataset in datasets().values():
        folder = _here(dataset)
        rows.append([dataset.name, dataset.what, dataset.licence, dataset.loader, "yes" if folder else "no"])
        places.append(f"{dataset.name}: {folder or f'skg-bench data get {dataset.name}'}")
    table_blocks.show_table(screen, ["dataset", "what it is", "licence", "read by", "here"], rows)
    for place in places:
        screen.print(place, soft_wrap=True)


def _here(dataset: Dataset) -> Path | None:
    """The folder in which all its files lie; their contents are checked when they are read."""
    locations = [[dataset.locations(file)[i] for file in dataset.files] for i in range(2)]
    return next((files[0].parent for files in locations if all(file.is_file() for file in files)), None)


def get(name: str, source: Path | None) -> None:
    """Put a dataset where it is looked for: from its publisher, or from a copy in folder `source`.

    Raises UsageError for an unknown dataset, a file that cannot be got and one of another checksum; then nothing of it
    is left behind.
    """
    known = datasets()
    if name not in known:
        raise UsageError(f"there is no dataset {name!r}; {nearest(name, known)}")
    dataset = known[name]
    got = {file: _copied(dataset, file, source) if source else _fetched(dataset, file) for file in dataset.files}
    for file, raw in got.items():
        location = dataset.locations(file)[-1]
        location.parent.mkdir(parents=True, exist_ok=True)
        temporary = location.with_name(f".{location.name}.part")
        temporary.write_bytes(raw)
        temporary.replace(location)
        console().print(f"{location} ({len(raw):,} bytes)", soft_wrap=True)
    console().print(f"{dataset.licence}; {dataset.source}", soft_wrap=True)


def _copied(dataset: Dataset, file: str, source: Path) -> bytes:
    tried = (source / file, source / dataset.name / file)
    location = next((path for path in tried if path.is_file()), None)
    if location is None:
        raise UsageError(f"--from {source}: there is neither {tried[0]} nor {tried[1]}")
    return dataset.checked(file, bytes_of(location), location)


def _fetched(dataset: Dataset, file: str) -> bytes:
    address = dataset.address + file
    try:
        with urlopen(address, timeout=_PATIENCE) as answer:  # noqa: S310  (the manifest's addresses are https)
            raw: bytes = answer.read(LARGEST_FILE + 1)
    except (URLError, OSError) as error:
        reason = (isinstance(error, URLError) and error.reason) or error
        if isinstance(error, HTTPError):
            error.close()
        raise UsageError(
            f"{address} cannot be fetched: {reason}; with a copy of {file}: skg-bench data get {dataset.name} "
            "--from FOLDER"
        ) from error
    return dataset.checked(file, raw, address)
