"""Parsed JSON as dataclasses of ours, checked field by field to the bottom."""

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints


def shaped(kind: Any, value: Any, where: str) -> Any:
    """`value` as `kind`: a dataclass, Mapping[str, X], Sequence[X], tuple[X, ...], X | None, Literal, a plain type, or
    Any.

    Raises ValueError, which names the field below `where`.
    """
    origin, inner = _parts(kind)
    if kind is Any:
        return value
    if origin is UnionType:
        (some,) = (part for part in inner if part is not NoneType)
        return None if value is None else shaped(some, value, where)
    if isinstance(kind, type) and is_dataclass(kind):
        types = _types(kind)
        if not isinstance(value, Mapping) or set(value) != set(types):
            raise ValueError(f"{where} must have the keys {', '.join(types)}")
        return kind(**{name: shaped(types[name], value[name], f"{where}.{name}") for name in types})
    if origin is Mapping and isinstance(value, Mapping):
        return {key: shaped(inner[1], item, f"{where}.{key}") for key, item in value.items()}
    if origin in (Sequence, tuple) and isinstance(value, list):
        return tuple(shaped(inner[0], item, f"{where}[{at}]") for at, item in enumerate(value))
    if origin is Literal and value in inner:
        return value
    plain = origin is None and isinstance(value, bool) == (kind is bool)  # or else True were a number
    if plain and isinstance(value, (int, float) if kind is float else kind):
        return value
    name = kind.__name__ if origin is None else kind
    raise ValueError(f"{where} is {reprlib.repr(value)}, which is not of type {name}")


@cache
def _parts(kind: object) -> tuple[object, tuple[object, ...]]:
    return get_origin(kind), get_args(kind)


@cache
def _types(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}
