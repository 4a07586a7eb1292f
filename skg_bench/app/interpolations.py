"""Interpolations, `${...}`, of a configuration: what they may name."""

import re
from collections.abc import Mapping
from typing import Any

from skg_bench.core.errors import UsageError

_KEY = re.compile(r"\$\{\s*[\w.\[\]]+\s*\}")  # ${seed}


def check_interpolations(path: str, value: Any, where: str = "") -> None:
    """A text in `value` may refer to another key of the configuration, and to nothing outside of it: resolvers such as
    `${oc.env:NAME}` would write what they find into the manifest.

    Raises UsageError for all else that begins with `${`, before anything is resolved.
    """
    inside = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in inside:
        check_interpolations(path, key, where)
        check_interpolations(f"{path}.{key}", inner, where)
    if isinstance(value, str) and "${" in _KEY.sub("", value):
        raise UsageError(
            f"{where}{path}={value!r} is refused: ${{...}} may name another key of the configuration, such as "
            "${seed}, and nothing else. Secrets stay in the environment, where the component that needs them looks"
        )
