"""Processes that this one starts, and marks of a process that wrote a file: does it still exist?

Children import nothing from the current folder, and see named variables only. Python looks for modules in the current
folder first where it is told `-c`, as each process of `multiprocessing` is: a file `multiprocessing.py` that lies there
would be run. And a process that simulates or delivers needs no secret but its own.
"""

import gc
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any

from skg_bench.core.foreign import raw_bytes

_COLLECTIONS = (10_000, 20, 100)  # objects, collections of the young, and of the middle ones before the next of each
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
_PIDS = 2**31  # process numbers are below; larger ones are another program's
_STATE, _START = 0, 19  # fields 3 and 22 of /proc/PID/stat, counted from the one after the program's name
_DEAD = "ZX"  # states of a killed process that its parent has not read yet: it holds nothing any more


def environment(variables: Collection[str] = ()) -> dict[str, str]:
    """Variables that a child sees: those of `NAMED`, and `variables`, which are written alike."""
    names = frozenset((*NAMED, *variables))
    starts = tuple(name for name in names if name.endswith("_"))
    kept = {name: value for name, value in os.environ.items() if name in names or name.startswith(starts)}
    return {**kept, **SAFE}


def collect_seldom() -> None:
    """Look for cyclic garbage less often: by default a command spends a tenth of its CPU time looking at what it
    imported. Hardly anything here is cyclic, so a run needs no more memory.
    """
    gc.set_threshold(*_COLLECTIONS)


def load_pandas_late() -> None:
    """Keep pyarrow from importing pandas only to see whether a list is a Series: 0.17 s of CPU time of each process.

    As soon as it is imported it is asked once, while there seems to be no pandas. It is told when somebody else imports
    pandas: from then on it takes Series for what they are.
    """
    if not {"pandas", "pyarrow"}.intersection(sys.modules):
        sys.meta_path.insert(0, _ArrowAndPandas())


class _ArrowAndPandas(MetaPathFinder):
    """Finds both as ever, and does something right after each is imported."""

    hidden = False  # pandas, while pyarrow is asked

    def find_spec(self, name: str, path: Any, _target: Any = None) -> ModuleSpec | None:
        if name == "pandas" and self.hidden:
            raise ModuleNotFoundError(name=name)
        then = {"pandas": _tell_arrow_of_pandas, "pyarrow": self.show_arrow_no_pandas}.get(name)
        if not then:
            return None
        specs = (finder.find_spec(name, path) for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, specs), None)
        if spec and spec.loader:
            spec.loader = _Followed(spec.loader, then)
        return spec

    def show_arrow_no_pandas(self) -> None:
        if "pandas" in sys.modules:  # which imports pyarrow itself, and is not ready yet
            return
        import pyarrow as pa

        self.hidden = True
        try:
            pa.array([])
        finally:
            self.hidden = False


@dataclass(frozen=True)
class _Followed(Loader):
    """Loads a module as its own loader does, after which something else is done."""

    own: Loader
    then: Callable[[], None]

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self.own
        if module.__spec__:
            module.__spec__.loader = self.own
        self.own.exec_module(module)
        self.then()


def _tell_arrow_of_pandas() -> None:
    if "pyarrow" in sys.modules:
        from pyarrow.lib import _pandas_api

        _ = _pandas_api.pd  # where pandas is wanted, it is looked for again


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


@dataclass(frozen=True)
class Owner:
    """A process, in words that no other process ever has: not a later one of the same number, nor one of another
    container whose host name is the same.
    """

    host: str  # letters, digits and hyphens
    process: int
    start: str  # in clock ticks since the boot; empty where there is no /proc
    machine: str  # this boot and the namespace of process numbers; empty where there is no /proc


def this_process() -> Owner:
    """The calling process. It is looked up at each call, as a forked process is another one."""
    pid = os.getpid()
    host = re.sub(r"[^A-Za-z0-9]+", "-", socket.gethostname()).strip("-")[:40] or "unknown"
    return Owner(host, pid, (_stat(pid) or ("", ""))[1], _machine(pid))


def alive(owner: Owner) -> bool | None:
    """Does a process exist? None where this process cannot know.

    It knows for processes of this machine and of its own namespace. The host name must agree as well: copies of a
    virtual machine that was saved while it ran share the boot and the numbers.
    """
    here = this_process()
    if not here.machine or (owner.host, owner.machine) != (here.host, here.machine):
        return None
    if not 0 < owner.process < _PIDS:
        return None
    stat = _stat(owner.process)
    if stat is not None and owner.start:
        state, start = stat
        return start == owner.start and state not in _DEAD
    try:  # /proc can hide processes of other users
        os.kill(owner.process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return None
    return None


def _machine(pid: int) -> str:
    """Empty also where /proc shows the processes of another namespace: their numbers mean other processes."""
    with suppress(OSError):
        if Path("/proc/self").readlink().name == str(pid):
            boot = raw_bytes("/proc/sys/kernel/random/boot_id").decode("ascii").strip()
            return f"{boot} {Path('/proc/self/ns/pid').stat().st_ino}"
    return ""


def _stat(pid: int) -> tuple[str, str] | None:
    """State and start of a process; None where there is none or /proc does not show it."""
    with suppress(OSError, IndexError):
        fields = raw_bytes(f"/proc/{pid}/stat").rpartition(b")")[2].decode("ascii").split()
        return fields[_STATE], fields[_START]
    return None
