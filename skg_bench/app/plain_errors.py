"""Errors that a user can cause end as one message and an exit code, without a traceback."""

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from shutil import get_terminal_size

import typer

from skg_bench.app import memory_limit
from skg_bench.core.errors import BudgetReached, UsageError
from skg_bench.core.text import printable, wrapped

_DISK = (
    errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EPERM, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOTDIR,
    errno.ENAMETOOLONG, errno.ENOENT, errno.EISDIR, errno.EEXIST,
)  # fmt: skip


_LONGEST = 10_000  # characters of an error
_NO_MEMORY = (  # what the loader and threads say of it
    "failed to map segment", "cannot allocate memory", "Cannot allocate memory", "can't start new thread",
)  # fmt: skip


@contextmanager
def plain_errors(*, resumes: bool = False, elsewhere: str = "") -> Iterator[None]:
    """Errors that a user can cause end as one message and exit code 2, a reached budget as 3, an interrupt as 130.

    `resumes`: the same command goes on where it stopped. `elsewhere`: option by which it writes to another place.
    """
    try:
        yield
    except BudgetReached as error:
        _tell(f"stopped: {error}")
        raise typer.Exit(3) from error
    except UsageError as error:
        _tell(f"error: {error}")
        raise typer.Exit(2) from error
    except KeyboardInterrupt as error:
        _tell("\ninterrupted" + ("; what was finished is kept: the same command goes on from there" if resumes else ""))
        raise typer.Exit(130) from error
    except (MemoryError, ImportError, RuntimeError) as error:
        if not _of_memory(error):
            raise
        _tell(_memory(error, resumes=resumes))
        raise typer.Exit(2) from error
    except OSError as error:
        if error.errno == errno.ENOMEM:
            _tell(_memory(error, resumes=resumes))
            raise typer.Exit(2) from error
        if error.errno not in _DISK:
            raise
        message = _of_disk(error)
        if resumes:
            message += "; what was written before is kept: once that is mended, the same command goes on from there"
        if elsewhere:
            message += f"; {elsewhere} writes elsewhere"
        _tell(f"error: {message}")
        raise typer.Exit(2) from error


@contextmanager
def nothing_written() -> Iterator[None]:
    """Errors of the disk in the block become UsageErrors: a command that resumes has nothing to go on from yet."""
    try:
        yield
    except OSError as error:
        if error.errno not in _DISK:
            raise
        raise UsageError(_of_disk(error)) from error


def _of_disk(error: OSError) -> str:
    return f"{f'{error.filename}: ' if error.filename else ''}{error.strerror or error}"


def _of_memory(error: BaseException | None) -> bool:
    """Is it, or what it came from, a lack of memory? A library that cannot be mapped is no broken one."""
    return error is not None and (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        or any(words in str(error) for words in _NO_MEMORY)
        or _of_memory(error.__cause__ or error.__context__)
    )


def _memory(error: BaseException, *, resumes: bool) -> str:
    limit = memory_limit.limit()
    bound = "" if limit is None else f" The limit of this shell is {limit >> 20:,} MiB (ulimit -v)."
    reason = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
    return (
        f"error: there is not enough memory ({reason}).{bound} Raise the limit, close other programs, or lower cohort "
        f"and workers{'; what was written before is kept, and the same command goes on from there' if resumes else ''}"
    )


def _tell(text: str) -> None:
    """Tells an error on standard error, broken between words on a terminal; it quotes what it is about."""
    text = printable(text)
    if len(text) > _LONGEST:  # an error quotes what stands in a file
        text = f"{text[: _LONGEST // 2]} [...] {text[-_LONGEST // 2 :]}"
    typer.echo(wrapped(text, get_terminal_size().columns) if sys.stderr.isatty() else text, err=True)
