"""Objects of somebody else, one for each user, as an assistant."""

import copy
from asyncio import CancelledError, current_task, iscoroutine
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from inspect import iscoroutinefunction, signature
from typing import Any, ClassVar, Protocol

import numpy as np

from skg_bench.asking.loop import each_answer
from skg_bench.assistant.python.contract import AskedModel
from skg_bench.assistant.python.scrambled import GivenAnswers, scrambled
from skg_bench.assistant.python.working_directory import unmoved
from skg_bench.core.assistant import Experience, InWords, Message, Reply
from skg_bench.core.calendar import FIRST_MONDAY
from skg_bench.core.domain import Domain
from skg_bench.core.errors import RowError, UsageError
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.types import FREE
from skg_bench.core.world import FALLBACK

Call = Callable[[], Any]
_TAKEN = {
    "answer": ("user", "time", "message", "model"), "feedback": ("user", "about", "kind", "value"), "save": (),
    "load": ("user", "data"), "forget": ("user", "reference"),
}  # fmt: skip
_METHODS = tuple(_TAKEN)


class OutsideFault(Exception):  # noqa: N818  its words say what is wrong
    """Fault of a system of somebody else, in words that need no place in its code."""


class ObjectSource(Protocol):
    """Maker of objects that are all alike before their first message."""

    @property
    def name(self) -> str:
        """Name of them, for errors: `mine.cache.ExactCache`."""
        ...

    def made(self) -> Any:
        """A new one, without memory."""
        ...


@dataclass(frozen=True, slots=True)
class Methods:
    """Methods of an object beside `answer`."""

    waits: bool  # `answer` is async
    hears: bool  # it has `feedback`
    saves: bool  # it has `save` and `load`
    forgets: bool  # it has `forget`

    @staticmethod
    def of(made: Any, name: str) -> "Methods":
        """Methods of an object.

        Raises UsageError for one without `answer`, with one of `save` and `load` alone, and with a method that takes
        other arguments.
        """
        has = {method: callable(getattr(made, method, None)) for method in _METHODS}
        if not has["answer"]:
            raise UsageError(f"{name} has no method answer; valid is answer(self, user, time, message, model) -> str")
        if has["save"] != has["load"]:
            present, other = ("save", "load") if has["save"] else ("load", "save")
            raise UsageError(f"{name} has {present} and no {other}; write both, or none")
        for method in _METHODS[1:]:
            if has[method] and iscoroutinefunction(getattr(made, method)):
                raise UsageError(f"{name}.{method} is async; only answer may be")
        for method in (each for each in _METHODS if has[each]):
            _check_arguments(getattr(made, method), f"{name}.{method}", _TAKEN[method])
        return Methods(iscoroutinefunction(made.answer), has["feedback"], has["save"], has["forget"])


def _check_arguments(method: Callable[..., Any], name: str, given: Sequence[str]) -> None:
    try:
        taken = signature(method)
    except ValueError:  # of a method that is not written in Python
        return
    try:
        taken.bind(*given)
    except TypeError as error:
        wanted = ", ".join(("self", *given))
        raise UsageError(f"{name} takes {taken}: {error}; wanted: {name.rpartition('.')[2]}({wanted})") from None


@dataclass(slots=True)
class Objects:
    """Objects of users, `[n]` each, and what they are told with feedback."""

    made: list[Any]
    who: list[str]  # pseudonyms
    said: list[dict[int, str]]  # words that answered each turn; nothing for objects that hear no feedback
    given: list[GivenAnswers] = field(default_factory=list)  # of a placebo alone: answers of its model
    kept: list[bytes | None] = field(default_factory=list)  # memory of a frozen one, None: it is copied as it stands


class Outside:
    """An assistant made of objects: core.assistant.Assistant and core.assistant.Keeping."""

    sees_truth: ClassVar[bool] = False

    def __init__(self, source: ObjectSource, *, one_clock: bool = False, placebo: bool = False) -> None:
        """`one_clock`: all users are told the time of the first user's place, as they share a memory. `placebo`: each
        hit gives another answer of the same user's.
        """
        self._source, self._one_clock, self._placebo = source, one_clock, placebo
        self._methods = Methods.of(self._new(), source.name)

    def start(self, n: int) -> Objects:
        """A new object for each of `n` users."""
        return Objects([self._new() for _ in range(n)], [], [{} for _ in range(n)])

    def answer(self, query: Message, state: Objects) -> tuple[Objects, Reply]:
        """Words of each user's object. What one remembers of a frozen turn is thrown away."""
        n = len(query.text)
        if self._placebo and query.domain.in_words:
            raise RowError(0, "scrambled=true exchanges answers by their references, and words of this world have none")
        if not state.who:
            state.who = query.who
        messages = query.texts.read(query.text)
        models = [AskedModel(partial(query.ask, row), query.texts.embed) for row in range(n)]
        objects = [self._copy(state, row) for row in range(n)] if query.frozen else state.made
        words = self.words(objects, state.who, self._times(query), messages, models)
        if self._placebo:
            words = _scrambled(state, query, messages, words, [bool(model.prompts) for model in models])
        none = np.full(n, -1, np.int32)
        reply = InWords(words, FREE, [model.prompts for model in models])
        return state, Reply(how=np.full(n, FALLBACK, np.int32), answer=none, case=reply)

    def learn(self, seen: Experience, feedback: KnownFeedback, state: Objects) -> Objects:
        """The objects, which were told the feedback."""
        if not self._methods.hears:
            return state
        match seen.reply.case:
            case InWords(words):
                for past, mine in zip(state.said, words, strict=False):
                    past[seen.message.turn] = mine or ""
        levels = _levels(seen.message.domain)
        for row, turn, kind, value in zip(
            feedback.row.tolist(), feedback.turn.tolist(), feedback.kind.tolist(), feedback.value.tolist(), strict=True
        ):
            if turn in state.said[row]:
                name, values = levels[kind]
                hear, about = state.made[row].feedback, state.said[row][turn]
                self._called(row, "feedback", lambda: hear(state.who[row], about, name, values[value]))  # noqa: B023
        return state

    # ------------------------------------------------------------------------------------------------- memory

    def unforgotten(self) -> str | None:
        """Reason why its objects cannot be made to forget one answer, None: they can."""
        if self._placebo:
            return f"{self._source.name} is scrambled: what it gives again is another answer than it chose"
        if not self._methods.forgets:
            return (
                f"{self._source.name} has no method forget; write forget(self, user, reference), which drops the "
                "answer that holds the reference"
            )
        return None

    def forget(self, row: int, turn: int, reference: str, state: Objects) -> None:
        """The object of a row forgets the answer that it was given at a turn, and is told no more about it."""
        forget = state.made[row].forget
        self._called(row, "forget", lambda: forget(state.who[row], reference))
        state.said[row].pop(turn, None)

    def shared(self, state: Objects) -> Objects:
        """The state of one more user, who has the object of another user's state `[1]`."""
        return Objects(state.made, [], [{}])

    def unfrozen(self) -> str | None:
        """Reason why its memory cannot be frozen, None: it can."""
        made = self._new()
        if self._methods.saves:
            return None
        try:
            copy.deepcopy(made)
        except (Exception, SystemExit) as error:  # noqa: BLE001  whatever an object of somebody else raises
            return f"{self._source.name} has no save and load, and copy.deepcopy fails: {_shown(error)}"
        return None

    def saved(self, state: Objects) -> Mapping[str, Any] | None:
        """The memory as plain data, None: the objects have no `save`."""
        if not self._methods.saves:
            return None
        return {
            "who": state.who,
            "said": state.said,
            "given": state.given,
            "objects": [self._bytes(state, i) for i in range(len(state.made))],
        }

    def loaded(self, data: Any, n: int) -> Objects:
        """The memory of `n` users that was `saved`."""
        state = Objects(
            [self._new() for _ in range(n)], data["who"], data["said"], [[*map(tuple, each)] for each in data["given"]]
        )
        for row, (made, kept) in enumerate(zip(state.made, data["objects"], strict=True)):
            self._load(row, made, state.who[row], kept)
        return state

    def _copy(self, state: Objects, row: int) -> Any:
        if not state.kept:
            state.kept = [self._bytes(state, i) if self._methods.saves else None for i in range(len(state.made))]
        if (kept := state.kept[row]) is None:
            return self._called(row, "__deepcopy__", lambda: copy.deepcopy(state.made[row]))
        self._load(row, made := self._new(), state.who[row], kept)
        return made

    def _bytes(self, state: Objects, row: int) -> bytes:
        kept = self._called(row, "save", state.made[row].save)
        if type(kept) is not bytes:
            raise RowError(row, f"it returned a {type(kept).__qualname__}; valid is bytes", f"{self._source.name}.save")
        return kept

    def _load(self, row: int, made: Any, user: str, kept: bytes) -> None:
        self._called(row, "load", lambda: made.load(user, kept))

    # ------------------------------------------------------------------------------------------------- calls

    def _times(self, query: Message) -> list[datetime]:
        """Times that the users' clocks show, or the one clock of all."""
        seconds = query.time if self._one_clock else query.local
        return [FIRST_MONDAY + timedelta(seconds=each) for each in seconds.tolist()]

    def _new(self) -> Any:
        try:
            with unmoved(self._source.name):
                return self._source.made()
        except UsageError:
            raise
        except (Exception, SystemExit) as error:  # an exit would end the run without a result, with exit code 0
            raise UsageError(f"{self._source.name} cannot be made: {_shown(error)}") from error

    def words(
        self,
        objects: Sequence[Any],
        who: Sequence[str],
        times: Sequence[datetime],
        messages: Sequence[str],
        models: Sequence[AskedModel],
    ) -> list[str]:
        """Words of the objects of all users; those that wait are asked at once.

        Raises RowError for what goes wrong with one.
        """
        with unmoved(self._source.name):
            if self._methods.waits:
                return self._awaited(objects, who, times, messages, models)
            return self._in_order(objects, who, times, messages, models)

    def _in_order(
        self,
        objects: Sequence[Any],
        who: Sequence[str],
        times: Sequence[datetime],
        messages: Sequence[str],
        models: Sequence[AskedModel],
    ) -> list[str]:
        words: list[Any] = [None] * len(messages)
        row = 0
        try:
            for row, (user, time, message, model) in enumerate(zip(who, times, messages, models, strict=False)):
                words[row] = objects[row].answer(user, time, message, model)
                model.end()
        except UsageError:
            raise
        except (Exception, SystemExit) as error:
            raise self._fault(row, "answer", error) from error
        return self._checked(words)

    def _awaited(
        self,
        objects: Sequence[Any],
        who: Sequence[str],
        times: Sequence[datetime],
        messages: Sequence[str],
        models: Sequence[AskedModel],
    ) -> list[str]:
        words: dict[int, Any] = {}

        async def answered(row: int) -> Any:
            try:
                return await objects[row].answer(who[row], times[row], messages[row], models[row])
            except UsageError:
                raise
            except CancelledError as error:
                if (task := current_task()) is None or task.cancelling():  # an interrupt gives it up
                    raise
                raise self._fault(row, "answer", error) from error
            except (Exception, SystemExit) as error:  # an exit would end the loop, for which the run then waits
                raise self._fault(row, "answer", error) from error
            finally:
                models[row].end()

        each_answer(range(len(messages)), answered, words.update, width=max(1, len(messages)), first_alone=False)
        return self._checked([words[row] for row in range(len(messages))])

    def _checked(self, words: list[Any]) -> list[str]:
        for row, mine in enumerate(words):
            if not isinstance(mine, str):
                if iscoroutine(mine):
                    mine.close()
                what = "None" if mine is None else f"a {type(mine).__qualname__}"
                raise RowError(row, f"it returned {what}; valid is a str", f"{self._source.name}.answer")
        return [str(mine) for mine in words]

    def _called(self, row: int, method: str, call: Call) -> Any:
        try:
            with unmoved(self._source.name):
                return call()
        except UsageError:
            raise
        except (Exception, SystemExit) as error:
            raise self._fault(row, method, error) from error

    def _fault(self, row: int, method: str, error: BaseException) -> RowError:
        match error:
            case OutsideFault():
                return RowError(row, str(error), self._source.name)
            case _:
                return RowError(row, f"it raised {_shown(error)}", f"{self._source.name}.{method}")


def _scrambled(
    state: Objects, query: Message, messages: Sequence[str], words: Sequence[str], made: Sequence[bool]
) -> list[str]:
    """Words of a placebo, which keeps in mind the answers that its model `made` of messages."""
    state.given = state.given or [[] for _ in messages]
    events = query.event.tolist()
    others = [scrambled(*each) for each in zip(words, events, state.given, strict=False)]
    for given, key, message, fresh in zip(state.given, events, messages, made, strict=False):
        if fresh and not query.frozen:
            given.append((key, message))
    return others


def _shown(error: BaseException) -> str:
    """An exception in words, with the place that raised it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f" ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})"
    return f"{type(error).__qualname__}: {error}{place}"


def _levels(domain: Domain) -> Sequence[tuple[str, Sequence[str]]]:
    """Kinds of feedback and their values in words, by code."""
    return list(domain.feedback().items())
