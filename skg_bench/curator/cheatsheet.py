"""One text that a model writes anew after each turn, as in Dynamic Cheatsheet (Suzgun et al., 2025, cumulative).

The text is the book: its paragraphs are the skills. What the model wrote is compared with what it was shown, and the
differences are operations. It rates no skill, so counters say nothing of such skills.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skg_bench.asking.asking import Completion, TextModel
from skg_bench.asking.prompts import PromptFile, load_prompt
from skg_bench.core.draws import Purpose
from skg_bench.core.errors import UsageError
from skg_bench.core.reach import Reach, Reaches
from skg_bench.curator.shared.book_prompts import check_asking, rendered_books
from skg_bench.curator.shared.learning_job import LearningJob, Proposal
from skg_bench.curator.shared.proposer import Proposer
from skg_bench.skillbook.proposals import Limits
from skg_bench.skillbook.skillbook import Skill
from skg_bench.skillbook.word_cosines import WordCosines

CHEATSHEET = "cheatsheet"
CHEATSHEET_DATA = ("question", "answer", "feedback", CHEATSHEET)
_OPEN, _CLOSE, _BETWEEN = "<cheatsheet>", "</cheatsheet>", "\n\n"


@dataclass(frozen=True)
class Cheatsheet(Proposer):
    """Has a model rewrite the whole text of the book at each job; several jobs of a user run one after the other.

    Where the answer has no `<cheatsheet>`, the text stays. A new paragraph whose cosine of words to one
    that went is at least `alike` is that skill with other words; any other one is a new skill.
    """

    llm: TextModel
    limits: Limits
    alike: float
    book_characters: int
    answer_tokens: int
    prompts: str | None
    reaches: ClassVar[Reaches] = {"prompts": Reach(("reads",))}

    def __post_init__(self) -> None:
        check_asking(self.llm, self.book_characters, self.answer_tokens)
        if not 0 < self.alike <= 1:
            raise UsageError(f"curator.alike={self.alike} must lie above 0 and at most at 1")
        self._file()

    @property
    def digest(self) -> str:
        """Hash of the prompt file."""
        return self._file().digest[:16]

    def propose(self, jobs: Sequence[LearningJob]) -> list[Proposal]:
        """Rewrites; what changed is the batch of each user's last job that gave an answer."""
        shown = [
            {skill.id: skill for skill in job.book.skills if skill.id in book.skills}
            for job, book in zip(jobs, rendered_books(jobs, self.book_characters, "inserted"), strict=True)
        ]
        text = {
            id(job.book): _BETWEEN.join(_paragraph(skill) for skill in skills.values())
            for job, skills in zip(jobs, shown, strict=True)
        }
        calls: dict[int, Completion] = {}
        while waiting := [i for i in range(len(jobs)) if i not in calls]:
            at = sorted({id(jobs[i].book): i for i in reversed(waiting)}.values())  # the first job of each user
            prompts = []
            for i in at:
                data = {**jobs[i].data, CHEATSHEET: text[id(jobs[i].book)]}
                prompts.append(jobs[i].prompt(self._file(), data, Purpose.MANAGE, self.answer_tokens))
            for i, call in zip(at, self.llm.complete(prompts), strict=True):
                calls[i] = call
                if call.end == "ok":
                    text[id(jobs[i].book)] = _extracted(call.text, text[id(jobs[i].book)])
        batches: list[Any] = [None] * len(jobs)
        for i in {id(job.book): i for i, job in enumerate(jobs) if calls[i].end == "ok"}.values():
            if operations := self._operations(shown[i], text[id(jobs[i].book)]):
                batches[i] = {"operations": operations}
        return [Proposal(batch, "v1", {CHEATSHEET: calls[i]}) for i, batch in enumerate(batches)]

    def _operations(self, skills: dict[int, Skill], text: str) -> list[dict[str, Any]]:
        """Differences between the skills that were shown and the paragraphs of a text."""
        written = list(dict.fromkeys(" ".join(part.split()) for part in text.split(_BETWEEN) if part.strip()))
        before = {_paragraph(skill): skill.shown_id for skill in skills.values()}
        new = [part for part in written if part not in before]
        gone = [part for part in before if part not in set(written)]
        pairs = self._pairs(gone, new)
        update = [{"type": "UPDATE", "skill_id": before[gone[i]], "content": new[j]} for i, j in pairs.items()]
        remove = [{"type": "REMOVE", "skill_id": before[part]} for i, part in enumerate(gone) if i not in pairs]
        add = [
            {"type": "ADD", "section": CHEATSHEET, "content": part}
            for j, part in enumerate(new)
            if j not in set(pairs.values())
        ]
        return [*update, *add, *remove]

    def _pairs(self, gone: Sequence[str], new: Sequence[str]) -> dict[int, int]:
        """Paragraphs that went, and the new ones that they became, the most alike first."""
        if not gone or not new:
            return {}
        cosines = WordCosines(gone).of(new)
        pairs: dict[int, int] = {}
        for place in np.argsort(-cosines, axis=None, kind="stable").tolist():
            j, i = divmod(place, len(gone))
            if cosines[j, i] < self.alike:
                break
            if i not in pairs and j not in pairs.values():
                pairs[i] = j
        return pairs

    def _file(self) -> PromptFile:
        return load_prompt(CHEATSHEET, self.prompts, CHEATSHEET_DATA)


def _paragraph(skill: Skill) -> str:
    """Text of a skill, in one line."""
    texts = () if skill.content is None else (skill.content.issue, skill.content.insight or "")
    return " ".join(" ".join(texts).split())


def _extracted(answer: str, before: str) -> str:
    """Text between the tags of an answer, as the published code takes it: up to the end where the closing one lacks."""
    _, tag, rest = answer.partition(_OPEN)
    return rest.split(_OPEN)[0].partition(_CLOSE)[0].strip() if tag else before
