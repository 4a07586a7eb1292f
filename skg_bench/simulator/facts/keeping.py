"""A curator that keeps facts: one skill a fact, renewed when the user says that it changed.

It stands for a model that takes facts out of messages: it knows the messages that tell them, and what they are about,
by their words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from skg_bench.core.batch import ADD, TAG, UPDATE, Batch, blank
from skg_bench.core.draws import Purpose, draw, fold, key, uniform
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import I32, I64, Bool
from skg_bench.core.reach import Reach, Reaches
from skg_bench.core.types import Observation, Skillbooks
from skg_bench.core.world import Reaction
from skg_bench.simulator.answers.corpora_by_name import OF_THE_PACKAGE, corpus_of
from skg_bench.simulator.answers.corpus import Corpus, CorpusNames
from skg_bench.simulator.facts.outcome import CORRECTION
from skg_bench.simulator.facts.table import IMPLIED, TELLS, WAYS, Fact, fact_table
from skg_bench.skillbook.tagging import later_tags

Again = Literal["update", "add", "ignore"]
FactKey = Literal["message", "question"]


@dataclass(frozen=True)
class KeepsFacts:
    """Captures messages that tell facts, and answers to requests for facts that the user corrected.

    `again`: what it does where it has the fact: renew its skill, add a second one, or keep what it was told first, with
    one more example by which it is found. `key`: the example by
    which the skill is found, the message itself or a question that it answers (LongMemEval's expanded keys).
    """

    facts: str | None
    corpus: CorpusNames
    again: Again
    key: FactKey
    misses: float
    misses_implied: float
    corrections: bool
    sees_truth: ClassVar[bool] = False
    reasons: ClassVar[Sequence[str]] = ("used", "rated later", "told", "told again")
    reaches: ClassVar[Reaches] = {"facts": Reach(("reads",)), "corpus": Reach(("reads",), harmless=OF_THE_PACKAGE)}

    def __post_init__(self) -> None:
        for name in ("misses", "misses_implied"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"curator.{name}={getattr(self, name)} must lie in [0, 1]")

    @property
    def tables_digest(self) -> str | None:
        """Digest of the facts and the corpus that it understands; None: they are those of the package."""
        if self.facts is None and self.corpus in OF_THE_PACKAGE:
            return None
        table = fact_table(self.facts, self._corpus.types, self._corpus.intents)
        return f"{self._corpus.digest}{table.digest}"

    @cached_property
    def _corpus(self) -> Corpus:
        """The corpus whose requests it understands."""
        return corpus_of(self.corpus)

    @cached_property
    def _facts(self) -> Sequence[Fact]:
        return fact_table(self.facts, self._corpus.types, self._corpus.intents).facts

    @cached_property
    def _meaning(self) -> Mapping[str, tuple[int, int]]:
        """Fact and way of each message that tells one, by its words."""
        meaning = dict[str, tuple[int, int]]()
        for number, fact in enumerate(self._facts):
            for way, name in enumerate(WAYS):
                meaning |= {text: (number, way) for texts in fact.texts[name] for text in texts}
        return meaning

    @cached_property
    def _wordings(self) -> Sequence[Sequence[str]]:
        """Wordings of the request for each fact."""
        corpus = self._corpus
        return [
            [corpus.messages[text] for text in corpus.wordings[fact.type][: corpus.n_wordings[fact.type]]]
            for fact in self._facts
        ]

    @cached_property
    def _names(self) -> Sequence[str]:
        """Name of the skill that keeps each fact."""
        return [f"fact: {self._corpus.types[fact.type]}" for fact in self._facts]

    @cached_property
    def _unread(self) -> Bool:
        """Mask of facts that it never reads, `[F + 1]`; the last, which index -1 reads, is no fact."""
        u = draw(key(0, np.arange(len(self._wordings))), 0, Purpose.UNREAD)
        return np.append(u < self.misses, False)

    @cached_property
    def _asked(self) -> Mapping[str, int]:
        """Fact of each message that asks for one."""
        return {text: number for number, wordings in enumerate(self._wordings) for text in wordings}

    def start(self, n: int) -> None:
        """No memory: a skill's name says which fact it keeps, its source when that was told."""

    def offers(self, seen: Observation, state: None) -> Bool:
        """Asks nobody."""
        return np.zeros(len(seen.text), np.bool_)

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: None
    ) -> tuple[None, Batch]:
        """TAGs for uses and ratings; ADD or UPDATE of the skill of each fact that was told or corrected."""
        later, hit = later_tags(known, seen.turn, books), seen.hit.nonzero()[0]
        row, fact = self._stated(seen, known)
        name = seen.context.texts.add([self._names[number] for number in fact])
        same = (books.name[row] == name[:, None]) & (np.arange(books.name.shape[1]) < books.n_skills[row, None])
        held = same.any(axis=1)
        renews = held & (self.again != "add")
        old, number = np.full((2, len(row)), -1, np.int32)
        old[renews] = same[renews].argmax(axis=1)
        number[renews] = books.examples.of_skill[row[renews], old[renews]]
        text = self._examples(seen, row, fact, np.maximum(number, 0))
        first, second = len(hit), len(hit) + len(later.row)
        batch = blank(second + len(row))
        used, rated, kept = slice(first), slice(first, second), slice(second, None)
        batch.row[used], batch.row[rated], batch.row[kept] = hit, later.row, row
        batch.op[used], batch.op[rated], batch.op[kept] = TAG, TAG, np.where(renews, UPDATE, ADD)
        batch.skill[used], batch.skill[rated], batch.skill[kept] = seen.skill[hit], later.skill, old
        batch.rating[used], batch.rating[rated] = seen.rating[hit], later.value
        batch.name[kept] = np.where(renews, -1, name)
        batch.text[kept] = text
        batch.source[kept] = np.where(renews & (self.again == "ignore"), -1, seen.turn)
        batch.about[used], batch.about[rated], batch.about[kept] = seen.turn, later.turn, seen.turn
        batch.uses[used] = 1
        batch.reason[used], batch.reason[rated], batch.reason[kept] = 0, 1, np.where(renews, 3, 2)
        return None, batch

    def _examples(self, seen: Observation, row: I64, fact: I32, number: I32) -> I32:
        """Text ids of the examples by which skills are found, of which they have `number` already: the message, or
        another wording of the request.
        """
        if self.key == "message" or not len(row):
            return seen.text[row]
        wordings = [self._wordings[each] for each in fact]
        words = [texts[nth % len(texts)] for texts, nth in zip(wordings, number.tolist(), strict=True)]
        return seen.context.texts.add(words)

    def _stated(self, seen: Observation, known: KnownFeedback) -> tuple[I64, I32]:
        """Users who told a fact at this turn, or corrected an answer to a request for one; and the facts."""
        words = seen.context.texts.read(seen.text)
        fact, way = np.full(len(words), -1, np.int32), np.full(len(words), TELLS, np.int32)
        for row, text in enumerate(words):
            if text in self._meaning:
                fact[row], way[row] = self._meaning[text]
        implied = uniform(fold(seen.context.event, int(Purpose.KEPT))) < self.misses_implied
        fact[(way == IMPLIED) & implied] = -1
        now = known.row[(known.kind == CORRECTION) & (known.turn == seen.turn)] if self.corrections else ()
        for row in now:
            fact[row] = self._asked.get(words[row], -1)
        fact[self._unread[fact]] = -1
        return (fact >= 0).nonzero()[0], fact[fact >= 0]
