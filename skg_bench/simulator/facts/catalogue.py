"""Numbers of request types, intents and messages in the world of facts: those of the corpus, and behind them more.

T request types of the corpus, F facts with up to V values, P pairs. A *thing* is a fact, or behind all facts a pair.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I32, I64
from skg_bench.simulator.facts.table import BY_USER, ENDS, WAYS, FactTable


@dataclass(frozen=True)
class Catalogue:
    """Texts, types and intents of a corpus and of a table of facts. Type -1, a one-off, reads the last place."""

    table: FactTable
    corpus_messages: Sequence[str]
    corpus_types: Sequence[str]
    corpus_intents: Sequence[str]
    corpus_intent: I32  # [T] intent of each request type

    @cached_property
    def n_values(self) -> I32:
        """Values of each fact, `[F]`."""
        return np.array([len(fact.values) for fact in self.table.facts], np.int32)

    @cached_property
    def most(self) -> int:
        """V."""
        return int(self.n_values.max(initial=0))

    @property
    def n_facts(self) -> int:
        """F."""
        return len(self.table.facts)

    # ------------------------------------------------------------------------------------------------- types

    @cached_property
    def fact_type(self) -> I32:
        """Request type of the corpus of each fact, `[F]`: it stands for "nothing is known of it"."""
        return np.array([fact.type for fact in self.table.facts], np.int32)

    @cached_property
    def silent(self) -> I32:
        """Type of each thing of which nothing is known, `[F + P]`."""
        pairs = self._first_pair + np.arange(len(self.table.pairs)) * self._pair_width + self.most**2
        return np.concatenate([self.fact_type, pairs]).astype(np.int32)

    @cached_property
    def false(self) -> I32:
        """Type of each thing that says what nobody has, `[F + P]`."""
        facts = len(self.corpus_types) + np.arange(self.n_facts) * (self.most + 1) + self.most
        return np.concatenate([facts, self.silent[self.n_facts :] + 1]).astype(np.int32)

    @property
    def _first_pair(self) -> int:
        return len(self.corpus_types) + self.n_facts * (self.most + 1)

    @property
    def _pair_width(self) -> int:
        return self.most**2 + 2

    def value_type(self, fact: I32 | I64, value: I32) -> I32:
        """Types of facts with these values; value -1: of nothing that is known."""
        stated = len(self.corpus_types) + fact * (self.most + 1) + value
        return np.where(value >= 0, stated, self.fact_type[fact]).astype(np.int32)

    def pair_type(self, pair: I32 | I64, first: I32, second: I32) -> I32:
        """Types of pairs with these values of their facts; value -1 of either: of nothing that is known."""
        stated = self._first_pair + pair * self._pair_width + first * self.most + second
        known = (first >= 0) & (second >= 0)
        return np.where(known, stated, self.silent[self.n_facts + pair]).astype(np.int32)

    @cached_property
    def types(self) -> Sequence[str]:
        """Names of request types."""
        more = []
        for fact in self.table.facts:
            values = [*fact.values, *(f"value {i}" for i in range(len(fact.values), self.most)), "something else"]
            more += [f"{self.corpus_types[fact.type]}={value}" for value in values]
        for pair in self.table.pairs:
            numbers = [f"{i + 1},{j + 1}" for i in range(self.most) for j in range(self.most)]
            more += [f"{pair.name}={value}" for value in (*numbers, "not told", "something else")]
        return (*self.corpus_types, *more)

    @cached_property
    def thing(self) -> I32:
        """Thing of each type, -1: none, `[types + 1]`."""
        things = np.full(len(self.types) + 1, -1, np.int32)
        things[self.fact_type] = np.arange(self.n_facts)
        start = len(self.corpus_types)
        things[start : self._first_pair] = np.repeat(np.arange(self.n_facts), self.most + 1)
        pairs = self.n_facts + np.arange(len(self.table.pairs))
        things[self._first_pair : -1] = np.repeat(pairs, self._pair_width)
        return things

    @cached_property
    def value(self) -> I32:
        """Value of the fact of each type, `[types + 1]`, -1: of nothing that is known, or of no fact."""
        values = np.full(len(self.types) + 1, -1, np.int32)
        values[len(self.corpus_types) : self._first_pair] = np.tile(np.arange(self.most + 1), self.n_facts)
        return values

    @cached_property
    def needed(self) -> I32:
        """Facts that a request for each thing needs, `[F + P, 2]`, -1: no second one."""
        pairs = np.array([pair.facts for pair in self.table.pairs], np.int32).reshape(-1, 2)
        facts = np.stack([np.arange(self.n_facts), np.full(self.n_facts, -1)], axis=1)
        return np.concatenate([facts, pairs]).astype(np.int32)

    @cached_property
    def like(self) -> I32:
        """Request type of the corpus that each type is about, `[types + 1]`: of a pair, its first fact's; -1: -1."""
        first = np.array([pair.facts[0] for pair in self.table.pairs], np.int32)
        of_thing = np.append(np.concatenate([self.fact_type, self.fact_type[first]]), -1)
        about = of_thing[self.thing]
        about[: len(self.corpus_types)] = np.arange(len(self.corpus_types))
        return about.astype(np.int32)

    # ----------------------------------------------------------------------------------------------- intents

    @property
    def intents(self) -> Sequence[str]:
        """Names of intents; each pair is one."""
        return (*self.corpus_intents, *(pair.name for pair in self.table.pairs))

    @cached_property
    def intent(self) -> I32:
        """Intent of each type, `[types + 1]`; the last, which index -1 reads, is like nothing else."""
        about = self.corpus_intent[self.like[:-1]]
        pairs = self.thing[:-1] >= self.n_facts
        about = np.where(pairs, len(self.corpus_intents) + self.thing[:-1] - self.n_facts, about)
        return np.append(about, -2).astype(np.int32)

    # ---------------------------------------------------------------------------------------------- messages

    @cached_property
    def _texts(self) -> tuple[Sequence[str], I32, I32, I32, I32]:
        """Messages beyond those of the corpus; the first text id of each fact, value and way, and how many there are;
        the same of pairs.
        """
        texts: list[str] = []
        start = np.zeros((self.n_facts, self.most, len(WAYS)), np.int32)
        count = np.ones((self.n_facts, self.most, len(WAYS)), np.int32)
        for number, fact in enumerate(self.table.facts):
            for way, name in enumerate(WAYS):
                for value in range(len(fact.values)):
                    if way == ENDS and value:
                        start[number, value, way], count[number, value, way] = (
                            start[number, 0, way],
                            count[number, 0, way],
                        )
                        continue
                    wordings = fact.texts[name][value]
                    start[number, value, way], count[number, value, way] = len(texts), len(wordings)
                    texts += wordings
        pair_start = np.zeros(len(self.table.pairs), np.int32)
        for number, pair in enumerate(self.table.pairs):
            pair_start[number] = len(texts)
            texts += pair.wordings
        first = len(self.corpus_messages)
        pair_count = np.array([len(pair.wordings) for pair in self.table.pairs], np.int32)
        return texts, first + start, count, first + pair_start, pair_count

    @cached_property
    def messages(self) -> Sequence[str]:
        """All messages, those of the corpus first.

        Raises UsageError for a message that occurs twice: nobody could tell what it is about.
        """
        texts = (*self.corpus_messages, *self._texts[0])
        if len(set(texts)) < len(texts):
            twice = next(text for text, times in Counter(texts).items() if times > 1)
            raise UsageError(f"the facts tell {twice!r} twice, or the corpus has it; every message must be unique")
        return texts

    def telling_text(self, fact: I32, value: I32, way: I32, u: np.ndarray) -> I32:
        """Text ids of messages `[n]` that tell facts; `u` in (0, 1) chooses the wording."""
        _, start, count, *_ = self._texts
        at = fact, np.maximum(value, 0), way
        return (start[at] + (u * count[at]).astype(np.int32)).astype(np.int32)

    def pair_text(self, pair: I32, u: np.ndarray) -> I32:
        """Text ids of requests `[n]` for pairs."""
        *_, start, count = self._texts
        return (start[pair] + (u * count[pair]).astype(np.int32)).astype(np.int32)

    @cached_property
    def knower(self) -> I32:
        """Index into KNOWERS of each type, `[types + 1]`; the last is that of one-offs."""
        known = self.table.known_by[self.like[:-1]]
        known[self.thing[:-1] >= 0] = BY_USER
        return np.append(known, self.table.one_offs).astype(np.int32)
