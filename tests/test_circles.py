"""Imports between files run one way, those for annotations and those inside of functions included."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.AST, known: set[str]) -> set[str]:
    """Modules of the package that a file names in any import."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {name if name in known else node.module for name in inner}
    return names & known


def circle(files: dict[str, set[str]]) -> list[str]:
    """Modules that import one another, first and last the same; empty: there is no such circle."""
    try:
        TopologicalSorter(files).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def test_no_files_import_one_another() -> None:
    paths = {module_name(path): path for path in (ROOT / "skg_bench").rglob("*.py")}
    files = {name: imported(ast.parse(path.read_text("utf-8")), set(paths)) for name, path in paths.items()}
    assert sum(map(len, files.values())) > 1000
    assert circle(files) == [], "each imports the next"


def test_a_circle_is_found_and_named() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) in (list("abca"), list("bcab"), list("cabc"))
    hidden = ast.parse("if TYPE_CHECKING:\n    from p.b import X\ndef f() -> None:\n    from p import c\n")
    assert imported(hidden, {"p", "p.b", "p.c"}) == {"p.b", "p.c"}
