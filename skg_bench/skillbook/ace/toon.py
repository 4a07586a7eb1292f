"""Values as TOON (Token-Oriented Object Notation, spec 4) with tabs, in which older books stand in prompts.

A list of objects with the same keys is a table: `name[rows<tab>]{columns}:`, then a line a row. The oracle is
python-toon 0.2.0.
"""

import math
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?", re.IGNORECASE)
_SPECIAL = re.compile(r'[:"\\\[\]{}\x00-\x1f]')  # a tab, which parts cells, is among them
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
ToonColumns = list[tuple[str, Any]]  # names, and the columns within where values are objects


def toon_table(name: str, rows: list[Any]) -> str:
    """`{name: rows}` as text.

    Raises ValueError for a lone surrogate.
    """
    return "\n".join(_entry(name, rows, 0))


def _entry(key: str, value: Any, depth: int) -> Iterator[str]:
    """A key of an object and its value."""
    pad = "  " * depth
    if isinstance(value, list):
        if value:
            yield from _list(key, value, depth, tabular=True)
        else:
            yield f"{pad}{_key(key)}: []"
    elif isinstance(value, dict):
        columns = _columns(list(value.values())) if len(value) > 1 else None
        if columns is None:
            yield f"{pad}{_key(key)}:"
            for inner, content in value.items():
                yield from _entry(inner, content, depth + 1)
        else:
            yield f"{pad}{_key(key)}[{len(value)}:\t]{_names(columns)}:"
            for inner, content in value.items():
                yield f"{pad}  {_key(inner)}: {_row(content, columns)}"
    else:
        yield f"{pad}{_key(key)}: {_cell(value)}"


def _list(key: str | None, values: list[Any], depth: int, *, tabular: bool) -> Iterator[str]:
    """A list that is not empty: in a line, as a table, or an item a line."""
    pad = "  " * depth
    head = f"{pad}{'' if key is None else _key(key)}[{len(values)}\t]"
    if not any(isinstance(value, list | dict) for value in values):
        yield f"{head}: {_cells(values)}"
        return
    columns = _columns(values) if tabular else None
    if columns is not None:
        yield f"{head}{_names(columns)}:"
        for value in values:
            yield f"{pad}  {_row(value, columns)}"
        return
    yield f"{head}:"
    for value in values:
        yield from _item(value, depth + 1)


def _item(value: Any, depth: int) -> Iterator[str]:
    """An item of a list that is no table; its first line stands behind the dash."""
    pad = "  " * depth
    if isinstance(value, list):
        lines = _list(None, value, depth, tabular=False) if value else iter([f"{pad}[0\t]:"])
        yield f"{pad}- {next(lines).removeprefix(pad)}"
        yield from lines
    elif isinstance(value, dict):
        lines = (line for key, content in value.items() for line in _entry(key, content, depth + 1))
        first = next(lines, None)
        yield f"{pad}-" if first is None else f"{pad}- {first.removeprefix(pad + '  ')}"
        yield from lines
    else:
        yield f"{pad}- {_cell(value)}"


def _columns(values: list[Any]) -> ToonColumns | None:
    """The columns of a table of these objects; None where they do not make one."""
    first = values[0]
    if not isinstance(first, dict) or not first:
        return None
    if any(not isinstance(value, dict) or value.keys() != first.keys() for value in values):
        return None
    columns: ToonColumns = []
    for name in first:
        column = [value[name] for value in values]
        within = None
        if any(isinstance(cell, list | dict) for cell in column):
            within = _columns(column)
            if within is None:
                return None
        columns.append((name, within))
    return columns


def _names(columns: ToonColumns) -> str:
    return "{" + "\t".join(_key(name) + (_names(within) if within else "") for name, within in columns) + "}"


def _row(value: dict[str, Any], columns: ToonColumns) -> str:
    return "\t".join(
        _row(value[name], within) if within else _cell(value[name]) for name, within in columns
    )  # fmt: skip


def _cells(values: list[Any]) -> str:
    return "\t".join(map(_cell, values))


def _key(text: str) -> str:
    _check(text)
    return text if _BARE_KEY.fullmatch(text) else _quoted(text)


def _cell(value: Any) -> str:
    if isinstance(value, str):
        _check(value)
        bare = value and value[0] not in " \t-#" and value[-1] not in " \t" and value not in ("null", "true", "false")
        return value if bare and not _NUMBER.fullmatch(value) and not _SPECIAL.search(value) else _quoted(value)
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return _decimal(value) if isinstance(value, float) else str(value)


def _decimal(value: float) -> str:
    """Plain digits between 1e-6 and 1e21, an exponent with its sign outside."""
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    text = repr(value)
    if 1e-6 <= abs(value) < 1e21:
        return format(Decimal(text), "f") if "e" in text else text
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa.removesuffix('.0')}e{'-' if exponent[0] == '-' else '+'}{exponent.lstrip('+-').lstrip('0')}"


def _check(text: str) -> None:
    if _SURROGATE.search(text):
        raise ValueError(f"a text with a lone surrogate cannot be written: {text!r}")


def _quoted(text: str) -> str:
    return '"' + "".join(_ESCAPED.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in text) + '"'
