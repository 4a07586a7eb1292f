"""Tasks of reasoning-gym: entries of families, each with an answer, and checks of what is said to them."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from skg_bench.core.errors import UsageError, install_hint, nearest

ENTRIES = 64  # of each family; those that come twice are left out
RUN_AS_CODE = frozenset(
    {
        "binary_matrix", "countdown", "intermediate_integration", "n_queens", "polynomial_multiplication", "puzzle24",
        "simple_integration", "spiral_matrix", "string_insertion",
    }
)  # fmt: skip
"""Families whose checks run what a model says as Python: `eval`, or sympy's `parse_expr`."""
_NO_ANSWERS = ("I do not know.", "0", "1")  # words to which some checks give full marks at any task
_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
_Score = Callable[[str, Mapping[str, Any]], float]


@dataclass(frozen=True, slots=True)
class GymEntry:
    """A task with an answer that is right. Others may be right, too: its family's check knows."""

    family: str
    question: str
    answer: str
    task: Mapping[str, Any]  # as reasoning-gym has it


def families() -> Sequence[str]:
    """Names of families that can be played.

    Raises UsageError where reasoning-gym is not installed.
    """
    return sorted({*_sets()} - RUN_AS_CODE - {"composite"})


@lru_cache(maxsize=8)
def gym_entries(names: tuple[str, ...]) -> Sequence[GymEntry]:
    """Entries of families, in their order; equal questions once.

    Raises UsageError for a family that is unknown, comes twice, makes other entries the next time, or has none whose
    check tells its answer from others.
    """
    known = families()
    made = list[GymEntry]()
    for place, name in enumerate(names):
        if name in RUN_AS_CODE:
            raise UsageError(
                f"simulator.families: the check of {name} runs what a model says as Python code; take another family"
            )
        if name not in known:
            raise UsageError(f"simulator.families: there is no family {name!r}; {nearest(name, known)}")
        if name in names[:place]:
            raise UsageError(f"simulator.families: {name} stands there twice; leave one out")
        entries = _made(name)
        if not entries:
            raise UsageError(
                f"simulator.families: {name} has no task whose check tells a right answer from others; take another "
                "family"
            )
        if [(each.question, each.answer) for each in _made(name)] != [(each.question, each.answer) for each in entries]:
            raise UsageError(f"simulator.families: {name} makes other tasks each time; take another family")
        made += entries
    return tuple(made)


def _made(name: str) -> list[GymEntry]:
    dataset_class, config = _sets()[name]
    dataset = dataset_class(config=config(seed=0, size=ENTRIES))
    tasks = (dataset[place] for place in range(ENTRIES))
    entries = {
        task["question"]: GymEntry(name, task["question"].strip(), task["answer"].strip(), task)
        for task in tasks
        if isinstance(task["answer"], str) and task["answer"].strip()
    }
    made = list(entries.values())
    return [each for each, other in zip(made, [*made[1:], *made[:1]], strict=True) if _tells(each, other)]


def _tells(entry: GymEntry, other: GymEntry) -> bool:
    """Does its check give full marks to its answer, and none to its denial, to the answer of another entry, and to what
    answers nothing?
    """
    wrong = {*_NO_ANSWERS, other.answer, f"It is not {entry.answer}"} - {entry.answer}
    return solved(entry, entry.answer) and not any(solved(entry, words) for words in wrong)


def solved(entry: GymEntry, words: str) -> bool:
    """Does the family's own check give full marks to words, or to those between `<answer>` and `</answer>`, with or
    without a full stop? Words that a check cannot read are wrong.
    """
    inside = _ANSWER.findall(words)
    answer = (inside[-1] if inside else words).strip()
    return any(_marks(entry, each) >= 1 for each in {answer, answer.removesuffix(".")} if each)


def _marks(entry: GymEntry, answer: str) -> float:
    try:
        return float(_score(entry.family)(answer, entry.task))
    except Exception:  # noqa: BLE001  checks of many authors, each with other demands on the form
        return 0.0


@lru_cache(maxsize=128)
def _score(family: str) -> _Score:
    dataset_class, config = _sets()[family]
    return cast(_Score, dataset_class(config=config()).score_answer)


def _sets() -> Mapping[str, tuple[Any, Any]]:
    """Classes of families and of their settings, by name. They take 2 s to import."""
    try:
        from reasoning_gym.factory import DATASETS
    except ModuleNotFoundError as error:
        raise UsageError(f"simulator=gym needs {error.name}: {install_hint('gym')}") from error
    sets: Mapping[str, tuple[Any, Any]] = DATASETS
    return sets
