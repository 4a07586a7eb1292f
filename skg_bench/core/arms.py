"""Arms: a name and one complete choice of components, and where an arm forks from another one."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from skg_bench.core import state
from skg_bench.core.assistant import Assistant, Keeping, Stackable
from skg_bench.core.errors import UsageError
from skg_bench.core.spoken import SpeakingLLM
from skg_bench.core.types import LLM

Freeze = Literal["book", "book+scorer", "all"]
ServedBook = Literal["own", "donor", "hindsight"]
Mood = Literal["own", "fresh"]


@dataclass(frozen=True)
class Fork:
    """Until the user's turn `turn` an arm is `arm`; its own components go on from all that `arm` remembers then."""

    arm: "Arm"
    turn: int

    def __post_init__(self) -> None:
        if self.arm.book != "own":
            raise UsageError(f"fork={self.arm.name}@{self.turn}: fork from an arm that serves books of its own")


@dataclass(frozen=True)
class Arm:
    """A name, an assistant, and the model that answers for it.

    `book` says which skillbook a fork serves. `own`: that of the user at the fork, from then on; `donor`: in its place
    that of another user, simulated under the same arm for as long, with a skillbook of about the same size;
    `hindsight`: the user's own, but for all turns, those before the fork included, when it is from the future. What is
    learned later is no part of such a book, so these two learn nothing.

    `freeze` says what stops to learn at the user's turn `freeze_at`. `book`: no skill is added, renewed or archived,
    but ratings still count and the scorer is refitted; `book+scorer`: the scorer stays too; `all`: ratings do not count
    either.

    `mood` says what users remember where the world has them react to what was done to them before.
    """

    name: str
    assistant: Assistant[Any] | Stackable
    llm: Any  # core.types.LLM; in a world that judges words a SpeakingLLM
    hit_latency_ms: float  # waiting time of a stored answer
    fork: Fork | None = None
    book: ServedBook = "own"
    freeze: Freeze | None = None
    freeze_at: int | None = None  # turn of the user
    mood: Mood = "own"  # fresh: users react as if they remembered nothing of what was done to them before

    def __post_init__(self) -> None:
        self._check_freeze()
        if not isinstance(self.llm, LLM | SpeakingLLM):
            raise UsageError(
                f"llm={type(self.llm).__name__} is a model of texts. It answers users as llm=in_words with this model "
                "inside (llm.llm), in a world that judges words; and it can learn (curator.llm)"
            )
        if not 0 <= self.hit_latency_ms < float("inf"):
            raise UsageError(f"hit_latency_ms={self.hit_latency_ms} must be milliseconds, not negative, and finite")
        if self.book not in get_args(ServedBook):
            raise UsageError(f"book={self.book!r}, valid are {', '.join(get_args(ServedBook))}")
        if self.mood not in get_args(Mood):
            raise UsageError(f"mood={self.mood!r}, valid are {', '.join(get_args(Mood))}")
        if self.book != "own" and self.fork is None:
            raise UsageError(f"book={self.book} needs a fork; say when that is: fork=ARM@TURN")
        if isinstance(self.assistant, Stackable):
            self.assistant.check(self)
        else:
            self._check_copied(self.assistant)

    def _check_freeze(self) -> None:
        if self.freeze is not None and self.freeze not in get_args(Freeze):
            raise UsageError(f"freeze={self.freeze!r}, valid are {', '.join(get_args(Freeze))}, or null")
        if self.freeze is not None and self.freeze_at is None:
            raise UsageError(f"freeze={self.freeze} needs the turn of the user at which learning stops: freeze_at=TURN")
        if self.freeze is None and self.freeze_at is not None:
            raise UsageError(f"freeze_at={self.freeze_at} needs what stops then: freeze=book, book+scorer or all")
        if self.freeze_at is not None and self.freeze_at < 0:
            raise UsageError(f"freeze_at={self.freeze_at} must not be negative")

    def _check_copied(self, assistant: Assistant[Any]) -> None:
        """Checks an arm without a pipeline: it can only go on from a copy of its state, and stop to learn."""
        kind = f"{type(assistant).__module__}.{type(assistant).__qualname__}"
        if self.book != "own":
            raise UsageError(f"book={self.book}: {kind} has no skillbook that another could replace; take book=own")
        if self.freeze not in (None, "all"):
            raise UsageError(f"freeze={self.freeze}: what {kind} learns has no such parts; take freeze=all")
        if self.fork is not None and isinstance(self.fork.arm.assistant, Stackable):
            raise UsageError(
                f"fork={self.fork.arm.name}@{self.fork.turn}: {kind} cannot go on from the skillbooks of "
                f"{self.fork.arm.name}; fork from an arm with an assistant of the same kind"
            )
        for phase in self.phases:
            if isinstance(phase.assistant, Keeping) and phase.assistant.shares != "user":
                self._check_shared(phase.assistant)
        if isinstance(assistant, Keeping):
            if self.freeze is not None and (reason := assistant.unfrozen()):
                raise UsageError(f"freeze needs a memory that can be copied: {reason}")
        elif self.fork is not None or self.freeze is not None:
            key = "freeze" if self.fork is None else "fork"
            try:
                state.check_state(assistant.start(1), 1, assistant)
            except UsageError as error:
                raise UsageError(f"{key} needs a state that can be copied. {error}") from error

    def _check_shared(self, assistant: Keeping) -> None:
        """Users who share a memory are at different turns of theirs when one of them is at the turn of a cut."""
        if self.freeze is not None or self.fork is not None:
            key = "freeze" if self.fork is None else "fork"
            raise UsageError(
                f"{key}: users share the memory of {assistant.name} (assistant.shares={assistant.shares}), and each "
                f"comes to their own turn at another time, so that {key} has no one moment; take assistant.shares=user"
            )

    @property
    def top_k(self) -> int:
        """Places of the shortlists in its log; 1 where it has none."""
        return self.assistant.top_k if isinstance(self.assistant, Stackable) else 1

    def frozen(self, turn: int) -> Freeze | None:
        """Part that no longer learns at the user's turn `turn`, while the components of this arm are in force."""
        return self.freeze if self.freeze_at is not None and turn >= self.freeze_at else None

    def at(self, turn: int) -> "Arm":
        """The arm whose components are in force at the user's turn `turn`."""
        return self if self.fork is None or turn >= self.fork.turn else self.fork.arm.at(turn)

    @property
    def cuts(self) -> list[int]:
        """Turns at which other components come into force, ascending; the first is 0."""
        return (
            [0]
            if self.fork is None
            else sorted({0, self.fork.turn, *(c for c in self.fork.arm.cuts if c < self.fork.turn)})
        )

    @property
    def phases(self) -> list["Arm"]:
        """The arms whose components are in force between its cuts."""
        return [self.at(turn) for turn in self.cuts]
