"""Messages with intents, and nothing else, as a corpus: a table of intent names says how long answers hold.

Slot values are not annotated in such data: messages of an intent whose answers depend on them are dealt to so many
values by their hashes.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.text import text_hash
from skg_bench.simulator.answers.corpus import (
    ACT,
    ANSWER,
    CORPUS_KINDS,
    LOOK_UP,
    MOST_HOURS,
    SLOT,
    STALE,
    Corpus,
    Intent,
    Request,
    assembled,
)
from skg_bench.simulator.yaml_files import yaml_of

_SECTIONS = (*CORPUS_KINDS, "also_slot")  # `acts` may be left out


def dealt(
    wordings: Mapping[str, Sequence[str]],
    one_offs: Sequence[str],
    intents: Sequence[Intent],
    *,
    slotted: AbstractSet[str],
    values: int,
    where: str,
) -> Corpus:
    """The corpus of these messages by intent; those of `slotted` intents are dealt to so many slot values. Answers are
    empty, and nothing is known of hours, weekdays and the intent before. `where` of a file the messages are from.

    Raises UsageError for an intent with fewer messages than values, and for a message that occurs twice.
    """
    requests: list[Request] = []
    for i, intent in enumerate(intents):
        if intent.name not in slotted:
            requests.append(Request(intent.name, i, "", wordings[intent.name]))
            continue
        ordered = sorted(wordings[intent.name], key=lambda message: (text_hash(message), message))
        if len(ordered) < values:
            raise UsageError(
                f"simulator.corpus.values={values}, and intent {intent.name!r} has {len(ordered)} messages{where}; at "
                f"most {len(ordered)} is valid"
            )
        requests += [Request(f"{intent.name}|{k + 1}", i, "", ordered[k::values]) for k in range(values)]
    n = len(intents)
    return assembled(
        requests,
        one_offs,
        intents=intents,
        hour_weight=np.ones((n, 24)),
        day_weight=np.ones((n, 2)),
        follows=np.zeros((n, n), np.bool_),
        described=[f"{intent.kind} {intent.ttl_hours} {intent.effect}" for intent in intents],
    )


def read_table(file: Path) -> tuple[list[Intent], frozenset[str]]:
    """The table's intents, by name, and those whose answers depend on slot values.

    Raises UsageError for a file that is no such table.
    """

    def fail(what: str) -> UsageError:
        return UsageError(f"{file}: {what}; see data/clinc150.yaml")

    try:
        table = yaml_of(file)
    except UsageError as error:
        raise UsageError(f"{error}; it is no table, see data/clinc150.yaml") from error
    if not isinstance(table, dict) or set(table) - {"acts"} != set(_SECTIONS):
        keys = sorted(map(str, table)) if isinstance(table, dict) else repr(table)
        raise fail(f"it has {keys}; valid labels are exactly {', '.join(_SECTIONS)}, and acts")
    acts, intents, also = table.get("acts") or [], list[Intent](), table["also_slot"] or []
    for label, given in (("acts", acts), ("also_slot", also)):
        if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
            raise fail(f"{label} must be a list of intents")
    for kind, label in enumerate(CORPUS_KINDS):
        shape = dict if kind == STALE else list
        listed = shape() if table[label] is None else table[label]
        if not isinstance(listed, shape):
            raise fail(f"{label} must be {'intents with hours' if kind == STALE else 'a list of intents'}")
        for name in listed:
            hours = listed[name] if kind == STALE else None
            if not isinstance(name, str):
                raise fail(f"{label} has {name!r}, which is no text; quote it")
            if hours is not None and not (isinstance(hours, int | float) and 0 < hours <= MOST_HOURS):
                raise fail(f"stale: {name}: {hours!r} must be hours, above 0, at most {MOST_HOURS:,}")
            effect = ACT if name in acts else LOOK_UP if kind == STALE else ANSWER
            intents.append(Intent(name, kind, hours, effect))
    names = [intent.name for intent in intents]
    if twice := [name for name in names if names.count(name) > 1]:
        raise fail(f"{twice[0]!r} has two labels")
    if unknown := [name for name in acts if name not in names]:
        raise fail(f"acts has {unknown[0]!r}, which has no other label")
    if unknown := [name for name in also if name not in (table["stale"] or {})]:
        raise fail(f"also_slot has {unknown[0]!r}, which is not stale")
    return sorted(intents, key=lambda intent: intent.name), frozenset(also) | {
        i.name for i in intents if i.kind == SLOT
    }
