"""Classes of somebody else: where they come from, and the digest of their source text."""

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.metadata import packages_distributions, version
from inspect import getsource, unwrap
from linecache import getlines
from pathlib import Path
from pkgutil import resolve_name
from textwrap import dedent
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

from skg_bench.assistant.python.working_directory import unmoved
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import text_of
from skg_bench.core.package import (
    beyond_package,
    content_digest,
    files_of,
    imported_digest,
    imports_in,
    note_imports,
    places_of,
    python_texts,
    within_package,
)

_NOTEBOOK = "__main__"
_PLACE = re.compile(r" at 0x[0-9a-fA-F]+")
_PLAIN = (str, bytes, int, float, complex, bool, type(None), tuple, list, dict, set, frozenset, range)


@dataclass(frozen=True)
class ClassSource:
    """A class, by a dotted name that can be imported, or by a file and its text; and how its objects are made."""

    target: str  # `mine.cache.ExactCache`, or `ExactCache` in a file
    file: str | None
    text: str | None  # of the file
    parameters: Mapping[str, Any]
    imported: str = ""  # digest of what the file imports

    @staticmethod
    def of(target: str | None, file: str | None, parameters: Mapping[str, Any]) -> "ClassSource":
        """The class that a configuration names.

        Raises UsageError for one that is not there, and for what is no class.
        """
        if (target is None) == (file is None):
            given = "neither" if target is None else "both"
            raise UsageError(
                f"assistant=python was given {given} of target and file; give one: "
                "assistant.target=mine.cache.ExactCache, or assistant.file=my.py:ExactCache"
            )
        if file is None:
            source = ClassSource(str(target), None, None, parameters)
        else:
            path, _, name = file.rpartition(":")
            if not path or not name.isidentifier():
                raise UsageError(f"assistant.file={file!r} must read FILE:CLASS, such as my.py:ExactCache")
            text = text_of(Path(path))
            source = ClassSource(name, path, text, parameters, _imported_by(path, text))
        source.kind()
        note_imports()
        return source

    @property
    def name(self) -> str:
        """The class in words, for errors."""
        return self.target if self.file is None else f"{self.file}:{self.target}"

    @property
    def notebook(self) -> bool:
        """Was it defined in a notebook, or in the script that runs?"""
        return self.file is None and self.target.partition(":")[0] == _NOTEBOOK

    def kind(self) -> type:
        """The class.

        Raises UsageError where it cannot be found.
        """
        if self.file is not None:
            return _of_file(self.file, str(self.text), self.target, self.imported)
        return _found(self.target)

    def made(self) -> Any:
        """A new object, without memory.

        Raises UsageError for a class that takes other arguments.
        """
        try:
            return self.kind()(**self.parameters)
        except TypeError as error:
            if error.__traceback__ and error.__traceback__.tb_next:  # inside of the class
                raise
            given = f"with {', '.join(self.parameters)}" if self.parameters else "without arguments"
            raise UsageError(
                f"{self.name} cannot be made: TypeError: {error}; it is called {given}, and what it takes is given by "
                "assistant.parameters={NAME: VALUE}"
            ) from error

    def root(self) -> Path | None:
        """File of the class, or the folder or file of its package; None: it is of a notebook."""
        if self.file is not None:
            return Path(self.file).resolve()
        if self.notebook:
            return None
        return next(iter(places_of(self.kind().__module__.partition(".")[0])), None)

    def digest(self) -> str:
        """Digest of its source: the text of its file; all files of the package that it lies in; or, of a class in a
        notebook, its text and that of whatever it names there. What these import counts (core/package.py).

        Raises UsageError for a class whose text is not known.
        """
        if self.file is not None:
            return _hash([str(self.text), *filter(None, [self.imported])])
        if self.notebook:
            return _hash(_texts(self.kind()))
        return _of_package(self.kind().__module__.partition(".")[0])


def _hash(texts: Iterator[str] | list[str]) -> str:
    digest = sha256()
    for text in texts:
        digest.update(sha256(text.encode()).digest())
    return digest.hexdigest()


def _imported_by(path: str, text: str) -> str:
    return imported_digest(imports_in(text), Path(path).resolve().parent)


def _found(target: str) -> type:
    """A class by its name: the one that has it now, as a cell may define it anew, and a module may be loaded again."""
    try:
        with unmoved(f"assistant.target={target!r}"):
            kind = resolve_name(target)
    except UsageError:
        raise
    except (Exception, SystemExit) as error:  # whatever the module raises
        raise UsageError(
            f"assistant.target={target!r} cannot be imported: {type(error).__qualname__}: {error}; valid is a class of "
            "a module that Python finds; one in a file is named by assistant.file=my.py:ExactCache"
        ) from error
    if not isinstance(kind, type):
        raise UsageError(f"assistant.target={target!r} is a {type(kind).__qualname__}; valid is a class")
    return kind


@cache
def _of_file(path: str, text: str, name: str, _imported: str) -> type:
    module = ModuleType(f"skg_bench_file_{_hash([path, text])[:16]}")
    module.__file__ = path
    sys.modules[module.__name__] = module  # dataclasses look for the module of their class
    try:
        with unmoved(f"assistant.file={path}:{name}"):
            exec(compile(text, path, "exec"), module.__dict__)  # noqa: S102  the command names the file
    except UsageError:
        raise
    except (Exception, SystemExit) as error:  # whatever the file raises
        raise UsageError(f"assistant.file={path}:{name} fails: {type(error).__qualname__}: {error}") from error
    kind = vars(module).get(name)
    if not isinstance(kind, type):
        classes = {key: value for key, value in vars(module).items() if isinstance(value, type)}
        mine = [key for key, value in classes.items() if value.__module__ == module.__name__]
        raise UsageError(f"{path} has no class {name!r}; its classes are {', '.join(mine) or 'none'}")
    return kind


def _of_package(root: str) -> str:
    """Digest of the files of a package or module, of the version of its distribution, and of what it imports."""
    data = [
        f"{file.relative_to(place).as_posix()}\0{content_digest(file)}"
        for place in places_of(root)
        if not within_package(place)  # experiments write pages there
        for file in files_of(place)
        if file.suffix != ".py" and file != place
    ]
    return _hash([*_python_of_package(root), *data, *filter(None, [beyond_package(root)])])


def _python_of_package(root: str) -> list[str]:
    """Python files of a package or module, and the version of its distribution."""
    files = sorted(
        file for place in places_of(root) for file in files_of(place) if file.suffix == ".py" or file == place
    )
    if not files:
        raise UsageError(f"the source of {root} is not known, and it is part of a run's identity; name a file")
    texts = zip(files, python_texts(files), strict=True)
    return [*_versions(root), *(f"{file.name}\0{text.decode('utf-8', 'replace')}" for file, text in texts)]


@cache
def _versions(root: str) -> list[str]:
    return [f"{each} {version(each)}" for each in sorted(set(packages_distributions().get(root, ())))]


def _texts(kind: type) -> Iterator[str]:
    """Source text of a class of a notebook, and of what it names there, in order of names.

    Raises UsageError for text that is not known, and for a value that has none.
    """
    seen: dict[str, str] = {}
    modules = set[str]()
    waiting: list[tuple[str, Any]] = [(kind.__qualname__, kind)]
    around = vars(sys.modules[_NOTEBOOK])
    while waiting:
        name, value = waiting.pop()
        if name in seen:
            continue
        seen[name] = _text(name, value)
        modules |= {_module(value), *imports_in(dedent(seen[name]))}
        names = _names(value) | _decorators(value, seen[name])
        waiting.extend((inner, around[inner]) for inner in names if inner in around)
        waiting.extend((f"{name}.{inner}", kept) for inner, kept in _kept(value))
    yield from (f"{name}\0{seen[name]}" for name in sorted(seen))
    yield from filter(None, [imported_digest(modules, Path.cwd())])


def _module(value: object) -> str:
    """Module, without what follows a dot, that a value is, or that it was defined in; of plain values none."""
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0]
    return str(value.__module__).partition(".")[0] if isinstance(value, type | FunctionType) else ""


def _text(name: str, value: Any) -> str:
    if isinstance(value, ModuleType):
        return f"module {value.__name__}"
    if isinstance(value, _PLAIN):
        return repr(value)
    if getattr(value, "__module__", None) != _NOTEBOOK and isinstance(value, type | FunctionType):
        return f"{value.__module__}.{value.__qualname__}"
    if not isinstance(value, type | FunctionType):
        raise UsageError(
            f"{name}, which the class names, is a {type(value).__qualname__} of the notebook: its text, part of a "
            "run's identity, is not known; make it inside of the class, or put both into a file: "
            "assistant.file=my.py:CLASS"
        )
    try:
        return _cell_text(value) or getsource(value)
    except (OSError, TypeError, SyntaxError) as error:
        raise UsageError(
            f"the source text of {name} is not known, and it is part of a run's identity; put the class into a file: "
            "assistant.file=my.py:CLASS"
        ) from error


def _cell_text(value: Any) -> str | None:
    """Source text of a class of a notebook's cell, by the lines of its methods; None: it has a file, or no method."""
    if not isinstance(value, type) or hasattr(sys.modules[_NOTEBOOK], "__file__"):
        return None
    for member in vars(value).values():
        function = unwrap(_function(member))
        if isinstance(function, FunctionType):
            cell = "".join(getlines(function.__code__.co_filename))
            classes = [node for node in ast.walk(ast.parse(cell)) if isinstance(node, ast.ClassDef)]
            if mine := [node for node in classes if node.name == value.__name__]:
                decorators = "\n".join(ast.unparse(each) for each in mine[-1].decorator_list)
                return f"{decorators}\n{ast.get_source_segment(cell, mine[-1])}"
    return None


def _names(value: Any) -> set[str]:
    """Global names that functions of a value use, and those of the classes that it is made of."""
    if isinstance(value, FunctionType):
        return _of_code(value.__code__)
    if isinstance(value, type) and value.__module__ == _NOTEBOOK:
        members = [_function(part) for part in vars(value).values()]
        return set[str]().union(*(_names(part) for part in members if isinstance(part, FunctionType)))
    return set()


def _function(member: Any) -> Any:
    """The function of a method, a static or class method or a property; else the member itself."""
    return getattr(member, "__func__", getattr(member, "fget", member))


def _kept(value: Any) -> Iterator[tuple[str, Any]]:
    """Parts that a class or function has had since it was defined, with names: classes that it is made of, attributes,
    defaults, and what it closes over. The same text makes another one where the globals that it read were others.
    """
    if isinstance(value, FunctionType):
        yield from _kept_by(value, value.__qualname__)
    elif isinstance(value, type) and value.__module__ == _NOTEBOOK:
        yield from ((base.__qualname__, base) for base in value.__mro__[1:] if base.__module__ == _NOTEBOOK)
        for name, member in vars(value).items():
            function = _function(member)
            if not isinstance(function, FunctionType):
                if not name.startswith("__") and not _written_in(member, value.__qualname__):
                    yield name, _plainly(member)
                continue
            if not _written_in(function, value.__qualname__):
                yield name, function
            yield from ((f"{name}.{inner}", kept) for inner, kept in _kept_by(function, value.__qualname__))


def _kept_by(function: FunctionType, owner: str) -> Iterator[tuple[str, Any]]:
    """Defaults of a function, and what it closes over, but for what the text of `owner` holds."""
    defaults = enumerate(function.__defaults__ or ())
    kept = {**{str(i): each for i, each in defaults}, **(function.__kwdefaults__ or {})}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if name != "__class__" and cell != CellType():  # an empty one has nothing yet
            kept[name] = cell.cell_contents
    yield from ((name, _plainly(each)) for name, each in kept.items() if not _written_in(each, owner))


def _written_in(value: Any, owner: str) -> bool:
    """Does the text of a class or function hold that of a function or class, in which names are looked up later?"""
    made_by_dataclass = "__create_fn__."  # of its fields
    return isinstance(value, type | FunctionType) and value.__qualname__.startswith((f"{owner}.", made_by_dataclass))


def _plainly(value: Any) -> Any:
    """The value if it has a text or is plain; else how it shows itself, without its place in memory."""
    return value if isinstance(value, type | FunctionType | ModuleType) else _PLACE.sub("", repr(value))


def _decorators(value: Any, text: str) -> set[str]:
    """Global names in decorators of a class or function of the notebook, and of its methods."""
    if not isinstance(value, type | FunctionType) or value.__module__ != _NOTEBOOK:
        return set()
    definitions = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    written = [node for node in ast.walk(ast.parse(dedent(text))) if isinstance(node, definitions)]
    names = (ast.walk(each) for node in written for each in node.decorator_list)
    return {name.id for each in names for name in each if isinstance(name, ast.Name)}


def _of_code(code: CodeType) -> set[str]:
    return set(code.co_names).union(*(_of_code(part) for part in code.co_consts if isinstance(part, CodeType)))
