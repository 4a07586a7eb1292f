"""Processes that this one starts: they import nothing from the current folder, and see named variables only.

Python looks for modules in the current folder first where it is told `-c`, as each process of `multiprocessing` is: a
file `multiprocessing.py` that lies there would be run. And a process that simulates or delivers needs no secret but its
own.
"""

import os
import signal
import sys
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

SAFE = {"PYTHONSAFEPATH": "1"}  # what `python -P` does, for a process and all that it starts
# Variables of each child by name, or by a beginning that ends with "_": what Python and its libraries need to be found,
# to find files and servers, and to use so many threads. None of them is a secret.
NAMED = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_", "TZ", "TERM", "COLUMNS", "TMPDIR", "TEMP", "TMP",
    "XDG_", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "SYSTEMROOT",
    "PYTHONHOME", "PYTHONUTF8", "PYTHONHASHSEED", "PYTHONIOENCODING", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX",
    "PYTHONNOUSERSITE", "PYTHONUSERBASE", "PYTHONWARNINGS", "PYTHONFAULTHANDLER", "PYTHONUNBUFFERED",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "OFFLINE", "SKG_BENCH_", "HF_HOME", "HF_ENDPOINT", "HF_HUB_", "HF_DATASETS_", "TRANSFORMERS_OFFLINE",
    "TOKENIZERS_PARALLELISM", "CUDA_", "NVIDIA_", "OPENBLAS_", "OMP_", "MKL_", "NPY_", "ARROW_", "KMP_", "NUMEXPR_",
    "MALLOC_ARENA_MAX", "COVERAGE_",
)  # fmt: skip


def environment(variables: Collection[str] = ()) -> dict[str, str]:
    """Variables that a child sees: those of `NAMED`, and `variables`, which are written alike."""
    names = frozenset((*NAMED, *variables))
    starts = tuple(name for name in names if name.endswith("_"))
    kept = {name: value for name, value in os.environ.items() if name in names or name.startswith(starts)}
    return {**kept, **SAFE}


def pipe() -> tuple[Connection, Connection]:
    """Both ends of a pipe to a child."""
    return get_context("spawn").Pipe()


@contextmanager
def starting(variables: Collection[str] = (), **more: str) -> Iterator[None]:
    """Processes that are started here, by `spawn`, are clean children. They see `variables` of this environment, and
    `more` variables with their values.

    They get no command line, which could be longer than a pipe holds, and are not reached by Ctrl-C, see
    `signals_held`.
    """
    words, path, before = sys.argv, sys.path, dict(os.environ)
    sys.argv, sys.path = words[:1], _path()
    try:
        _replace({**environment(variables), **more})
        with signals_held():
            yield
    finally:
        _replace(before)
        sys.argv, sys.path = words, path


def _replace(variables: Mapping[str, str]) -> None:
    """Make the environment be `variables`; those that stay are not touched."""
    for name in os.environ.keys() - variables.keys():
        del os.environ[name]
    os.environ.update({name: value for name, value in variables.items() if os.environ.get(name) != value})


def _path() -> list[str]:
    """Folders in which a child looks for modules: the current one last, and only if it was named.

    Python takes the empty entry for the current folder. It stands first in a notebook and under `python -c`.
    """
    here = Path.cwd().resolve()
    return sorted(filter(None, sys.path), key=lambda entry: Path(entry).resolve() == here)


@contextmanager
def signals_held() -> Iterator[None]:
    """Ctrl-C never reaches a process that is started here, which its parent ends, and interrupts the parent only after
    this block.

    A new process inherits the mask of signals. The mask does not hold signals back from this process, as they go to
    another one of its threads; so they are noted.
    """
    resource_tracker.ensure_running()  # its start would remove SIGINT from the mask
    noted: list[tuple[int, Any]] = []
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():  # signals are handled there, whichever thread gets them
        for signum in (signal.SIGINT, signal.SIGTERM):
            if callable(handler := signal.getsignal(signum)):
                before[signum] = handler
                signal.signal(signum, lambda *given: noted.append(given))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in before.items():
            signal.signal(number, handler)
        for given in noted:
            before[given[0]](*given)
