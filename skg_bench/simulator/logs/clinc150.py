"""CLINC150 as a corpus: real people's messages to an assistant, with its out-of-scope ones as one-offs.

Larson et al., An Evaluation Dataset for Intent Classification and Out-of-Scope Prediction, EMNLP-IJCNLP 2019. A file in
its format is a JSON object of splits (`train, val, test, oos_train, oos_val, oos_test`), each a list of [message,
intent] pairs.

* How long an answer holds, and which intents are acts, is not in it; a table of intent names says so
  (`data/clinc150.yaml`).
* Slot values are not annotated. An intent whose answers depend on them has its messages dealt, by their hashes, to so
  many `values` of equal size: messages of one value count as the same request in other words, those of two as requests
  of other slot values. So texts do not show which value they mean, and which of a user's own requests of such an intent
  comes again is for a router to guess: a lower bound of what it could know. `values=1`, where an intent's messages all
  ask for the same, is the upper one.
* A run draws from one split alone. Within it a user's k-th use of a request type takes its k-th wording in that user's
  own order: what is captured is what the user said, and what comes later was not said before, until wordings are used
  up. What is tuned outside the loop, or fitted on other people's ratings, is kept apart by the split.
* Nothing is known of the hour, the weekday and the intent before: all are as likely at any time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import LONGEST_TEXT, bytes_of, json_of, plain
from skg_bench.core.package import DATA
from skg_bench.core.reach import Reach, Reaches
from skg_bench.simulator.answers.corpus import Corpus
from skg_bench.simulator.answers.intent_table import dealt, read_table
from skg_bench.simulator.logs.datasets import datasets

Split = Literal["train", "val", "test"]
_FILE = "data_full.json"
_REREAD = "; get the file again, or name another: simulator.corpus.file=FILE"


@dataclass(frozen=True)
class Clinc150:
    """A corpus in CLINC150's format. What each parameter means stands in its yaml."""

    file: str | None
    table: str | None
    split: Split
    values: int
    reaches: ClassVar[Reaches] = {"file": Reach(("reads",)), "table": Reach(("reads",))}

    def __post_init__(self) -> None:
        if self.split not in get_args(Split):
            raise UsageError(f"simulator.corpus.split={self.split!r}, valid are {', '.join(get_args(Split))}")
        if self.values < 1:
            raise UsageError(f"simulator.corpus.values={self.values} must be at least 1")

    def load(self) -> Corpus:
        """The corpus.

        Raises UsageError for a file that is absent, torn or of another format, for messages whose intent the table does
        not label, and for labels without messages.
        """
        return _load(self.file, self.table, self.split, self.values)


@lru_cache(maxsize=4)
def _load(file: str | None, table: str | None, split: Split, values: int) -> Corpus:
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
