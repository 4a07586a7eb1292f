"""Imports of the package's files, read from their source: the late ones and those for annotations included."""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


class Import(NamedTuple):
    """One import: where it stands, and the module that it names."""

    importer: str
    line: int
    module: str


def module_name(path: Path, root: Path = ROOT) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules(root: Path = ROOT) -> dict[str, Path]:
    """All modules of the package with their files."""
    return {module_name(path, root): path for path in sorted((root / "skg_bench").rglob("*.py"))}


@cache
def parsed(path: Path) -> ast.Module:
    """A source file, parsed once in a test process: many tests of the house look at all of them, 2 s each time."""
    return ast.parse(path.read_text("utf-8"))


@cache
def syntax_nodes(tree: ast.AST) -> Sequence[ast.AST]:
    """All nodes of a source file, found once: a walk through the package takes a second."""
    return tuple(ast.walk(tree))


@cache
def trees(root: Path = ROOT) -> Mapping[str, ast.Module]:
    """The source of all modules of the package, parsed."""
    return {name: parsed(path) for name, path in modules(root).items()}


def named(tree: ast.AST, known: Iterable[str], start: str = "") -> Iterator[tuple[int, str]]:
    """Line and name of each known module that a file imports. Relative imports are those from package `start`.

    Where modules are imported by their names, a text that is a module's whole name counts as an import of it.
    """
    known = frozenset(known)
    called = {getattr(node, "id", getattr(node, "attr", "")) for node in syntax_nodes(tree)}
    by_text = not called.isdisjoint({"import_module", "__import__"})
    for node in syntax_nodes(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names if alias.name in known)
            case ast.ImportFrom(module=module, names=names, level=level):
                above = start.split(".")[: len(start.split(".")) - level + 1] if level else []
                source = ".".join([*above, *([module] if module else [])])
                inner = {f"{source}.{alias.name}" for alias in names}
                yield from ((node.lineno, name) for name in inner if name in known)
                if source in known and not inner <= known:
                    yield node.lineno, source
            case ast.Constant(value=str(text)) if by_text and text in known and "." in text:
                yield node.lineno, text


@cache
def imports(root: Path = ROOT) -> tuple[Import, ...]:
    """All imports between modules of the package."""
    files = modules(root)
    known = set(files)
    return tuple(
        Import(name, line, module)
        for name, tree in trees(root).items()
        for line, module in sorted(set(named(tree, known, package(name, files[name]))))
        if module != name
    )


def package(name: str, path: Path) -> str:
    """Where a module's relative imports start."""
    return name if path.name == "__init__.py" else name.rpartition(".")[0]
