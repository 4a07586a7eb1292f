"""One word for one thing: no two public classes, functions, constants or modules of the package share a name."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.imports import parsed, syntax_nodes
from tests.test_local_names import NO_NOUNS

PACKAGE = Path(__file__).resolve().parents[1] / "skg_bench"
COMMANDS = {"app/cli.py", "app/skillbook/cli.py", "app/api.py", "app/commands.py"}
"""Their functions have the names of commands, and what a command calls may have its name too."""
OPTIONS = {"curator", "embedder", "launcher", "llm", "policy", "reranker", "router", "simulator", "store", "tracker"}
"""Modules of a seam have the names of its options: `none` is an option of two seams."""


def public_classes() -> dict[str, list[str]]:
    found = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in syntax_nodes(parsed(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path.relative_to(PACKAGE).as_posix())
    return found


def definitions(tree: ast.Module) -> Iterator[str]:
    """Public functions, constants and types of a module; `T` and other names of one letter stand for any type."""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Assign(targets=targets):
                yield from (part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name))


def homes() -> dict[str, set[str]]:
    """Files of each public function, constant and module."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        names = set() if place.as_posix() in COMMANDS else set(definitions(parsed(path)))
        if path.stem != "__init__" and path.name not in ("cli.py", "commands.py") and place.parts[0] not in OPTIONS:
            names.add(f"{path.stem}.py")
        for name in names:
            if not name.startswith("_") and len(name) > 1 and name != "main":
                found[name].add(place.as_posix())
    return found


def test_no_two_public_classes_share_a_name() -> None:
    classes = public_classes()
    assert len(classes) > 100
    assert {name: files for name, files in classes.items() if len(files) > 1} == {}


def test_no_two_functions_constants_or_modules_share_a_name() -> None:
    found = homes()
    assert len(found) > 1500
    assert {name: sorted(files) for name, files in found.items() if len(files) > 1} == {}


def test_functions_constants_and_modules_are_nouns() -> None:
    assert {name: files for name, files in homes().items() if name.removesuffix(".py").lower() in NO_NOUNS} == {}


def test_names_of_all_kinds_of_definitions_are_read() -> None:
    source = "A, (b, _c) = 1, (2, 3)\nd: int = 1\n\ndef f():\n    e = 1\n\nclass G: ...\n"
    assert list(definitions(ast.parse(source))) == ["A", "b", "_c", "d", "f"]
