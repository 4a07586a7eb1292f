"""Files in yaml that others wrote."""

from pathlib import Path
from typing import Any

import yaml

from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import FAULTS, plain, text_of

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_LARGEST = 100_000_000  # bytes


def yaml_of(file: Path) -> Any:
    """Content of a file.

    Raises UsageError for what is no yaml of plain values.
    """
    text = text_of(file, _LARGEST)
    try:
        value = yaml.load(text, Loader=_LOADER)  # noqa: S506  a safe loader
    except (yaml.YAMLError, *FAULTS) as error:  # a tag that does not fit its value raises anything
        raise UsageError(f"{file} is not valid yaml: {' '.join(str(error).split())}") from error
    return plain(value, file)
