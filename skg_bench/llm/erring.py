"""A model whose reflector errs: in a share of its answers, skills that helped and skills that harmed change places."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from skg_bench.asking import arrivals
from skg_bench.asking.asking import Completion, Prices, Prompt, TextModel, check_writes
from skg_bench.core.draws import Purpose, fold, uniform
from skg_bench.core.errors import UsageError
from skg_bench.core.reach import REACHES_NOTHING, Reaches

_ROLE = "reflector"  # whose answers name the skills that helped and those that harmed
_BESIDE = ("skill_manager", "skill_manager_v2")  # roles of the same curator
_HELPFUL, _HARMFUL = "helpful_skill_ids", "harmful_skill_ids"


@dataclass(frozen=True)
class Erring:
    """`llm`, but in a share `wrong` of its reflections helpful and harmful skills change places.

    The rest of a reflection stays, and so do answers to other prompts. With a share of 0.5, verdicts are a coin's.
    """

    llm: TextModel
    wrong: float
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def __post_init__(self) -> None:
        check_writes(self.llm, "curator.llm.llm")
        if not 0 <= self.wrong <= 1:
            raise UsageError(f"curator.llm.wrong={self.wrong} is no share; give a number from 0 to 1, such as 0.1")

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings of the model inside, and how often it errs."""
        return {**self.llm.settings, "model": f"{self.llm.settings['model']}, {self.wrong:g} of verdicts turned round"}

    @property
    def prices(self) -> Prices | None:
        """Prices of the model inside."""
        return self.llm.prices

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Answers in order.

        Raises UsageError as the model inside does.
        """
        return arrivals.complete(self.each, prompts)

    def each(self, prompts: Sequence[Prompt], done: arrivals.Done) -> None:
        """Call `done` for answers as they come.

        Raises UsageError for prompts of a curator without a reflector, and as the model inside does.
        """
        if others := {prompt.role for prompt in prompts} - {_ROLE, *_BESIDE}:
            raise UsageError(
                f"curator.llm=erring turns round verdicts of a reflector, and the role {min(others)!r} gives none; "
                "take it as the model of curator=reflecting"
            )

        def arrived(answers: arrivals.CompletionsByPlace) -> None:
            done({place: self._erred(prompts[place], answer) for place, answer in answers.items()})

        arrivals.ask_each(self.llm, prompts, arrived)

    def _erred(self, prompt: Prompt, answer: Completion) -> Completion:
        if prompt.role != _ROLE or answer.end != "ok":
            return answer
        key = np.array([prompt.draw], np.uint64)
        if uniform(fold(key, int(Purpose.ERRS)))[0] >= self.wrong:
            return answer
        value = {**answer.value, _HELPFUL: answer.value[_HARMFUL], _HARMFUL: answer.value[_HELPFUL]}
        return replace(answer, value=value, text=json.dumps(value, ensure_ascii=False))
