"""Reach: what parameters of a component touch outside of the process, as its class declares in `reaches`.

    reaches: ClassVar[Reaches] = {"address": Reach(("network",), harmless=()), "folder": Reach(("reads", "writes"))}

Numbers, true or false, and choices from a list of words reach nothing unless they are named there. A parameter that
takes any text must be named, with `NO_REACH` if no text reaches anything. `REACHES_NOTHING` is what a class says that
has no such parameter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

ReachKind = Literal["network", "environment", "reads", "writes", "code"]


@dataclass(frozen=True, slots=True)
class Reach:
    """The kinds of things that a parameter reaches with every value but the harmless ones.

    `reads` is any path but the package's own data; texts that begin with `data` name those, and so may each of a list.
    """

    kinds: tuple[ReachKind, ...]
    harmless: tuple[Any, ...] = (None, False)
    data: str | None = None

    def of(self, value: Any) -> Sequence[ReachKind]:
        """The kinds that this value reaches."""
        if any(type(value) is type(same) and value == same for same in self.harmless):
            return ()
        if self.data is not None and isinstance(value, list) and value:
            return self.kinds if any(map(self.of, value)) else ()
        if self.data is not None and isinstance(value, str) and value.startswith(self.data):
            return () if _leads_down(value.removeprefix(self.data)) else self.kinds
        return self.kinds


@dataclass(frozen=True, slots=True)
class Confined:
    """How a component is made from a file that nobody trusts: with the values `sets`. It then never calls the component
    at its key `inside`, so that network and environment of that one are not reached.
    """

    sets: Mapping[str, Any]
    inside: str


@runtime_checkable
class Confinable(Protocol):
    """A component that can be made from a file that nobody trusts, in the way that its class declares."""

    confined: ClassVar[Confined]


Reaches = Mapping[str, Reach]
NO_REACH = Reach(())
REACHES_NOTHING: Reaches = {}


@runtime_checkable
class Component(Protocol):
    """Object that a yaml of `conf/` makes: its class declares what its parameters reach."""

    reaches: ClassVar[Reaches]


@runtime_checkable
class NamesBeside(Component, Protocol):
    """A component of whose parameters some change how a run is made and not what comes out, as its class declares."""

    beside: ClassVar[Sequence[str]]


def _leads_down(path: str) -> bool:
    """Does a path stay below where it begins?"""
    return bool(path) and not path.startswith("/") and ".." not in path.split("/") and "\0" not in path
