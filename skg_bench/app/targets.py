"""Classes that a `_target_` may name: those that the yamls of its seam name at that very place, and no others."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, get_type_hints

from skg_bench.app.packages import ENTRY_POINTS, INSIDE, Package, groups, packages, trusted
from skg_bench.core.errors import UsageError, nearest
from skg_bench.simulator.yaml_files import yaml_of

Node = Mapping[str, Any]
Chain = tuple[tuple[str, str], ...]  # from the outermost component in, of each: its key in the one around it, its class


def described_components(path: str, node: Any) -> Iterator[tuple[str, Chain, Node]]:
    """Every component that a node describes, those inside of others too: where it stands, its chain, its own node.

    The places of a list share their list's key: what may stand at one of them may stand at each.
    """
    return _components(path, node, (), "")


def _components(path: str, node: Any, around: Chain, key: str) -> Iterator[tuple[str, Chain, Node]]:
    if isinstance(node, list):
        for i, inner in enumerate(node):
            yield from _components(f"{path}.{i}", inner, around, key)
    elif isinstance(node, Mapping):
        if "_target_" in node:
            around, key = (*around, (key, str(node["_target_"]))), ""
            yield path, around, node
        for name, inner in node.items():
            yield from _components(f"{path}.{name}", inner, around, f"{key}.{name}" if key else str(name))


def named_by_yaml(seam: str, chain: Chain) -> bool:
    """Does a yaml of `seam` name the last class of `chain`, inside the same components and at the same keys?"""
    yamls = _yamls(seam, groups().get(seam, ()), packages())
    if chain in yamls.written or chain in yamls.composed:
        return True
    inner = _inside(chain)
    return inner is not None and named_by_yaml(*inner)


def class_of(path: str, seam: str, chain: Chain) -> type:
    """The last class of `chain`, which stands at `path` of a node.

    Raises UsageError for one that no yaml of `seam` names there, and for what is no class of an installed package.
    """
    target = chain[-1][1]
    if not named_by_yaml(seam, chain):
        known = nearest(target, valid(seam, chain)) or "no component may stand there"
        raise UsageError(
            f"{path}._target_={target!r} is refused, as no yaml of {seam} names it there; {known}. A class of your own "
            f"needs a yaml in conf/{seam}/ of a package that joins by an entry point of group {ENTRY_POINTS}"
        )
    try:
        component = resolve_name(target)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"{path}._target_={target!r} cannot be imported: {error}") from error
    if not isinstance(component, type) or not trusted(target) or not trusted(f"{component.__module__}."):
        raise UsageError(f"{path}._target_={target!r} is refused; it is no class of {target.split('.')[0]}")
    return component


@cache
def parameters(made: type) -> Mapping[str, Any]:
    """The types of the parameters of a class."""
    return get_type_hints(vars(made).get("__init__", made))


def valid(seam: str, chain: Chain) -> list[str]:
    """Every class that yamls name in place of the last one."""
    if (inner := _inside(chain)) is not None:
        return valid(*inner)
    yamls = _yamls(seam, groups().get(seam, ()), packages())
    known = yamls.written | yamls.composed
    return sorted(entry[-1][1] for entry in known if entry[:-1] == chain[:-1] and entry[-1][0] == chain[-1][0])


def _inside(chain: Chain) -> tuple[str, Chain] | None:
    """If a nested key (e.g. `curator.llm`) selects from another group, returns that group and the rest of the path."""
    for place, (key, target) in enumerate(chain):
        if place and key in INSIDE:
            return key, (("", target), *chain[place + 1 :])
    return None


@dataclass(frozen=True)
class _Yamls:
    """The yamls of a seam, by their options."""

    seam: str
    nodes: Mapping[str, Node]

    @cached_property
    def written(self) -> frozenset[Chain]:
        """Chains in their text."""
        return _chains(self.nodes.values())

    @cached_property
    def composed(self) -> frozenset[Chain]:
        """Chains in what Hydra makes of those with a defaults list, which may bring in components. It takes 0.1 s, and
        is needed for such components and for error messages only.
        """
        options = [name for name, node in self.nodes.items() if "defaults" in node]
        if not options:
            return frozenset()
        from skg_bench.app.hydra_trees import hydra_trees

        return _chains(hydra_trees().options(self.seam, options))


def _chains(nodes: Iterable[Node]) -> frozenset[Chain]:
    return frozenset(chain for node in nodes for _, chain, _ in described_components("", node))


@cache
def _yamls(seam: str, options: Sequence[str], installed: Sequence[Package]) -> _Yamls:
    """Yamls of a seam in all packages. What is no seam has none: a file may name any text as one."""
    files = (package.conf / seam / f"{option}.yaml" for package in installed for option in options)
    return _Yamls(seam, {file.stem: _read(file) for file in files if file.is_file()})


def _read(file: Path) -> Node:
    node = yaml_of(file)
    return node if isinstance(node, Mapping) else {}
