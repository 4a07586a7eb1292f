"""What a run is made of."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from skg_bench.core.deciding import Policy
from skg_bench.core.errors import UsageError
from skg_bench.core.record import replay
from skg_bench.core.types import LLM, Curator, Embedder, Reranker, Router, Serving
from skg_bench.core.world import World
from skg_bench.engine.signals import Signals

Freeze = Literal["book", "book+scorer", "all"]
Served = Literal["own", "donor", "hindsight"]
Scope = Literal["user", "pool", "pool+user"]


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
    """A name and one complete choice of components.

    `book` says which skillbook a fork serves. `own`: that of the user at the fork, from then on; `donor`: in its place
    that of another user, simulated under the same arm for as long, with a skillbook of about the same size;
    `hindsight`: the user's own, but for all turns, those before the fork included, when it is from the future. What is
    learned later is no part of such a book, so these two learn nothing.

    `freeze` says what stops to learn at the user's turn `freeze_at`. `book`: no skill is added, renewed or archived,
    but ratings still count and the scorer is refitted; `book+scorer`: the scorer stays too; `all`: ratings do not count
    either.
    """

    name: str
    router: Router
    reranker: Reranker
    policy: Policy[Any]
    curator: Curator[Any]
    llm: LLM
    signals: Signals
    serving: Serving
    hit_latency_ms: float  # waiting time of a stored answer
    refit_every: int  # turns of a user between refits of the scorer
    refit_on_capture: bool
    refit_apart: int  # turns of a user at least from one refit to the next: captures between them wait
    decline_is_miss: bool  # a declined offer is logged as "miss" (SKG paper, section 3, step 2)
    scope: Scope = "user"  # whose ratings the scorer learns from, see engine/pretraining.py
    pool: int | str = 100  # people on whom a shared scorer is fitted, or the file of one
    fork: Fork | None = None
    book: Served = "own"
    freeze: Freeze | None = None
    freeze_at: int | None = None  # turn of the user

    def __post_init__(self) -> None:
        self._check_freeze()
        if self.serving not in ("stored", "prompted"):
            raise UsageError(f"serving={self.serving!r}, valid are stored, prompted")
        if self.serving == "prompted" and "agrees" in self.policy.reads:
            raise UsageError(
                f"serving=prompted leaves {type(self.policy).__name__} without stored answers to compare; take "
                "serving=stored, or another policy"
            )
        if not 0 <= self.hit_latency_ms < float("inf"):
            raise UsageError(f"hit_latency_ms={self.hit_latency_ms} must be milliseconds, not negative, and finite")
        if self.refit_every < 1:
            raise UsageError(f"refit_every={self.refit_every} must be at least 1")
        if self.refit_apart < 1:
            raise UsageError(f"refit_apart={self.refit_apart} must be at least 1")
        if self.scope not in get_args(Scope):
            raise UsageError(f"scope={self.scope!r}, valid are {', '.join(get_args(Scope))}")
        if isinstance(self.pool, int) and self.pool < 1:
            raise UsageError(f"pool={self.pool} must be a number of users, at least 1, or the file of a fitted scorer")
        if self.book not in get_args(Served):
            raise UsageError(f"book={self.book!r}, valid are {', '.join(get_args(Served))}")
        if self.book != "own" and self.fork is None:
            raise UsageError(f"book={self.book} needs a fork; say when that is: fork=ARM@TURN")
        if self.book != "own" and self.curator.reasons:
            raise UsageError(f"book={self.book} serves a given skillbook and learns nothing; add curator=none")
        if self.fork is not None and self.fork.arm.signals.names != self.signals.names:
            raise UsageError(
                f"signals.features differ from those of {self.fork.arm.name}, on which the ratings of the time before "
                "the fork were recorded; fork from an arm with the same features"
            )

    def _check_freeze(self) -> None:
        if self.freeze is not None and self.freeze not in get_args(Freeze):
            raise UsageError(f"freeze={self.freeze!r}, valid are {', '.join(get_args(Freeze))}, or null")
        if self.freeze is not None and self.freeze_at is None:
            raise UsageError(f"freeze={self.freeze} needs the turn of the user at which learning stops: freeze_at=TURN")
        if self.freeze is None and self.freeze_at is not None:
            raise UsageError(f"freeze_at={self.freeze_at} needs what stops then: freeze=book, book+scorer or all")
        if self.freeze_at is not None and self.freeze_at < 0:
            raise UsageError(f"freeze_at={self.freeze_at} must not be negative")
        if self.freeze is not None and self.curator.sees_truth:
            raise UsageError(f"freeze={self.freeze} cannot stop a curator that sees the truth; take another curator")

    def frozen(self, turn: int) -> Freeze | None:
        """What no longer learns at the user's turn `turn`, while the components of this arm are in force."""
        return self.freeze if self.freeze_at is not None and turn >= self.freeze_at else None

    def refits(self, turn: int) -> bool:
        """May the scorer learn at the user's turn `turn`? Not if the curator learns nothing, or from the truth."""
        learning = bool(self.curator.reasons) and not self.curator.sees_truth
        return learning and self.frozen(turn) in (None, "book")

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


@dataclass(frozen=True)
class Plan:
    """Arms over the events of the same users."""

    seed: int
    users: int
    weeks: int
    simulator: World[Any]
    embedder: Embedder
    arms: tuple[Arm, ...]

    def __post_init__(self) -> None:
        if self.simulator.stream == "reactive" and len(self.arms) > 1:
            raise UsageError(
                f"the users of this simulator bring other events after other answers (stream: reactive), so that "
                f"{self.arms[0].name} and {self.arms[1].name} cannot be held against one another event by event; run "
                "one arm at a time, without forks"
            )
        if replay(self.simulator) is None:
            return
        for arm in self.arms:
            phases = [arm.at(turn) for turn in arm.cuts]
            if any(phase.router.sees_truth or phase.curator.sees_truth for phase in phases):
                raise UsageError(
                    f"arm {arm.name!r} knows which answers are right, and no log does; leave it out: '~arms.{arm.name}'"
                )
            if any("agrees" in phase.policy.reads for phase in phases):
                raise UsageError(
                    f"arm {arm.name!r} compares answers of the LLM with stored ones, and a log does not say which "
                    f"agree; leave it out: '~arms.{arm.name}'"
                )
            if (
                any(phase.scope != "user" and not isinstance(phase.pool, str) for phase in phases)
                or arm.book == "donor"
            ):
                raise UsageError(
                    f"arm {arm.name!r} learns from people beside the users, and a log has no others; leave it out: "
                    f"'~arms.{arm.name}'"
                )
