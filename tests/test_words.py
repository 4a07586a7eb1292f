"""One word for one thing: no two public classes of the package share a name."""

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "skg_bench"


def public_classes() -> dict[str, list[str]]:
    found = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path.relative_to(PACKAGE).as_posix())
    return found


def test_no_two_public_classes_share_a_name() -> None:
    classes = public_classes()
    assert len(classes) > 100
    assert {name: files for name, files in classes.items() if len(files) > 1} == {}
