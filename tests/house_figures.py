"""Figures of the house, computed from source: printed by `make lint`, held by tests/test_architecture.py.

`python -m tests.house_figures` prints each beside the one that docs/architecture.md has from the last release; with
`--write` the page takes the new ones.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

from skg_bench.core.package import VERSION
from tests.imports import ROOT, imports, syntax_nodes, trees

PAGE = Path("docs") / "architecture.md"
CHANGELOG = Path("CHANGELOG.md")
DOMAINS = {"advice": re.compile(r"advice|advis|guardian|shopper|purchase", re.IGNORECASE)}
"""Words of a domain, by its folder in simulator/. Each other file that uses them knows the domain."""
HOMES = {"advice": ("simulator/advice/", "study/")}
"""Where they may stand: in the domain's folder, and in the room that its experiments share."""
SEAMS = {"a router": ("Router", "BookExamples"), "a reranker": ("Reranker",), "a policy": ("Policy",),
         "a curator": ("Curator",), "a world": ("World",), "an assistant": ("Assistant",)}  # fmt: skip
"""The Protocol of a seam, and what every component of it opens beside the values that its methods name."""
VALUES = {"a metric": ("Metric", "Tally"), "an experiment": ("Experiment", "Report", "Finding", "Run")}
"""Dataclasses, and public properties and methods of other classes, that are known before one is written."""
TURN = ("Assistant", "BookEnsemble", "Router", "Reranker", "Policy", "Curator", "LLM", "World")
"""Protocols whose methods pass the values of a turn."""
_ROW = re.compile(r"^\| (?P<name>[^|]+?) +\| +(?P<value>\d+) \|$", re.MULTILINE)


@cache
def classes(root: Path = ROOT) -> Mapping[str, ast.ClassDef]:
    """Public classes of the package; tests/test_words.py holds that no two share a name."""
    found = (node for tree in trees(root).values() for node in syntax_nodes(tree) if isinstance(node, ast.ClassDef))
    return {node.name: node for node in found if not node.name.startswith("_")}


def names(annotation: ast.AST | None) -> Iterator[str]:
    """All names of an annotation, those in texts included."""
    for node in ast.walk(annotation) if annotation else ():
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"\w+", node.value)


def fields(node: ast.ClassDef) -> list[ast.AnnAssign]:
    """Fields of a dataclass; none of a Protocol or of another class."""
    if not any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list):
        return []
    return [f for f in node.body if isinstance(f, ast.AnnAssign) and "ClassVar" not in names(f.annotation)]


def annotations(node: ast.ClassDef) -> Iterator[ast.AST | None]:
    """Those of a class's fields, or of what its public methods take and return."""
    yield from (field.annotation for field in fields(node))
    if any("Protocol" in names(base) for base in node.bases):
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and (method.name == "__call__" or not method.name.startswith("_")):
                yield method.returns
                yield from (argument.annotation for argument in [*method.args.args, *method.args.kwonlyargs])


def inherited(name: str, known: Mapping[str, ast.ClassDef]) -> list[ast.ClassDef]:
    """The Protocol and those that it extends."""
    node = known[name]
    return [node, *(more for base in node.bases for part in names(base) if part in known
                    for more in inherited(part, known))]  # fmt: skip


def signature(name: str, known: Mapping[str, ast.ClassDef]) -> set[str]:
    """Types of the package in the signatures of a Protocol's methods."""
    return {part for node in inherited(name, known) for one in annotations(node) for part in names(one)} & set(known)


def members(node: ast.ClassDef) -> int:
    """Fields of a class, and its public methods and properties."""
    return len(fields(node)) + sum(
        1 for part in node.body if isinstance(part, ast.FunctionDef) and not part.name.startswith("_")
    )


def reachable(start: set[str], known: Mapping[str, ast.ClassDef]) -> set[str]:
    """These types, and all that their fields and methods name, and so on."""
    todo, seen = list(start), set(start)
    while todo:
        fresh = {part for one in annotations(known[todo.pop()]) for part in names(one)} & set(known) - seen
        seen |= fresh
        todo += fresh
    return seen


def floors(room: str, root: Path = ROOT) -> int:
    """Files of the longest chain of imports within a room."""
    graph: dict[str, set[str]] = {}
    for importer, _, module in imports(root):
        if importer.startswith(f"skg_bench.{room}.") and module.startswith(f"skg_bench.{room}."):
            graph.setdefault(importer, set()).add(module)
    height: dict[str, int] = {}
    for name in TopologicalSorter(graph).static_order():
        height[name] = 1 + max((height[below] for below in graph.get(name, ())), default=0)
    return max(height.values(), default=1)


@cache
def figures(root: Path = ROOT) -> Mapping[str, int]:
    """All figures by name."""
    known, table = classes(root), dict[str, int]()
    texts = {path: path.read_text("utf-8") for path in sorted((root / "skg_bench").rglob("*"))
             if path.suffix in (".py", ".js", ".j2", ".css")}  # fmt: skip
    for domain, words in DOMAINS.items():
        lines = [sum(1 for line in text.splitlines() if words.search(line)) for path, text in texts.items()
                 if not path.relative_to(root / "skg_bench").as_posix().startswith(HOMES[domain])]  # fmt: skip
        table[f"lines with words of {domain} outside of its folder"] = sum(lines)
        table[f"files with words of {domain} outside of its folder"] = sum(map(bool, lines))
    for seam, (protocol, *opened) in SEAMS.items():
        types = signature(protocol, known) | set(opened)
        table[f"fields to know for {seam}"] = sum(len(fields(known[name])) for name in types)
    for value, names_of_it in VALUES.items():
        table[f"fields and methods to know for {value}"] = sum(
            members(known[name]) for name in names_of_it if name in known
        )
    turn = reachable(set(TURN) | {name for protocol in TURN for name in signature(protocol, known)}, known)
    values = [field for name in turn for field in fields(known[name])]
    table["types to follow a turn"] = len(turn)
    table["fields of these types"] = len(values)
    table["optional fields of these types"] = sum(1 for field in values if optional(field.annotation))
    every = [node for tree in trees(root).values() for node in syntax_nodes(tree)]
    table["uses of Any"] = sum(1 for node in every if isinstance(node, ast.Name) and node.id == "Any")
    table["comparisons with None"] = sum(
        1 for node in every if isinstance(node, ast.Compare)
        and any(isinstance(side, ast.Constant) and side.value is None for side in node.comparators)
    )  # fmt: skip
    for room in ("core", "app"):
        table[f"files of {room}"] = sum(1 for name in trees(root) if name.startswith(f"skg_bench.{room}."))
        table[f"floors of {room}"] = floors(room, root)
    return table


def optional(annotation: ast.AST) -> bool:
    """Can the value itself be None? Not something inside of it."""
    match annotation:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return optional(left) or optional(right)
        case ast.Constant(value=str(text)):
            return optional(ast.parse(text, mode="eval").body)
        case ast.Subscript(value=ast.Name(id="Optional")):
            return True
        case ast.Constant(value=None):
            return True
    return False


def table(values: Mapping[str, int]) -> str:
    width = max(map(len, values))
    head = f"at {VERSION}"
    rows = [f"| {name:{width}} | {value:>{len(head)}} |" for name, value in values.items()]
    return "\n".join([f"| {'figure':{width}} | {head} |", f"|{'-' * (width + 2)}|{'-' * (len(head) + 1)}:|", *rows])


def released(page: str) -> dict[str, int]:
    """The figures that the page has."""
    return {row["name"]: int(row["value"]) for row in _ROW.finditer(page)}


def unreleased(changelog: str) -> str:
    """The section of the changelog that is newer than the last release; empty: nothing is."""
    return changelog.partition("\n## Unreleased\n")[2].partition("\n## ")[0]


def risen(values: Mapping[str, int], page: str, changelog: str) -> list[str]:
    """For each figure that rose and that the changelog does not name with its value: what to do."""
    before, words = released(page), " ".join(unreleased(changelog).split())
    return [
        f"{name}: {before.get(name, 0)} -> {value}. Bring it down, or write a line into {CHANGELOG.name} under "
        f"Unreleased that says why and has the words: {name}: {value}"
        for name, value in values.items()
        if value > before.get(name, 0) and not re.search(rf"{re.escape(name)}: {value}(?!\d)", words)
    ]


def main(arguments: list[str]) -> None:
    page, values = (ROOT / PAGE).read_text("utf-8"), figures()
    if arguments == ["--write"]:
        head, _, _ = page.partition("| figure ")
        (ROOT / PAGE).write_text(f"{head}{table(values)}\n", "utf-8")
        return
    before = released(page)
    for name, value in values.items():
        sys.stdout.write(f"{value:6} {name}{was(value, before.get(name))}\n")


def was(value: int, before: int | None) -> str:
    return "" if value == before else f" (at the last release: {before})"


if __name__ == "__main__":
    main(sys.argv[1:])
