"""Asks as lines of a recording: what an ask is known by, and the line that tells what came of it.

A line begins with a digest of the rest, so that a line which was edited by hand is noticed.
"""

import json
import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from hashlib import sha256
from typing import Any

from skg_bench.asking.asking import Completion, End, Prompt
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import json_of
from skg_bench.core.shapes import shaped

RECORDING_VERSION = 1
SETTINGS = ("model", "temperature", "top_p", "limit", "schema", "draw")  # what tells equal messages apart
_DIGEST = b'{"digest":"%s",'
_MOST = 1e15
_KEY = re.compile("[0-9a-f]{64}")
_BEGINS = len(_DIGEST % sha256().hexdigest().encode())  # where the rest of a line does


@dataclass(frozen=True, slots=True)
class Ask:
    """A prompt as a model with these settings gets it."""

    prompt: Prompt
    settings: Mapping[str, Any]

    @property
    def key(self) -> bytes:
        """SHA-256 of all that decides the answer. Where the temperature is 0, the draw is not part of it: equal prompts
        have equal answers. Above 0 each draw is a sample of its own.
        """
        raw, words = self.prompt.raw, {"schema": self.prompt.schema, "messages": self.prompt.messages}
        known = {**self._settings, **(words if raw is None else {"request": raw})}
        if known["draw"] is None:
            del known["draw"]
        return sha256(canonical_json(known)).digest()

    @property
    def fields(self) -> dict[str, Any]:
        """Fields of a line beside its key."""
        schema = self.prompt.schema
        digest = None if schema is None else sha256(canonical_json(schema)).hexdigest()
        words = {"role": self.prompt.role, "system": self.prompt.system, "user": self.prompt.user}
        return {**words, **self._settings, "schema": digest}

    @property
    def _settings(self) -> dict[str, Any]:
        temperature, top_p = self.settings["temperature"], self.settings["top_p"]
        return {
            "model": self.settings["model"],
            "temperature": _real(temperature),  # yaml reads 0 and 0.0 as two types
            "top_p": _real(top_p),
            "limit": self.prompt.limit,
            "draw": self.prompt.draw if temperature else None,
        }


def line(key: bytes, ask: Ask, completion: Completion) -> bytes:
    """Result of an ask, as JSON and a line break."""
    answer = {
        "answer": completion.text, "end": completion.end, "reason": completion.reason,
        "tokens_in": completion.tokens_in, "tokens_cached": completion.tokens_cached,
        "tokens_out": completion.tokens_out, "cost_usd": completion.cost_usd, "latency_ms": completion.latency_ms,
        "served": completion.served,
    }  # fmt: skip
    rest = json.dumps({"version": RECORDING_VERSION, "key": key.hex(), **ask.fields, **answer}).encode()[1:]
    return _DIGEST % sha256(rest).hexdigest().encode() + rest + b"\n"


def fields_of(written: bytes) -> dict[str, Any]:
    """Fields of a line, which comes without its line break.

    Raises ValueError for what is no line of a recording, of another version, or edited.
    """
    try:
        fields = json_of(written, "it")  # its texts may hold anything, half of a surrogate pair too
    except UsageError as error:
        raise ValueError(f"is no JSON ({error})") from error
    if not isinstance(fields, dict) or "version" not in fields:
        raise ValueError("is no line of a recording")
    if fields["version"] != RECORDING_VERSION:
        raise ValueError(
            f"is of version {reprlib.repr(fields['version'])}; this skg_bench reads version {RECORDING_VERSION}"
        )
    if written[:_BEGINS] != _DIGEST % sha256(written[_BEGINS:]).hexdigest().encode():
        raise ValueError("was changed after it was recorded: its digest does not fit")
    if not isinstance(fields.get("key"), str) or not _KEY.fullmatch(fields["key"]):
        raise ValueError("names no ask by 64 hex digits")
    answer = shaped(_Answer, {field.name: fields.get(field.name) for field in _ANSWER}, "it")
    numbers = answer.tokens_in, answer.tokens_cached, answer.tokens_out, answer.cost_usd, answer.latency_ms
    if not all(0 <= number <= _MOST for number in numbers):
        raise ValueError(f"has tokens, a cost or a latency that is not between 0 and {_MOST:g}")
    return fields


@dataclass(frozen=True, slots=True)
class _Answer:
    """Fields of an answer in a line."""

    answer: str
    end: End
    reason: str
    tokens_in: int
    tokens_cached: int
    tokens_out: int
    cost_usd: float
    latency_ms: float
    served: str


_ANSWER = dataclass_fields(_Answer)


def completion_of(fields: Mapping[str, Any]) -> Completion:
    """The answer in a line, without its value, which would take much memory for many lines."""
    return Completion(
        fields["answer"], None, fields["end"], fields["tokens_in"], fields["tokens_cached"], fields["tokens_out"],
        fields["cost_usd"], fields["latency_ms"], fields["reason"], fields["served"],
    )  # fmt: skip


def _real(value: float | None) -> float | None:
    return None if value is None else float(value)


def canonical_json(value: Any) -> bytes:
    """The one way to write a value as JSON, for keys. Raises ValueError for a number that is not finite."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
