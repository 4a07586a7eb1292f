"""Trust: what a file of somebody else may reach when its nodes become components. The one place that decides.

A command line is trusted, and so is what the yamls of installed packages say. A case, a baseline or the manifest of a
run is not: a node in it that reaches network, environment, files or code is refused, unless the command says `--trust`.
"""

import types
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Literal, Union, get_args, get_origin

import typer

from skg_bench.app.targets import class_of, described_components, parameters
from skg_bench.core.errors import UsageError
from skg_bench.core.package import named_books
from skg_bench.core.reach import Confined, Reach, ReachKind
from skg_bench.core.text import printable, revealed

OPTION = "--trust"
_WORDS: Mapping[ReachKind, str] = {
    "network": "reaches an address of the network",
    "environment": "reads a variable of the environment",
    "reads": "reads files of this machine",
    "writes": "writes files on this machine",
    "code": "runs code with your rights",
}
_ASKED: Sequence[ReachKind] = ("network", "environment")  # by asking a model
_SHOWN = 200  # characters of a value, in an error
_MANY = 20  # lines, after which they are counted


@dataclass(frozen=True)
class CommandLine:
    """Words of a person, or of an installed package."""


@dataclass(frozen=True)
class FromFile:
    """A file of somebody else, by the name that the command line gave it."""

    path: str
    trusted: bool  # by `--trust`
    told: set[str] = field(default_factory=set, compare=False, repr=False)  # what was printed already

    @property
    def folder(self) -> Path:
        """Folder of the recording of what it asked: beside it, or in it if it is a run."""
        path = Path(self.path)
        return path if path.is_dir() else path.parent


Origin = CommandLine | FromFile
COMMAND_LINE = CommandLine()


@dataclass(frozen=True)
class ReachRequest:
    """A parameter that reaches something; without kinds, it is not known what."""

    path: str
    value: Any
    kinds: Sequence[ReachKind]
    why: str = ""


@contextmanager
def naming_file(origin: Origin) -> Iterator[None]:
    """Names the file of somebody else in errors about what it says."""
    try:
        yield
    except UsageError as error:
        if isinstance(origin, CommandLine) or str(error).startswith(tuple(f"{origin.path}{mark}" for mark in ": /")):
            raise
        raise UsageError(f"{origin.path}: {error}") from error


def admitted(origin: Origin, nodes: Iterable[tuple[str, str, Any]]) -> list[Any]:
    """The nodes as they may become components. Each comes with its path, and its key: a seam, or another key of arms.

    Without trust a model that is recorded plays its recording only. With it, what the nodes reach is printed first.
    Raises UsageError for nodes of a file that reach something and are not trusted.
    """
    nodes = list(nodes)
    if isinstance(origin, CommandLine):
        return [node for _, _, node in nodes]
    with naming_file(origin):
        requests = [request for path, key, node in nodes for request in _requests(origin, path, key, node)]
    if origin.trusted:
        _print(origin, requests)
        return [node for _, _, node in nodes]
    if requests:
        first, more = requests[0], len(requests) - 1
        also = f" (and {more} more such value{'s' if more > 1 else ''})" if more else ""
        raise UsageError(
            f"{origin.path} sets {first.path}={_shown(first.value)}, which {_words(first)}{also}; a file of somebody "
            f"else may not do that by itself. Read it first, then add {OPTION}"
        )
    return [_confined(node) for _, _, node in nodes]


def harmless(made: type, node: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a node of a file that reach nothing, where it is one of the class `made`."""
    return {
        key: value
        for key, value in node.items()
        if key != "_target_" and not isinstance(value, Mapping) and not any(_of_parameters("", made, {key: value}))
    }


def _print(origin: FromFile, requests: Sequence[ReachRequest]) -> None:
    """Print in whole what is asked for: what stands at the end of a long address, or far up, counts too."""
    lines = {
        f"  {_one_line(request.path)}={request.value!r} {_words(request)}": _words(request) for request in requests
    }
    new = [line for line in lines if line not in origin.told]
    origin.told.update(new)
    if len(new) > _MANY:
        new += [f"  {n:,} of {len(new):,}: {words}" for words, n in Counter(map(lines.get, new)).items()]
    if new:
        text = "\n".join([f"{origin.path}, trusted by {OPTION}:", *new])
        typer.echo(printable(revealed(text)), err=True)


def _one_line(path: str) -> str:
    """A key of a file may hold line ends, and look like lines of ours."""
    return path.replace("\n", "\\n")


def _words(request: ReachRequest) -> str:
    return " and ".join(_WORDS[kind] for kind in request.kinds) or request.why


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


# ------------------------------------------------------------------------------------------------ what nodes ask for

_ARMS: Mapping[str, Reach] = {  # keys of an arm that are no components; those that are not here take words of a list
    "pool": Reach(("reads",)),
    "seeds": Reach(("reads",)),
}


def _requests(origin: FromFile, path: str, key: str, node: Any) -> Iterator[ReachRequest]:
    if isinstance(node, Mapping | list):
        spared: list[str] = []
        for place, chain, inner in described_components(path, node):
            made = class_of(place, key, chain)
            asks = any(f"{place}.".startswith(f"{place_of}.") for place_of in spared)
            if isinstance(confined := vars(made).get("confined"), Confined) and not origin.trusted:
                spared.append(f"{place}.{confined.inside}")
            for request in _of_parameters(place, made, inner):
                if not asks or not request.kinds or set(request.kinds) - set(_ASKED):
                    yield request
    elif key in _ARMS and isinstance(node, str) and not _our_own(key, node):
        yield ReachRequest(path, node, _ARMS[key].kinds)


def _our_own(key: str, name: str) -> bool:
    """Is it the name of a skillbook that comes with the package?"""
    return key == "seeds" and name in named_books()


def _of_parameters(place: str, made: type, node: Mapping[str, Any]) -> Iterator[ReachRequest]:
    declared = vars(made).get("reaches")
    if not isinstance(declared, Mapping) or not all(isinstance(reach, Reach) for reach in declared.values()):
        why = "does not declare what its parameters reach (`reaches`, docs/plugins.md)"
        yield ReachRequest(f"{place}._target_", f"{made.__module__}.{made.__qualname__}", (), why)
        return
    hints = parameters(made)
    for key, value in node.items():
        if key == "_target_" or (isinstance(value, Mapping) and "_target_" in value):
            continue  # components inside of others are looked at by themselves
        if key in declared:
            if kinds := declared[key].of(value):
                yield ReachRequest(f"{place}.{key}", value, kinds)
        elif not (key in hints and is_plain(hints[key])) and _holds_text(value):
            why = f"may reach anything, as {made.__name__} does not declare it"
            yield ReachRequest(f"{place}.{key}", value, (), why)


def is_plain(hint: Any) -> bool:
    """Do values of a type hold no free text, so that they reach nothing unless the class says so?"""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType, list, tuple, Sequence):
        return bool(inner) and all(part is Ellipsis or is_plain(part) for part in inner)
    return origin is Literal or hint in (bool, int, float, types.NoneType)


def _holds_text(value: Any) -> bool:
    """Does it hold a text, beside what the components inside of it hold?"""
    if isinstance(value, Mapping):
        return "_target_" not in value and bool(value)
    return isinstance(value, str) or (isinstance(value, list) and any(map(_holds_text, value)))


def _confined(node: Any) -> Any:
    """A node in which what is recorded is played only."""
    if isinstance(node, list):
        return [_confined(inner) for inner in node]
    if not isinstance(node, Mapping):
        return node
    inner = {key: _confined(value) for key, value in node.items()}
    confined = vars(resolve_name(node["_target_"])).get("confined") if "_target_" in node else None
    return {**inner, **confined.sets} if isinstance(confined, Confined) else inner
