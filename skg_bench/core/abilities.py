"""Abilities that only some components of a seam have. Who needs one asks by `isinstance` of its Protocol."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeVar, runtime_checkable

from skg_bench.core.grid import I32
from skg_bench.core.launching import Launcher
from skg_bench.core.types import Curator, Router
from skg_bench.core.world import World

S = TypeVar("S")


@runtime_checkable
class LimitsPrompt(Router, Protocol):
    """A router whose shortlist has to fit into a prompt: all that its skills say, or their issues alone."""

    lists_whole: ClassVar[bool]

    @property
    def limit(self) -> int:
        """Characters that the skills of a shortlist may take."""
        ...


@runtime_checkable
class AsksModel(Curator[S], Protocol[S]):
    """A curator that learns by asking a model, real or simulated: its jobs take time."""

    asks_model: ClassVar[bool]


@runtime_checkable
class WritesStrategies(Curator[S], Protocol[S]):
    """A curator that writes texts of a library of strategies, which has to be that of the world."""

    @property
    def strategies(self) -> str | None:
        """Folder of the library; None: the packaged one."""
        ...


@runtime_checkable
class DrawsFromCorpus(World[S], Protocol[S]):
    """A world whose messages are those of a corpus, which may be a published one, and too small for a run."""

    @property
    def published(self) -> Mapping[str, Any] | None:
        """Publication of the messages, and what of it was left out; None of a corpus in a format of our own."""
        ...

    def one_offs_again(self, seed: int, users: I32, weeks: int) -> float:
        """Expected share of a user's one-offs that come again, as the corpus has fewer; mean over these users."""
        ...


@runtime_checkable
class StartsPrograms(Protocol):
    """A component that starts programs, whose files are a part of it."""

    @property
    def programs(self) -> Sequence[Path]:
        """Files that its commands name, in order."""
        ...


@runtime_checkable
class ReadsTables(Protocol):
    """A component beside the world that reads tables, whose content is a part of it."""

    @property
    def tables_digest(self) -> str | None:
        """Digest of their content; None: it reads those of the package alone."""
        ...


@runtime_checkable
class AnswersInWords(World[S], Protocol[S]):
    """A world that has the words of right answers."""

    @property
    def answers(self) -> Sequence[str | None]:
        """The answer to each request type; None: nobody wrote it down."""
        ...


@runtime_checkable
class UsesOtherMachines(Launcher, Protocol):
    """A launcher whose tasks may run on other machines, which see the same files and have to have the same code."""

    other_machines: ClassVar[Literal[True]]
