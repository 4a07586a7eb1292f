"""Size of a log, found without reading it: rows, and what it takes to read them. A log that is larger than is read by
default is refused before that, and a person may raise the limit.
"""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import FAULTS, LARGEST_FILE, open_file, parquet_of

MOST_ROWS = 5_000_000  # rows that are read unless `most_rows` says otherwise
PLAIN = 2**20  # rows that a Parquet file of any size may claim; above that, one for each byte
KEY = "simulator.most_rows"
_SAMPLE = 2**20  # bytes of a text file from which the length of a row is estimated
_TEXT = (".csv", ".tsv")
_SECONDS = {True: 4e-6, False: 17e-6}  # a row, of a text table and of others: measured with 200,000 rows of 80 bytes
_BYTES = 1300  # of memory, a row: measured likewise


@dataclass(frozen=True)
class LogSize:
    """Size of a file of rows."""

    path: Path
    rows: int
    counted: bool  # False: estimated from its first rows, or by quotes, which may stand within a cell
    size: int  # bytes

    @property
    def words(self) -> str:
        """Rows, and what it takes to read them, for a person."""
        minutes = self.rows * _SECONDS[self.path.suffix in _TEXT] / 60
        memory = self.rows * _BYTES / 2**30
        time = f"about {minutes:,.0f} minutes" if minutes >= 1 else "less than a minute"
        room = f"about {memory:,.1f} GiB of memory" if memory >= 0.1 else "little memory"
        about = "" if self.counted else "about "
        return f"{about}{self.rows:,} rows in {self.size:,} bytes: reading takes {time} and {room}"

    def check(self, most: int | None) -> None:
        """Hold the size to `most` rows; None: to what is read by default.

        Raises UsageError, which says what a larger log takes and how the limit is raised.
        """
        limit = usual(self) if most is None else most
        if self.rows > limit:
            raise UsageError(
                f"{self.path} has {self.words}; at most {limit:,} rows are read. If that is right, raise the limit: "
                f"{KEY}={_round(self.rows)}"
            )


def usual(size: LogSize) -> int:
    """Rows of a file that are read by default: a Parquet file may claim millions and hold nothing."""
    return min(MOST_ROWS, max(PLAIN, size.size)) if size.path.suffix == ".parquet" else MOST_ROWS


def bytes_at_most(most: int | None) -> int:
    """Bytes of a text file that are read where so many rows are."""
    return LARGEST_FILE * max(1, -(-(most or MOST_ROWS) // MOST_ROWS))


def log_size(path: Path) -> LogSize:
    """Size of a table of rows: CSV, TSV, JSON lines, Parquet.

    Raises UsageError for a file that cannot be opened, or is no Parquet file.
    """
    try:
        with open_file(path) as file:
            size = file.seek(0, 2)
            file.seek(0)
            start = b"" if path.suffix == ".parquet" else file.read(_SAMPLE)
        if path.suffix == ".parquet":
            with parquet_of(path) as parquet:
                return LogSize(path, parquet.metadata.num_rows, counted=True, size=size)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
    except (pa.ArrowException, *FAULTS) as error:
        raise UsageError(f"{path} is torn or no Parquet file ({str(error).partition(chr(10))[0]})") from error
    table, whole = path.suffix in _TEXT, len(start) == size
    quoted = table and b'"' in start  # then a cell may hold line ends, which end no row
    lines = sum(part.count(b"\n") for part in start.split(b'"')[::2]) if quoted else start.count(b"\n")
    if table and not whole and b"\n" not in start and b"\r" not in start:
        raise UsageError(f"{path} is no table: no line ends within its first {_SAMPLE:,} bytes")
    rows = lines if whole else round(size / max(len(start), 1) * lines)
    rows = max(rows - table, 0)  # one of them is the heading
    return LogSize(path, rows, counted=whole and not quoted, size=size)


def _round(rows: int) -> int:
    """Rows with something to spare, in millions."""
    million = 1_000_000
    return -(-rows * 11 // (10 * million)) * million
