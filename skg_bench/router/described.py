"""Descriptions of skills in the prompt: the model chooses by these, and reads the body of the skill that it chose.

So do agents with Agent Skills, whose bodies are too long to stand in each prompt. The description is the issue, the
body the insight.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.core.types import Query, Shortlist, Skillbooks
from skg_bench.router.in_prompt import InPrompt, prompt_list
from skg_bench.skillbook.prompt_layout import SkillOrder


@dataclass(frozen=True)
class Described:
    """As InPrompt, but skills take the room of their issue alone."""

    order: SkillOrder
    limit: int
    top_k: int
    lists_whole: ClassVar[bool] = False
    sees_truth: ClassVar[bool] = False
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        self._prompt  # noqa: B018  raises UsageError for what no prompt can be

    @cached_property
    def _prompt(self) -> InPrompt:
        return InPrompt(self.order, self.limit, self.top_k)

    def route(self, query: Query, books: Skillbooks) -> Shortlist:
        """Skills whose descriptions the model reads."""
        return prompt_list(self._prompt, query, books, whole=False)
