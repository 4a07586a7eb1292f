"""How well is the kind of a text read that is not in the table of strategies?"""

import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment
from skg_bench.core.content import Content
from skg_bench.skillbook.library.strategies import Strategies, strategies

COMMAND = "skg-bench experiment curators/reader --write reports"
LEAST = 0.93  # share of all texts whose kind is read rightly; below it the figures are not as expected
SCOPE = """
Texts of `data/guardian` are read one by one with the table that lacks them; paraphrases, in
`experiments/curators/paraphrases.toml`, with the whole table. All were written by the project, and each names what it
does; texts of a language model may be read less well. Vague texts, which name no reason and no next step, count as read
rightly where their kind is; that they are vague is another question, in the second table.
"""


@dataclass(frozen=True, slots=True)
class Reading:
    """A text with what it is and what it was read as."""

    kind: int
    sound: bool
    as_kind: int
    as_sound: bool


def left_out(table: Strategies) -> Iterator[Reading]:
    """Each text of the table, read by the others."""
    for i, content in enumerate(table.contents):
        rest = np.arange(len(table.contents)) != i
        contents = (*table.contents[:i], *table.contents[i + 1 :])
        others = replace(table, contents=contents, kind=table.kind[rest], sound=table.sound[rest])
        kind, sound = others.read([content])
        yield Reading(int(table.kind[i]), bool(table.sound[i]), int(kind[0]), bool(sound[0]))


def paraphrased(table: Strategies) -> Iterator[Reading]:
    """Each paraphrase, read by the whole table."""
    listed = tomllib.loads((Path(__file__).parent / "paraphrases.toml").read_text("utf-8"))
    for name, texts in listed.items():
        for quality in ("sound", "vague"):
            kind, sound = table.read([Content("strategies", text) for text in texts[quality]])
            for as_kind, as_sound in zip(kind.tolist(), sound.tolist(), strict=True):
                yield Reading(table.kinds.index(name), quality == "sound", as_kind, as_sound)


def accuracy(readings: Sequence[Reading]) -> float:
    """Share of texts whose kind was read rightly."""
    return sum(reading.kind == reading.as_kind for reading in readings) / len(readings)


def by_kind(table: Strategies, readings: Sequence[Reading]) -> Table:
    """Counts, for each kind, of texts that were read rightly, and what the others were taken for."""
    rows = []
    for k, name in enumerate(table.kinds):
        taken = Counter(reading.as_kind for reading in readings if reading.kind == k)
        wrong = ", ".join(f"{table.kinds[other]} {n}" for other, n in taken.most_common() if other != k)
        rows.append((name, str(taken.total()), str(taken[k]), wrong))
    right = round(accuracy(readings) * len(readings))
    rows.append(("all", str(len(readings)), str(right), f"{accuracy(readings):.0%} read rightly"))
    return Table("Kinds", ("kind", "texts", "read rightly", "taken for"), rows)


def by_soundness(readings: Sequence[Reading]) -> Table:
    """How many sound and how many vague texts were read as what they are."""
    rows = []
    for name, sound in (("sound", True), ("vague", False)):
        texts = [reading for reading in readings if reading.sound == sound]
        rows.append((name, str(len(texts)), str(sum(reading.as_sound == sound for reading in texts))))
    return Table("Soundness", ("text", "texts", "read rightly"), rows)


def analyse() -> Report:
    """Reads 324 texts, in some seconds."""
    table = strategies()
    readings = [*left_out(table), *paraphrased(table)]
    tables = (by_kind(table, readings), by_soundness(readings))
    return Report(tables, page("How well texts are read", COMMAND, SCOPE, *tables), holds=accuracy(readings) >= LEAST)


EXPERIMENT = Experiment(analyse)
