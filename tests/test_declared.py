"""Abilities beyond a seam are Protocols beside it, and asked for by these: nothing is found out by a name in quotes."""

import ast
from collections.abc import Iterator

import pytest

from tests.house_figures import classes, inherited, names
from tests.imports import syntax_nodes, trees

FOREIGN = {
    "assistant.python.outside": "the object is somebody else's: the contract says which methods it may leave out",
    "assistant.python.source": "modules and members of somebody else's code",
    "embedder.minilm": "Windows and macOS have no sched_getaffinity",
    "router.shared.index": "faiss has GPU classes only where it was built with CUDA",
    "runfolder.saving": "walks over objects of any class, by their attributes",
    "simulator.logs.dataset_rows": "features of `datasets` have other attributes in other versions",
    "simulator.yaml_files": "PyYAML has a faster loader only where it was built with libyaml",
    "skillbook.skill_files": "PyYAML has a faster loader only where it was built with libyaml",
    "store.sqlite": "sqlite3 gives only some of its errors a code",
}
"""Modules that look into what other people write, by their reason."""
OURS = {
    "engine.controls": "the name of an assistant for an error; goes with the next change of the controls",
    "study.guardian.study": "committed findings hold a digest of this file; goes when they are made anew",
}
"""Modules that still have to learn it."""

HELD = {
    "AnswersInWords": {"AssistantUsers", "Recorded"},
    "AsksAtOnce": {"Endpoint"},
    "AsksModel": {"Reflective"},  # and all that inherit Proposer
    "Confinable": {"RecordedModel"},
    "DrawsFromCorpus": {"AssistantUsers"},
    "LeavesOut": {"NeededMessages"},
    "LimitsPrompt": {"Described", "InPrompt"},
    "NamesBeside": {"BlackBox", "Budgeted", "Endpoint", "Peer", "Python", "RecordedModel"},
    "StartsPrograms": {"BlackBox", "Peer"},
    "UsesOtherMachines": {"RayCluster"},
    "WritesStrategies": {"Population", "Reflective", "Sham"},
}
"""Classes of the package that have the members of a Protocol, by its name: each is meant, and none by accident."""


def sniffed(tree: ast.AST) -> Iterator[int]:
    """Lines that call `hasattr`, or `getattr` with a name in quotes or a default."""
    for node in syntax_nodes(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "hasattr":
                yield node.lineno
            if node.func.id == "getattr" and (len(node.args) > 2 or isinstance(node.args[1], ast.Constant)):
                yield node.lineno


def test_nothing_of_ours_is_found_out_by_the_name_of_an_attribute() -> None:
    places = {name.removeprefix("skg_bench."): list(sniffed(tree)) for name, tree in trees().items()}
    guilty = {name for name, lines in places.items() if lines}
    allowed = set(FOREIGN) | set(OURS)
    new = {name: places[name] for name in guilty - allowed}
    assert not new, f"declare a Protocol (core/abilities.py), and ask by isinstance: {new}"
    assert allowed <= guilty, f"no longer needed in the list: {sorted(allowed - guilty)}"


def members(node: ast.ClassDef) -> set[str]:
    """Names that the body of a class defines."""
    names = set()
    for part in node.body:
        match part:
            case ast.FunctionDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return names


@pytest.mark.parametrize("ability", HELD)
def test_an_ability_is_that_of_the_classes_that_are_meant(ability: str) -> None:
    known = classes()
    needed = {name for node in inherited(ability, known) for name in members(node)}
    protocols = {name for name, node in known.items() if any("Protocol" in names(base) for base in node.bases)}
    assert {name for name, node in known.items() if needed <= members(node)} - protocols == HELD[ability]


def test_the_search_sees_both_functions() -> None:
    lines = "hasattr(x, 'a')\ngetattr(x, 'a')\ngetattr(x, a, 1)\ngetattr(x, a)\nsetattr(x, 'a', 1)\n"
    assert list(sniffed(ast.parse(lines))) == [1, 2, 3]
