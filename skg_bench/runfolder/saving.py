"""Objects of a process as plain data, and back: one walk over a graph of objects, which runs no code of a file.

Saved are None, numbers, texts, bytes, ranges, tuples, lists, dicts, sets, arrays, and objects of classes of known
packages by their attributes. What two objects share they share afterwards. Objects that a fresh process has anyway are
anchors: only their names are saved. A class may name attributes in `OF_ONE_TURN` that are dead between two turns; they
are not saved, and absent in the loaded object.

At loading, a class has to be known to the process already, in a package that it knows. Its objects are made by
`object.__new__`, and attributes are set without descriptors of the class: neither constructors nor properties run. No
class that declares what it `reaches` is saved or made: a run of somebody else could bring an endpoint of its own.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from types import FunctionType, MemberDescriptorType
from typing import Any

import numpy as np

from skg_bench.core.reach import Component
from skg_bench.runfolder.blocks import Array, Bytes, MemoryBlock, Place, array_at, memory_places, plain_dtype

_ATOMS = (type(None), bool, int, float, str)
_FEW = 1000  # parts up to which a container of anchors is searched; a corpus has more, and no component in it


class UnsavableError(Exception):
    """Error about what is not saved, or what no save of this process can hold; the text names it."""


@dataclass(frozen=True, slots=True)
class Flat:
    """A graph of objects as plain data."""

    root: Any  # JSON; an object is a list with its index in `nodes`
    nodes: list[list[Any]]  # JSON, one for each object: its kind, then what it is made of
    blocks: list[MemoryBlock]  # memory of the arrays


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Objects that a fresh process has anyway, which are not saved."""

    anchors: Mapping[str, object]
    packages: frozenset[str]  # root packages whose classes are saved

    @classmethod
    def of(cls, objects: Mapping[str, object], components: Mapping[str, object]) -> "Surroundings":
        """Surroundings of these objects, and of components with all inside of them, by their paths. Packages are those
        of the components.
        """
        anchors = {name: value for name, value in objects.items() if value is not None}
        packages = {"skg_bench"}.union(*map(_packages, components.values()))
        for name, component in components.items():
            anchors |= _inside(component, name, packages, ())
        return cls(anchors, frozenset(packages))


def flattened(value: Any, known: Surroundings) -> Flat:
    """`value` as plain data; memory of arrays is not copied.

    Raises UnsavableError, which names what cannot be saved.
    """
    walk = _Flattening(known)
    try:
        root = walk.value(value)
        blocks, places = memory_places(walk.arrays)
    except (ValueError, RecursionError) as error:
        raise UnsavableError(str(error)) from error
    for node, place in zip(walk.array_nodes, places, strict=True):
        node += [getattr(place, f.name) for f in fields(place)]
    return Flat(root, walk.nodes, blocks)


def restored(root: Any, nodes: Sequence[Any], blocks: Sequence[Bytes], known: Surroundings) -> Any:
    """The objects of a Flat, with the memory of its arrays.

    Raises UnsavableError for what `flattened` did not write, or a process with other classes or components.
    """
    try:
        return _Restoring(nodes, blocks, known).value(root)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError) as error:
        raise UnsavableError(f"not a save of this process: {error}") from error


# --------------------------------------------------------------------------------------------------- to data


class _Flattening:
    def __init__(self, known: Surroundings) -> None:
        self._packages = known.packages
        self._anchors = {id(value): name for name, value in reversed(list(known.anchors.items()))}
        self._number: dict[int, int] = {}  # by id
        self._alive: list[Any] = []  # the ids above are of these
        self._classes: dict[type, str] = {}
        self.nodes: list[list[Any]] = []
        self.arrays: list[Array] = []
        self.array_nodes: list[list[Any]] = []

    def value(self, value: Any) -> Any:
        """JSON of a value."""
        if type(value) in _ATOMS:
            return value
        number = self._number.get(id(value))
        if number is None:
            number = self._number[id(value)] = len(self.nodes)
            self._alive.append(value)
            node: list[Any] = []
            self.nodes.append(node)
            self._fill(node, value)
        return [number]

    def _fill(self, node: list[Any], value: Any) -> None:
        kind = type(value)
        if id(value) in self._anchors:
            node += ["anchor", self._anchors[id(value)]]
        elif kind is np.ndarray:
            node.append("array")
            self.arrays.append(value)
            self.array_nodes.append(node)
        elif kind in (tuple, list, set, frozenset):
            node += [kind.__name__, *map(self.value, value)]
        elif kind is dict:
            node += ["dict", *(self.value(part) for entry in value.items() for part in entry)]
        elif kind is range:
            node += ["range", value.start, value.stop, value.step]
        elif kind is bytes:
            node += ["bytes", value.hex()]
        elif isinstance(value, np.generic):
            node += ["scalar", plain_dtype(value.dtype.str).str, value.tobytes().hex()]
        elif isinstance(value, type):
            if not is_dataclass(value):
                raise UnsavableError(f"{value} is a class; valid are dataclasses")
            node += ["class", self._class(value)]
        else:
            node += ["object", self._class(kind)]
            for name, part in _attributes(value):
                node += [name, self.value(part)]

    def _class(self, kind: type) -> str:
        if kind not in self._classes:
            name = f"{kind.__module__}:{kind.__qualname__}"
            if _class(name, self._packages) is not kind:
                raise UnsavableError(f"{name} is another class than this one of that name")
            self._classes[kind] = name
        return self._classes[kind]


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    dead = getattr(type(value), "OF_ONE_TURN", ())
    for name, member in _slots(type(value)).items():
        if name not in dead:
            try:
                part = member.__get__(value)
            except AttributeError:
                continue  # never set
            yield name, part
    yield from ((name, part) for name, part in getattr(value, "__dict__", {}).items() if name not in dead)


# ------------------------------------------------------------------------------------------------- from data


class _Restoring:
    def __init__(self, nodes: Sequence[Any], blocks: Sequence[Bytes], known: Surroundings) -> None:
        self._nodes, self._blocks, self._known = nodes, blocks, known
        self._made: dict[int, Any] = {}
        self._open: set[int] = set()

    def value(self, data: Any) -> Any:
        """The value of JSON."""
        if type(data) in _ATOMS:
            return data
        (number,) = data
        if number not in self._made:
            if type(number) is not int or number < 0 or number in self._open:
                raise ValueError(f"{data} refers to no object")
            self._open.add(number)
            kind, *parts = self._nodes[number]
            _MADE_OF[kind](self, number, parts)
            self._open.remove(number)
        return self._made[number]

    def anchor(self, number: int, parts: list[Any]) -> None:
        (name,) = parts
        self._made[number] = self._known.anchors[name]

    def array(self, number: int, parts: list[Any]) -> None:
        block, offset, dtype, shape, strides, writeable = parts
        self._made[number] = array_at(
            self._blocks, Place(block, offset, dtype, tuple(shape), tuple(strides), writeable)
        )

    def tuple_(self, number: int, parts: list[Any]) -> None:
        self._made[number] = tuple(map(self.value, parts))

    def frozenset_(self, number: int, parts: list[Any]) -> None:
        self._made[number] = frozenset(map(self.value, parts))

    def list_(self, number: int, parts: list[Any]) -> None:
        made = self._made[number] = list[Any]()
        made.extend(map(self.value, parts))

    def set_(self, number: int, parts: list[Any]) -> None:
        made = self._made[number] = set[Any]()
        made.update(map(self.value, parts))

    def dict_(self, number: int, parts: list[Any]) -> None:
        made = self._made[number] = dict[Any, Any]()
        for key, value in zip(parts[::2], parts[1::2], strict=True):
            made[self.value(key)] = self.value(value)

    def range_(self, number: int, parts: list[Any]) -> None:
        self._made[number] = range(*parts)

    def bytes_(self, number: int, parts: list[Any]) -> None:
        self._made[number] = bytes.fromhex(*parts)

    def scalar(self, number: int, parts: list[Any]) -> None:
        dtype, data = parts
        (self._made[number],) = np.frombuffer(bytes.fromhex(data), plain_dtype(dtype))

    def class_(self, number: int, parts: list[Any]) -> None:
        (name,) = parts
        if not is_dataclass(made := _class(name, self._known.packages)):
            raise ValueError(f"{name} is no dataclass")
        self._made[number] = made

    def object_(self, number: int, parts: list[Any]) -> None:
        kind = _class(parts[0], self._known.packages)
        made: Any = object.__new__(kind)
        self._made[number] = made
        slots, variables = _slots(kind), getattr(made, "__dict__", None)
        for name, value in zip(parts[1::2], parts[2::2], strict=True):
            if name in slots:
                slots[name].__set__(made, self.value(value))
            elif variables is None or not name.isidentifier() or _runs(kind, name):
                raise ValueError(f"{parts[0]} has no attribute {name!r} that is data")
            else:
                variables[name] = self.value(value)


_MADE_OF: dict[str, Callable[[_Restoring, int, list[Any]], None]] = {
    name: getattr(_Restoring, name if hasattr(_Restoring, name) else f"{name}_")
    for name in (
        "anchor", "array", "tuple", "list", "set", "frozenset", "dict", "range", "bytes", "scalar", "class", "object",
    )
}  # fmt: skip


# --------------------------------------------------------------------------------------------------- classes


def _class(name: str, packages: frozenset[str]) -> type:
    """The class `module:qualname`, of a module that this process has imported.

    Raises UnsavableError for any other, and for those whose objects are more than their attributes.
    """
    module, _, path = name.partition(":")
    if module.partition(".")[0] not in packages:
        raise UnsavableError(f"{name} is of none of the packages {', '.join(sorted(packages))}")
    part: Any = sys.modules.get(module)
    for step in path.split("."):
        part = getattr(part, "__dict__", {}).get(step)
    if not isinstance(part, type) or f"{part.__module__}:{part.__qualname__}" != name or issubclass(part, (type, Enum)):
        raise UnsavableError(f"{name} is no class whose objects are saved")
    if isinstance(part, Component):  # a component: a file that names one could reach whatever the component can
        raise UnsavableError(f"{name} is a component; those of a process are anchors")
    try:
        object.__new__(part)
    except TypeError as error:
        raise UnsavableError(f"{name}: {error}") from error
    return part


def _slots(kind: type) -> dict[str, MemberDescriptorType]:
    return {
        name: member
        for base in reversed(kind.__mro__)
        for name, member in vars(base).items()
        if isinstance(member, MemberDescriptorType)
    }


def _runs(kind: type, name: str) -> bool:
    """Is the attribute a function or a property of the class? An object may not hide these."""
    member = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
    return isinstance(member, (FunctionType, property, classmethod, staticmethod)) or name.startswith("__")


def _packages(value: object) -> set[str]:
    """Root packages of the class of a component, and of those that it inherits from; not the standard library."""
    return {kind.__module__.partition(".")[0] for kind in type(value).__mro__} - sys.stdlib_module_names


def _inside(value: Any, path: str, packages: set[str], around: tuple[int, ...]) -> Iterator[tuple[str, object]]:
    """A component and the objects inside of it, by all of their paths, as another process may have two equal objects
    where this one has one; containers are no objects. Packages of dataclasses are added to `packages`. `around`: ids of
    what this component is inside of.
    """
    if type(value) in (*_ATOMS, bytes, range, np.ndarray) or isinstance(value, type) or id(value) in around:
        return
    parts: list[tuple[Any, Any]] = []
    if isinstance(value, (tuple, list, dict)):
        if len(value) <= _FEW:
            parts = list(value.items() if isinstance(value, dict) else enumerate(value))
    else:
        yield path, value
        if is_dataclass(value):
            packages |= _packages(value)
            parts = [(f.name, getattr(value, f.name)) for f in fields(value) if hasattr(value, f.name)]
        elif packages & _packages(value):
            parts = list(getattr(value, "__dict__", {}).items())
    for name, part in parts:
        yield from _inside(part, f"{path}.{name}", packages, (*around, id(value)))
