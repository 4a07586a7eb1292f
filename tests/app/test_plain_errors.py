"""What errors end as: a message and an exit code. A lack of memory does, whichever library says it, and however."""

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import typer

from skg_bench.app import commands, memory_limit, run_check
from skg_bench.app.plain_errors import plain_errors
from skg_bench.runfolder.run import Run
from tests.app.test_cli import COMMAND, call, refused
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
    for resumes, end in (True, "; what was written before is kept, and the same command goes on from there\n"), (
        False, "or lower cohort and workers\n",
    ):  # fmt: skip
        with pytest.raises(typer.Exit) as left, plain_errors(resumes=resumes):
            raise error
        assert left.value.exit_code == 2
        said = capsys.readouterr().err
        assert said.startswith("error: there is not enough memory (")
        assert said.endswith(end)


@pytest.mark.parametrize("error", [ImportError("no such name"), RuntimeError("a mistake"), OSError(errno.EBADF, "bad")])
def test_other_errors_keep_their_traceback(error: Exception) -> None:
    with pytest.raises(type(error)), plain_errors():
        raise error


WORDS = [
    ["compare", "run"], ["report", "run"], ["skills", "run"], ["run", "--check", "run"], ["run", "--dry-run"],
    ["init", "log", "mine"],
]  # fmt: skip


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
@pytest.mark.parametrize(
    ("error", "code", "said"),
    [(KeyboardInterrupt(), 130, "\ninterrupted\n"), (OSError(errno.EACCES, "denied", "f"), 2, "error: f: denied\n")],
)
def test_a_command_that_begins_anew_does_not_say_that_it_goes_on(
    words: list[str], error: BaseException, code: int, said: str, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise error

    Path("run").mkdir()
    Path("run/manifest.json").touch()
    for target, name in (
        (Run, "__init__"), (run_check, "_checked"), (commands, "_composed"), (tempfile, "TemporaryDirectory"),
    ):  # fmt: skip
        monkeypatch.setattr(target, name, failing)
    assert call(*words) == (code, "", said if words[0] != "init" else said.replace("f:", "mine:"))


def test_a_log_that_cannot_be_read_is_named_and_nothing_was_written_before(elsewhere: Path) -> None:
    name = f"{'x' * 300}.csv"
    for words in ["run", name], ["data", "check", name]:
        assert refused(*words) == f"error: {name}: File name too long\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("words", [["--help"], ["--version"], ["run", "--help"]], ids=" ".join)
def test_what_fits_on_no_disk_is_said_without_a_traceback(words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*COMMAND, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "error: No space left on device\n")


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
