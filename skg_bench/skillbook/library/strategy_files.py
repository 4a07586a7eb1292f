"""The files `kinds.toml` and `strategies.toml`: kinds of strategies, and the texts that there are of each.

Every error names the file, the entry, what is valid and what to do.
"""

import reprlib
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from skg_bench.core.content import Content
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I32, Bool, snap

KINDS_FILE, CONTENTS_FILE = "kinds.toml", "strategies.toml"
_KIND = ("persuades", "discerns", "category", "time")
_CONTENT = ("issue", "insight", "keywords", "sound")
_DOCUMENT = ("section", "kind")
_MOST = 1_000_000  # of a score


def toml_tables(file: Path, text: str, known: Sequence[str]) -> dict[str, Any]:
    """The tables of a TOML file with these names, all of them."""
    try:
        tables = tomllib.loads(text)
    except (RecursionError, ValueError) as error:
        raise UsageError(f"{file} is not valid TOML: {error}") from error
    return entry(file, "the file", tables, known)


def entry(file: Path, where: str, value: Any, known: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Any]:
    """A table with these fields, and no others."""
    if not isinstance(value, dict):
        raise UsageError(f"{file}: {where} is {value!r}, valid is a table with {', '.join(known)}")
    if unknown := [name for name in value if name not in known]:
        raise UsageError(f"{file}: {where} has the field {unknown[0]!r}, valid are {', '.join(known)}")
    if missing := [name for name in known if name not in value and name not in optional]:
        raise UsageError(f"{file}: {where} lacks {', '.join(missing)}; add it")
    return value


def finite_number(file: Path, where: str, value: Any, least: float = -np.inf) -> float:
    """A finite number that is neither too small nor too large."""
    bound = "" if least == -np.inf else f" of {least:g} or more"
    if isinstance(value, bool) or not isinstance(value, int | float) or not max(least, -_MOST) <= value <= _MOST:
        given = reprlib.repr(value)
        raise UsageError(f"{file}: {where} is {given}, valid is a finite number{bound}, at most {_MOST:,} in size")
    return float(value)


def read_kinds(
    file: Path, text: str, categories: Sequence[str], times: Sequence[str]
) -> tuple[tuple[str, ...], F64, F64, F64]:
    """Names `[K]`, what persuades and discerns `[K]`, and fit `[K, C]`.

    A cell of fit is the kind's score of the category plus its score of the time, 0 where none is given; all cells
    together are standardised to mean 0 and standard deviation 1.
    """
    tables = toml_tables(file, text, ("kind",))["kind"]
    if not isinstance(tables, dict) or not tables:
        raise UsageError(f"{file} has no kinds; add a table [kind.NAME] with {', '.join(_KIND)}")
    strengths, cells = [], []
    for name, values in tables.items():
        where = f"kind {name!r}"
        row = entry(file, where, values, _KIND)
        least = {"persuades": -np.inf, "discerns": 0.0}
        strengths.append([finite_number(file, f"{where}: {key}", row[key], least[key]) for key in least])
        by_category = _scores(file, f"{where}: category", row["category"], categories)
        by_time = _scores(file, f"{where}: time", row["time"], times)
        cells.append(np.add.outer(by_category, by_time).ravel())
    scores = np.array(cells)
    if scores.std() == 0:
        raise UsageError(f"{file}: fit is the same in all cells, so nothing fits better; give a kind another score")
    persuades, discerns = np.array(strengths).T
    fit = snap((scores - scores.mean()) / scores.std())
    return tuple(tables), persuades.copy(), discerns.copy(), fit


def _scores(file: Path, where: str, value: Any, names: Sequence[str]) -> F64:
    scores: Mapping[str, Any] = entry(file, where, value, names, optional=names)
    return np.array([finite_number(file, f"{where}: {name}", scores.get(name, 0)) for name in names])


def read_contents(file: Path, text: str, kinds: Sequence[str]) -> tuple[tuple[Content, ...], I32, Bool]:
    """Contents, and the kind and the soundness of each, `[N]`."""
    tables = toml_tables(file, text, _DOCUMENT)
    by_kind = entry(file, "kind", tables["kind"], kinds, optional=kinds)
    contents: list[Content] = []
    owners, sounds, places = list[int](), list[bool](), dict[int, str]()
    for number_of_kind, kind in enumerate(kinds):
        if not (rows := _tables(file, kind, by_kind.get(kind, []))):
            raise UsageError(f"{file}: kind {kind!r} has no contents; add a table [[kind.{kind}]] for each")
        for i, values in enumerate(rows):
            where = f"content {i + 1} of kind {kind!r}"
            row = entry(file, where, values, _CONTENT, optional=("sound",))
            content = _content(file, where, tables["section"], row)
            if content.key in places:
                raise UsageError(f"{file}: {where} says what {places[content.key]} says; write another text")
            if not isinstance(sound := row.get("sound", True), bool):
                raise UsageError(f"{file}: {where}: sound is {sound!r}, valid are true and false")
            places[content.key] = where
            contents.append(content)
            owners.append(number_of_kind)
            sounds.append(sound)
    return tuple(contents), np.array(owners, np.int32), np.array(sounds, np.bool_)


def _tables(file: Path, kind: str, rows: Any) -> list[Any]:
    if not isinstance(rows, list):
        raise UsageError(f"{file}: kind {kind!r} is {rows!r}, valid is a list of tables [[kind.{kind}]]")
    return rows


def _content(file: Path, where: str, section: Any, row: Mapping[str, Any]) -> Content:
    keywords = tuple(row["keywords"]) if isinstance(row["keywords"], list) else row["keywords"]
    try:
        return Content(section, row["issue"], row["insight"], keywords)
    except UsageError as error:
        raise UsageError(f"{file}: {where}: {error}") from error
