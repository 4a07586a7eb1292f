"""Docstrings begin with a noun or a verb."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.imports import parsed, syntax_nodes

ROOT = Path(__file__).resolve().parents[1]
NO_BEGINNING = {
    "Everything", "It", "Its", "Nobody", "Nothing", "Somebody", "Something", "That", "Their", "These", "This", "Those",
    "What", "Whether",
    "After", "At", "Beside", "Between", "By", "For", "From", "In", "Of", "On", "Over", "To", "Under", "With", "Without",
}  # fmt: skip
"""Pronouns and prepositions."""
NO_SENTENCE = {"When", "Where", "Which", "Who", "Why"}
"""These begin a question, but no description."""


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of all docstrings of a file."""
    for node in syntax_nodes(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text and text.strip():
                yield node.body[0].lineno, text


def begins_badly(text: str) -> bool:
    word = text.split()[0].rstrip(",.:;?")
    return word in NO_BEGINNING or (word in NO_SENTENCE and not re.match(r"[^.]*\?", text))


def test_docstrings_begin_with_a_noun_or_a_verb() -> None:
    lines = [
        (path.relative_to(ROOT).as_posix(), line, text)
        for folder in ("skg_bench", "experiments")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, text in docstrings(parsed(path))
    ]
    assert len(lines) > 3000
    bad = [(file, line, text) for file, line, text in lines if begins_badly(text)]
    assert [f"{file}:{line}: {text.splitlines()[0]}" for file, line, text in bad] == []


def test_a_docstring_that_begins_otherwise_is_found() -> None:
    source = '"""What it is."""\n\n\nclass A:\n    """Values."""\n\n    def f(self):\n        """Nothing."""\n'
    assert [line for line, text in docstrings(ast.parse(source)) if begins_badly(text)] == [1, 8]
    assert begins_badly("Where files lie.")
    assert not begins_badly("Which router knows the right skill?")
    assert not begins_badly("Whatever.")
