"""A corpus of one's own, as such corpora are published: messages with the intents that people gave them.

What they do not say is taken to be the plainest: all messages of an intent ask for the same, the answer to which holds
for ever, at any hour, and no message is a one-off. A table of intents says better. Corpora by name can stand beside it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from skg_bench.core.errors import UsageError
from skg_bench.core.reach import NO_REACH, Reach, Reaches
from skg_bench.simulator.answers.corpora_by_name import CorpusPart, corpus_parts, one_corpus
from skg_bench.simulator.answers.corpus import ANSWER, STABLE, Corpus, Intent
from skg_bench.simulator.answers.intent_table import dealt, read_table
from skg_bench.simulator.logs.labelled_rows import Columns, LabelledRows, opened_rows
from skg_bench.simulator.logs.recorded_rows import LeftOut


@dataclass(frozen=True)
class Labelled:
    """Messages with labels. What each parameter means stands in its yaml."""

    path: str | None
    subset: str | None
    split: str | None
    text: str | None
    label: str | Sequence[str] | None
    one_offs: Sequence[str]
    table: str | None
    values: int
    also: Sequence[str]
    reaches: ClassVar[Reaches] = {
        "path": Reach(("reads", "network")),
        "table": Reach(("reads",)),
        "also": Reach(("reads",)),
        "subset": NO_REACH,
        "split": NO_REACH,
        "text": NO_REACH,
        "label": NO_REACH,
        "one_offs": NO_REACH,
    }

    def __post_init__(self) -> None:
        if self.values < 1:
            raise UsageError(f"simulator.corpus.values={self.values} must be at least 1")

    def load(self) -> Corpus:
        """The corpus, and those beside it after it, as one.

        Raises UsageError for what cannot be read, columns that are not there, a table that names other intents, where
        no message has an intent, and where a corpus beside it has an intent of the same name.
        """
        if self.path is None:
            raise UsageError("simulator.corpus.path=null; name a file, a folder or hf:NAME: simulator.corpus.path=FILE")
        labels = (self.label,) if isinstance(self.label, str) else self.label
        rows = opened_rows(self.path, self.subset, self.split, Columns(self.text, labels))
        corpus = self._corpus(rows)
        if not self.also:
            return corpus
        whole = one_corpus([CorpusPart(rows.title, corpus), *corpus_parts(self.also)])
        return replace(whole, left_out={**corpus.left_out, **whole.left_out})

    def _corpus(self, rows: LabelledRows) -> Corpus:
        out, wordings, one_offs = LeftOut(), dict[str, list[str]](), list[str]()
        seen: dict[str, str] = {}
        for position, text, label in rows.read(out):
            if not text or not label:
                out.add("no label" if text else "no text", position)
            elif text in seen:
                other = "" if seen[text] == label else ", of another intent"
                out.add(f"a text that an earlier row has{other}", position)
            else:
                seen[text] = label
                (one_offs if label in self.one_offs else wordings.setdefault(label, [])).append(text)
        if not wordings:
            raise UsageError(f"{rows.title} holds no message with an intent ({'; '.join(out.found) or 'it is empty'})")
        intents, slotted = self._intents(wordings, rows.title)
        where = f" in {rows.title}"
        corpus = dealt(wordings, one_offs, intents, slotted=slotted, values=self.values, where=where)
        return replace(corpus, source=rows.title, left_out=out.found)

    def _intents(self, wordings: Mapping[str, Sequence[str]], title: str) -> tuple[list[Intent], frozenset[str]]:
        """All intents by name, as the table says or else stable, and those whose answers depend on slot values."""
        listed, slotted = ([], frozenset[str]()) if self.table is None else read_table(Path(self.table))
        known = {intent.name: intent for intent in listed}
        if unknown := sorted(set(known) - set(wordings)):
            raise UsageError(
                f"simulator.corpus.table={self.table} lists {unknown[0]!r}, and {title} has no such intent; it has "
                f"{', '.join(sorted(wordings)[:5])} and others"
            )
        return [known.get(name) or Intent(name, STABLE, None, ANSWER) for name in sorted(wordings)], slotted
