"""Files with something wrong in them: bytes that are flipped, cut and spliced, and values that are none of theirs."""

import json
import random
from collections.abc import Callable, Mapping
from typing import Any

Files = Mapping[str, bytes]  # by path below a folder
FOLDER = b"\0folder"  # as a file's content: a folder stands in its place
DEEP = "[" * 2_000 + "]" * 2_000
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**70), 10**400, 0.5, -0.0, 1e308, float("nan"), float("inf"), "", " ",
    "\ud800", "\0", "x" * 150_000, "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "²", [], [[]], {}, {"": 0},
    {"\udfff": 1}, ["a", 1], {"role": "user"}, "../..", "*", "ok",
)  # fmt: skip
TOKENS = (
    b"\xff\xfe", b"\0", b"null", b"-1", b"1e999", b"9" * 5_000, b'"\\ud800"', b"NaN", DEEP.encode(), b"{" * 500, b'"',
    b"\r", b"\t\t", b"---\n", b"&a [*a]", b"!!bool x", b"2024-13-45", b": ", b"\xe2\x80\xa8", b"[]", b"{}", b"=",
)  # fmt: skip


def mutated(files: Files, seed: int) -> dict[str, bytes]:
    """The files with one to three faults."""
    chance, broken = random.Random(seed), dict(files)  # noqa: S311  equal seeds, equal faults
    for _ in range(chance.choice((1, 1, 2, 3))):
        name = chance.choice(sorted(broken))
        raw = broken[name]
        if raw == FOLDER:
            continue
        kinds: list[Callable[[random.Random, bytes], bytes]] = [_flipped, _cut, _spliced, _token, _odd, _odd, _odd]
        broken[name] = chance.choice([*kinds, _gone])(chance, raw)
    return broken


def _flipped(chance: random.Random, raw: bytes) -> bytes:
    new = bytearray(raw)
    for _ in range(chance.choice((1, 1, 4, 30)) if new else 0):
        new[chance.randrange(len(new))] ^= 1 << chance.randrange(8)
    return bytes(new)


def _cut(chance: random.Random, raw: bytes) -> bytes:
    begin, end = sorted(chance.randrange(len(raw) + 1) for _ in range(2))
    return chance.choice((raw[:begin], raw[:begin] + raw[end:], raw[end:]))


def _spliced(chance: random.Random, raw: bytes) -> bytes:
    begin, end = sorted(chance.randrange(len(raw) + 1) for _ in range(2))
    at = chance.randrange(len(raw) + 1)
    return raw[:at] + raw[begin:end][:10_000] * chance.choice((1, 1, 20)) + raw[at:]


def _token(chance: random.Random, raw: bytes) -> bytes:
    """Something odd over a word, or between two bytes."""
    at = chance.randrange(len(raw) + 1)
    return raw[:at] + chance.choice(TOKENS) + raw[at + chance.choice((0, 0, 1, 3, 8)) :]


def _gone(chance: random.Random, raw: bytes) -> bytes:
    return chance.choice((b"", FOLDER))


def _odd(chance: random.Random, raw: bytes) -> bytes:
    """A value of JSON, or of a line of it, is another one."""
    lines = raw.split(b"\n")
    at = chance.randrange(len(lines))
    for part, before, after in ((raw, [], []), (lines[at], lines[:at], lines[at + 1 :])):
        try:
            value = json.loads(part)
        except (ValueError, RecursionError):
            continue
        return b"\n".join([*before, json.dumps(odd(chance, value)).encode(), *after])
    return _token(chance, raw)


def odd(chance: random.Random, value: Any) -> Any:
    """`value` with one value inside of it replaced, left out, doubled or added."""
    if isinstance(value, dict) and value and chance.random() < 0.93:
        key = chance.choice(list(value))
        if chance.random() < 0.08:
            return {name: inner for name, inner in value.items() if name != key}
        if chance.random() < 0.05:
            return value | {chance.choice(("x", "", "\ud800", key + key)): value[key]}
        return value | {key: odd(chance, value[key])}
    if isinstance(value, list) and value and chance.random() < 0.9:
        at = chance.randrange(len(value))
        if chance.random() < 0.1:
            return chance.choice((value[:at] + value[at + 1 :], value + [value[at]] * 3, value[::-1]))
        return [*value[:at], odd(chance, value[at]), *value[at + 1 :]]
    if chance.random() < 0.03:
        return json.loads("[" * 400 + "]" * 400)
    return chance.choice(ODD)
