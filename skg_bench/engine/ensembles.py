"""Arms as assistants that the engine steps: those that can be stacked side by side, others alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from skg_bench.core.arms import Arm
from skg_bench.core.assistant import (
    Applied,
    Bare,
    Ensemble,
    EnsembleColumns,
    Experience,
    FromBook,
    GivenAgain,
    GroundTruth,
    InWords,
    Keeping,
    Message,
    Recalled,
    Reply,
    Stackable,
)  # fmt: skip
from skg_bench.core.batch import Batch
from skg_bench.core.errors import RowError, UsageError, dotted_name, naming
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import F64, I32, read_only
from skg_bench.core.learning_jobs import Course, Jobs
from skg_bench.core.world import FALLBACK, PROCEDURE, PROMPTED, STORED


def stacks(arms: Sequence[Arm]) -> list[list[int]]:
    """Indices of arms that can be stepped together."""
    groups: list[list[int]] = []
    for i, arm in enumerate(arms):
        for group in groups:
            if _alike(arms[group[0]], arm):
                group.append(i)
                break
        else:
            groups.append([i])
    return groups


def _alike(arm: Arm, other: Arm) -> bool:
    mine, theirs = arm.assistant, other.assistant
    return isinstance(mine, Stackable) and type(mine) is type(theirs) and mine.alike(arm, other)


def ensemble(arms: Sequence[Arm]) -> Ensemble[Any]:
    """The assistant of arms that are stepped together."""
    assistant = arms[0].assistant
    return assistant.ensemble(arms) if isinstance(assistant, Stackable) else Alone(arms[0])


_CASES: Mapping[type, Sequence[str]] = {
    case: [each.name for each in fields(case) if each.name not in ("cost", "words", "asked")]
    for case in (Bare, GivenAgain, InWords, FromBook, Recalled)
}
"""Columns of each case of a reply."""


def _check_words(words: Any, prompts: Any, n: int, where: str) -> None:
    """Raises UsageError for replies in words that are none, and for prompts that are none."""
    for name, given, valid in (("words", words, (n,)), ("asked", prompts, (0, n))):
        if not isinstance(given, list | tuple) or len(given) not in valid:
            raise UsageError(f"{where}: InWords.{name} is a {type(given).__qualname__}; valid is a list of {n}")
    for row, text in enumerate(words):
        if text is not None and type(text) is not str:
            raise RowError(row, f"InWords.words holds a {type(text).__qualname__}; valid are texts, and None")
    for row, asked_by in enumerate(prompts):
        if not isinstance(asked_by, list | tuple) or not all(isinstance(prompt, str) for prompt in asked_by):
            raise RowError(row, f"InWords.asked holds {asked_by!r:.60}; valid is a list of prompts for each user")


def _handed_over(query: Message, *, frozen: bool) -> Message:
    """The message as an assistant gets it: without the texts of all, and with arrays that the engine does not read."""
    text, event = query.text.copy(), query.event.copy()
    read_only(text, event)
    return replace(query, text=text, event=event, library=None, frozen=frozen)


def _copied(reply: Reply) -> Reply:
    """A reply that nobody can change: an assistant keeps the arrays of its own, and writes into them when it learns."""
    how, answer = reply.how.copy(), reply.answer.copy()
    columns = {name: getattr(reply.case, name).copy() for name in _CASES[type(reply.case)]}
    read_only(how, answer, *columns.values())
    return replace(reply, how=how, answer=answer, case=replace(reply.case, **columns) if columns else reply.case)


@dataclass(frozen=True)
class Alone:
    """An assistant of which the engine knows the Protocol alone: core.assistant.Ensemble. At a fork it keeps its
    state if it is the same one.
    """

    arm: Arm
    reasons: Sequence[str] = ()

    @property
    def sees_truth(self) -> bool:
        """Is it an oracle?"""
        return any(phase.assistant.sees_truth for phase in self.arm.phases)

    def start(self, n: int) -> Any:
        """As the assistant's own."""
        return self._at(0).start(n)

    def answer(self, query: Message, state: Any) -> tuple[Any, Reply]:
        """As the assistant's own."""
        assistant = self._at(query.turn)
        if query.turn in self.arm.cuts[1:] and assistant != self._at(query.turn - 1):
            state = assistant.start(len(query.text))
        with naming(assistant):
            frozen = self.arm.at(query.turn).frozen(query.turn) is not None
            answered = assistant.answer(_handed_over(query, frozen=frozen), state)
        self._check(answered, len(query.text), assistant)
        state, reply = answered
        return state, _copied(reply)

    def learn(self, seen: Experience, feedback: KnownFeedback, state: Any) -> Any:
        """Memory after its own learning, unless it is frozen."""
        arm = self.arm.at(seen.message.turn)
        if arm.frozen(seen.message.turn):
            return state
        assistant = self._at(seen.message.turn)
        with naming(assistant):
            handed = replace(seen, message=_handed_over(seen.message, frozen=False), reply=_copied(seen.reply))
            return assistant.learn(handed, feedback, state)

    def _check(self, answered: Any, n: int, assistant: Any) -> None:
        """Raises UsageError, which names arm and assistant, for a reply that is none."""
        where = f"arm {self.arm.name!r}: {dotted_name(assistant)}.answer"
        if not (isinstance(answered, tuple) and len(answered) == 2 and isinstance(answered[1], Reply)):
            gave = answered[1] if isinstance(answered, tuple) and len(answered) == 2 else answered
            raise UsageError(f"{where} gave a {type(gave).__qualname__}; valid is (state, Reply)")
        reply = answered[1]
        kind = type(reply.case)
        if kind not in _CASES:
            valid = ", ".join(case.__name__ for case in _CASES)
            raise UsageError(f"{where}: Reply.case is a {kind.__qualname__}; valid are {valid} (core/assistant.py)")
        match reply.case:
            case InWords(words, asked=prompts):
                _check_words(words, prompts, n, where)
        columns = {f"Reply.{name}": getattr(reply, name) for name in ("how", "answer")}
        columns |= {f"{kind.__name__}.{name}": getattr(reply.case, name) for name in _CASES[kind]}
        for name, column in columns.items():
            if not isinstance(column, np.ndarray):
                raise UsageError(f"{where}: {name} is a {type(column).__qualname__}; valid is an array [{n}]")
            shape, valid = (column.shape[:1], f"[{n}, K]") if name == "Recalled.answers" else (column.shape, f"[{n}]")
            if column.dtype.kind not in ("fiu" if name == "FromBook.propensity" else "iub"):
                raise UsageError(f"{where}: {name} has numbers of the kind {column.dtype}; valid are whole ones")
            if shape != (n,) or column.ndim != 1 + (name == "Recalled.answers"):
                raise UsageError(f"{where}: {name} has shape {column.shape}; valid is {valid}")
        if n and (reply.how.min() < FALLBACK or reply.how.max() > PROCEDURE):
            raise UsageError(
                f"{where}: Reply.how holds {reply.how.min()} to {reply.how.max()}; valid are FALLBACK ({FALLBACK}), "
                f"STORED ({STORED}), PROMPTED ({PROMPTED}) and PROCEDURE ({PROCEDURE})"
            )

    def _at(self, turn: int) -> Any:
        return self.arm.at(turn).assistant

    def explain(self, truth: GroundTruth, state: Any) -> I32:
        """Gives nothing: its skillbook is not known."""
        return np.full(len(truth.type), -1, np.int32)

    def best(self, truth: GroundTruth, state: Any) -> F64 | None:
        """Gives nothing: its skillbook is not known."""
        return None

    def columns(self, state: Any) -> EnsembleColumns:
        """None."""
        return {}

    def updates(self, state: Any) -> Sequence[tuple[int, Batch, Applied]]:
        """None."""
        return ()

    def jobs(self, state: Any) -> Jobs | None:
        """None that are known; what its learning costs is in `Reply.cost`."""
        return None

    def ended(self, state: Any) -> Sequence[tuple[Jobs, Course | None]]:
        """None that are known."""
        return ()

    def left(self, state: Any, n: int) -> tuple[Jobs, Course] | None:
        """None that are known."""
        return None


def saved_memory(stepped: Ensemble[Any], memory: Any, turn: int) -> Any:
    """Memory of an ensemble before turn `turn`, for a checkpoint; None where an assistant cannot save its own."""
    match stepped:
        case Alone(arm=arm) if isinstance(assistant := arm.at(max(turn - 1, 0)).assistant, Keeping):
            return assistant.saved(memory)
        case _:
            return memory


def loaded_memory(stepped: Ensemble[Any], memory: Any, turn: int, n: int) -> Any:
    """Memory of an ensemble of `n` rows before turn `turn`, from a checkpoint."""
    match stepped:
        case Alone(arm=arm) if isinstance(assistant := arm.at(max(turn - 1, 0)).assistant, Keeping):
            return assistant.loaded(memory, n)
        case _:
            return memory
