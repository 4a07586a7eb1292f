"""Sheets for people who judge answers: a CSV file, or one page that works offline.

Turns come in an order drawn by key, and the answers to a turn, each text once, too: a rater cannot tell which arm
gave an answer, or which one the log did.
"""

import csv
from collections.abc import Sequence
from io import StringIO
from typing import NamedTuple

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from skg_bench.analysis.labels.hit_pairs import HitPairs, pair_digest
from skg_bench.core.draws import Purpose, draw, key
from skg_bench.core.text import script_json

SHEET_HEAD = ("pair", "when", "user", "message", "answer", "label")
_PACKAGE = "skg_bench.analysis.labels"
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # first signs of a cell that a spreadsheet program would compute


class SheetRow(NamedTuple):
    """An answer to be judged."""

    pair: str  # 16 hexadecimal digits
    when: str
    user: str  # as the log names them; empty for a task
    message: str
    answer: str


def sheet_rows(hit_pairs: HitPairs, turns: Sequence[int], seed: int = 0) -> list[list[SheetRow]]:
    """Answers to each turn, the turns in an order drawn by key. Pairs that came before are left out: those of a task
    that comes again, or of a user who asked the same twice in a minute.
    """
    table = hit_pairs.table.take(np.array(turns, np.int64))
    keys = key(seed, table["user"].to_numpy().astype(np.int64))
    events = table["event"].to_numpy().astype(np.int64)
    texts = [stored.take(np.array(turns, np.int64)).to_pylist() for stored in hit_pairs.stored.values()]
    messages, logged, users = (table[name].to_pylist() for name in ("message", "logged_answer", "logged_user"))
    question = hit_pairs.question[np.array(turns, np.int64)]
    times = [
        str(logged_time or time)[:16]
        for logged_time, time in zip(table["logged_time"].to_pylist(), table["time"].to_pylist(), strict=True)
    ]
    before, groups = set[str](), list[list[SheetRow]]()
    for i in np.argsort(draw(keys, events, Purpose.JUDGED, item=1), kind="stable"):
        answers = [logged[i], *(column[i] for column in texts)]
        distinct = list(dict.fromkeys(answer for answer in answers if answer is not None))
        rank = draw(np.full(len(distinct), keys[i]), int(events[i]), Purpose.JUDGED, 2, np.arange(len(distinct)))
        rows = [
            SheetRow(f"{pair:016x}", times[i], users[i] or "", messages[i], answer)
            for pair, answer in ((pair_digest(question[i : i + 1], distinct[j]), distinct[j]) for j in np.argsort(rank))
        ]
        fresh = [row for row in rows if row.pair not in before]
        before.update(row.pair for row in fresh)
        groups += [fresh] if fresh else []
    return groups


def sheet_text(groups: Sequence[Sequence[SheetRow]]) -> str:
    """The CSV file, with an empty column `label`."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\r\n")  # so that both of its characters are quoted within a cell
    writer.writerow(SHEET_HEAD)
    writer.writerows(
        (row.pair, row.when, guarded(row.user), guarded(row.message), guarded(row.answer), "")
        for rows in groups
        for row in rows
    )
    return text.getvalue()


def guarded(text: str) -> str:
    """The text with an apostrophe before it where a spreadsheet program would compute it."""
    return f"'{text}" if text.lstrip("'").startswith(_FORMULA) else text


def unguarded(text: str) -> str:
    """The text without the apostrophe of `guarded`."""
    return text[1:] if text.startswith("'") and text.lstrip("'").startswith(_FORMULA) else text


def label_page(groups: Sequence[Sequence[SheetRow]], name: str) -> str:
    """The page; it offers the file `name` with the labels."""
    environment = Environment(
        loader=PackageLoader(_PACKAGE, "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    turns = [
        {
            "when": rows[0].when,
            "user": rows[0].user,
            "message": rows[0].message,
            "answers": [[row.pair, row.answer] for row in rows],
        }
        for rows in groups
    ]
    return environment.get_template("label_page.html.j2").render(
        turns=Markup(script_json(turns)),  # noqa: S704  no markup is left
        file=name,
        n=sum(map(len, groups)),
    )
