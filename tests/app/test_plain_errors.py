"""What a lack of memory ends as: a message and exit code 2, whichever library says it, and however."""

import errno
import subprocess
import sys

import pytest
import typer

from skg_bench.app.plain_errors import plain_errors
from tests.processes import needs_proc

_SHORT = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (SIZE, SIZE))
from skg_bench.app.plain_errors import plain_errors
with plain_errors():
    import scipy.stats
"""


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


@needs_proc
def test_where_the_limit_is_too_small_for_scipy_there_is_no_traceback() -> None:
    code = _SHORT.replace("SIZE", str(180 << 20))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60,
        env={"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert "there is not enough memory" in done.stderr, done.stderr
    assert "MiB (ulimit -v)" in done.stderr
