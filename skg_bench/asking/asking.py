"""Asking a model in words: prompts, their results, and the Protocol of models that read and write texts.

A learning component makes a prompt for each user of a step and hands over all of them at once. How many of them are
under way at the same time is the model's business.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.types import Completions

End = Literal["ok", "timeout", "invalid", "refused", "error"]
ASKS_FOLDER = "asked"  # the folder of a run where recordings and what was spent are kept

C = TypeVar("C")
_KEY = "curator.llm"  # in errors of models, which do not know where they stand
_WORK = {"reflector": "Reflection", "skill_manager": "Skill update", "skill_manager_v2": "Skill update"}  # by role


@dataclass(frozen=True, slots=True)
class Prompt:
    """One ask."""

    role: str  # of the prompt file: reflector, skill_manager, ...
    system: str  # empty: none
    user: str
    schema: Mapping[str, Any] | None  # JSON schema that the answer must satisfy; None: any text will do
    draw: int  # 63 bits folded on the assistant's key of (user, event, purpose): which sample
    limit: int  # tokens that the answer may have
    recorded: bool = False  # it holds messages of a recorded log, which people wrote
    redacted: bool = False  # logs of this run show other texts: no file may hold this one
    raw: Mapping[str, Any] | None = (
        None  # request of another program, with tools and all; system and user say it in words
    )

    @property
    def messages(self) -> list[Mapping[str, Any]]:
        """As chat messages."""
        if self.raw is not None:
            return list(self.raw["messages"])
        request = {"role": "user", "content": self.user}
        return [{"role": "system", "content": self.system}, request] if self.system else [request]


@dataclass(frozen=True, slots=True)
class Completion:
    """Result of an ask."""

    text: str  # as the model wrote it, to a raw prompt as the JSON of its choice; empty where nothing came
    value: Any  # parsed, and valid against the schema; None: it is not, or there was no schema
    end: End
    tokens_in: int  # cached ones included; all attempts together
    tokens_cached: int
    tokens_out: int
    cost_usd: float  # 0 without prices
    latency_ms: float  # of the endpoint, repairs included; a replay repeats what was recorded
    reason: str = ""  # why there is no answer
    served: str = ""  # the model as the server names it, and the form in which it was asked for a schema


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of a model, in USD per million tokens."""

    tokens_in: float
    tokens_cached: float
    tokens_out: float

    def cost(self, tokens_in: int, tokens_cached: int, tokens_out: int) -> float:
        """USD for these numbers of tokens; `tokens_in` includes those that were cached."""
        fresh = tokens_in - tokens_cached
        return (fresh * self.tokens_in + tokens_cached * self.tokens_cached + tokens_out * self.tokens_out) / 1e6


def metered(completions: Sequence[Completion]) -> Completions:
    """Tokens, price and waiting time of asks, `[n]` each."""
    tokens_in, tokens_out = (
        np.array([getattr(each, name) for each in completions], np.int32) for name in ("tokens_in", "tokens_out")
    )
    usd, latency = (
        np.array([getattr(each, name) for each in completions], np.float64) for name in ("cost_usd", "latency_ms")
    )
    return Completions(tokens_in, tokens_out, usd, latency)


@runtime_checkable
class WritesTexts(Protocol):
    """A component, or a class of components, that answers in texts: the part of a TextModel that a class has, too."""

    settings: Any
    complete: Any


class TextModel(Protocol):
    """A model that reads and writes texts. Its config group is `llm`, as that of the models which answer users."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings that decide an answer beside the prompt: `model`, `temperature` and `top_p`."""
        ...

    @property
    def prices(self) -> Prices | None:
        """None: unknown."""
        ...

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Answers in order. A call that failed is a Completion that says so.

        Raises UsageError for what no retry can mend, such as a wrong key, and where a budget is used up.
        """
        ...


def writes_texts(model: Any) -> bool:
    """Is a component, or a class of components, a TextModel? Other models answer users (core.types.LLM)."""
    return isinstance(model, WritesTexts)


def check_writes(model: Any, key: str) -> None:
    """Raises UsageError where the model at `key` of the configuration writes no texts."""
    if not writes_texts(model):
        raise UsageError(
            f"{key}={type(model).__name__} draws what it costs to answer users and writes no text; take "
            f"{key}=scripted, endpoint or recorded"
        )


@contextmanager
def naming_model(key: str) -> Iterator[None]:
    """Errors of a model with its key in the configuration, `key`; by themselves they name `curator.llm`."""
    try:
        yield
    except UsageError as error:
        raise type(error)(str(error).replace(_KEY, key)) from error


def timed_out(role: str) -> str:
    """The reason of a prompt that took too long, in the article's words (P20)."""
    return f"{_WORK.get(role, role)} timed out"


def components_within(component: Any) -> Iterator[Any]:
    """A component, and all components inside of it."""
    yield component
    if isinstance(component, tuple):
        inner = component
    else:
        value = is_dataclass(component) and not isinstance(component, type)
        inner = tuple(getattr(component, f.name) for f in fields(component)) if value else ()
    for part in inner:
        yield from components_within(part)


@runtime_checkable
class Prompted(Protocol):
    """A component whose prompts are files."""

    @property
    def prompts(self) -> str | None:
        """The folder of the files; None: the package's own."""
        ...

    @property
    def digest(self) -> str:
        """Hash of the files."""
        ...


@runtime_checkable
class AsksAtOnce(TextModel, Protocol):
    """A model that says how many prompts it has under way at once."""

    @property
    def in_flight(self) -> int:
        """How many prompts a call of `complete` gets."""
        ...


@runtime_checkable
class Streaming(Protocol):
    """A model that hands over answers as soon as they are there, so that what was paid for can be kept."""

    def each(self, prompts: Sequence[Prompt], done: Callable[[Mapping[int, Completion]], None]) -> None:
        """Calls `done` in this thread with completions by the place of their prompts: those that came since the last
        call. An ask is under way until `done` has returned.

        Raises UsageError as `complete` does: nothing more is sent then, and what is under way goes to `done` before.
        """
        ...


@runtime_checkable
class Kept(Protocol):
    """A component that keeps files with the run."""

    def kept_in(self, folder: Path) -> Any:
        """The component with its files in `folder`."""
        ...


def placed(component: C, folder: Path) -> C:
    """`component`, with each component inside of it that keeps files with the run keeping them in `folder`."""
    return mapped(component, lambda part: part.kept_in(folder) if isinstance(part, Kept) else part)


def mapped(component: C, change: Callable[[Any], Any]) -> C:
    """`component` with each component inside of it changed, the inner ones first. Where nothing changes, it is the same
    object as before.
    """
    made: Any = component
    if isinstance(component, tuple):
        parts = tuple(mapped(part, change) for part in component)
        made = parts if any(new is not old for new, old in zip(parts, component, strict=True)) else component
    elif is_dataclass(component) and not isinstance(component, type):
        values = {f.name: getattr(component, f.name) for f in fields(component) if f.init}
        new = {name: mapped(value, change) for name, value in values.items()}
        if changed := {name: value for name, value in new.items() if value is not values[name]}:
            made = replace(component, **changed)
    return change(made)  # type: ignore[no-any-return]
