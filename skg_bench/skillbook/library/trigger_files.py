"""The file `triggers.toml`: categories with items and merchants, times of day and prices, and the triggers that are
made of them. The same file gives the same texts in the same order.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skg_bench.core.errors import UsageError
from skg_bench.skillbook.library.strategy_files import entry, toml_tables

TRIGGERS = "triggers.toml"
_FILE = ("texts_per_cell", "price", "time", "category")
_CATEGORY = ("merchants", "items")
_MOST_TEXTS = 1_000_000
_WORD = re.compile(r"[a-z0-9]+")
_UNSAID = frozenset({"a", "at", "in", "the"})


@dataclass(frozen=True, slots=True)
class TriggerParts:
    """Parts from which triggers are made."""

    file: Path
    per_cell: int  # texts for each category, time of day and price band
    prices: tuple[tuple[int, ...], ...]  # USD, of each band
    times: tuple[str, ...]
    openings: tuple[str, ...]  # how a text of each time begins
    categories: tuple[str, ...]
    merchants: tuple[tuple[str, ...], ...]  # of each category
    items: tuple[tuple[tuple[str, ...], ...], ...]  # of each category and band


@dataclass(frozen=True, slots=True)
class TriggerRow:
    """One trigger."""

    text: str
    category: int
    time: int
    band: int
    price: int


def read_parts(file: Path, text: str) -> TriggerParts:
    """Content of the file, checked."""
    tables = toml_tables(file, text, _FILE)
    per_cell = tables["texts_per_cell"]
    if type(per_cell) is not int or per_cell < 1:
        raise UsageError(f"{file}: texts_per_cell is {per_cell!r}, so there are no triggers; valid is 1 or more")
    prices = _prices(file, tables["price"])
    times, openings = _times(file, tables["time"])
    named = tables["category"]
    if not isinstance(named, dict) or not named:
        raise UsageError(f"{file} has no triggers; add a table [category.NAME] with {', '.join(_CATEGORY)}")
    merchants, items = [], []
    for name, values in named.items():
        where = f"category {name!r}"
        row = entry(file, where, values, _CATEGORY)
        merchants.append(_texts(file, f"{where}: merchants", row["merchants"]))
        if not isinstance(row["items"], list) or len(row["items"]) != len(prices):
            raise UsageError(f"{file}: {where}: items, valid are {len(prices)} lists, one for each price band")
        items.append(tuple(_texts(file, f"{where}: items {b + 1}", band) for b, band in enumerate(row["items"])))
    if (count := len(named) * len(times) * len(prices) * per_cell) > _MOST_TEXTS:
        raise UsageError(f"{file} makes {count:,} triggers; at most {_MOST_TEXTS:,} are taken: lower texts_per_cell")
    return TriggerParts(file, per_cell, prices, times, openings, tuple(named), tuple(merchants), tuple(items))


def _prices(file: Path, bands: Any) -> tuple[tuple[int, ...], ...]:
    if not isinstance(bands, list) or not all(isinstance(band, list) and band for band in bands) or not bands:
        raise UsageError(f"{file}: price is {bands!r}, valid is a list of prices for each band")
    flat = [price for band in bands for price in band]
    if any(type(price) is not int or not 1 <= price < 2**31 for price in flat) or flat != sorted(set(flat)):
        raise UsageError(f"{file}: price: valid are whole USD of 1 or more, each above the one before: {flat}")
    return tuple(tuple(band) for band in bands)


def _times(file: Path, openings: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if not isinstance(openings, dict) or not openings:
        raise UsageError(f"{file}: time is {openings!r}, valid is how texts of each time of day begin, by its name")
    return tuple(openings), _texts(file, "time", list(openings.values()))


def _texts(file: Path, where: str, values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not values:
        raise UsageError(f"{file}: {where} is {values!r}, valid is a list of at least one text")
    if blank := [value for value in values if not isinstance(value, str) or not value.strip()]:
        raise UsageError(f"{file}: {where} holds {blank[0]!r}, valid are texts that are not blank")
    if twice := [value for i, value in enumerate(values) if value in values[:i]]:
        raise UsageError(f"{file}: {where} holds {twice[0]!r} twice; name each once")
    return tuple(values)


def trigger_rows(parts: TriggerParts) -> list[TriggerRow]:
    """All triggers, by category, time of day and price band.

    Within a cell items, prices and merchants each go round, and begin elsewhere at another time of day.
    """
    rows: list[TriggerRow] = []
    for c, category in enumerate(parts.categories):
        for t, opening in enumerate(parts.openings):
            for b, prices in enumerate(parts.prices):
                items, merchants = parts.items[c][b], parts.merchants[c]
                for i in range(parts.per_cell):
                    item, price = items[(i + t) % len(items)], prices[(i + 2 * t) % len(prices)]
                    text = f"{opening}, {category}: {item} for ${price} at {merchants[(i + t + b) % len(merchants)]}"
                    rows.append(TriggerRow(text, c, t, b, price))
    _check(parts, rows)
    return rows


def _check(parts: TriggerParts, rows: Sequence[TriggerRow]) -> None:
    seen: set[str] = set()
    for row in rows:
        if row.text in seen:
            raise UsageError(
                f"{parts.file}: texts_per_cell={parts.per_cell} makes {row.text!r} twice; name more items, prices or "
                "merchants, or lower it"
            )
        seen.add(row.text)
        if named_context(row.text, parts.categories, parts.times) != row.category * len(parts.times) + row.time:
            raise UsageError(
                f"{parts.file}: {row.text!r} does not name category {parts.categories[row.category]!r} and time "
                f"{parts.times[row.time]!r} alone; valid are names of which none is within another, and openings with "
                "the name of their time"
            )


def named_context(text: str, categories: Sequence[str], times: Sequence[str]) -> int:
    """The context, category * len(times) + time, of the one category and the one time that a text names; -1: none.

    What stands before a colon counts alone where it names both, as an item may have a category's name in its own.
    """
    for part in (text.partition(":")[0], text):
        words = _words(part)
        category, time = _named(words, categories), _named(words, times)
        if category >= 0 and time >= 0:
            return category * len(times) + time
    return -1


def _named(words: str, names: Sequence[str]) -> int:
    """Index of the one name among these words, -1: none or several."""
    named = [i for i, name in enumerate(names) if _words(name) in words]
    return named[0] if len(named) == 1 else -1


def _words(text: str) -> str:
    """Words between blanks, without articles and prepositions, so that "late-night" is "late at night"."""
    return f" {' '.join(word for word in _WORD.findall(text.lower()) if word not in _UNSAID)} "
