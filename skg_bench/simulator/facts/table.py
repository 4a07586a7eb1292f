"""Knowers of what is asked, and messages that tell it: the file in the format of data/facts/facts.yaml, as arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import stamp
from skg_bench.core.grid import I32
from skg_bench.core.package import DATA
from skg_bench.simulator.yaml_files import yaml_of

KnownBy = Literal["world", "user", "device", "nobody"]
KNOWERS = ("world", "user", "device", "nobody")
BY_WORLD, BY_USER, BY_DEVICE, BY_NOBODY, TELLING = range(5)  # TELLING: the message asks for nothing
WAYS = ("tells", "changes", "implied", "ends")
TELLS, CHANGES, IMPLIED, ENDS = range(len(WAYS))
MOST_THINGS = 4096  # facts, and pairs of them
_SECTIONS = ("known_by", "one_offs", "facts", "pairs")
_BUILT_IN = tuple(DATA / "facts" / f"{name}.yaml" for name in ("facts", "more", "clinc150"))
_PAIR = ("name", "needs", "wordings")


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact that users tell: of one request type."""

    type: int  # index among the request types of the corpus
    values: tuple[str, ...]
    texts: Mapping[str, tuple[tuple[str, ...], ...]]  # by way: for each value its messages; of `ends` for no value


@dataclass(frozen=True, slots=True)
class FactPair:
    """A request that needs two facts."""

    name: str
    facts: tuple[int, int]  # indices of facts
    wordings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FactTable:
    """A file of facts, held against the request types of a corpus."""

    known_by: I32  # [types] index into KNOWERS
    one_offs: int  # of messages that nobody asks twice
    facts: tuple[Fact, ...]
    pairs: tuple[FactPair, ...]
    digest: str

    @staticmethod
    def none(n_types: int) -> "FactTable":
        """The table in which general knowledge answers all requests, and nobody tells anything."""
        return FactTable(np.zeros(n_types, np.int32), BY_WORLD, (), (), "")


def fact_table(path: str | None, types: Sequence[str], intents: Sequence[str]) -> FactTable:
    """The table of a file for these request types, named "intent" or "intent|slot value". None: the built-in files that
    are about intents of the corpus alone; of what two of them say, the first one's holds.

    Raises UsageError, with file and row, for an intent without `known_by`, a fact without values or messages, and
    unknown names.
    """
    files = (Path(path),) if path else _built_in(frozenset([*types, *intents]))
    return _compiled(files, tuple(types), tuple(intents), tuple(map(stamp, files)))


@lru_cache(maxsize=4)
def _built_in(names: frozenset[str]) -> tuple[Path, ...]:
    """Built-in files whose intents are all among these names; else the first one, which says what is amiss."""
    listed = ((file, [name for some in yaml_of(file)["known_by"].values() for name in some]) for file in _BUILT_IN)
    return tuple(file for file, rows in listed if names.issuperset(rows)) or _BUILT_IN[:1]


def _one_document(documents: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Built-in documents as one. Rows of a name that an earlier document has are left out."""
    known_by, facts = dict[str, list[str]](), dict[str, object]()
    listed = set[str]()
    for document in documents:
        for knower, names in document["known_by"].items():
            known_by.setdefault(knower, []).extend(name for name in names if name not in listed)
        listed |= {name for names in document["known_by"].values() for name in names}
        facts = {**document["facts"], **facts}
    pairs = [pair for document in documents for pair in document["pairs"]]
    return {"known_by": known_by, "one_offs": documents[0]["one_offs"], "facts": facts, "pairs": pairs}


@lru_cache(maxsize=4)
def _compiled(
    files: tuple[Path, ...], types: tuple[str, ...], intents: tuple[str, ...], _stamps: tuple[object, ...]
) -> FactTable:
    file = files[-1]
    document = yaml_of(file) if len(files) == 1 else _one_document([yaml_of(file) for file in files])
    if not isinstance(document, dict) or set(document) != set(_SECTIONS):
        raise UsageError(f"{file} must have the sections {', '.join(_SECTIONS)}, and no others; see data/facts")
    knower = _knowers(file, document["known_by"], types, intents)
    one_offs = document["one_offs"]
    if one_offs not in ("world", "nobody"):
        raise UsageError(f"{file}: one_offs={one_offs!r}, valid are world and nobody")
    facts = _facts(file, document["facts"], knower, types)
    place = {types[fact.type]: number for number, fact in enumerate(facts)}
    pairs = _pairs(file, document["pairs"], place)
    if len(facts) + len(pairs) > MOST_THINGS:
        raise UsageError(f"{file} has {len(facts)} facts and {len(pairs)} pairs; at most {MOST_THINGS:,} are taken")
    digest = blake2b(repr(document).encode(), digest_size=16).hexdigest()
    known_by = np.array([KNOWERS.index(knower[name]) for name in types], np.int32)
    return FactTable(known_by, KNOWERS.index(one_offs), facts, pairs, digest)


def _knowers(file: Path, section: object, types: Sequence[str], intents: Sequence[str]) -> Mapping[str, str]:
    """Knower of each request type; a row of the type itself stands before that of its intent."""
    if not isinstance(section, dict) or set(section) - set(KNOWERS):
        raise UsageError(f"{file}: known_by={section!r}, valid are lists of intents under {', '.join(KNOWERS)}")
    listed: dict[str, str] = {}
    valid = {*types, *intents}
    for knower, names in section.items():
        for name in names if isinstance(names, list) else [names]:
            if name not in valid:
                raise UsageError(f"{file}: known_by: {knower}: {name!r} is no intent of the corpus, nor `intent|value`")
            if name in listed:
                raise UsageError(f"{file}: known_by: {knower}: {name!r} stands under {listed[name]}, too; name it once")
            listed[name] = knower
    knower_of = {name: listed.get(name, listed.get(name.partition("|")[0], "")) for name in types}
    if missing := [name for name in types if not knower_of[name]]:
        raise UsageError(
            f"{file}: known_by: {missing[0].partition('|')[0]} is missing; list it under {', '.join(KNOWERS)}"
        )
    return knower_of


def _facts(file: Path, section: object, knower: Mapping[str, str], types: Sequence[str]) -> tuple[Fact, ...]:
    rows = section if isinstance(section, dict) else {}
    if unknown := set(rows) - {name.partition("|")[0] for name in types}:
        raise UsageError(f"{file}: facts: {min(unknown)} is no intent of the corpus")
    facts = []
    for number, name in enumerate(types):
        if knower[name] != "user":
            continue
        intent, _, slot = name.partition("|")
        if intent not in rows:
            raise UsageError(f"{file}: facts: {intent} is missing, which only the user knows; give values and messages")
        facts.append(_fact(file, intent, rows[intent], number, slot))
    return tuple(facts)


def _fact(file: Path, intent: str, row: object, number: int, slot: str) -> Fact:
    where = f"{file}: facts: {intent}"
    if not isinstance(row, dict) or set(row) != {"values", *WAYS}:
        raise UsageError(f"{where}: valid are the fields values, {', '.join(WAYS)}, each a list of texts")
    for name, texts in row.items():
        if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
            raise UsageError(f"{where}: {name}={texts!r}, valid is a list of at least one text; quote numbers")
    values = tuple(row["values"])
    if not 2 <= len(set(values)) == len(values):
        raise UsageError(f"{where}: values={list(values)}, valid are two or more different texts: a fact can change")
    for way in WAYS[:ENDS]:
        for text in row[way]:
            if "{value}" not in text or (slot and "{slot}" not in text):
                raise UsageError(f"{where}: {way}: {text!r} lacks {{value}}{' or {slot}' if slot else ''}")
    texts = {way: tuple(_filled(row[way], value, slot) for value in values) for way in WAYS[:ENDS]}
    return Fact(number, values, {**texts, "ends": (_filled(row["ends"], "", slot),)})


def _filled(wordings: Sequence[str], value: str, slot: str) -> tuple[str, ...]:
    return tuple(text.replace("{value}", value).replace("{slot}", slot) for text in wordings)


def _pairs(file: Path, section: object, place: Mapping[str, int]) -> tuple[FactPair, ...]:
    pairs = []
    for number, row in enumerate(section if isinstance(section, list) else [section]):
        where = f"{file}: pairs: row {number + 1}"
        if not isinstance(row, dict) or set(row) != set(_PAIR) or not isinstance(row["name"], str):
            raise UsageError(f"{where}: valid are the fields {', '.join(_PAIR)}")
        needs, wordings = row["needs"], row["wordings"]
        if not isinstance(needs, list) or len(needs) != 2 or any(name not in place for name in needs):
            raise UsageError(f"{where}: needs={needs!r}, valid are two requests that only the user knows")
        if not isinstance(wordings, list) or not wordings or not all(isinstance(text, str) for text in wordings):
            raise UsageError(f"{where}: wordings={wordings!r}, valid is a list of at least one text")
        pairs.append(FactPair(row["name"], (place[needs[0]], place[needs[1]]), tuple(wordings)))
    return tuple(pairs)


def pair_needs(path: str | None) -> Mapping[str, Sequence[str]]:
    """Request types that each request for two facts needs, by its name, of a file that `fact_table` reads; None: of
    all built-in ones, whose names differ.
    """
    files = (Path(path),) if path else _BUILT_IN
    return {row["name"]: row["needs"] for file in files for row in yaml_of(file)["pairs"]}
