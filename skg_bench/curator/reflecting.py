"""Learns with a model, as ACE does: a reflector studies a turn that its user judged, a skill manager proposes updates
of the skillbook (Pause's `runReflection` and `curate`; ACE's Reflector and SkillManager).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from skg_bench.asking.asking import Completion, TextModel
from skg_bench.asking.prompts import PromptFile, load_prompt
from skg_bench.core.draws import Purpose
from skg_bench.core.errors import UsageError
from skg_bench.core.reach import Reach, Reaches
from skg_bench.curator.shared.book_prompts import check_asking, rendered_books
from skg_bench.curator.shared.learning_job import LearningJob, Proposal
from skg_bench.curator.shared.proposer import Proposer
from skg_bench.skillbook.prompt_layout import SkillOrder
from skg_bench.skillbook.proposals import Batches, Limits

ManagerInput = Literal["reflection", "analysis"]
REFLECTOR, MANAGER, MANAGER_V2 = "reflector", "skill_manager", "skill_manager_v2"
REFLECTING_DATA = {
    REFLECTOR: ("question", "answer", "feedback", "skills_used", "skillbook"),
    MANAGER: ("reflection", "skills_used", "skillbook"),
    MANAGER_V2: ("reflection", "skills_used", "skillbook"),  # whose batches are of ACE's schema 2
}


@dataclass(frozen=True)
class Reflecting(Proposer):
    """Learns from each rating by two calls of a model; or from what the user did and from each later answer.

    `told`: what the skill manager reads of a reflection. `analysis`: nothing but its analysis, as in the article, whose
    code drops the ids and the learnings that the reflector names.
    """

    llm: TextModel
    batches: Batches
    limits: Limits
    book_characters: int
    order: SkillOrder
    told: ManagerInput
    answer_tokens: int
    prompts: str | None
    reaches: ClassVar[Reaches] = {"prompts": Reach(("reads",))}

    def __post_init__(self) -> None:
        check_asking(self.llm, self.book_characters, self.answer_tokens)
        if self.batches not in get_args(Batches):
            raise UsageError(f"curator.batches={self.batches!r}, valid are {', '.join(get_args(Batches))}")
        if self.order not in get_args(SkillOrder):
            raise UsageError(f"curator.order={self.order!r}, valid are {', '.join(get_args(SkillOrder))}")
        if self.told not in get_args(ManagerInput):
            raise UsageError(f"curator.told={self.told!r}, valid are {', '.join(get_args(ManagerInput))}")
        for role in self._roles:
            self._file(role)

    @property
    def digest(self) -> str:
        """Hash of the prompt files."""
        return "-".join(self._file(role).digest[:16] for role in self._roles)

    def propose(self, jobs: Sequence[LearningJob]) -> list[Proposal]:
        """Asks the reflector of all jobs, and then the skill manager of those with a reflection."""
        books = [book.text for book in rendered_books(jobs, self.book_characters, self.order)]
        file, size = self._file(REFLECTOR), self.answer_tokens
        reflections = self.llm.complete(
            [
                job.prompt(file, {**job.data, "skillbook": book}, Purpose.REFLECT, size)
                for job, book in zip(jobs, books, strict=True)
            ]
        )
        file, prompts = self._file(self._roles[1]), []
        for job, book, reflection in zip(jobs, books, reflections, strict=True):
            if reflection.end == "ok":
                data = {"reflection": self._passed_on(reflection.value), "skills_used": job.used, "skillbook": book}
                prompts.append(job.prompt(file, data, Purpose.MANAGE, size))
        updates = iter(self.llm.complete(prompts) if prompts else [])
        return [self._proposal(each, next(updates) if each.end == "ok" else None) for each in reflections]

    def _passed_on(self, reflection: Any) -> Any:
        return reflection if self.told == "reflection" else {"analysis": reflection["analysis"]}

    def _proposal(self, reflection: Completion, update: Completion | None) -> Proposal:
        if update is None:
            return Proposal(None, self.batches, {REFLECTOR: reflection})
        batch = update.value["update"] if update.end == "ok" else None
        return Proposal(batch, self.batches, {REFLECTOR: reflection, self._roles[1]: update}, reflection.value)

    @property
    def _roles(self) -> tuple[str, str]:
        return REFLECTOR, MANAGER_V2 if self.batches.endswith("v2") else MANAGER

    def _file(self, role: str) -> PromptFile:
        return load_prompt(role, self.prompts, REFLECTING_DATA[role])
