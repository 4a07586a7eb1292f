"""What all tests share: their order, and the way to datasets of others."""

import fcntl
import gc
import json
import os
import pickle
import shutil
import sys
import typing
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from hashlib import sha256
from io import StringIO
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext

ROOT = Path(__file__).resolve().parents[1]
FIRST = (  # below tests/, the longest tests of all before the many that take a second
    "laws/test_same_bits.py", "laws/test_shoppers.py", "laws/test_contents.py", "laws/test_texts.py",
    "laws/test_known_advice.py", "laws", "conformance", "app",
)  # fmt: skip
for library in ("OPENBLAS", "OMP"):  # before numpy is imported: threads that wait for one another take the other cores
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")  # a busy machine fails no test


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests come first: with `--dist worksteal` an idle worker takes over what another one would do last."""

    def place(item: pytest.Item) -> int:
        file = item.path.relative_to(ROOT / "tests").as_posix()
        return next((i for i, name in enumerate(FIRST) if file.startswith(name)), len(FIRST))

    items.sort(key=place)


def pytest_collection() -> None:
    """Garbage waits until all tests are collected, of 15 s of CPU time 4."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Modules and 8,500 tests stay to the end: 750,000 objects that each full collection would look at in vain, which
    took a twentieth of the CPU time of tests. What comes later is looked at as in a command, which saves as much again.
    """
    gc.enable()
    gc.collect()
    gc.freeze()
    from skg_bench.core import processes

    processes.collect_seldom()


@pytest.fixture(scope="session", autouse=True)
def _wide() -> None:
    """Commands print as into a file, 160 characters wide; pytest-xdist tells its workers that they have 80."""
    os.environ.pop("COLUMNS", None)


@pytest.fixture(scope="session", autouse=True)
def _unsynchronized() -> None:
    """Files are not forced onto the disk, 5 ms each, 300 in a run of the laws: no test cuts the power."""
    os.fsync = lambda fd: None


@pytest.fixture(scope="session", autouse=True)
def _parsed_once() -> None:
    """Each call of Hydra parses the same 22 yaml files, a third of its time; a test process makes hundreds of calls."""
    import yaml

    load = yaml.load
    known: dict[str, bytes] = {}

    def loaded(stream: Any, Loader: Any) -> Any:  # noqa: N803  as PyYAML calls it
        if Loader.__name__ != "OmegaConfLoader" or isinstance(stream, str | bytes):
            return load(stream, Loader)
        text = stream.read()
        if text not in known:
            again = StringIO(text)
            again.name = stream.name  # stands in errors
            known[text] = pickle.dumps(load(again, Loader))
        return pickle.loads(known[text])  # noqa: S301  pickled here

    yaml.load = loaded


@pytest.fixture(scope="session", autouse=True)
def _composed_once(session_folder: Path) -> None:
    """A call of Hydra takes 0.1 s, and test processes ask for the same 500 trees: what one composed, others read."""
    from skg_bench.app import hydra_trees

    module: Any = hydra_trees
    compose = module._composed

    def stamp(file: Path, folder: Path) -> tuple[Path, float] | tuple[Path, bytes]:
        """Of a file that a test wrote, what it says: other tests write the same elsewhere."""
        own = file.is_relative_to(ROOT)
        return (file, file.stat().st_mtime) if own else (file.relative_to(folder), file.read_bytes())

    def composed(root: str | None, overrides: Sequence[str]) -> Any:
        folders = [package.conf for package in module.packages()]
        files = [str(stamp(file, folder)) for folder in folders for file in sorted(folder.rglob("*.yaml"))]
        choices = [override for override in overrides if not override.startswith("hydra.searchpath=")]
        place = session_folder / "trees" / sha256(repr((root, choices, files)).encode()).hexdigest()
        if place.exists():
            return pickle.loads(place.read_bytes())  # noqa: S301  a test process pickled it just now
        tree, half = compose(root, overrides), place.with_suffix(f".{os.getpid()}")
        place.parent.mkdir(exist_ok=True)
        half.write_bytes(pickle.dumps(tree))
        half.rename(place)
        return tree

    module._composed = composed


@pytest.fixture(scope="session", autouse=True)
def _hashed_once() -> None:
    """Each run hashes the 18,000 messages of the corpus twice, and reads and checks their vectors: 80 of the 500 ms of
    CPU time that a small one takes.
    """
    from skg_bench.core import texts
    from skg_bench.embedder import precomputed

    texts.text_hash = precomputed.text_hash = lru_cache(maxsize=1 << 17)(texts.text_hash)  # type: ignore[attr-defined]
    read = precomputed.VectorFile.vectors
    known: dict[tuple[str, int, int, str], Any] = {}

    def vectors(file: precomputed.VectorFile) -> Any:
        stat = file.file(".npy").stat()
        key = (str(file.file(".npy").resolve()), stat.st_mtime_ns, stat.st_size, repr(file.description))
        if key not in known:
            known[key] = read(file)
            known[key].setflags(write=False)
        return known[key]

    precomputed.VectorFile.vectors = vectors  # type: ignore[assignment, method-assign]


@pytest.fixture(scope="session", autouse=True)
def _embedded_once() -> Iterator[None]:
    """Vectors of `embedder=hashing` too: those of 54,000 messages take 0.7 s."""
    from tests.embedded import hashed_once

    with hashed_once():
        yield


@pytest.fixture(scope="session", autouse=True)
def _committed_once() -> None:
    """Each run asks git three times about this checkout, which takes 15 ms; other checkouts are asked each time."""
    from skg_bench.app import run_identity

    ask = run_identity._git
    known = cache(ask)
    run_identity._git = lambda folder, *words: (known if folder == ROOT / "skg_bench" else ask)(folder, *words)


@pytest.fixture(scope="session", autouse=True)
def _protocols_once() -> None:
    """Python 3.11 collects the members of a Protocol at each `isinstance`, a thirtieth of a small run; later versions
    do it once.
    """
    if sys.version_info < (3, 12):
        typing._get_protocol_attrs = cache(typing._get_protocol_attrs)  # type: ignore[attr-defined]


@pytest.fixture(scope="session", autouse=True)
def _commands_once() -> None:
    """Each call of a command builds all 28, which takes 13 ms of CPU time."""
    from typer import testing

    testing._get_command = cache(testing._get_command)  # type: ignore[attr-defined]


@pytest.fixture(scope="session", autouse=True)
def _alone() -> None:
    """Runs of this process start no other one unless they name `workers` or a profile: the default is two, each of
    which takes longer to start than the run of a test takes.
    """
    from skg_bench.app.compose import Composer

    compose = Composer.root

    def root(composer: Composer, overrides: Sequence[Any]) -> dict[str, Any]:
        named = any(override.path in ("workers", "profile") for override in overrides)
        return compose(composer, overrides) | ({} if named else {"workers": 1})

    Composer.root = root  # type: ignore[assignment, method-assign]


@pytest.fixture(scope="session", autouse=True)
def _workers_forked() -> Iterator[None]:
    """Workers of runs of this process import nothing anew, most of a small one's time; with `fresh_workers` they do."""
    from skg_bench.launcher import local
    from tests.processes import ForkedWorkers, end_forks

    module: Any = local
    module.get_context = lambda _method: ForkedWorkers()
    yield
    end_forks()


@pytest.fixture
def fresh_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of runs of this process start as those of a command."""
    from skg_bench.launcher import local

    monkeypatch.setattr(local, "get_context", get_context)


@pytest.fixture(scope="session")
def forked() -> "ForkServerContext":
    """A context of multiprocessing whose processes import nothing anew."""
    from tests.processes import forks

    return forks()


@pytest.fixture(scope="session")
def forked_trackers(forked: "ForkServerContext") -> Callable[[pytest.MonkeyPatch], None]:
    """Have trackers work in such processes."""
    from skg_bench.app import run_trackers

    return lambda patch: patch.setattr(run_trackers, "get_context", lambda _method: forked)


@pytest.fixture
def bare() -> Iterator[None]:
    """Runs of this process end without tables and page, which the test does not look at."""
    from tests.runs import logs_alone

    with logs_alone():
        yield


@pytest.fixture(scope="session")
def session_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all test processes of a session have in common."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def once(session_folder: Path) -> Callable[[str, Callable[[Path], object]], Path]:
    """`once(name, make)`: a folder that `make(folder)` fills once for all test processes of a session; others wait for
    it. Tests read what is there, and copy it before they change it.
    """

    def folder(name: str, make: Callable[[Path], object]) -> Path:
        made, ended = session_folder / "once" / name, session_folder / "once" / f"{name}.ended"
        made.parent.mkdir(exist_ok=True)
        with (session_folder / "once" / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not ended.exists():
                shutil.rmtree(made, ignore_errors=True)  # of a test process that was killed
                make(made)
                ended.touch()
        return made

    return folder


@pytest.fixture(scope="session")
def refused(once: Callable[[str, Callable[[Path], object]], Path]) -> dict[str, str]:
    """Reasons by experiment not to count its findings. What these were made of is composed once, which takes 10 s."""
    from skg_bench.app.claim_inputs import refusals

    def make(folder: Path) -> None:
        folder.mkdir()
        (folder / "refused.json").write_text(json.dumps(refusals(ROOT / "reports" / "claims")), "utf-8")

    reasons: dict[str, str] = json.loads((once("refused", make) / "refused.json").read_text("utf-8"))
    return reasons


@pytest.fixture(scope="session")
def published() -> Callable[[str], Path]:
    """Folder of a dataset by its name in `data/manifest.toml`: $SKG_BENCH_SHARED/datasets, default ../shared, or where
    `skg-bench data get` puts it.

    Absent: the test is skipped, and in CI it fails.
    """
    from skg_bench.simulator.datasets import datasets

    def folder(name: str) -> Path:
        dataset = datasets()[name]
        shared = Path(os.environ.get("SKG_BENCH_SHARED", ROOT.parent / "shared")) / "datasets" / name
        fetched = next(iter(dataset.files))
        homes = (shared, dataset.locations(fetched)[-1].parents[fetched.count("/")])
        for home in homes:
            if all((home / file).is_file() for file in dataset.files):
                return home
        missing = f"dataset {name} is absent; get it: skg-bench data get {name}"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)

    return folder
