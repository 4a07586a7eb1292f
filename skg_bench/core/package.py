"""Packages: the version and places of this one, and digests of the code of others that a run plays.

Configuration and data of this one lie beside it in a checkout, inside it in a wheel.

What counts of somebody else's code follows from its text, whatever else this process imported: the modules that it
names in `import` statements, and those that they name, as long as nobody installed them. A package counts with all its
files, so prompts and tables belong into it. Not seen are modules whose name is computed, files beside a single module,
compiled files, and installed packages, but for one that is itself named.
"""

import os
import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import blocks_of, bytes_of, stamp

VERSION = "0.2.0"
PACKAGE = Path(__file__).resolve().parents[1]


def _find(name: str) -> Path:
    inside = PACKAGE / f"_{name}"
    return inside if inside.is_dir() else PACKAGE.parent / name


CONF = _find("conf")
DATA = _find("data")
EXPERIMENTS = _find("experiments")
_BOOK = ".v2.json"
CHECKOUT = DATA.parent
_INSTALLED = ("site-packages", "dist-packages")
_COMPILED = (".pyc", ".pyo", ".so", ".pyd", ".dylib")
_NO_SOURCE = ("__pycache__", "node_modules")  # folders


def experiment_module(name: str, folder: Path = EXPERIMENTS) -> str:
    """Package of an experiment, or of a bench, which stands one folder lower."""
    return f"experiments.bench.{name}" if (folder / "bench" / name).is_dir() else f"experiments.{name}"


def named_books() -> dict[str, Path]:
    """Files of the skillbooks that come with the package, by name."""
    return {file.name.removesuffix(_BOOK): file for file in sorted(DATA.glob(f"*/*{_BOOK}"))}


# ------------------------------------------------------------------------------------------------ code of others


def places_of(name: str, beside: Path | None = None) -> Sequence[Path]:
    """Folders of a package, or the file of a module, by its name without dots: those that are imported, or those that
    Python or, last, a folder `beside` would give. Empty: there is none, or it is built in.
    """
    module = sys.modules.get(name)
    if name == "__main__":
        return ()
    if isinstance(module, ModuleType):
        folders, file = vars(module).get("__path__", ()), vars(module).get("__file__")
    else:
        folders, file = _not_imported(name, beside)
    # a namespace package has a folder twice where sys.path has, and installers add entries that are no folders
    places = dict.fromkeys(Path(place).resolve() for place in tuple(folders) or filter(None, (file,)))
    return tuple(place for place in places if place.exists())


def _not_imported(name: str, beside: Path | None) -> tuple[Iterable[str], str]:
    """Folders of a package, and the file of a module."""
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is not None:
        return spec.submodule_search_locations or (), str(spec.origin) if spec.has_location else ""
    near = beside / name if beside else None
    if near and near.is_dir():
        return (str(near),), ""
    return (), f"{near}.py" if near and near.with_name(f"{name}.py").is_file() else ""


def files_of(place: Path) -> Sequence[Path]:
    """Files of a package's folder in order, or the file of a module. Caches, compiled and hidden files, environments
    and runs are left out.
    """
    if not place.is_dir():
        return (place,)
    files = list[Path]()
    for folder, inner, names in os.walk(place):
        if _apart(folder, inner, names):
            inner.clear()
            continue
        inner[:] = [name for name in inner if name not in _NO_SOURCE and not name.startswith(".")]
        files += (Path(folder) / name for name in names if not name.startswith(".") and not name.endswith(_COMPILED))
    return tuple(sorted(file for file in files if file.is_file()))


def _apart(folder: str, inner: Sequence[str], names: Sequence[str]) -> bool:
    """Is a folder an environment, a run, or the one in which runs lie?"""
    runs = Path(folder).name == "runs" and not any(name.endswith(".py") for name in names)
    return runs or "pyvenv.cfg" in names or ("manifest.json" in names and "turns" in inner)


def content_digest(file: Path) -> str:
    """Digest of a file; of one in Python see `python_texts`."""
    return _read([file])[0].digest if file.suffix == ".py" else _data(*stamp(file))


def python_texts(files: Sequence[Path]) -> list[bytes]:
    """Contents of Python files as they were when they were first asked for, as Python, too, keeps its modules; as they
    are if their modules were loaded again since (importlib.reload, a notebook's autoreload).
    """
    return [known.content for known in _read(files)]


@dataclass(slots=True)
class _PythonFile:
    """Python file as this process read it."""

    content: bytes
    digest: str
    imports: frozenset[str]
    stamp: tuple[str, int, int]
    spec: ModuleSpec | None  # of the module that is imported from it, which another load replaces; None: there is none


_FILES: dict[Path, _PythonFile] = {}
_EDITED: dict[Path, None] = {}  # files that were asked for, and have another text than their modules


def _read(files: Sequence[Path]) -> list[_PythonFile]:
    """Python files, which are looked for among the modules together: there are thousands of these."""
    stamps = {file: stamp(file) for file in files}
    changed = [file for file, now in stamps.items() if _may_differ(_FILES.get(file), now)]
    specs = _specs(changed)
    for file in changed:
        known, spec = _FILES.get(file), specs.get(file)
        if known is not None and (spec is None or spec is known.spec):
            _EDITED[file] = None
            continue
        content = bytes_of(file)
        digest, imports = sha256(content).hexdigest(), imports_in(content)
        _FILES[file] = _PythonFile(content, digest, imports, stamps[file], spec)
    return [_FILES[file] for file in files]


def _may_differ(known: _PythonFile | None, now: tuple[str, int, int]) -> bool:
    """Is a file not known, or may its module have been loaded again?"""
    return known is None or (now != known.stamp and known.spec is not None)


def _specs(files: Iterable[Path]) -> dict[Path, ModuleSpec]:
    """Specs of the modules that are imported from files."""
    names, specs = {file.name for file in files}, dict[Path, ModuleSpec]()
    modules: Sequence[object] = tuple(sys.modules.values()) if names else ()
    for module in modules:
        kept = vars(module) if isinstance(module, ModuleType) else {}
        place, spec = kept.get("__file__"), kept.get("__spec__")
        if isinstance(place, str) and place.rpartition(os.sep)[2] in names and isinstance(spec, ModuleSpec):
            specs[Path(place).resolve()] = spec
    return specs


def note_imports() -> None:
    """Modules were imported from files that were read before: from now on it is seen when these are loaded again."""
    waiting = [file for file, known in _FILES.items() if known.spec is None]
    for file, spec in _specs(waiting).items():
        if file in _FILES:
            _FILES[file].spec = _FILES[file].spec or spec


def edited_files() -> Sequence[Path]:
    """Files of imported modules that were asked for since the last call, and edited since this process read them, and
    not loaded again.
    """
    files = tuple(_EDITED)
    _EDITED.clear()
    return files


@cache
def _data(place: str, _time: int, _size: int) -> str:
    digest = sha256()
    try:
        for block in blocks_of(place):
            digest.update(block)
    except OSError as error:
        raise UsageError(
            f"{place} cannot be read ({error.strerror or error}), and all files of a package are part of a run's "
            "identity; make it readable, or move it out of the package"
        ) from error
    return digest.hexdigest()


def imports_in(text: str | bytes) -> frozenset[str]:
    """Modules, without what follows a dot, that a Python text names in imports. A text that is no Python has none."""
    import ast

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a text that is somebody else's
            waiting: list[ast.AST] = [ast.parse(text)]
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    names = set[str]()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(str(node.module))
        statements = ast.stmt | ast.excepthandler | ast.match_case  # no expression holds an import
        waiting += (each for each in ast.iter_child_nodes(node) if isinstance(each, statements))
    return frozenset(name.partition(".")[0] for name in names)


def imported_digest(names: Iterable[str], beside: Path, but: str = "") -> str:
    """Digest of the modules of these names, except `but`, that nobody installed, and of all that they import in turn.
    Empty: there are none. `beside`: a folder in which they may lie though Python does not find them.
    """
    waiting, known = [(name, beside) for name in sorted(names)], {but: ""}
    while waiting:
        name, folder = waiting.pop()
        if name in known:
            continue
        known[name] = ""
        for place in filter(_own, places_of(name, folder)):
            known[name] += _listed(place)
            waiting += ((each, place.parent) for each in sorted(_imports_of(place)))
    lines = [f"{name}\n{known[name]}" for name in sorted(known) if known[name]]
    return sha256("\0".join(lines).encode()).hexdigest() if lines else ""


def beyond_package(name: str) -> str:
    """Digest of what a package or module imports of others that nobody installed. Empty: nothing."""
    places = [place for place in places_of(name) if _own(place)]
    return imported_digest(set().union(*map(_imports_of, places)), places[0].parent, name) if places else ""


def beyond_file(file: Path, name: str) -> str:
    """Digest of what counts beside the file of a function: the module `name`, if it is more than this file, and what is
    imported. Empty: nothing.
    """
    alone = places_of(name) == (file.resolve(),)
    return imported_digest(imports_in(bytes_of(file)) if alone else [name], file.parent, name if alone else "")


def files_named(command: Sequence[str]) -> list[Path]:
    """Files that words of a command name, in order; the first word only if it lies below the current directory: another
    one is an interpreter, or installed.
    """
    first = [Path(word) for word in command[:1] if Path(word).resolve().is_relative_to(Path.cwd())]
    named = [*first, *(Path(word.rpartition("=")[2]) for word in command[1:])]
    return [path for path in named if path.is_file()]


def program_digest(file: Path) -> str:
    """Digest of a file that starts a program, as it is now, and, of one in Python, of the modules and packages beside
    it that it imports, and that these do.
    """
    waiting, known, folder = [file.resolve()], dict[Path, str](), file.resolve().parent
    while waiting:
        if (place := waiting.pop()) in known:
            continue
        content = bytes_of(place)
        known[place] = sha256(content).hexdigest()
        names = imports_in(content) if place.suffix == ".py" else ()
        waiting += (module for name in names if (module := folder / f"{name}.py").is_file())
        waiting += (inner for name in names if (folder / name).is_dir() for inner in files_of(folder / name))
    lines = (f"{place.relative_to(folder).as_posix()}\0{known[place]}" for place in sorted(known))
    return sha256("\n".join(lines).encode()).hexdigest()


def within_package(place: Path) -> bool:
    """Does a file or folder belong to this package, whose own digest is that of the code?"""
    return place.is_relative_to(PACKAGE) or place.is_relative_to(EXPERIMENTS)


def _own(place: Path) -> bool:
    """Is it somebody's own, and not installed?"""
    installed = any(part in _INSTALLED for part in place.parts) or any(map(place.is_relative_to, _library()))
    return not installed and not within_package(place)


@cache
def _library() -> Sequence[Path]:
    from sysconfig import get_path  # it reads files, and few commands play code of others

    return tuple(Path(get_path(name)).resolve() for name in ("stdlib", "platstdlib"))


def _listed(place: Path) -> str:
    root, files = place if place.is_dir() else place.parent, files_of(place)
    _read(_python_of(files))
    return "".join(f"{file.relative_to(root).as_posix()}\0{content_digest(file)}\n" for file in files)


def _imports_of(place: Path) -> frozenset[str]:
    return frozenset[str]().union(*(known.imports for known in _read(_python_of(files_of(place)))))


def _python_of(files: Iterable[Path]) -> list[Path]:
    return [file for file in files if file.suffix == ".py"]
