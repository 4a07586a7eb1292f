"""Recordings of asks without some texts: what is asked again then is asked anew."""

import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from skg_bench.asking import frames
from skg_bench.asking.recorded_asks import fields_of
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import bytes_of

_WORDS = ("system", "user", "answer", "reason")  # fields of a line in which texts stand
_SHORT = 8  # characters of a text that may be a part of another one: it counts where it stands alone


def recordings_without(folder: Path, texts: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """Name and new content of each file with an ask, or an answer, in which one of these texts stands: without them.

    Raises UsageError for a file that cannot be read.
    """
    pattern = _pattern(texts)
    for file in sorted(folder.glob("*.jsonl.zst")) if texts else ():
        kept, dropped = list[bytes](), 0
        try:
            for _, frame in frames.whole(bytes_of(file)):
                lines = frame.splitlines()
                rest = [line for line in lines if not _holds(fields_of(line), pattern)]
                dropped += len(lines) - len(rest)
                kept += [frames.frame(b"".join(line + b"\n" for line in rest))] if rest else []
        except ValueError as error:
            raise UsageError(f"{file} {error}; take the file from a copy, or delete it") from error
        if dropped:
            yield file.name, b"".join(kept)


def _pattern(texts: Collection[str]) -> re.Pattern[str]:
    """Any of the texts, as they are and as prompts quote them in JSON."""
    forms = set[str]()
    for text in texts:
        quoted = json.dumps(text, ensure_ascii=False).replace("`", "\\u0060")
        forms |= {quoted} if len(text) < _SHORT else {text, quoted[1:-1]}
    return re.compile("|".join(map(re.escape, sorted(forms, key=len, reverse=True))))


def _holds(fields: dict[str, Any], pattern: re.Pattern[str]) -> bool:
    return any(pattern.search(str(fields.get(name, ""))) for name in _WORDS)
