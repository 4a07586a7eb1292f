"""What a user can cause ends as one message and an exit code, without a traceback."""

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from shutil import get_terminal_size

import typer

from skg_bench.core.errors import BudgetReached, UsageError
from skg_bench.core.text import printable, wrapped

_DISK = (
    errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EPERM, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOTDIR,
    errno.ENAMETOOLONG, errno.ENOENT, errno.EISDIR, errno.EEXIST,
)  # fmt: skip


_LONGEST = 10_000  # characters of an error


@contextmanager
def plain_errors() -> Iterator[None]:
    """What a user can cause ends as one message and exit code 2; a budget that is reached as 3, an interrupt as 130."""
    try:
        yield
    except BudgetReached as error:
        _tell(f"stopped: {error}")
        raise typer.Exit(3) from error
    except UsageError as error:
        _tell(f"error: {error}")
        raise typer.Exit(2) from error
    except KeyboardInterrupt as error:
        _tell("\ninterrupted; what was finished is kept: the same command goes on from there")
        raise typer.Exit(130) from error
    except OSError as error:
        if error.errno not in _DISK:
            raise
        prefix = f"{error.filename}: " if error.filename else ""
        _tell(
            f"error: {prefix}{error.strerror or error}; what was written before is kept: once that is mended, the same "
            "command goes on from there; out=FOLDER writes elsewhere"
        )
        raise typer.Exit(2) from error


def _tell(text: str) -> None:
    """On standard error, broken between words on a terminal; an error quotes what it is about."""
    text = printable(text)
    if len(text) > _LONGEST:  # an error quotes what stands in a file
        text = f"{text[: _LONGEST // 2]} [...] {text[-_LONGEST // 2 :]}"
    typer.echo(wrapped(text, get_terminal_size().columns) if sys.stderr.isatty() else text, err=True)
