"""Answers as they arrive, of any model of texts.

After a UsageError, its own or that of `done`, a model sends no further ask; what is under way ends and is handed to
`done`; then it raises the error.
"""

from collections.abc import Callable, Mapping, Sequence

from skg_bench.asking.asking import AsksAtOnce, Completion, Prompt, Streaming, TextModel
from skg_bench.core.errors import UsageError

CompletionsByPlace = Mapping[int, Completion]  # by the place of their prompts
Done = Callable[[CompletionsByPlace], None]
_AT_ONCE = 64  # asks that a model without `each` gets in one call, where it does not say how many are in flight


def ask_each(llm: TextModel, prompts: Sequence[Prompt], done: Done) -> None:
    """Asks all prompts, and calls `done` with answers as they come. A model without `each` is asked by `complete`, in
    groups as large as what it has in flight. Only the first UsageError of `done` is raised, and ends the sending.
    """
    errors = []

    def once(answers: CompletionsByPlace) -> None:
        try:
            done(answers)
        except UsageError as error:
            errors.append(error)
            if len(errors) == 1:
                raise

    if isinstance(llm, Streaming):
        llm.each(prompts, once)
        return
    size = llm.in_flight if isinstance(llm, AsksAtOnce) else _AT_ONCE
    for first in range(0, len(prompts), size):
        once(dict(enumerate(llm.complete(prompts[first : first + size]), first)))


def complete(each: Callable[[Sequence[Prompt], Done], None], prompts: Sequence[Prompt]) -> list[Completion]:
    """All answers in order, of a model's `each`."""
    answers: dict[int, Completion] = {}
    each(prompts, answers.update)
    return [answers[i] for i in range(len(prompts))]
