"""Whatever a path leads to, each reader of other people's files ends soon, and takes little memory (R3)."""

import gzip
import os
import signal
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skg_bench.asking import recording
from skg_bench.core.errors import UsageError
from tests.foreign.files import READERS
from tests.foreign.test_any_bytes import put

SECONDS, MEMORY = 5, 500 * 2**20
ZEROS = 2**29  # bytes that each bomb unpacks to
FILES = 3  # of a reader, each of which is tried


def again(folder: Path) -> object:
    """Read a recording as it is; the other reader makes one of what it finds."""
    kept = recording.Recording(folder)
    kept.refresh()
    return list(kept.asks())


@pytest.fixture(scope="module")
def bombs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("bombs")
    with (
        zipfile.ZipFile(folder / "zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("about.json", "w", force_zip64=True) as inside,
    ):
        for _ in range(ZEROS // 2**24):
            inside.write(bytes(2**24))
    with gzip.open(folder / "gzip", "wb", compresslevel=1) as packed:
        for _ in range(ZEROS // 2**24):
            packed.write(bytes(2**24))
    with pa.CompressedOutputStream(str(folder / "zstd"), "zstd") as stream:
        for _ in range(ZEROS // 2**24):
            stream.write(bytes(2**24))
    rows = 20_000_000
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), ["2024-03-04T10:00:00"])
    table = pa.table(dict.fromkeys(("user", "time", "message"), column))
    pq.write_table(table, folder / "parquet", compression="zstd")
    with (folder / "sparse").open("wb") as file:
        file.truncate(10 * 2**30)
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "zero").symlink_to("/dev/zero")
    (folder / "full").symlink_to("/dev/full")
    return {path.name: path for path in sorted(folder.iterdir())}


@contextmanager
def within(what: str) -> Iterator[None]:
    """Fail where a block takes longer, or has more memory at once, than it may."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"{what}: it hangs")

    before = signal.signal(signal.SIGALRM, stop)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    idle, begun = held("VmRSS"), time.process_time()
    signal.alarm(60)  # on the clock, of a machine that may be busy
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    took, peak = time.process_time() - begun, held("VmHWM") - idle
    assert took < SECONDS, f"{what}: {took:.1f} s"
    assert peak < MEMORY, f"{what}: {peak / 2**20:.0f} MB"


def held(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def refusal(read: Callable[[Path], object], folder: Path) -> str:
    """What a reader says where it refuses; nothing where it leaves out."""
    try:
        read(folder)
    except UsageError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", READERS)
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is watched through /proc")
def test_a_reader_ends_soon_whatever_its_path_leads_to(name: str, bombs: dict[str, Path], tmp_path: Path) -> None:
    files = READERS[name].files()
    read = again if name == "recording" else READERS[name].read
    for number, (kind, bomb) in enumerate(bombs.items()):
        for file in [*files][:FILES]:
            folder = tmp_path / f"{number} {file.replace('/', '-')}"
            folder.mkdir()
            put(files, folder)
            (folder / file).unlink()
            (folder / file).symlink_to(bomb)
            with within(f"{name}, {file}: {kind}"):
                refused = refusal(read, folder)
                assert not refused or folder.name in refused
