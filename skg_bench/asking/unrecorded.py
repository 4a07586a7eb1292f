"""Message for an ask that is not recorded: the nearest recorded one, and where they differ."""

from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from heapq import nsmallest
from itertools import zip_longest
from typing import Any

from skg_bench.asking.recorded_asks import SETTINGS, Ask

_COMPARED = 300  # recorded asks at most, those of the most similar length; a millisecond each
_SHOWN = 120  # characters of a line


def difference(ask: Ask, recorded: Iterable[Mapping[str, Any]]) -> str:
    """Difference between an ask and the nearest recorded one of the same role, lines as fields."""
    fields, roles, count = ask.fields, set(), 0

    def of_role() -> Iterable[Mapping[str, Any]]:
        nonlocal count
        for other in recorded:
            roles.add(other["role"])
            if other["role"] == fields["role"]:
                count += 1
                yield other

    near = nsmallest(_COMPARED, of_role(), key=lambda other: _distance(fields, other))
    if not near:
        return f"Nothing of that role is recorded, only of {', '.join(sorted(roles))}."
    match = SequenceMatcher(autojunk=False)
    match.set_seq2(fields["user"])

    def likeness(other: Mapping[str, Any]) -> tuple[float, int]:
        match.set_seq1(other["user"])
        return match.quick_ratio(), -len(_unlike(fields, other))

    nearest = max(near, key=likeness)
    parts = [_first_line(name, fields[name], nearest[name]) for name in ("system", "user")]
    parts += [f"{name}={_cut(fields[name])}, recorded with {_cut(nearest[name])}" for name in _unlike(fields, nearest)]
    return f"The nearest of {count:,} recorded differs: {'; '.join(part for part in parts if part)}."


def _distance(fields: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[bool, int]:
    same = all(fields[name] == other[name] for name in ("system", "user"))
    return not same, abs(len(fields["user"]) - len(other["user"]))


def _unlike(fields: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    return [name for name in SETTINGS if fields[name] != other[name]]


def _first_line(name: str, text: str, other: str) -> str:
    """The first line in which two texts differ; empty: none."""
    lines = zip_longest(text.splitlines(), other.splitlines(), fillvalue="")
    for number, (now, before) in enumerate(lines, 1):
        if now != before:
            alike = next(i for i, pair in enumerate(zip_longest(now, before)) if pair[0] != pair[1])
            start = max(0, alike - _SHOWN // 3) if max(len(now), len(before)) > _SHOWN else 0
            return f"line {number} of its {name} text is now {_cut(now, start)}, was {_cut(before, start)}"
    return f"its {name} text has other line breaks" if text != other else ""


def _cut(value: Any, start: int = 0) -> str:
    if not isinstance(value, str):
        return repr(value)
    cut = value[start : start + _SHOWN]
    return repr(f"{'...' if start else ''}{cut}{'...' if start + _SHOWN < len(value) else ''}")
