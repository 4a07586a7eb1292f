"""The walk over objects: what is saved comes back as it was, and nothing else comes at all."""

import json
import sys
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from skg_bench.core.reach import Reach, Reaches
from skg_bench.runfolder.blocks import Bytes, room
from skg_bench.runfolder.saving import Flat, Surroundings, UnsavableError, flattened, restored

KNOWN = Surroundings({}, frozenset({"tests"}))


@dataclass(frozen=True, slots=True)
class Frozen:
    left: Any
    right: Any = None


@dataclass
class Loose:
    part: Any
    more: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def twice(self) -> Any:
        return [self.part, self.part]


class Plain:
    OF_ONE_TURN = ("dead", "hidden")
    __slots__ = ("__dict__", "_value", "hidden", "never")

    def __init__(self, value: Any) -> None:
        raise AssertionError("no constructor is called at loading")

    @property
    def value(self) -> Any:
        raise AssertionError("no property is read")

    def method(self) -> None:
        """Something that no object hides."""


class Growing(list[int]):
    """More than its attributes."""


@dataclass(frozen=True)
class Reaching:
    """A component."""

    path: str
    reaches: ClassVar[Reaches] = {"path": Reach(("reads",))}


class Colour(Enum):
    RED = 1


def anew(value: Any, known: Surroundings = KNOWN) -> Any:
    """Saved as a file has it, and loaded."""
    flat = flattened(value, known)
    return load(json.loads(json.dumps([flat.root, flat.nodes])), flat, known)


def load(plain: Any, flat: Flat, known: Surroundings = KNOWN) -> Any:
    blocks: list[Bytes] = [block.data.copy() for block in flat.blocks]
    root, nodes = plain
    return restored(root, nodes, blocks, known)


def equal(value: Any, other: Any) -> bool:
    """The same types, and the same bits."""
    same: bool
    if type(value) is not type(other):
        return False
    if isinstance(value, np.ndarray):
        alike = (value.dtype, value.shape, value.strides) == (other.dtype, other.shape, other.strides)
        same = (alike or not value.size) and value.tobytes() == other.tobytes()
        return same
    if isinstance(value, np.generic):
        same = value.dtype == other.dtype and value.tobytes() == other.tobytes()
        return same
    if isinstance(value, (tuple, list)):
        return len(value) == len(other) and all(map(equal, value, other))
    if isinstance(value, dict):
        return equal(list(value.items()), list(other.items()))
    if isinstance(value, (Frozen, Loose)):
        return all(equal(getattr(value, name), getattr(other, name)) for name in type(value).__dataclass_fields__)
    same = value == other if not isinstance(value, float) else value.hex() == other.hex()
    return same


KEYS = st.one_of(st.integers(), st.text(), st.booleans(), st.none(), st.binary(), st.tuples(st.integers(), st.text()))
ARRAYS = arrays.arrays(
    st.one_of(
        arrays.scalar_dtypes(), arrays.byte_string_dtypes(min_len=1), arrays.unicode_string_dtypes(min_len=1),
        arrays.complex_number_dtypes(),
    ),
    arrays.array_shapes(min_dims=0, min_side=0),
)  # fmt: skip
VALUES = st.recursive(
    st.one_of(KEYS, st.floats(), ARRAYS, ARRAYS.map(lambda a: a.T), ARRAYS.map(lambda a: a[..., ::-2] if a.ndim else a),
              arrays.from_dtype(np.dtype(np.float32)), st.builds(range, st.integers(0, 9), st.integers(10, 99)),
              st.sets(st.integers()), st.frozensets(st.text())),
    lambda inner: st.one_of(
        st.lists(inner), st.tuples(inner, inner), st.dictionaries(KEYS, inner), st.builds(Frozen, inner, inner),
        st.builds(Loose, inner),
    ),
    max_leaves=12,
)  # fmt: skip


@given(VALUES)
def test_values_come_back_with_their_types_and_bits(value: Any) -> None:
    assert equal(value, anew(value))


def test_what_is_shared_stays_shared_and_cycles_close() -> None:
    inner, array = Loose(1), np.arange(12.0).reshape(3, 4)
    whole: list[Any] = [inner, (inner, array), {"again": array}]
    whole.append(whole)
    inner.more["whole"] = whole
    made = anew(whole)
    assert made[0] is made[1][0]
    assert made[1][1] is made[2]["again"]
    assert made[3] is made
    assert made[0].more["whole"] is made


@pytest.mark.parametrize("order", ["C", "F"])
def test_views_of_the_same_memory_stay_so_whoever_owns_it(order: Any) -> None:
    memory = np.arange(60, dtype=np.int32).reshape(6, 10).copy(order)
    parts = [
        memory[:4],
        memory[:, 2:5],
        memory[::-1, ::3],
        memory.ravel("K")[50:].view(np.int64),
        np.arange(3),
        memory[4:, :1],
    ]
    made = anew(parts[:1] + parts[2:])  # the whole is not among them
    made.insert(1, anew(parts)[1])
    assert all(map(equal, parts, made))
    made[0][2, 3] = -7
    assert made[2][3, 1] == -7
    assert not np.shares_memory(made[0], made[4])
    assert not np.shares_memory(made[0], made[5])


def test_read_only_arrays_stay_read_only() -> None:
    array = np.arange(4)
    view = array[:2]
    view.flags.writeable = False
    made = anew([array, view])
    assert [part.flags.writeable for part in made] == [True, False]
    made[0][1] = 9
    assert made[1][1] == 9


def address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def test_a_block_lies_as_it_lay() -> None:
    memory = np.zeros(1000, np.uint8)
    for first in (0, 3, 17, 64):
        part = memory[first:]
        (block,) = flattened(part, KNOWN).blocks
        assert block.skew == address(part) % 64 == address(room(len(part), block.skew)) % 64


def test_objects_are_made_of_their_attributes_without_code_of_theirs() -> None:
    value: Any = object.__new__(Plain)
    value._value, value.hidden, value.dead, value.free = 1, 2, 3, [value]
    made = anew(value)
    assert type(made).__name__ == "Plain"
    assert (made._value, made.free[0] is made) == (1, True)
    assert not any(hasattr(made, name) for name in ("hidden", "dead", "never"))
    loose = Loose(3)
    assert loose.twice == anew(loose).__dict__["twice"]


def test_anchors_are_those_of_the_fresh_process() -> None:
    here, elsewhere = (Loose({"model": Frozen(np.arange(n))}) for n in (3, 5))
    known, others = (Surroundings.of({"print": print}, {"it": it}) for it in (here, elsewhere))
    assert set(known.anchors) == {"print", "it", "it.part.model"}
    assert known.packages == {"skg_bench", "tests"}
    flat = flattened([here, here.part["model"], print, Loose], known)
    made = load([flat.root, flat.nodes], flat, others)
    assert made[0] is elsewhere
    assert made[1] is elsewhere.part["model"]
    assert made[2:] == [print, Loose]
    with pytest.raises(UnsavableError, match=r"it\.part\.model"):
        load([flat.root, flat.nodes], flat, Surroundings({"it": here, "print": print}, known.packages))


@pytest.mark.parametrize(
    "value",
    [
        len, lambda: None, partial(len, ""), sys, sys.stderr, Path(), object(), Growing(), Colour.RED, Plain, int,
        Reaching("/etc/passwd"),
        np.array([None]), np.zeros(2, "i4,f8"), np.array([Loose(1)], object), np.random.default_rng(0),
        np.ma.masked_array([1]), ValueError("x"), memoryview(b""), iter([]), type("Local", (), {})(), KNOWN,
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_anything_else_is_refused(value: Any) -> None:
    with pytest.raises(UnsavableError):
        anew([1, {"inside": value}])


def deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(10**5):
        value = [value]
    return value


def test_what_is_too_deep_is_refused() -> None:
    with pytest.raises(UnsavableError):
        flattened(deep(), KNOWN)


HERE = __name__
ARRAY = ["array", 0, 0, "<i8", [2], [8], True]


@pytest.mark.parametrize(
    "nodes",
    [
        [["object", "os:system"]], [["object", "subprocess:Popen", "args", "true"]], [["object", "pathlib:Path"]],
        [["object", f"{HERE}:Path"]], [["object", f"{HERE}:anew"]],
        [["object", f"{HERE}:Plain.method"]], [["object", f"{HERE}:Growing"]],
        [["object", f"{HERE}:Colour"]], [["object", "tests.none:Plain"]], [["object", "tests"]],
        [["object", f"{HERE}:Plain", "value", 1]], [["object", f"{HERE}:Plain", "a b", 1]],
        [["object", f"{HERE}:Plain", "method", 1]], [["object", f"{HERE}:Plain", 3, 1]],
        [["object", f"{HERE}:Loose", "__class__", 1]],
        [["object", f"{HERE}:Plain", "__init__", 1]],
        [["object", f"{HERE}:Frozen", "other", 1]], [["object", f"{HERE}:Plain", "_value"]],
        [["class", f"{HERE}:Plain"]], [["class", "builtins:print"]], [["anchor", "none"]],
        [["made", 1]], [["value", 1]], [["__init__", 1]], [[]], [3], [["tuple", [0]]], [["tuple", [1]]],
        [["tuple", [-1]]], [["tuple", [True]]], [["tuple", ["0"]]], [["tuple", {}]], [["dict", 1]],
        [["dict", [1], 2], ["list"]],
        [["set", [1]], ["list"]], [["range", "a"]], [["range", 1, 2, 0]], [["bytes", "xx"]], [["scalar", "|O", "00"]],
        [["scalar", "<i8", "00"]], [[*ARRAY[:1], 1, *ARRAY[2:]]], [[*ARRAY[:2], 8, *ARRAY[3:]]],
        [[*ARRAY[:2], -8, *ARRAY[3:]]], [[*ARRAY[:3], "|O", *ARRAY[4:]]], [[*ARRAY[:3], "<i8,<i8", *ARRAY[4:]]],
        [[*ARRAY[:4], [3], [8], True]], [[*ARRAY[:4], [2], [16], True]], [[*ARRAY[:4], [2], [-8], True]],
        [[*ARRAY[:4], [2**62], [8], True]], [["array", -1, 0, "<i8", [2], [8], True]],
        [["array", 0, 0, "<V8", [1], [8], True]],
        [["object", f"{HERE}:Reaching", "path", "/etc/passwd"]],
    ],
    ids=str,
)  # fmt: skip
def test_data_that_no_save_holds_is_refused_and_nothing_runs(nodes: Any) -> None:
    blocks = [np.zeros(16, np.uint8)]
    with pytest.raises(UnsavableError):
        restored([0], nodes, blocks, KNOWN)
