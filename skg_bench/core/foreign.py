"""Files of others, which may hold anything: what is no file of its kind is refused with its place, and nothing that a
file holds takes more memory than its size lets one expect.

Every file is opened by `open_file`: a path may name a pipe, which waits for ever, or a device, which never ends.
"""

import errno
import json
import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader
from math import isfinite, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skg_bench.core.errors import TwiceError, UsageError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

# What garbage raises in Python where it is taken for something else.
FAULTS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
LONGEST_TEXT = 100_000  # characters of one message or answer; a novel's chapter has 20,000 to 30,000
LARGEST_FILE = 2**30  # bytes of a file that is read whole
_LINE = 2**24  # bytes of one line: a conversation may be long
_NO_LINE = 2**27  # bytes without the end of a line, after which a file is no text
_BLOCK = 2**20  # bytes that are read at once
_HEADER = 2**16  # bytes of the description of an array
_MAGIC = b"\x93NUMPY"
_KINDS = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"))
_DEEP = 100  # levels of lists and mappings
_MANY = 5_000_000  # values in a file; an alias in yaml counts as what it stands for
_SHOWN = 200  # characters of a reason
_HALF = "holds half a surrogate pair, which no text has"
_INT64 = 2**63
_DECODER = json.JSONDecoder()
_ATOMS = (bool, type(None))


@contextmanager
def refusing(where: object, hint: str = "") -> Iterator[None]:
    """Whatever garbage raises inside becomes a UsageError about `where`, a file or a place in it.

    It stands around code that takes a file's fields for what they ought to be; a mistake in such code shows as a
    UsageError about a file that is right.
    """
    try:
        yield
    except FAULTS as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise UsageError(f"{where} is not of its form ({reason[:_SHOWN]}){hint and f'; {hint}'}") from error


def open_file(path: str | Path, largest: int | None = None) -> BufferedReader:
    """Opens a file to be read. The path is looked at once: what is opened is what was looked at.

    Raises OSError, as `open` does, for what is not there, is no regular file, or has more than `largest` bytes.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except ValueError as error:  # a NUL in its name
        raise OSError(errno.EINVAL, str(error), str(path)) from error
    if fault := _unfit(os.fstat(descriptor), largest):
        os.close(descriptor)
        raise OSError(*fault, str(path))
    return os.fdopen(descriptor, "rb")


def _unfit(status: os.stat_result, largest: int | None) -> tuple[int, str] | None:
    """Reason why something is not read, as an OSError has it: number and words."""
    if stat.S_ISDIR(status.st_mode):
        return errno.EISDIR, os.strerror(errno.EISDIR)
    if not stat.S_ISREG(status.st_mode):
        kind = next((word for known, word in _KINDS if known(status.st_mode)), "something else")
        return errno.EINVAL, f"it is {kind}, and only files are read"
    if largest is not None and status.st_size > largest:
        return errno.EFBIG, f"it has {status.st_size:,} bytes; at most {largest:,} are read"
    return None


@contextmanager
def _readable(path: str | Path) -> Iterator[None]:
    """Whatever the system says of a file becomes a UsageError that names it."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error


def check_regular(path: str | Path) -> None:
    """Hold a path, which a library is going to open itself, to being a file, or not there.

    Raises UsageError.
    """
    with _readable(path), suppress(FileNotFoundError), open_file(path):
        pass


def raw_bytes(path: str | Path, largest: int = LARGEST_FILE) -> bytes:
    """Contents of a file.

    Raises OSError as `open_file` does, and for a file that grows beyond `largest` while it is read.
    """
    with open_file(path, largest) as file:
        parts, length = [file.read(min(os.fstat(file.fileno()).st_size, largest) + 1)], 0
        while parts[-1] and (length := length + len(parts[-1])) <= largest:
            parts.append(file.read(min(_BLOCK, largest + 1 - length)))
    if length > largest:
        raise OSError(errno.EFBIG, f"it has more than {largest:,} bytes, which is the most that is read", str(path))
    return b"".join(parts)


def blocks_of(path: str | Path) -> Iterator[bytes]:
    """Contents of a file, piece by piece.

    Raises OSError as `open_file` does.
    """
    with open_file(path) as file:
        while block := file.read(_BLOCK):
            yield block


def bytes_of(path: Path, largest: int = LARGEST_FILE) -> bytes:
    """Contents of a file.

    Raises UsageError for what is no file, cannot be read, or is too large.
    """
    with _readable(path):
        return raw_bytes(path, largest)


def text_of(path: Path, largest: int = LARGEST_FILE) -> str:
    """The text of a file, with the line ends of Unix.

    Raises UsageError as `bytes_of` does, and for what is not UTF-8.
    """
    return text_in(bytes_of(path, largest), path)


def text_in(content: bytes, path: Path) -> str:
    """The text of a file whose contents were read, with the line ends of Unix.

    Raises UsageError for what is not UTF-8.
    """
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: {error}; save it as UTF-8") from error
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def json_of(text: str | bytes, where: object) -> Any:
    """Parsed JSON, with values of any type.

    Raises UsageError, which names `where`, for what is torn or nested too deeply; TwiceError for a key that is twice.
    """
    try:
        if isinstance(text, str) and not text.startswith("\ufeff"):  # a mark, which is refused with what it is
            return _DISTINCT.decode(text)
        return json.loads(text, object_pairs_hook=_distinct)
    except TwiceError as error:
        raise TwiceError(f"{where} {error}") from None
    except (RecursionError, ValueError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise UsageError(f"{where} is no whole JSON: {why}") from error


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        key = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise TwiceError(f"has the key {_cut(key)!r} twice in one object; leave one of them")
    return members


_DISTINCT = json.JSONDecoder(object_pairs_hook=_distinct)  # made anew for each line it would take as long as the line


def members_of(text: str, names: Sequence[str], where: object) -> dict[str, object]:
    """Values of these keys of a JSON object. If it is written with an indent of 1, the rest is not parsed: no line of
    anything inside begins with a single space.

    Raises UsageError as `json_of` does.
    """
    places = {name: text.find(f'\n "{name}": ') for name in names}
    if min(places.values()) < 0:
        whole = json_of(text, where)
        return {name: whole[name] for name in names if name in whole} if isinstance(whole, dict) else {}
    try:
        return {name: _DECODER.raw_decode(text, at + len(name) + 6)[0] for name, at in places.items()}
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where} is no whole JSON: {error}") from error


def inner_members_of(text: str, outer: str, name: str, where: object) -> dict[str, object]:
    """Values of the key `name` in each object inside of the object `outer` of a JSON object, by key of that object. If
    it is written with an indent of 1, nothing else is parsed.

    Raises UsageError as `json_of` does.
    """
    start = text.find(f'\n "{outer}": {{\n')
    end = text.find("\n }", start)
    if min(start, end) < 0:
        whole = members_of(text, [outer], where).get(outer)
        inner = whole.items() if isinstance(whole, dict) else ()
        return {key: value[name] for key, value in inner if isinstance(value, dict) and name in value}
    values = dict[str, object]()
    try:
        while (start := text.find('\n  "', start, end)) >= 0:
            key, start = _DECODER.raw_decode(text, start + 3)
            if text.startswith(": {\n", start):
                after = text.find("\n  }", start, end)
                if (place := text.find(f'\n   "{name}": ', start, after)) >= 0:
                    values[key] = _DECODER.raw_decode(text, place + len(name) + 8)[0]
                start = after
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where} is no whole JSON: {error}") from error
    return values


def json_file(path: Path) -> Any:
    """The plain values of a JSON file.

    Raises UsageError for what is no such file, and as `plain` does.
    """
    return plain(json_of(text_of(path), path), path)


def plain(value: Any, where: object) -> Any:
    """`value`, parsed from JSON or yaml, if all numbers in it are finite and fit 64 bits, texts are Unicode, and it is
    neither deeper nor larger than what people write.

    Raises UsageError with the place.
    """
    if _is_plain(value):
        return value
    left: list[tuple[Any, str, int]] = [(value, "", 0)]
    count = 0
    while left:
        inner, path, depth = left.pop()
        count += 1
        if fault := _fault(inner, depth, count):
            raise UsageError(f"{where}{f': {_cut(path)}' if path else ''} {fault}")
        if isinstance(inner, dict):
            left += [(key, f"a key of {path or 'it'}", depth + 1) for key in inner if not isinstance(key, str | int)]
            left += [(child, f"{path}.{key!s}".lstrip("."), depth + 1) for key, child in inner.items()]
            if not all(unicode(key) for key in inner if isinstance(key, str)):
                raise UsageError(f"{where}: a key of {_cut(path) or 'it'} {_HALF}")
        elif isinstance(inner, list | tuple | set):
            left += [(child, f"{path}[{i}]", depth + 1) for i, child in enumerate(inner)]
    return value


def _is_plain(value: Any) -> bool:
    """True if all values have valid types. Ten times as fast as the search for the place of a fault."""
    level, count, depth = [value], 1, 0
    while level and depth <= _DEEP:
        below, texts = list[Any](), list[Any]()
        for inner in level:
            kind = type(inner)
            if kind is str:
                texts.append(inner)
            elif kind is dict or kind is list:
                below += inner.values() if kind is dict else inner
                texts += inner if kind is dict else ()
                if count + len(below) > _MANY:
                    return False
            elif not (
                (kind is float and isfinite(inner)) or (kind is int and -_INT64 <= inner < _INT64) or kind in _ATOMS
            ):
                return False
        if not (set(map(type, texts)) <= {str} and (all(map(str.isascii, texts)) or all(map(unicode, texts)))):
            return False
        level, count, depth = below, count + len(below), depth + 1
    return not level


def _fault(value: Any, depth: int, count: int) -> str:
    """Fault of a value, without its content."""
    if depth > _DEEP:
        return f"is nested more than {_DEEP} levels deep"
    if count > _MANY:
        return f"holds more than {_MANY:,} values"
    if isinstance(value, str) and not unicode(value):
        return _HALF
    if isinstance(value, int) and not -_INT64 <= value < _INT64:
        return "is a number beyond 64 bits"
    if isinstance(value, float) and not isfinite(value):
        return f"is {value}, and a finite number is needed"
    return ""


def unicode(text: str) -> bool:
    """Can it be written? A text of JSON may hold one half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _cut(path: str) -> str:
    path = path.encode("ascii", "backslashreplace").decode()
    return path if len(path) <= _SHOWN else f"{path[:_SHOWN]}..."


def lines_of(path: Path) -> Iterator[tuple[int, bytes | None]]:
    """Number and bytes of each line of a file; None: it is longer than a line can be.

    Raises UsageError for a file that cannot be read, or is no text: its lines do not end.
    """
    with _readable(path), open_file(path) as file:
        number = 0
        while line := file.readline(_LINE):
            number, length = number + 1, len(line)
            whole = line.endswith(b"\n") or len(line) < _LINE
            yield number, line if whole else None
            while not whole:
                rest = file.readline(_LINE)
                length += len(rest)
                if length > _NO_LINE:
                    raise UsageError(f"{path}: line {number} does not end within {_NO_LINE:,} bytes; this is no text")
                whole = rest.endswith(b"\n") or len(rest) < _LINE


def array_of(path: str | Path) -> "np.ndarray":
    """The array of a `.npy` file. Nothing is unpickled.

    Raises OSError as `open_file` does, and ValueError for a file that does not hold what its first bytes say.
    """
    import numpy as np

    with open_file(path) as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise ValueError("it is no array")
        file.seek(0)
        version = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = header(file, max_header_size=_HEADER)
        size, left = prod(shape) * dtype.itemsize, os.fstat(file.fileno()).st_size - file.tell()
        if dtype.hasobject:
            raise ValueError("it holds Python objects, and nothing is unpickled")
        if size != left:
            raise ValueError(f"it says that it holds {size:,} bytes of {dtype}, and holds {left:,}")
        file.seek(0)
        array: np.ndarray = np.load(file, allow_pickle=False)
        return array


def stamp(path: str | Path) -> tuple[str, int, int]:
    """Place of the file to which a path leads, its time [ns] and size [bytes]; zeros where there is none.

    What is kept of a file from one run of this process to the next is kept under its stamp: it may be another one then.
    """
    place = os.path.realpath(path)
    with suppress(OSError, ValueError):
        status = Path(place).stat()
        return place, status.st_mtime_ns, status.st_size
    return place, 0, 0


@contextmanager
def parquet_of(path: str | Path, **options: Any) -> Iterator["pq.ParquetFile"]:
    """An opened Parquet file, with `options` of pyarrow's.

    Raises OSError as `open_file` does, and what pyarrow raises.
    """
    import pyarrow.parquet as pq

    with open_file(path) as file, _native(file) as source, pq.ParquetFile(source, **options) as parquet:
        yield parquet


def table_of(path: str | Path, columns: Sequence[str] | None = None, rows: Any = None) -> "pa.Table":
    """The table of a Parquet file: these columns, and the rows of which the expression `rows` is true; None: all.

    Raises OSError as `open_file` does, and what pyarrow raises.
    """
    import pyarrow.parquet as pq

    with open_file(path) as file, _native(file) as source:
        if rows is None and columns is not None:  # in one chunk, from which rows are taken faster
            return pq.ParquetFile(source).read(columns).select(columns).replace_schema_metadata()
        return pq.read_table(source, columns=columns, filters=rows)


def _native(file: BufferedReader) -> "pa.NativeFile":
    """An open file for pyarrow, whose threads would hold an object of Python's to the end of the process, and end it by
    an abort if they let go of it last.
    """
    import pyarrow as pa

    return pa.OSFile(f"/dev/fd/{file.fileno()}")
