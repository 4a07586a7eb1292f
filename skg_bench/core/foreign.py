"""Files of others, which may hold anything: what is no file of its kind is refused with its place, and nothing that a
file holds takes more memory than its size lets one expect.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Any

from skg_bench.core.errors import UsageError

# What garbage raises in Python where it is taken for something else.
FAULTS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
LONGEST = 100_000  # characters of one message or answer; a novel's chapter has 20,000 to 30,000
LARGEST = 2**30  # bytes of a file that is read whole
_LINE = 2**24  # bytes of one line: a conversation may be long
_DEEP = 100  # levels of lists and mappings
_MANY = 5_000_000  # values in a file; an alias in yaml counts as what it stands for
_SHOWN = 200  # characters of a reason
_HALF = "holds half a surrogate pair, which no text has"
_INT64 = 2**63


@contextmanager
def refusing(where: object, advice: str = "") -> Iterator[None]:
    """Whatever garbage raises inside becomes a UsageError about `where`, a file or a place in it.

    It stands around code that takes a file's fields for what they ought to be; a mistake in such code shows as a
    UsageError about a file that is right.
    """
    try:
        yield
    except FAULTS as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise UsageError(f"{where} is not of its form ({reason[:_SHOWN]}){advice and f'; {advice}'}") from error


def bytes_of(path: Path, largest: int = LARGEST) -> bytes:
    """What a file holds.

    Raises UsageError for what is no file, cannot be read, or is too large.
    """
    try:
        if path.is_file() and (size := path.stat().st_size) > largest:
            raise UsageError(f"{path} has {size:,} bytes; at most {largest:,} are read")
        return path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in its name
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{path} cannot be read: {reason}") from error


def text_of(path: Path, largest: int = LARGEST) -> str:
    """The text of a file, with the line ends of Unix.

    Raises UsageError as `bytes_of` does, and for what is not UTF-8.
    """
    try:
        text = bytes_of(path, largest).decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: {error}; save it as UTF-8") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def json_of(text: str | bytes, where: object) -> Any:
    """Parsed JSON, whose values nothing is known of.

    Raises UsageError, which names `where`, for what is torn or nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise UsageError(f"{where} is no whole JSON: it is nested too deeply") from error
    except ValueError as error:
        raise UsageError(f"{where} is no whole JSON: {error}") from error


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


def _fault(value: Any, depth: int, count: int) -> str:
    """What is wrong with a value, without what it holds."""
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

    Raises UsageError for a file that cannot be read.
    """
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(_LINE):
                number += 1
                whole = line.endswith(b"\n") or len(line) < _LINE
                yield number, line if whole else None
                while not whole:
                    rest = file.readline(_LINE)
                    whole = rest.endswith(b"\n") or len(rest) < _LINE
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
