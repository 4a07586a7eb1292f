"""Nodes of the configuration to components: the one place where something named in a yaml is called."""

import types
from collections.abc import Mapping, Sequence
from inspect import Parameter, signature
from pkgutil import resolve_name
from typing import Any, Literal, Union, get_args, get_origin

from skg_bench.app.targets import class_of, described_components, parameters
from skg_bench.app.trust import Origin, admitted, naming_file
from skg_bench.core.errors import UsageError, nearest


def build(seam: str, node: Mapping[str, Any], origin: Origin, where: str = "") -> Any:
    """The component of `seam` that `node` (with `_target_`) describes, with the components inside of it; `where` begins
    errors. A node is data: the classes that it may name are those of the seam's yamls, and no interpolation in it is
    resolved. `origin` says whose words it is: what a file may reach is decided in trust.py.

    Raises UsageError for a target that may not be called, parameters that it does not take or lacks, values of another
    type, what a file may not reach, and with what the component itself finds wrong.
    """
    with naming_file(origin):
        if "_target_" not in node:
            raise UsageError(f"{where}{seam} has no _target_; its yaml must name the class that it configures")
        for path, chain, inner in described_components(where + seam, node):
            _check_parameters(path, class_of(path, seam, chain), inner)
        (node,) = admitted(origin, [(where + seam, seam, node)])
        try:
            return _made(node)
        except UsageError as error:
            raise UsageError(f"{where}{error}") from error
        except (Exception, SystemExit) as error:  # whatever a class of another package raises
            raise UsageError(f"{where}{seam}: {node['_target_']} cannot be made: {error}") from error


def _made(node: Any) -> Any:
    """Component that a checked node describes; those inside of it are made first."""
    if isinstance(node, list):
        return [_made(inner) for inner in node]
    if not isinstance(node, Mapping):
        return node
    values = {key: _made(inner) for key, inner in node.items()}
    return resolve_name(values.pop("_target_"))(**values) if "_target_" in values else values


def _check_parameters(path: str, made: type, node: Mapping[str, Any]) -> None:
    taken = signature(made).parameters
    given = {key: value for key, value in node.items() if key != "_target_"}
    for key in given:
        if key not in taken:
            raise UsageError(f"{path}.{key}: {node['_target_']} takes no such parameter; {nearest(key, taken)}")
    for key, parameter in taken.items():
        if key not in given and parameter.default is Parameter.empty:
            raise UsageError(f"{path}.{key} is missing; {node['_target_']} needs it")
    hints = parameters(made)
    for key, value in given.items():
        if key in hints and not fits(value, hints[key]):
            raise UsageError(f"{path}.{key}={value!r} must be {type_in_words(hints[key])}")


def fits(value: Any, hint: Any) -> bool:
    """Is a value from a yaml one of type `hint`? Of other types than a yaml can write, it must be a component."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, option) for option in inner)
    if origin is Literal:
        return any(value == option and type(value) is type(option) for option in inner)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint in (bool, str, types.NoneType):
        return isinstance(value, types.NoneType if hint is types.NoneType else hint)
    if origin in (list, tuple, Sequence):
        return isinstance(value, list) and (not inner or all(fits(item, inner[0]) for item in value))
    if origin in (dict, Mapping):
        return isinstance(value, Mapping)
    return not isinstance(hint, type) or hint is object or isinstance(value, Mapping | list)


def type_in_words(hint: Any) -> str:
    """A type in words."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(type_in_words(option) for option in inner)
    if origin is Literal:
        return f"one of {', '.join(map(str, inner))}"
    if origin in (list, tuple, Sequence):
        return f"a list, each {type_in_words(inner[0])}" if inner else "a list"
    words = {float: "a number", int: "a whole number", bool: "true or false", str: "a text", types.NoneType: "null"}
    other = f"a component of type {hint.__name__}" if isinstance(hint, type) else str(hint)
    return words.get(hint, "a mapping" if origin in (dict, Mapping) else other)
