"""Answers of curators, which are checked: whom to ask, and operations on the books of their own users."""

from typing import Any

import numpy as np

from skg_bench.core.batch import ADD, OPERATIONS, REMOVE, TAG_RATINGS, Batch
from skg_bench.core.errors import RowError, UsageError, dotted_name, naming
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import I64, Bool, kind_in_words
from skg_bench.core.types import Observation, Skillbooks
from skg_bench.core.world import Reaction

_COLUMNS = tuple(Batch.__slots__)
_WHOLE = {"i", "u"}  # kinds of numpy's dtypes


def offers_by(curator: Any, seen: Observation, memory: Any) -> Bool:
    """Users whom a curator asks, `[B]`.

    Raises UsageError, which names it, for what is no mask of them.
    """
    n = len(seen.text)
    with naming(curator):
        offers: Bool = curator.offers(seen, memory)
    try:
        sound = offers.dtype.kind == "b" and offers.shape == (n,)
    except AttributeError:
        sound = False
    if not sound:
        raise UsageError(
            f"{dotted_name(curator)}.offers gave {kind_in_words(offers)}; valid is an array of true and false [{n}]"
        )
    return offers


def curated_by(
    curator: Any, seen: Observation, books: Skillbooks, heard: tuple[Reaction, KnownFeedback], *, memory: Any,
    rows: I64 | None,
) -> tuple[Any, Batch]:  # fmt: skip
    """Memory of a curator after a turn, and its operations; `rows` `[B]`: places of its users in the cohort, None: 0 to
    B - 1.

    Raises UsageError, which names it, for what is no batch, and RowError for an operation on no book or skill of its
    users, of a turn to come, or with a text that the user never met.
    """
    with naming(curator):
        made: tuple[Any, Batch] = curator.curate(seen, *heard, books, memory)
        try:
            _, batch = made
            columns = (
                batch.row, batch.op, batch.skill, batch.name, batch.text, batch.source, batch.rating, batch.uses,
                batch.reason, batch.content, batch.about,
            )  # fmt: skip
            shape, kinds = batch.op.shape, {each.dtype.kind for each in columns}
            sound = len(shape) == 1 and kinds <= _WHOLE and {each.shape for each in columns} == {shape}
        except (AttributeError, TypeError, ValueError):
            sound = False
        if not sound:
            valid = "a memory and a Batch of arrays of whole numbers, one for each operation"
            raise UsageError(f"{dotted_name(curator)}.curate gave {_listing(made)}; valid is {valid}")
        if shape[0]:
            _check_numbers(curator, batch, seen.turn, books, rows)
            if not curator.sees_truth:
                _check_texts(batch, seen, heard[0])
    return made


def _check_numbers(curator: Any, batch: Batch, turn: int, books: Skillbooks, rows: I64 | None) -> None:
    n, m = books.n_skills.shape[0], batch.op.shape[0]
    theirs = (batch.row >= 0) & (batch.row < n)
    have = books.n_skills[batch.row * theirs] + m * (batch.op == REMOVE)  # a batch may remove what it adds
    holds = {
        "row": theirs,
        "op": (batch.op >= 0) & (batch.op <= REMOVE),
        "skill": (batch.op == ADD) | ((batch.skill >= 0) & (batch.skill < have)),
        "source": (batch.source >= -1) & (batch.source <= turn),
        "about": (batch.about >= -1) & (batch.about <= turn),
        "rating": (batch.rating >= -1) & (batch.rating < len(TAG_RATINGS)),
        "uses": (batch.uses >= 0) & (batch.uses <= 1),
        "reason": (batch.reason >= 0) & (batch.reason < len(curator.reasons)),
    }
    sound = theirs
    for each in holds.values():
        sound = sound & each
    if np.logical_and.reduce(sound):
        return
    at = int(np.argwhere(~sound)[0][0])
    name = next(name for name, each in holds.items() if not each[at])
    row = int(batch.row[at]) if theirs[at] else 0
    valid = {
        "row": f"0 to {n - 1}, the users of the call", "op": f"0 to {REMOVE}: {', '.join(OPERATIONS)}",
        "skill": f"ids of the skills that this user has, which are {books.n_skills[row]}",
        "source": f"0 to {turn}, turns of the user, and -1: no answer is stored",
        "about": f"0 to {turn}, turns of the user, and -1: it was learned from none",
        "rating": f"0 to {len(TAG_RATINGS) - 1}, and -1: none", "uses": "0 and 1",
        "reason": f"0 to {len(curator.reasons) - 1}, places in `reasons`",
    }  # fmt: skip
    raise RowError(
        row if rows is None else int(rows[row]),
        f"gave Batch.{name}={getattr(batch, name)[at]} at operation {at} of {m}; valid are {valid[name]}",
    )


def _check_texts(batch: Batch, seen: Observation, reaction: Reaction) -> None:
    """Hold examples and names to texts that their users have met: others would be words of the future."""
    row = batch.row
    example = (batch.text >= 0) & (batch.text != seen.text[row])
    named = (batch.name >= 0) & (batch.name != reaction.name[row]) & (batch.name != reaction.general[row])
    for text, which in ((batch.text, example), (batch.name, named)):
        if np.logical_or.reduce(which):
            seen.context.texts.read(text[which], row[which])


def _listing(given: object) -> str:
    if not (isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], Batch)):
        return f"({', '.join(map(kind_in_words, given))})" if isinstance(given, tuple) else kind_in_words(given)
    batch = given[1]
    shape, columns = np.shape(batch.op), {name: getattr(batch, name) for name in _COLUMNS}
    wrong = [
        name for name, each in columns.items()
        if not isinstance(each, np.ndarray) or each.dtype.kind not in _WHOLE or each.ndim != 1 or each.shape != shape
    ]  # fmt: skip
    return f"a Batch with {np.size(batch.op)} operations, of which `{wrong[0]}` is {kind_in_words(columns[wrong[0]])}"
