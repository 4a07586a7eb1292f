"""Text of captured skills by a model: it writes each skill's prompt from question and answer (SKG paper, section 3,
step 3). When something is captured, and under which name, is decided by the curator inside.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from skg_bench.asking.asking import TextModel
from skg_bench.asking.prompts import PromptFile, load_prompt
from skg_bench.core.batch import ADD, Batch, stores
from skg_bench.core.draws import Purpose
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import RATING, KnownFeedback
from skg_bench.core.grid import I64, Bool
from skg_bench.core.reach import Reach, Reaches
from skg_bench.core.types import RATINGS, Curator, Observation, Skillbooks
from skg_bench.core.world import Reaction
from skg_bench.curator.shared.book_prompts import check_asking
from skg_bench.curator.shared.learning_job import HeardFeedback, LearningJob, Proposal
from skg_bench.curator.shared.proposer import admitted_of, reported_jobs
from skg_bench.skillbook.proposals import Limits
from skg_bench.skillbook.skillbook import Skillbook

WRITER = "skill_writer"
WRITER_DATA = ("question", "answer")
_ROOM = 100_000  # characters of a book, of which this prompt has none


@dataclass(frozen=True)
class Writing:
    """`curator`, with the text of each captured skill written by a model from question and answer.

    A skill whose text does not come, or is refused, is captured without one. Each text is a learning job in the log.
    """

    curator: Curator[Any]
    llm: TextModel
    characters: int
    answer_tokens: int
    prompts: str | None
    sees_truth: ClassVar[bool] = False
    reaches: ClassVar[Reaches] = {"prompts": Reach(("reads",))}

    def __post_init__(self) -> None:
        check_asking(self.llm, _ROOM, self.answer_tokens)
        if self.characters < 1:
            raise UsageError(f"curator.characters={self.characters} must be at least 1")
        if self.curator.sees_truth:
            raise UsageError("curator=writing cannot wrap a curator that sees the truth")
        self._file()

    @property
    def digest(self) -> str:
        """Hash of the prompt file."""
        return self._file().digest[:16]

    @property
    def reasons(self) -> Sequence[str]:
        """Reasons of the curator inside."""
        return self.curator.reasons

    def start(self, n: int) -> Any:
        """The memory of the curator inside."""
        return self.curator.start(n)

    def offers(self, seen: Observation, state: Any) -> Bool:
        """Whom the curator inside asks."""
        return self.curator.offers(seen, state)

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: Any
    ) -> tuple[Any, Batch]:
        """Operations of the curator inside, with texts for what it captures."""
        state, batch = self.curator.curate(seen, reaction, known, books, state)
        blank = stores(batch) & (batch.source == seen.turn) & (batch.content == 0)
        may = seen.context.asks & ~seen.context.tags_only
        at = np.flatnonzero(blank & may[batch.row])
        return (state, self._written(batch, at, seen)) if len(at) else (state, batch)

    def _written(self, batch: Batch, at: I64, seen: Observation) -> Batch:
        """The batch with texts for its captures `at`."""
        heard = _captures(batch, at, seen)
        file = self._file()
        prompts = [
            job.prompt(file, {"question": job.question, "answer": job.answer}, Purpose.WRITE, self.answer_tokens)
            for job in heard.jobs
        ]
        proposals = []
        for call in self.llm.complete(prompts):
            texts = [call.value["prompt"]] if call.end == "ok" else []
            operations = [{"type": "ADD", "section": "answers", "content": text} for text in texts]
            proposals.append(Proposal({"operations": operations}, "v1", {WRITER: call}))
        limits = Limits(adds=1, removes=0, tags=0, ratings=1, characters=self.characters, operations=1)
        admitted = [admitted_of(*pair, -1, limits, frozen=False) for pair in zip(proposals, heard.jobs, strict=True)]
        content = batch.content.copy()
        for place, each in zip(at.tolist(), admitted, strict=True):
            for operation in each.operations:
                if operation.op == ADD and operation.content is not None:
                    content[place] = seen.context.texts.contents.add(operation.content)
        seen.context.report(reported_jobs(heard, proposals, admitted, seen))
        return replace(batch, content=content)

    def _file(self) -> PromptFile:
        return load_prompt(WRITER, self.prompts, WRITER_DATA)


def _captures(batch: Batch, at: I64, seen: Observation) -> HeardFeedback:
    """Captures `at` of a batch as jobs that the rating of the turn began."""
    row, context = batch.row[at].astype(np.int64), seen.context
    words, rating = context.words(), seen.rating[row].tolist()
    questions = context.texts.read(batch.text[at], row)
    private = context.texts.recorded, context.texts.redacts
    jobs = [
        LearningJob(
            question, words[user], {}, None if code < 0 else RATINGS[code], (), Skillbook(), int(context.event[user]),
            seen.turn, *private,
        )
        for user, question, code in zip(row.tolist(), questions, rating, strict=True)
    ]  # fmt: skip
    n = len(jobs)
    return HeardFeedback(row.tolist(), [seen.turn] * n, [RATING] * n, rating, [-1] * n, jobs)
