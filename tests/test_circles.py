"""Imports between files run one way, those for annotations and those inside of functions included."""

import ast
from graphlib import CycleError, TopologicalSorter

from tests.imports import imports, named


def circle(files: dict[str, set[str]]) -> list[str]:
    """Modules that import one another, first and last the same; empty: there is no such circle."""
    try:
        TopologicalSorter(files).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def test_no_files_import_one_another() -> None:
    files: dict[str, set[str]] = {}
    for importer, _, module in imports():
        files.setdefault(importer, set()).add(module)
    assert sum(map(len, files.values())) > 1000
    assert circle(files) == [], "each imports the next"


def test_a_circle_is_found_and_named() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) in (list("abca"), list("bcab"), list("cabc"))
    hidden = ast.parse("if TYPE_CHECKING:\n    from p.b import X\ndef f() -> None:\n    from p import c\n")
    assert set(named(hidden, {"p", "p.b", "p.c"})) == {(2, "p.b"), (4, "p.c")}
    for call in ("importlib.import_module", "__import__"):
        assert set(named(ast.parse(f"{call}('p.b')"), {"p", "p.b"})) == {(1, "p.b")}
    relative = ast.parse("from .b import X\nfrom . import c\nfrom ..q import Y\nimport_module('p.a.b')\n")
    names = {"p", "p.a", "p.a.b", "p.a.c", "p.q"}
    assert set(named(relative, names, "p.a")) == {(1, "p.a.b"), (2, "p.a.c"), (3, "p.q"), (4, "p.a.b")}
