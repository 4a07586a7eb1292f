"""Answers that must be JSON of a schema."""

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from skg_bench.core.errors import UsageError

_FENCED = re.compile(r"\s*```(?:json)?\s*\n(.*?)\n\s*```\s*", re.DOTALL)
_SHOWN = 200  # characters of what is wrong


def structured_answer(text: str, schema: Mapping[str, Any] | None) -> tuple[Any, str]:
    """The value of an answer, and what is wrong with it, empty where nothing is. A fence of Markdown around the JSON is
    taken away. Without a schema there is no value and nothing wrong.
    """
    if schema is None:
        return None, ""
    try:
        value = value_of(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair is a ValueError
    except (ValueError, RecursionError) as error:
        return None, f"the answer is no JSON: {_short(str(error))}"
    import jsonschema

    misfit = next(iter(jsonschema.Draft202012Validator(schema).iter_errors(value)), None)
    if misfit is not None:
        return None, _short(f"the answer does not fit its schema at {misfit.json_path}: {misfit.message}")
    return value, ""


@cache
def check_schema(role: str, text: str) -> None:
    """Raises UsageError where a text is no JSON schema."""
    import jsonschema

    try:
        jsonschema.Draft202012Validator.check_schema(json.loads(text))
    except jsonschema.SchemaError as error:
        raise UsageError(
            f"the schema in the prompt file of role {role!r} is no JSON schema at {error.json_path}: "
            f"{_short(error.message)}"
        ) from error


def value_of(text: str) -> Any:
    """The value of an answer that is known to fit its schema: checking it again takes ten times as long.

    Raises ValueError or RecursionError for a text that is no JSON.
    """
    fenced = _FENCED.fullmatch(text)
    return json.loads(fenced[1] if fenced else text, parse_constant=_refuse)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number of JSON")


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
