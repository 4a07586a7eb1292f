"""Lessons of successes and of failures, as in ReasoningBank (Ouyang et al., 2025): each has a title, a description and
a content, and none is ever changed. Whether a turn was one or the other is what its user said.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from skg_bench.asking.asking import TextModel
from skg_bench.asking.prompts import PromptFile, load_prompt
from skg_bench.core.draws import Purpose
from skg_bench.core.reach import Reach, Reaches
from skg_bench.curator.shared.book_prompts import check_asking, rendered_books
from skg_bench.curator.shared.learning_job import LearningJob, Proposal
from skg_bench.curator.shared.proposer import Proposer
from skg_bench.skillbook.proposals import Limits

REASONING_ROLES = {"ok": "lessons_of_success", "miss": "lessons_of_failure"}  # by the rating of the turn
REASONING_DATA = ("question", "answer", "feedback", "skills_used", "skillbook")


@dataclass(frozen=True)
class ReasoningBank(Proposer):
    """Asks a model for lessons of each turn that is rated ok or a miss, with a prompt for each of the two.

    Other turns teach nothing, and cost nothing.
    """

    llm: TextModel
    limits: Limits
    book_characters: int
    answer_tokens: int
    prompts: str | None
    reaches: ClassVar[Reaches] = {"prompts": Reach(("reads",))}

    def __post_init__(self) -> None:
        check_asking(self.llm, self.book_characters, self.answer_tokens)
        for role in REASONING_ROLES.values():
            self._file(role)

    @property
    def digest(self) -> str:
        """Hash of the prompt files."""
        return "-".join(self._file(role).digest[:16] for role in REASONING_ROLES.values())

    def propose(self, jobs: Sequence[LearningJob]) -> list[Proposal]:
        """ADDs for lessons."""
        roles = [REASONING_ROLES.get(job.rating or "") for job in jobs]
        books = rendered_books(jobs, self.book_characters)
        prompts = [
            job.prompt(self._file(role), {**job.data, "skillbook": book.text}, Purpose.REFLECT, self.answer_tokens)
            for job, role, book in zip(jobs, roles, books, strict=True)
            if role is not None
        ]
        answers = iter(self.llm.complete(prompts) if prompts else [])
        proposals = []
        for role in roles:
            if role is None:
                proposals.append(Proposal(None, "v1", {}))
                continue
            call = next(answers)
            adds = [_added(lesson) for lesson in call.value["lessons"]] if call.end == "ok" else []
            reflection = call.value if call.end == "ok" else None
            proposals.append(Proposal({"operations": adds} if adds else None, "v1", {role: call}, reflection))
        return proposals

    def _file(self, role: str) -> PromptFile:
        return load_prompt(role, self.prompts, REASONING_DATA)


def _added(lesson: Mapping[str, str]) -> dict[str, str]:
    text = f"{lesson['title']}. {lesson['description']} {lesson['content']}"
    return {"type": "ADD", "section": "lessons", "content": text}
