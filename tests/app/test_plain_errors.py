"""What a lack of memory ends as: a message and exit code 2, whichever library says it, and however."""

import errno
import os
import subprocess
import sys

import pytest
import typer

from skg_bench.app import memory_limit
from skg_bench.app.plain_errors import plain_errors
from tests.processes import needs_proc


def raised_by(error: BaseException, cause: BaseException | None) -> BaseException:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        ImportError("_flapack.so: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
        raised_by(ImportError("scipy is broken"), MemoryError()),
    ],
    ids=str,
)
def test_a_lack_of_memory_is_a_message(error: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as left, plain_errors():
        raise error
    assert left.value.exit_code == 2
    said = capsys.readouterr().err
    assert said.startswith("error: there is not enough memory (")
    assert said.endswith("what was written before is kept, and the same command goes on from there\n")


@pytest.mark.parametrize("error", [ImportError("no such name"), RuntimeError("a mistake"), OSError(errno.EBADF, "bad")])
def test_other_errors_keep_their_traceback(error: Exception) -> None:
    with pytest.raises(type(error)), plain_errors():
        raise error


def limited(mib: int) -> "subprocess.CompletedProcess[str]":
    """`compare` of a folder that is not there, in a shell with a limit."""
    command = f"ulimit -v {mib << 10}; exec {sys.executable} -P -m skg_bench compare nothing"
    return subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False, timeout=60)


@needs_proc
@pytest.mark.parametrize("mib", [180, 300])
def test_a_limit_below_what_the_libraries_need_is_said_before_they_are_imported(mib: int) -> None:
    """SciPy does not load under the first one; under the second one OpenBLAS tries for ever to get a buffer."""
    done = limited(mib)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: the limit of this shell on memory is {mib} MiB (ulimit -v)")
    assert "ulimit -v 1048576, or ulimit -v unlimited" in done.stderr


@needs_proc
def test_the_least_limit_is_enough() -> None:
    assert "nothing is no run directory" in limited(memory_limit.LEAST_MAPPED >> 20).stderr


def test_under_a_limit_libraries_get_one_thread_unless_a_person_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "x")  # so that it is as before in the end
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    memory_limit.check_limit()
    assert memory_limit.limit() is not None or "OPENBLAS_NUM_THREADS" not in os.environ
    monkeypatch.setattr(memory_limit, "limit", lambda: memory_limit.LEAST_MAPPED)
    memory_limit.check_limit()
    assert (os.environ["OPENBLAS_NUM_THREADS"], os.environ["OMP_NUM_THREADS"]) == ("1", "3")
