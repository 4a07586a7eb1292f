"""Near-duplicate intents within and between corpora, by name and by vectors, with the corpora's licences."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import typer

from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment
from skg_bench.core.grid import F64, I16, I32
from skg_bench.embedder.minilm import MiniLM
from skg_bench.simulator.answers.corpora_by_name import CorpusPart, corpus_parts
from skg_bench.simulator.answers.corpus import Corpus
from skg_bench.simulator.datasets import datasets

COMMAND = "skg-bench experiment routing_quality/near_duplicates builtin clinc150 --write reports"
ALIKE = 0.85  # as near as this to another intent, relative to its own other messages
MOST = 20  # messages of an intent
OURS = {  # licence and source
    "builtin": ("Apache-2.0", "written for this project: data/corpus and data/more"),
    "builtin_120": ("Apache-2.0", "written for this project: data/corpus"),
}
Names = Annotated[list[str], typer.Argument(metavar="CORPUS", help="Names as simulator.corpus takes them.")]


@dataclass(frozen=True)
class AlikePair:
    """Two intents, by number over all corpora; `likeness` 1: messages are as near to the other as to their own."""

    one: int
    other: int
    likeness: float


def sampled(corpus: Corpus) -> list[list[str]]:
    """Messages of each intent, at most MOST, of as few slot values as can be; intents next to one another begin with
    other values, as messages that name the same city are near whatever they ask.
    """
    groups = []
    for intent in range(len(corpus.intents)):
        types = np.roll(np.flatnonzero(corpus.intent == intent), -intent)
        texts = [text for t in types for text in corpus.wordings[t, : corpus.n_wordings[t]]]
        groups.append([corpus.messages[text] for text in texts[:MOST]])
    return groups


def alike_pairs(vectors: I16, label: I32) -> list[AlikePair]:
    """Pairs of labels from ALIKE on, the nearest first. Messages come in the order of their labels.

    Likeness of a to b: the mean cosine of a's messages to the nearest of b, relative to that to the nearest other of a;
    of a pair, the larger of both ways.
    """
    unit: F64 = vectors / np.maximum(np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True), 1e-9)
    cosine = unit @ unit.T
    np.fill_diagonal(cosine, -1.0)
    start = np.unique(label, return_index=True)[1]
    nearest = np.add.reduceat(np.maximum.reduceat(cosine, start, axis=1), start, axis=0)
    likeness = nearest / np.maximum(np.diag(nearest)[:, None], 1e-9)
    likeness = np.maximum(likeness, likeness.T)
    pairs = [AlikePair(int(a), int(b), float(likeness[a, b])) for a, b in np.argwhere(np.triu(likeness, 1) >= ALIKE)]
    return sorted(pairs, key=lambda pair: -pair.likeness)


def corpora_table(parts: Sequence[CorpusPart]) -> Table:
    """Size, licence and source of each corpus."""
    rows = []
    for part in parts:
        corpus, published = part.corpus, datasets().get(part.name)
        named = (published.licence, published.source) if published else OURS.get(part.name, ("yours", "a folder"))
        rows.append((part.name, f"{len(corpus.intents):,}", f"{len(corpus.messages) - len(corpus.one_offs):,}",
                     f"{len(corpus.one_offs):,}", *named))  # fmt: skip
    return Table("Corpora", ("corpus", "intents", "messages", "one-offs", "licence", "source"), rows)


def analyse(names: Names) -> Report:
    """Lists corpora, and intents that are near-duplicates within and between them; nothing expected is checked."""
    parts = corpus_parts(names)
    groups = [group for part in parts for group in sampled(part.corpus)]
    intents = [(part.name, intent) for part in parts for intent in part.corpus.intents]
    label = np.repeat(np.arange(len(groups), dtype=np.int32), [len(group) for group in groups])
    pairs = alike_pairs(MiniLM().embed([message for group in groups for message in group]), label)
    rows = {True: list[tuple[str, ...]](), False: list[tuple[str, ...]]()}
    for pair in pairs:
        (first, a), (second, b) = intents[pair.one], intents[pair.other]
        rows[first == second].append((first, a, second, b, f"{pair.likeness:.2f}"))
    head = ("corpus", "intent", "corpus of the other", "other intent", "likeness")
    between, within = (
        Table(title, head, rows[inside]) for title, inside in (("Between corpora", False), ("Within a corpus", True))
    )
    shared = {name for _, name in intents if [intent for _, intent in intents].count(name) > 1}
    out: dict[str, set[str]] = {part.name: {*part.without} for part in parts}
    for first, _, second, b, _ in between.rows:
        out[max((first, second), key=names.index)].add(b)
    seen: set[str] = set()
    for part in parts:
        out[part.name] |= seen & {*part.corpus.intents}
        seen |= {*part.corpus.intents}
    merged = ",".join("-".join([name, *sorted(intents_out)]) for name, intents_out in out.items())
    sentences = (
        f"Intents of one name in two corpora: {', '.join(sorted(shared)) or 'none'}. An intent is a near-duplicate of "
        f"another if its messages are at least {ALIKE:g} times as near to the other's as to their own others (cosine, "
        f"MiniLM; at most {MOST} messages). Without those that an earlier corpus has, by name or by vectors:\n\n"
        f"`simulator.corpus=[{merged}]`"
    )
    parts_of_page: list[Table | str] = [corpora_table(parts), sentences, between, within]
    return Report(parts_of_page, page("Near-duplicates of corpora", COMMAND, *parts_of_page))


EXPERIMENT = Experiment(analyse)
