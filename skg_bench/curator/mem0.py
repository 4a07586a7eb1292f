"""Facts that a model takes from each turn and holds against what it remembers, as in Mem0 (Chhikara et al., 2025).

The same method as a system of its own, with its own store, is `assistant=mem0`; here its memories are skills.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from skg_bench.asking.asking import Completion, TextModel
from skg_bench.asking.prompts import PromptFile, load_prompt
from skg_bench.core.draws import Purpose
from skg_bench.core.reach import Reach, Reaches
from skg_bench.curator.shared.book_prompts import check_asking, rendered_books
from skg_bench.curator.shared.learning_job import LearningJob, Proposal
from skg_bench.curator.shared.proposer import Proposer
from skg_bench.skillbook.proposals import Limits

TAKER, KEEPER = "mem0_facts", "mem0_memory"
MEM0_DATA = {TAKER: ("question", "answer", "feedback", "skills_used"), KEEPER: ("facts", "skillbook")}


@dataclass(frozen=True)
class FactsByModel(Proposer):
    """Asks a model for the facts of a turn, and then how they change the memories.

    A fact is new (ADD), changes a memory (UPDATE), makes one wrong (DELETE), or is known (NONE).
    """

    llm: TextModel
    limits: Limits
    book_characters: int
    answer_tokens: int
    prompts: str | None
    reaches: ClassVar[Reaches] = {"prompts": Reach(("reads",))}

    def __post_init__(self) -> None:
        check_asking(self.llm, self.book_characters, self.answer_tokens)
        for role in MEM0_DATA:
            self._file(role)

    @property
    def digest(self) -> str:
        """Hash of the prompt files."""
        return "-".join(self._file(role).digest[:16] for role in MEM0_DATA)

    def propose(self, jobs: Sequence[LearningJob]) -> list[Proposal]:
        """Asks for the facts of all jobs, and then what they change."""
        books, file = rendered_books(jobs, self.book_characters), self._file(TAKER)
        facts = self.llm.complete([job.prompt(file, job.data, Purpose.REFLECT, self.answer_tokens) for job in jobs])
        prompts = [
            job.prompt(
                self._file(KEEPER), {"facts": call.value["facts"], "skillbook": book.text}, Purpose.MANAGE,
                self.answer_tokens,
            )
            for job, call, book in zip(jobs, facts, books, strict=True)
            if _some(call)
        ]  # fmt: skip
        changes = iter(self.llm.complete(prompts) if prompts else [])
        return [_proposal(call, next(changes) if _some(call) else None) for call in facts]

    def _file(self, role: str) -> PromptFile:
        return load_prompt(role, self.prompts, MEM0_DATA[role])


def _some(facts: Completion) -> bool:
    return facts.end == "ok" and bool(facts.value["facts"])


def _proposal(facts: Completion, change: Completion | None) -> Proposal:
    reflection = facts.value if facts.end == "ok" else None
    if change is None:
        return Proposal(None, "v1", {TAKER: facts}, reflection)
    events = change.value["memory"] if change.end == "ok" else []
    operations = [_operation(event) for event in events if event["event"] != "NONE"]
    batch = {"operations": operations} if operations else None
    return Proposal(batch, "v1", {TAKER: facts, KEEPER: change}, reflection)


def _operation(event: Mapping[str, Any]) -> dict[str, Any]:
    if event["event"] == "ADD":
        return {"type": "ADD", "section": "facts", "content": event["text"]}
    if event["event"] == "UPDATE":
        return {"type": "UPDATE", "skill_id": event["id"], "content": event["text"]}
    return {"type": "REMOVE", "skill_id": event["id"]}
