"""A file of what users tell, row by row, in the place of drawn tellings.

Each row has the owner of a fact (`user`), its request type (`fact`), the `day` on which it is told, the way (`tells`,
`changes`, `implied`, `ends`) and, except for `ends`, one of the fact's values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np

from skg_bench.core.calendar import DAY
from skg_bench.core.draws import Purpose, draw
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I32, U64
from skg_bench.simulator.facts.catalogue import Catalogue
from skg_bench.simulator.facts.ledger import Tellings
from skg_bench.simulator.facts.table import CHANGES, ENDS, IMPLIED, TELLS, WAYS
from skg_bench.simulator.yaml_files import yaml_of

_FIELDS = ("user", "fact", "day", "way", "value")
_WORDING = 12  # the decision in the key of the draw, as of drawn tellings


@dataclass(frozen=True, slots=True)
class ToldRow:
    """One message that tells a fact."""

    user: int
    fact: int
    time: int  # seconds
    way: int  # index into WAYS
    value: int  # index into the values of the fact, -1: there is nothing to know any more


def told_tellings(rows: Sequence[ToldRow], catalogue: Catalogue, keys: U64, users: I32, horizon: int) -> Tellings:
    """Tellings of users with keys `[B]` within `horizon` seconds."""
    place = {int(user): row for row, user in enumerate(users)}
    mine = [each for each in rows if each.user in place and each.time < horizon]
    row = np.array([place[each.user] for each in mine], np.int64)
    fact, value, way = (np.array([getattr(e, name) for e in mine], np.int32) for name in ("fact", "value", "way"))
    time = np.array([each.time for each in mine], np.int64)
    u = draw(keys[row], fact, Purpose.TOLD, time, _WORDING)
    order = np.lexsort((time, fact, row))
    text = catalogue.telling_text(fact, value, way, u)
    return Tellings(row[order], fact[order], time[order], value[order], way[order], text[order])


def told_digest(path: str | None) -> str:
    """Hash of a file of tellings; empty: there is none."""
    return "" if path is None else blake2b(repr(yaml_of(Path(path))).encode(), digest_size=16).hexdigest()


def told_rows(path: str, catalogue: Catalogue) -> tuple[ToldRow, ...]:
    """All rows of a file.

    Raises UsageError, with file and row, for a fact without owner or time, unknown names and values, and a change or an
    end before the fact was told.
    """
    file = Path(path)
    document = yaml_of(file)
    if not isinstance(document, list):
        raise UsageError(f"{file} must be a list of rows with the fields {', '.join(_FIELDS)}")
    facts = {catalogue.corpus_types[fact.type]: number for number, fact in enumerate(catalogue.table.facts)}
    rows = [_row(f"{file}: row {n}", row, facts, catalogue) for n, row in enumerate(document, 1)]
    last: dict[tuple[int, int], ToldRow] = {}
    for n in sorted(range(len(rows)), key=lambda at: rows[at].time):
        row = rows[n]
        _check_order(f"{file}: row {n + 1}", row, last.get((row.user, row.fact)))
        last[row.user, row.fact] = row
    return tuple(rows)


def _row(where: str, row: object, facts: Mapping[str, int], catalogue: Catalogue) -> ToldRow:
    if not isinstance(row, dict) or not set(row) <= set(_FIELDS):
        raise UsageError(f"{where}: {row!r}, valid are the fields {', '.join(_FIELDS)}")
    user, name, day, way, value = (row.get(field) for field in _FIELDS)
    if not isinstance(user, int) or isinstance(user, bool) or user < 0:
        raise UsageError(f"{where}: user={user!r}, valid is the number of the fact's owner, from 0 on")
    if not isinstance(day, int | float) or isinstance(day, bool) or not 0 <= day < float("inf"):
        raise UsageError(f"{where}: day={day!r}, valid is the time of the message in days since the run began")
    if not isinstance(name, str) or name not in facts:
        raise UsageError(f"{where}: fact={name!r}, valid are {', '.join(list(facts)[:5])} and others of this corpus")
    if way not in WAYS:
        raise UsageError(f"{where}: way={way!r}, valid are {', '.join(WAYS)}")
    values = catalogue.table.facts[facts[name]].values
    if way == WAYS[ENDS] and value is not None:
        raise UsageError(f"{where}: value={value!r}; leave it out, as what ends has none")
    if way != WAYS[ENDS] and value not in values:
        raise UsageError(f"{where}: value={value!r}, valid are {', '.join(values)}")
    number = -1 if value is None else values.index(value)
    return ToldRow(user, facts[name], int(day * DAY), WAYS.index(way), number)


def _check_order(where: str, row: ToldRow, before: ToldRow | None) -> None:
    """Raise UsageError for a change or an end of what was not told, and for a beginning of what goes on."""
    way = WAYS[row.way]
    holds = before is not None and before.way != ENDS
    if row.way in (CHANGES, ENDS) and not holds:
        raise UsageError(f"{where}: {way} before the fact was told; valid is first tells or implied, on an earlier day")
    if before is not None and before.time == row.time:
        raise UsageError(f"{where}: the user tells the same fact at this time twice; valid is a later day")
    if holds and row.way in (TELLS, IMPLIED) and before is not None and before.value != row.value:
        raise UsageError(f"{where}: {way} another value than before; valid is way: changes")
