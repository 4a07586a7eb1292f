"""Files in CLINC150's format, read as a corpus. What of it is assumed says `skg_bench/simulator/logs/clinc150.py`."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import LONGEST_TEXT, bytes_of, json_of, plain, stamp
from skg_bench.core.package import DATA
from skg_bench.simulator.answers.corpus import Corpus
from skg_bench.simulator.answers.intent_table import dealt, read_table
from skg_bench.simulator.datasets import datasets

Split = Literal["train", "val", "test"]
_FILE = "data_full.json"
_REREAD = "; get the file again, or name another: simulator.corpus.file=FILE"


def clinc150_corpus(file: str | None, table: str | None, split: Split, values: int) -> Corpus:
    """The corpus of a split; parameters are those of `conf/simulator/clinc150.yaml`.

    Raises UsageError.
    """
    places = datasets()["clinc150"].locations(_FILE) if file is None else (file,)
    return _corpus(file, table, split, values, tuple(map(stamp, (*places, *([table] if table else [])))))


@lru_cache(maxsize=4)
def _corpus(file: str | None, table: str | None, split: Split, values: int, _stamps: tuple[object, ...]) -> Corpus:
    source = file or f"{_FILE} of clinc150"
    pairs, one_offs = _read(_raw(file), split, source)
    intents, slotted = read_table(Path(table) if table else DATA / "clinc150.yaml")
    wordings: dict[str, list[str]] = {intent.name: [] for intent in intents}
    for message, name in pairs:
        if name not in wordings:
            raise UsageError(
                f"{source}: intent {name!r} has no label in the table; add it: simulator.corpus.table=FILE"
            )
        wordings[name].append(message)
    if bare := [name for name, messages in wordings.items() if not messages]:
        raise UsageError(f"{source}: intent {bare[0]!r} has no wordings in split {split}{_REREAD}")
    try:
        return dealt(wordings, one_offs, intents, slotted=slotted, values=values, where=f" in split {split}")
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from error


def _raw(file: str | None) -> bytes:
    if file is None:
        return datasets()["clinc150"].read(_FILE)
    try:
        return bytes_of(Path(file))
    except UsageError as error:
        raise UsageError(f"simulator.corpus.file={error}; null: CLINC150's own") from error


def _read(raw: bytes, split: Split, source: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Pairs of the split, and its messages out of scope, if there are any."""
    try:
        document = plain(json_of(raw, source), source)
    except UsageError as error:
        raise UsageError(f"{error}{_REREAD}") from error
    parts = []
    for name in (split, f"oos_{split}"):
        optional = name != split
        pairs = document.get(name, [] if optional else None) if isinstance(document, Mapping) else None
        if not isinstance(pairs, list) or not (pairs or optional) or not all(_pair(pair) for pair in pairs):
            raise UsageError(f"{source} has no split {name!r}, a list of [message, intent] pairs{_REREAD}")
        parts.append([(str(message), str(intent)) for message, intent in pairs])
    return parts[0], [message for message, _ in parts[1]]


def _pair(pair: Any) -> bool:
    return (
        isinstance(pair, list)
        and len(pair) == 2
        and all(isinstance(text, str) and len(text) <= LONGEST_TEXT for text in pair)
    )
