"""Nodes of the configuration to components: the one place where something named in a yaml is called."""

import types
from collections.abc import Mapping, Sequence
from inspect import Parameter, signature
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from skg_bench.app.packages import ENTRY_POINTS, trusted
from skg_bench.app.suggestions import nearest
from skg_bench.app.targets import Chain, components, named, valid
from skg_bench.core.errors import UsageError

TRUST = "--trust-remote-code"


def build(seam: str, node: Mapping[str, Any], where: str = "") -> Any:
    """The component of `seam` that `node` (with `_target_`) describes, with the components inside of it; `where` begins
    errors. A node is data: the classes that it may name are those of the seam's yamls, and no interpolation in it is
    resolved.

    Raises UsageError for a target that may not be called, parameters that it does not take or lacks, values of another
    type, and with what the component itself finds wrong.
    """
    if "_target_" not in node:
        raise UsageError(f"{where}{seam} has no _target_; its yaml must name the class that it configures")
    for path, chain, inner in components(where + seam, node):
        _check_parameters(path, _class(path, seam, chain), inner)
    try:
        return _made(node)
    except UsageError:
        raise
    except Exception as error:  # whatever a class of another package raises
        raise UsageError(f"{where}{seam}: {node['_target_']} cannot be made: {error}") from error


def _made(node: Any) -> Any:
    """What a checked node describes; components inside of others are made first."""
    if isinstance(node, list):
        return [_made(inner) for inner in node]
    if not isinstance(node, Mapping):
        return node
    values = {key: _made(inner) for key, inner in node.items()}
    return resolve_name(values.pop("_target_"))(**values) if "_target_" in values else values


def _class(path: str, seam: str, chain: Chain) -> type:
    target = chain[-1][1]
    if not named(seam, chain):
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


def refuse_remote_code(source: Path | str, node: Any) -> None:
    """Hold nodes that were read from `source`, somebody's file, to running no code that a model brings along.

    Raises UsageError where `trust_remote_code` is set, at any depth.
    """
    inside = node.items() if isinstance(node, Mapping) else enumerate(node) if isinstance(node, list) else ()
    for key, inner in inside:
        if key == "trust_remote_code" and inner:
            raise UsageError(
                f"{source} sets trust_remote_code={inner!r}, which runs Python code of a model ({node.get('model')!r}) "
                f"with your rights; read that code first, then add {TRUST}"
            )
        refuse_remote_code(source, inner)


def _check_parameters(path: str, made: Any, node: Mapping[str, Any]) -> None:
    parameters = signature(made).parameters
    given = {key: value for key, value in node.items() if key != "_target_"}
    for key in given:
        if key not in parameters:
            raise UsageError(f"{path}.{key}: {node['_target_']} takes no such parameter; {nearest(key, parameters)}")
    for key, parameter in parameters.items():
        if key not in given and parameter.default is Parameter.empty:
            raise UsageError(f"{path}.{key} is missing; {node['_target_']} needs it")
    hints = get_type_hints(vars(made).get("__init__", made) if isinstance(made, type) else made)
    for key, value in given.items():
        if key in hints and not fits(value, hints[key]):
            raise UsageError(f"{path}.{key}={value!r} must be {describe(hints[key])}")


def fits(value: Any, hint: Any) -> bool:
    """Is a value from a yaml one of type `hint`? Types that no yaml can write are not checked."""
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
    return True


def describe(hint: Any) -> str:
    """A type in words."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(describe(option) for option in inner)
    if origin is Literal:
        return f"one of {', '.join(map(str, inner))}"
    if origin in (list, tuple, Sequence):
        return f"a list, each {describe(inner[0])}" if inner else "a list"
    words = {float: "a number", int: "a whole number", bool: "true or false", str: "a text", types.NoneType: "null"}
    return words.get(hint, "a mapping" if origin in (dict, Mapping) else str(hint))
