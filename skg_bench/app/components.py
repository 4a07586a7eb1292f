"""Nodes of the configuration to components: the one place where something named in a yaml is called."""

import types
from collections.abc import Mapping, Sequence
from inspect import Parameter, signature
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hydra.errors import HydraException
from hydra.utils import get_object, instantiate

from skg_bench.app.packages import ENTRY_POINTS, packages, trusted
from skg_bench.app.wording import nearest
from skg_bench.core.errors import UsageError


def build(seam: str, node: Mapping[str, Any]) -> Any:
    """The component that `node` (with `_target_`) describes; `seam` names it in errors.

    Raises UsageError for a target that may not be called, parameters that it does not take or lacks, values of another
    type, and with what the component itself finds wrong.
    """
    if "_target_" not in node:
        raise UsageError(f"{seam} has no _target_; its yaml must name the class that it configures")
    _check(seam, node)
    try:
        return instantiate(dict(node), _convert_="all")
    except HydraException as error:
        cause = _root_cause(error)
        if isinstance(cause, UsageError):
            raise cause from error
        raise UsageError(f"{seam}: {node['_target_']} cannot be made: {cause}") from error


def _root_cause(error: BaseException) -> BaseException:
    while not isinstance(error, UsageError) and error.__cause__ is not None:
        error = error.__cause__
    return error


def _check(path: str, node: Any) -> None:
    """Check `node` and all nodes below it."""
    if isinstance(node, list):
        for i, inner in enumerate(node):
            _check(f"{path}.{i}", inner)
    if not isinstance(node, Mapping):
        return
    if "_target_" in node:
        _check_parameters(path, _locate(path, node["_target_"]), node)
    for key, inner in node.items():
        _check(f"{path}.{key}", inner)


def _locate(path: str, target: Any) -> Any:
    if not isinstance(target, str) or not trusted(target):
        known = ", ".join(f"{package.name}.*" for package in packages())
        raise UsageError(
            f"{path}._target_={target!r} is refused; it may be {known}. A package of your own joins by an entry point "
            f"of group {ENTRY_POINTS}"
        )
    try:
        found = get_object(target)
    except (HydraException, ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"{path}._target_={target!r} cannot be imported: {_root_cause(error)}") from error
    home = getattr(found, "__module__", None) or ""
    if not callable(found) or not trusted(f"{home}."):  # skg_bench.x.os.system is not ours
        raise UsageError(f"{path}._target_={target!r} is refused; it is no component of {target.split('.')[0]}")
    return found


def _check_parameters(path: str, made: Any, node: Mapping[str, Any]) -> None:
    parameters = signature(made).parameters
    given = {key: value for key, value in node.items() if key not in ("_target_", "_convert_", "_recursive_")}
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
        return any(fits(value, one) for one in inner)
    if origin is Literal:
        return any(value == one and type(value) is type(one) for one in inner)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint in (bool, str, types.NoneType):
        return isinstance(value, types.NoneType if hint is types.NoneType else hint)
    if origin in (list, tuple, Sequence):
        return isinstance(value, list) and (not inner or all(fits(one, inner[0]) for one in value))
    if origin in (dict, Mapping):
        return isinstance(value, Mapping)
    return True


def describe(hint: Any) -> str:
    """A type in words."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(describe(one) for one in inner)
    if origin is Literal:
        return f"one of {', '.join(map(str, inner))}"
    if origin in (list, tuple, Sequence):
        return f"a list, each {describe(inner[0])}" if inner else "a list"
    words = {float: "a number", int: "a whole number", bool: "true or false", str: "a text", types.NoneType: "null"}
    return words.get(hint, "a mapping" if origin in (dict, Mapping) else str(hint))
