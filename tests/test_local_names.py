"""Local names are nouns or the field's symbols."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.imports import parsed, syntax_nodes

ROOT = Path(__file__).resolve().parents[1]
NO_NOUNS = {"found", "said", "told", "asked", "one", "on", "of", "own", "there"}


def bound(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of everything that functions, lambdas and comprehensions bind: also parameters."""
    scopes = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.comprehension)
    for scope in (node for node in syntax_nodes(tree) if isinstance(node, scopes)):
        for node in ast.walk(scope):
            match node:
                case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                    yield node.lineno, name
                case ast.Name(id=name, ctx=ast.Store()):
                    yield node.lineno, name
                case ast.FunctionDef(name=name) if node is not scope:
                    yield node.lineno, name


def test_parameters_and_variables_of_functions_are_nouns() -> None:
    files = [path for folder in ("skg_bench", "experiments") for path in sorted((ROOT / folder).rglob("*.py"))]
    left = [
        f"{path.relative_to(ROOT).as_posix()}:{line}: {name}"
        for path in files
        for line, name in sorted(set(bound(parsed(path))))
        if name in NO_NOUNS
    ]
    assert left == []
