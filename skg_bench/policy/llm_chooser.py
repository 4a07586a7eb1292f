"""A model chooses: it is asked which of the listed skills to use for a message, or none (P45)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skg_bench.asking.asking import Completion, Prompt, TextModel, check_writes, metered, naming_model
from skg_bench.asking.prompts import PromptFile, load_prompt
from skg_bench.core.deciding import Candidates, Memoryless, Shown
from skg_bench.core.draws import Purpose, fold
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64
from skg_bench.core.reach import Reach, Reaches
from skg_bench.policy.shared.distributions import certain
from skg_bench.skillbook.prompt_layout import shown_id, skill_block

ROLE = "chooser"
CHOOSER_DATA = ("message", "skills")
_LEAST = 50  # tokens of an answer: an id and a short reason, as JSON


@dataclass(frozen=True, slots=True)
class _Listed:
    """A shortlisted skill that says something."""

    label: str  # by which the model names it
    place: int
    text: str  # as prompts show it


@dataclass(frozen=True)
class LLMChooser(Memoryless):
    """The skill that a model names, of those that are listed; the fallback where it names none.

    It is the fallback too where the model names a skill that is not listed, and where no valid answer comes; both are
    paid for. Skills that say nothing are not listed, and where none is listed the model is not asked.
    """

    llm: TextModel
    answer_tokens: int
    prompts: str | None
    reaches: ClassVar[Reaches] = {"prompts": Reach(("reads",))}

    def __post_init__(self) -> None:
        check_writes(self.llm, "policy.llm")
        if self.answer_tokens < _LEAST:
            raise UsageError(f"policy.answer_tokens={self.answer_tokens} must be at least {_LEAST}")
        self._file()

    @property
    def digest(self) -> str:
        """Hash of the prompt file."""
        return self._file().digest[:16]

    def propensities(self, candidates: Candidates, state: None) -> F64:
        """1 for what the model chose."""
        b, k = candidates.skill.shape
        place, shown = np.full(b, -1, np.int32), candidates.shown
        if shown is not None:
            lists = _lists(candidates, shown)
            asking = np.array([row for row, skills in enumerate(lists) if skills], np.int64)
            if len(asking):
                asks = self._asks(shown.rows(asking), [lists[row] for row in asking])
                with naming_model("policy.llm"):
                    completions = self.llm.complete(asks)
                shown.report(shown.row[asking], metered(completions))
                place[asking] = [_chosen(c, lists[row]) for c, row in zip(completions, asking, strict=True)]
        return certain(place, k)

    def _asks(self, shown: Shown, lists: Sequence[Sequence[_Listed]]) -> list[Prompt]:
        draws = fold(fold(shown.event, int(Purpose.CHOOSE)), 0) >> np.uint64(1)
        texts, file = shown.texts, self._file()
        return [
            file.ask(
                {"message": message, "skills": [skill.text for skill in skills]}, draw, self.answer_tokens,
                recorded=texts.recorded, redacted=texts.redacts,
            )
            for message, skills, draw in zip(texts.read(shown.message, shown.row), lists, draws.tolist(), strict=True)
        ]  # fmt: skip

    def _file(self) -> PromptFile:
        return load_prompt(ROLE, self.prompts, CHOOSER_DATA)


def _lists(candidates: Candidates, shown: Shown) -> list[list[_Listed]]:
    """Skills of each user that say something, in the order of the shortlist."""
    lists: list[list[_Listed]] = [[] for _ in candidates.skill]
    rows, places = np.nonzero(candidates.skill >= 0)
    ok, miss = 2 * candidates.ok - candidates.rated + candidates.miss, candidates.miss  # `ok` counts partial ones half
    counts = (ok.astype(np.int64), candidates.rated - miss - ok.astype(np.int64), miss)
    columns = (candidates.skill, *counts)
    values = zip(rows.tolist(), places.tolist(), *(column[rows, places].tolist() for column in columns), strict=True)
    contents = shown.texts.contents.of(shown.content[rows, places])
    for (row, place, skill, *ratings), content in zip(values, contents, strict=True):
        if content is not None:
            label = shown_id(content.section, skill)
            lists[row].append(_Listed(label, place, skill_block(label, content, *ratings)))
    return lists


def _chosen(completion: Completion, skills: Sequence[_Listed]) -> int:
    """The place of the skill that the model names, -1: none."""
    if completion.end != "ok" or not isinstance(completion.value, Mapping):
        return -1
    label = completion.value.get("skill_id")
    return next((skill.place for skill in skills if skill.label == label), -1)
