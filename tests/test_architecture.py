"""The drawings of docs/architecture.md say which room imports which; the imports say the same."""

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from skg_bench.core.domain import Domain
from skg_bench.core.package import VERSION
from skg_bench.runfolder.telling import telling_of
from skg_bench.simulator.advice.outcome import advice
from tests.house_figures import CHANGELOG, PAGE, classes, fields, figures, optional, released, risen
from tests.imports import ROOT, Import, imports, modules, parsed, syntax_nodes

Arrow = tuple[str, str]


def drawings(page: str) -> list[list[str]]:
    """The lines of each fenced block that has arrows."""
    blocks = (
        block.strip("\n").splitlines() for block in re.findall(r"^```\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    )
    return [lines for lines in blocks if all("->" in line for line in lines)]


def rooms_of(line: str) -> tuple[list[str], list[str]]:
    """Rooms before and after the arrow; two spaces end the rooms, words follow."""
    left, _, right = line.partition("->")
    return left.split(), re.split(r"\s{2,}", right.removeprefix(" "))[0].split()


def drawn(lines: Iterable[str]) -> dict[Arrow, str]:
    """Each arrow with its line."""
    return {(a, b): line for line in lines for left, right in [rooms_of(line)] for a in left for b in right}


def room(module: str, depth: int, folders: set[str]) -> str:
    """The room at this depth in which a module stands; the package itself for what stands in none."""
    parts = module.split(".")[1 : depth + 1]
    return (
        "/".join(parts) if len(parts) == depth and "/".join(parts) in folders else "/".join(["skg_bench", *parts[:-1]])
    )


def arrows(found: Iterable[Import], depth: int, folders: set[str]) -> dict[Arrow, list[Import]]:
    """Imports between rooms: at depth 2 those between rooms of the same room."""
    between: dict[Arrow, list[Import]] = {}
    for one in found:
        a, b = room(one.importer, depth, folders), room(one.module, depth, folders)
        inside = depth == 1 or (a.split("/")[0] == b.split("/")[0] != "skg_bench")
        if a != b and inside:
            between.setdefault((a, b), []).append(one)
    return between


def folders_of(names: Iterable[str]) -> set[str]:
    """Rooms, and rooms inside of rooms, from the names of modules."""
    parts = [name.split(".")[1:-1] for name in names]
    return {"/".join(part[:depth]) for part in parts for depth in (1, 2) if len(part) >= depth}


def differences(lines: Iterable[str], real: Mapping[Arrow, list[Import]], files: Mapping[str, Path]) -> list[str]:
    """For each arrow that is not drawn, the two files; for each that is drawn only, its line."""
    page, relative = drawn(lines), {name: path.relative_to(ROOT).as_posix() for name, path in files.items()}
    places = [
        f"not drawn: {a} -> {b}: {relative[i.importer]}:{i.line} imports {relative[i.module]}"
        for (a, b), found in sorted(real.items())
        if (a, b) not in page
        for i in found
    ]
    return places + [
        f"drawn, and nothing imports so: {a} -> {b}: {line}" for (a, b), line in page.items() if (a, b) not in real
    ]


def upward(lines: list[str]) -> list[str]:
    """Arrows to the same line, or to one above."""
    place = {name: n for n, line in enumerate(lines) for name in rooms_of(line)[0]}
    return [f"{a} -> {b}" for a, b in drawn(lines) if place.get(b, len(lines)) <= place[a]]


def test_arrows_between_rooms_are_those_of_the_drawing() -> None:
    files = modules()
    lines, inner = drawings((ROOT / PAGE).read_text("utf-8"))
    assert len(imports()) > 1000
    folders = folders_of(files)
    assert differences(lines, arrows(imports(), 1, folders), files) == []
    assert differences(inner, arrows(imports(), 2, folders), files) == []


def test_every_room_stands_once_in_the_drawing_and_arrows_point_down() -> None:
    lines, inner = drawings((ROOT / PAGE).read_text("utf-8"))
    rooms = [name for line in lines for name in rooms_of(line)[0]]
    assert sorted(rooms) == sorted({"skg_bench", *(name for name in folders_of(modules()) if "/" not in name)})
    assert len(lines) <= 13
    assert upward(lines) == []
    assert upward(inner) == []


def names_in_docstring(file: Path) -> list[str]:
    """Modules and rooms that the docstring of a room names and that are not there."""
    tree = parsed(file)
    defined = {
        alias.asname or alias.name
        for node in syntax_nodes(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    missing = []
    for name in re.findall(r"`([a-z_*/]+)`", ast.get_docstring(tree) or ""):
        places = [folder for start in (file.parent, ROOT / "skg_bench") for folder in start.glob(name)]
        if not places and not any(file.parent.glob(f"{name}.py")) and name not in defined:
            missing.append(name)
    return missing


def test_docstrings_of_rooms_name_what_is_there(tmp_path: Path) -> None:
    rooms = sorted((ROOT / "skg_bench").rglob("__init__.py"))
    assert sum(len(re.findall("`", room.read_text("utf-8"))) for room in rooms) > 150
    assert {file.parent.name: names for file in rooms if (names := names_in_docstring(file))} == {}
    (tmp_path / "__init__.py").write_text('"""`there` and `gone`, `core`."""\n', "utf-8")
    (tmp_path / "there.py").touch()
    assert names_in_docstring(tmp_path / "__init__.py") == ["gone"]


def test_a_broken_arrow_names_the_two_files_and_the_other_kinds_of_break_their_line() -> None:
    files = modules()
    lines = ["app -> core   all else", "engine curator -> core"]
    wrong = Import("skg_bench.engine.step", 7, "skg_bench.curator.skg")
    real = arrows([wrong, Import("skg_bench.app.cli", 3, "skg_bench.core.errors")], 1, folders_of(files))
    assert differences(lines, real, files) == [
        "not drawn: engine -> curator: skg_bench/engine/step.py:7 imports skg_bench/curator/skg.py",
        "drawn, and nothing imports so: engine -> core: engine curator -> core",
        "drawn, and nothing imports so: curator -> core: engine curator -> core",
    ]
    assert upward(["a -> b c", "b -> a", "c d -> d"]) == ["b -> a", "c -> d", "d -> d"]


COMMON = {"utility", "hit_rate", "accepted", "timeout", "wait", "outcome", "satisfaction", "wanted"}
"""Names of the domain of advice that have a meaning in every world too, or are columns of other people's logs."""


def test_no_word_of_a_domain_stands_outside_of_its_folder() -> None:
    values = figures()
    assert [name for name, value in values.items() if "words of advice" in name and value] == []
    own = names_of(advice(["delay"]))
    assert {"blocked_wanted", "regret_it", "worth_book", "curation"} <= own
    files = [
        path
        for path in (ROOT / "skg_bench").rglob("*.py")
        if not re.search("/(simulator/advice|study)/", path.as_posix())
    ]
    assert len(files) > 300
    texts = [(path, node) for path in files for node in syntax_nodes(parsed(path))
             if isinstance(node, ast.Constant)]  # fmt: skip
    assert [f"{path}:{node.lineno}: {node.value}" for path, node in texts if node.value in own] == []


def names_of(domain: Domain) -> set[str]:
    """Names of its feedback and their levels, of its outcome and its levels, of its counts, metrics and links."""
    telling = telling_of({"domain": domain.plain()})
    kinds = [name for kind in domain.kinds for name in (kind.name, *kind.levels)]
    outcome = [name for each in domain.outcome for name in (each.name, *each.levels)]
    told = [*telling.counted, *(metric.name for metric in telling.metrics), *(link.name for link in telling.links)]
    return {*kinds, *outcome, *told} - COMMON


def test_engine_and_analysis_find_out_nothing_about_a_world_by_its_class() -> None:
    files = [path for room in ("engine", "analysis") for path in (ROOT / "skg_bench" / room).rglob("*.py")]
    asks = re.compile(
        r"is_advised|(isinstance|hasattr)\((\w+\.)*(world|simulator)\b(?!, Relabelled\))"
    )  # that is its own
    assert [str(path) for path in files if asks.search(path.read_text("utf-8"))] == []


MOST = {"files of core": 35, "floors of core": 8, "floors of app": 10, "fields to know for a curator": 40,
        "fields to know for a policy": 25, "optional fields of these types": 8}  # fmt: skip
"""Figures that were asked for, and that no line in the changelog may raise."""


def test_figures_that_were_asked_for_are_kept() -> None:
    values = figures()
    assert {name: values[name] for name, most in MOST.items() if values[name] > most} == {}


def test_a_figure_of_the_house_rises_only_with_a_line_in_the_changelog() -> None:
    values, page = figures(), (ROOT / PAGE).read_text("utf-8")
    again = "a release writes the figures anew: python -m tests.house_figures --write"
    assert f" at {VERSION} |" in page, again
    assert set(released(page)) == set(values), again
    assert risen(values, page, (ROOT / CHANGELOG).read_text("utf-8")) == []


def test_a_risen_figure_is_named_with_what_to_do() -> None:
    page = "| figure      | at release |\n|---|---:|\n| uses of Any |        861 |\n"
    old = "# Changelog\n\n## 0.2.0\n\n* uses of Any: 862\n"
    assert risen({"uses of Any": 861}, page, old) == []
    (line,) = risen({"uses of Any": 862}, page, old)
    assert line.startswith("uses of Any: 861 -> 862. Bring it down, or write a line into CHANGELOG.md")
    new = "\n## Unreleased\n\n* A library's values have no types (uses of\n  Any: 862).\n\n## 0.2.0"
    assert risen({"uses of Any": 862}, page, new) == []
    assert len(risen({"uses of Any": 863}, page, new)) == 1
    assert len(risen({"a new figure": 1}, page, new)) == 1


def test_figures_are_those_of_the_source(tmp_path: Path) -> None:
    core, advice = tmp_path / "skg_bench" / "core", tmp_path / "skg_bench" / "simulator" / "advice"
    for folder in (core, advice):
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
    (advice / "a.py").write_text("ADVICE = 1\n", "utf-8")
    (core / "top.py").write_text(
        "from skg_bench.core import low\n\n\ndef f() -> Any:\n    return None is None\n", "utf-8"
    )
    methods = "".join(
        f"class {name}(Protocol):\n    def f(self, x: 'Seen') -> Inner: ...\n\n"
        for name in ("Assistant", "Router", "Reranker", "Policy", "Curator", "LLM", "World")
    )
    (core / "low.py").write_text(
        f"{methods}class BookEnsemble(Assistant, Protocol): ...\n\n"
        "@dataclass(frozen=True)\nclass Seen:\n    a: int | None  # an adviser\n    b: 'int | None'\n"
        "    c: ClassVar[int]\n    d: list[int | None]\n\n"
        "@dataclass(frozen=True)\nclass Inner:\n    seen: Seen\n    deeper: Deep\n\n"
        "@dataclass(frozen=True)\nclass Deep:\n    e: int\n\n"
        "@dataclass(frozen=True)\nclass BookExamples:\n    g: int\n\n"
        "class Tally:\n    def f(self) -> int: ...\n    def _g(self) -> int: ...\n", "utf-8",
    )  # fmt: skip
    values = figures(tmp_path)
    assert values["lines with words of advice outside of its folder"] == 1
    assert values["files with words of advice outside of its folder"] == 1
    assert values["fields to know for a router"] == 6  # examples included; Deep is not in a signature
    assert values["fields and methods to know for a metric"] == 1
    assert values["fields of these types"] == 6
    assert values["optional fields of these types"] == 2
    assert values["uses of Any"] == values["comparisons with None"] == 1
    assert values["files of core"] == 3 - 1
    assert values["floors of core"] == 2
    assert len(fields(classes(tmp_path)["Seen"])) == 3
    assert not optional(fields(classes(tmp_path)["Seen"])[2].annotation)
