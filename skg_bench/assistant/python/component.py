"""A Python class as an assistant: the component that the configuration names."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any, ClassVar

from skg_bench.assistant.python.outside import Objects, Outside
from skg_bench.assistant.python.source import ClassSource
from skg_bench.core.assistant import Experience, Message, Reply
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.reach import Reach, Reaches
from skg_bench.core.sharing import Shares, check_shares


def check_finite_numbers(path: str, value: object) -> None:
    """No number at `path` or inside is infinite or none, as no manifest can hold it.

    Raises UsageError with the place.
    """
    if isinstance(value, Mapping):
        for key, inner in value.items():
            check_finite_numbers(f"{path}.{key}", inner)
    elif isinstance(value, list | tuple):
        for place, inner in enumerate(value):
            check_finite_numbers(f"{path}.{place}", inner)
    elif isinstance(value, float) and not isfinite(value):
        raise UsageError(f"{path}={value} must be a finite number; say it by null, a text or a large number")


@dataclass(frozen=True)
class Python:
    """Plays a Python class of your own, one object for each user or instance (assistant/python/contract.py)."""

    target: str | None
    file: str | None
    parameters: Mapping[str, Any]
    shares: Shares
    scrambled: bool
    controls: bool
    sees_truth: ClassVar[bool] = False
    remedy: ClassVar[str] = "Keep all memory in the object (self), not in a class, a module, a file or a server"
    reaches: ClassVar[Reaches] = {
        "target": Reach(("code",)),
        "file": Reach(("reads", "code")),
        "parameters": Reach(("code",), harmless=({}, None)),
        "shares": Reach(()),
        "scrambled": Reach(()),
    }
    beside: ClassVar[tuple[str, ...]] = ("file",)  # its text counts

    def __post_init__(self) -> None:
        check_shares(self.shares)
        check_finite_numbers("assistant.parameters", self.parameters)
        if self.target is not None or self.file is not None:  # else a run says what is missing
            self._outside.start(0)

    @property
    def name(self) -> str:
        """The class, for errors."""
        return self.source.name

    @cached_property
    def source(self) -> ClassSource:
        """The class, with its text as it was when this was made."""
        return ClassSource.of(self.target, self.file, self.parameters)

    @cached_property
    def _outside(self) -> Outside:
        return Outside(self.source, one_clock=self.shares != "user", placebo=self.scrambled)

    def __getstate__(self) -> dict[str, Any]:
        """Another process makes the objects itself.

        Raises UsageError for a class of a notebook, which another process does not have.
        """
        if self.source.notebook:
            raise UsageError(
                f"{self.name} is a class of a notebook or script, which other processes do not have; take workers=1, "
                "or put it into a file: assistant.file=my.py:CLASS"
            )
        return {key: value for key, value in vars(self).items() if key != "_outside"}

    def start(self, n: int) -> Objects:
        """A new object for each of `n` users."""
        return self._outside.start(n)

    def answer(self, query: Message, state: Objects) -> tuple[Objects, Reply]:
        """Words of each user's object."""
        return self._outside.answer(query, state)

    def learn(self, seen: Experience, feedback: KnownFeedback, state: Objects) -> Objects:
        """The objects, which were told the feedback."""
        return self._outside.learn(seen, feedback, state)

    def unforgotten(self) -> str | None:
        """Reason why its objects cannot be made to forget one answer, None: they can."""
        return self._outside.unforgotten()

    def forget(self, row: int, turn: int, reference: str, state: Objects) -> None:
        """The object of a row forgets the answer that it was given at a turn."""
        self._outside.forget(row, turn, reference, state)

    def shared(self, state: Objects) -> Objects:
        """The state of one more user, who has the same object."""
        return self._outside.shared(state)

    def unfrozen(self) -> str | None:
        """Reason why its memory cannot be frozen, None: it can."""
        return self._outside.unfrozen()

    def saved(self, state: Objects) -> Mapping[str, Any] | None:
        """The memory as plain data, None: the objects have no `save`."""
        return self._outside.saved(state)

    def loaded(self, data: Any, n: int) -> Objects:
        """The memory of `n` users that was `saved`."""
        return self._outside.loaded(data, n)
