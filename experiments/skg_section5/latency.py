"""Latency of a hit on this machine (K22): the message is embedded, and routed over a skillbook of the paper's size.

A language model is not called here, so its time stays what the paper declares.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory

import numpy as np

from skg_bench.app.building import build
from skg_bench.app.compose import compose
from skg_bench.app.composed_arms import arms
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.assistant.pipeline.components import components
from skg_bench.assistant.pipeline.decision import Memory, choose_skills
from skg_bench.assistant.pipeline.in_book import InBook
from skg_bench.assistant.pipeline.stack import stacked
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64
from skg_bench.core.texts import Texts
from skg_bench.core.types import Query
from skg_bench.core.vocabulary import vocabulary_of
from skg_bench.engine.vectors import Pinned
from skg_bench.router.shared.one_book import shared_book
from skg_bench.skillbook.terms_of_book import TermsOfBook

SKILLS, EACH = 500, 4  # the largest index that the paper reports; examples of a skill
WARM = 20  # messages whose time is not counted


@dataclass(frozen=True)
class Hits:
    """Milliseconds of single messages, `[n]`: embedding and keeping the vector; routing with all three signals.

    Processor time: what the message takes on a core of its own, also where this one is shared.
    """

    embedding: F64
    routing: F64

    @property
    def whole(self) -> F64:
        both: F64 = self.embedding + self.routing
        return both


def measure(embedder: Sequence[str], messages: int) -> Hits:
    """Times of so many messages that were never embedded before, one by one, after some that are not counted.

    `embedder`: overrides that choose it. Raises UsageError for a corpus with too few messages.
    """
    with _no_cache():
        return _measure(embedder, messages)


@contextmanager
def _no_cache() -> Iterator[None]:
    """Embedders keep what they computed: here they find nothing, and leave nothing."""
    before = os.environ.get("XDG_CACHE_HOME")
    with TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        try:
            yield
        finally:
            os.environ.pop("XDG_CACHE_HOME")
            if before is not None:
                os.environ["XDG_CACHE_HOME"] = before


def _measure(embedder: Sequence[str], messages: int) -> Hits:
    composed = compose(["experiment=skg_section5", *embedder])
    model, simulator = (build(seam, composed.root[seam], COMMAND_LINE) for seam in ("embedder", "simulator"))
    texts = simulator.messages[: SKILLS * EACH + WARM + messages]
    known = texts[: SKILLS * EACH]
    if len(texts) < len(known) + WARM + messages:
        raise UsageError(f"--messages {messages}: the corpus has {len(texts) - len(known) - WARM} left at most")
    vectors = model.embed(texts)
    skill = np.repeat(np.arange(SKILLS, dtype=np.int32), EACH)
    example = np.arange(len(known), dtype=np.int32)
    books, pinned, words = shared_book(vectors, example, skill, 1), Pinned(vectors, example), vocabulary_of(texts)
    arm = arms(composed.arms, COMMAND_LINE)[0]
    scorer = components(arm).reranker.start(1, components(arm).signals.names)
    stack, memory, event = stacked([arm]), Memory(scorer, (None,), np.zeros(1, np.int32)), np.zeros(1, np.uint64)
    now, nobody = np.ones(1, np.int64), np.full(1, -1, np.int32)
    taken = []
    for i in range(len(known), len(texts)):
        begun = time.process_time()
        model.embed([f"{texts[i]}, please"])  # not among those that were embedded above
        embedded = time.process_time()
        text = np.array([i], np.int32)
        near, terms = InBook(pinned, text, books), TermsOfBook(words, text, books)
        query = Query(
            1, now, text, words.words[text], now, nobody, near, terms, None, now, Texts([], [], None).contents
        )
        choose_skills(stack, query, books, memory, event)
        taken.append((embedded - begun, time.process_time() - embedded))
    both = 1000.0 * np.array(taken[WARM:])
    return Hits(both[:, 0], both[:, 1])
