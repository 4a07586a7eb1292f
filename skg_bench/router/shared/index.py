"""The nearest examples of a large skillbook, by FAISS (extra `faiss`).

* `flat` looks at every example: exact, at the price of reading them all, with one byte a coordinate.
* `hnsw` walks a graph of neighbours (Malkov and Yashunin 2018): fastest to search, slow to build.
* `ivf` looks into the lists of some of the cluster centres nearest to a message (Jegou, Douze and Schmid 2011).

Vectors are on the embedding grid, so the dot products that come back are exact integers whatever the index; what an
approximate one may miss is an example, not a digit. Searching repeats to the bit. Building does for `flat`; an `hnsw`
built with several threads is another graph each time, so what is to be repeated is saved and loaded.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np

from skg_bench.core.errors import UsageError, install_hint
from skg_bench.core.foreign import FAULTS, array_of, blocks_of, json_file
from skg_bench.core.grid import F32, F64, I16, I32, I64
from skg_bench.core.shapes import shaped

IndexKind = Literal["flat", "hnsw", "ivf"]
_CHUNK = 1 << 16  # vectors that are widened at a time
_CODES = 127  # the largest code of a coordinate: 8 bits with a sign
_FLOAT32 = 2.0**-24  # what one sum or product loses, relative
_PER_LIST = 39  # training vectors a list, the least that FAISS takes without a warning
_WHOLE, _FAISS, _SKILL, _DESCRIPTION = "vectors.npy", "index.faiss", "skill.npy", "index.json"


@dataclass(frozen=True, eq=False)
class Rounded:
    """Coordinates of the examples in whole steps of at most 127, as FAISS reads them, and what these lack.

    An example is `x = s c + r`, with a step s and codes c, and a message in the same way `q = t g + e`. What `q x` is
    beyond `t s (g c)` is `(t g) r + e x`, by Cauchy and Schwarz at most `|t g| |r| + |e| |x|`. In a sum of D products
    float32 loses at most `D 2^-24 |t g| |s c|` more. FAISS gets codes of messages too: on some processors it rounds
    others to codes by itself.
    """

    whole: I16  # [E, D]
    step: float
    rest: float  # the largest |r|
    length: float  # the largest |x|

    @classmethod
    def of(cls, whole: I16) -> "Rounded":
        """The finest steps that all coordinates can be told in."""
        step = _step(np.abs(whole, dtype=np.float64).max(keepdims=True)).item()
        blocks = [(_length(block - step * codes).max(), _length(block).max()) for block, codes in _blocks(whole, step)]
        rest, length = (max(column) for column in zip(*blocks, strict=True))
        return cls(whole, step, float(rest), float(length))

    def search(self, index: Any, vectors: I16, k: int) -> tuple[I64, F32, F64]:
        """As `Index.candidates`, in the order of the products of codes."""
        messages = vectors.astype(np.float64)
        step = _step(np.abs(messages).max(axis=1, keepdims=True))
        codes = np.rint(messages / step)
        coarse = step * codes
        products, example = index.search(codes.astype(np.float32), k)
        bound = step[:, 0] * self.step * products[:, -1].astype(np.float64)
        lost = vectors.shape[1] * _FLOAT32 * (self.length + self.rest)
        bound += _length(coarse) * (self.rest + lost) + _length(messages - coarse) * self.length
        dots = [self.whole[e].astype(np.float32) @ q for e, q in zip(example, vectors.astype(np.float32), strict=True)]
        return example, np.array(dots, np.float32).reshape(example.shape), bound


@dataclass(frozen=True, eq=False)
class Index:
    """E examples, ready to be searched."""

    kind: IndexKind
    dimensions: int
    skill: I32  # [E] the skill that each example belongs to
    found: Any  # faiss.Index over the examples
    rounded: Rounded | None = None  # what `found` holds of a flat index; None: the examples themselves
    gpu: bool = False

    def search(self, vectors: I16, k: int) -> tuple[I32, F32]:
        """Messages `[B, D]` to the `k` nearest examples: indices `[B, k]` and exact dot products, nearest first.

        Equal dot products are ordered by skill, then by example; where an approximate index cuts them off, by FAISS.
        -1 and 0 beyond the end. Raises UsageError for vectors of other dimensions, and for k below 1.
        """
        if k < 1:
            raise UsageError(f"{k} nearest examples; ask for 1 or more")
        n = len(self.skill)
        number = place = min(k, n)
        while True:
            example, dots, bound = self.candidates(vectors, number)
            if number == n or self.kind != "flat" or (dots[:, place - 1] > bound).all():
                break
            number = min(2 * number, n)
        empty = ((0, 0), (0, max(0, k - number)))
        example = np.pad(example, empty, constant_values=-1)[:, :k]
        dots = np.pad(dots, empty)[:, :k]
        return example, np.where(example < 0, np.float32(0.0), dots)

    def candidates(self, vectors: I16, k: int) -> tuple[I32, F32, F64]:
        """Messages `[B, D]` to `k` near examples, at most as many as there are: indices `[B, k]` and exact dot
        products, nearest first, and the largest product `[B]` that any other example may have.

        They are the nearest ones but for rounding, or for what an approximate index misses; its bound is that of what
        it looked at, 0 where that was less than `k`. Order and errors are those of `search`.
        """
        if vectors.ndim != 2 or vectors.shape[1] != self.dimensions:
            raise UsageError(
                f"messages of shape {vectors.shape} in an index of {self.dimensions} dimensions; embed both with the "
                "same model, or build the index again"
            )
        if self.rounded is not None:
            example, dots, bound = self.rounded.search(self.found, vectors, k)
        else:
            dots, example = self.found.search(vectors.astype(np.float32), k)
            bound = np.where(example[:, -1] < 0, 0.0, dots[:, -1].astype(np.float64))
        skill = self.skill[np.maximum(example, 0)]
        order = np.lexsort((example, skill, np.where(example < 0, np.inf, -dots)), axis=1)
        rows = np.arange(len(order))[:, None]
        return example[rows, order].astype(np.int32), dots[rows, order], bound

    def on_gpu(self) -> "Index":
        """The same index on the first GPU (extra `gpu`).

        Raises UsageError where there is none, and for `hnsw`, which FAISS does not have there.
        """
        faiss = _faiss()
        if self.kind == "hnsw":
            raise UsageError("an hnsw index does not run on a GPU; build kind=ivf or kind=flat for it")
        if not hasattr(faiss, "StandardGpuResources") or not faiss.get_num_gpus():
            raise UsageError(
                "no GPU that FAISS can use; install the extra `gpu` on a machine with one, or stay on the CPU"
            )
        cpu = self.found
        if self.rounded is not None:  # a GPU has no index of 8 bits that looks at every example
            cpu = faiss.IndexFlatIP(self.dimensions)
            cpu.add(self.rounded.whole.astype(np.float32))
        on_gpu = faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, cpu)
        return Index(self.kind, self.dimensions, self.skill, on_gpu, gpu=True)

    def save(self, folder: Path) -> None:
        """Write the examples of a flat index or `index.faiss`, `skill.npy`, and `index.json`, which holds the others'
        hashes. Raises UsageError for an index on a GPU.
        """
        if self.gpu:
            raise UsageError("an index on a GPU is not saved; save the one from which `on_gpu` made it")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.rounded is None:
            _faiss().write_index(self.found, str(folder / _FAISS))
        else:
            np.save(folder / _WHOLE, self.rounded.whole)
        np.save(folder / _SKILL, self.skill)
        digests = {name: _digest(folder / name) for name in _files(self.kind)}
        description = _Description(self.kind, self.dimensions, len(self.skill), digests)
        (folder / _DESCRIPTION).write_text(json.dumps(asdict(description), indent=1) + "\n", "utf-8")


@dataclass(frozen=True)
class _Description:
    """Contents of `index.json`."""

    kind: IndexKind
    dimensions: int
    examples: int
    blake2b: Mapping[str, str]  # digests of the other files


def build_index(
    vectors: I16,
    skill: I32,
    kind: IndexKind,
    *,
    links: int = 32,
    effort: int = 64,
    lists: int | None = None,
    probes: int = 16,
) -> Index:
    """An index over examples `[E, D]` on the embedding grid, of skills `[E]`.

    flat: a search reads one byte a coordinate, and the whole examples (two more bytes) only of what that leaves. Their
    products are summed in float32, which is exact for unit vectors.
    hnsw: `links` of each example, and `effort`, how many candidates a search keeps. ivf: `lists` of examples (None:
    4 sqrt(E), the usual choice) and `probes`, how many a search looks into.

    Raises UsageError for no examples, and for settings that make no sense.
    """
    skill = _checked(vectors, skill)
    e, d = vectors.shape
    if lists is None:
        lists = max(1, min(int(4 * np.sqrt(e)), e // _PER_LIST))
    settings = {"links": links, "effort": effort, "lists": lists, "probes": probes}
    if wrong := [f"{name}={value}" for name, value in settings.items() if value < 1]:
        raise UsageError(f"{', '.join(wrong)} must be at least 1")
    if lists > max(1, e // _PER_LIST):
        raise UsageError(
            f"lists={lists} is too many for {e} examples; at most {max(1, e // _PER_LIST)}, or leave it away"
        )
    faiss = _faiss()
    inner = faiss.METRIC_INNER_PRODUCT
    if kind == "flat":
        return _flat(vectors, skill)
    if kind == "hnsw":
        made = faiss.IndexHNSWFlat(d, links, inner)
        made.hnsw.efSearch = effort
    elif kind == "ivf":
        made = faiss.index_factory(d, f"IVF{lists},Flat", inner)  # owns its parts, which a constructor's would not
        made.nprobe, made.cp.seed = probes, 1
        made.train(vectors[_spread(e, lists * 256)].astype(np.float32))
    else:
        raise UsageError(f"kind={kind!r}, valid are flat, hnsw, ivf")
    for first in range(0, e, _CHUNK):
        made.add(vectors[first : first + _CHUNK].astype(np.float32))
    return Index(kind, d, skill, made)


def _checked(vectors: I16, skill: I32) -> I32:
    """The skills of examples that an index can be built over; UsageError for others."""
    if vectors.ndim != 2 or not len(vectors) or skill.shape != vectors.shape[:1]:
        raise UsageError(
            f"{vectors.shape} vectors and {skill.shape} skills; an index needs one vector and skill an example"
        )
    if vectors.dtype != np.int16:
        raise UsageError(
            f"vectors are {vectors.dtype}; an index takes int16 on the grid, as `core.embedding_grid.quantise` gives"
        )
    return _skills(skill)


def _skills(skill: I32) -> I32:
    if not np.issubdtype(skill.dtype, np.integer) or int(skill.min(initial=0)) < 0:
        raise UsageError(f"skills of examples are {skill.dtype} from {skill.min()} on; they are numbers from 0 on")
    return np.ascontiguousarray(skill, np.int32)


def load_index(folder: Path) -> Index:
    """The index that `save` wrote. Nothing is unpickled, and files of another content are refused (UsageError)."""
    try:
        known = shaped(_Description, json_file(folder / _DESCRIPTION), _DESCRIPTION)
        if changed := [name for name in _files(known.kind) if _digest(folder / name) != known.blake2b[name]]:
            raise ValueError(f"{', '.join(changed)} changed since index.json was written")
        skill = array_of(folder / _SKILL)
        if known.kind == "flat":
            whole = array_of(folder / _WHOLE)
            index = _flat(whole, _checked(whole, skill))
        else:
            index = Index(known.kind, known.dimensions, _skills(skill), _faiss().read_index(str(folder / _FAISS)))
        size = (index.found.d, index.found.ntotal, *skill.shape)
    except (OSError, UsageError, RuntimeError, *FAULTS) as error:  # RuntimeError is what FAISS raises
        raise UsageError(f"{folder} holds no index ({error}); build one and save it there") from error
    if size != (known.dimensions, known.examples, known.examples):
        raise UsageError(
            f"{folder}: index.json says {known.examples} examples of {known.dimensions} dimensions, the files hold "
            f"{index.found.ntotal} of {index.found.d} and {skill.shape} skills; build the index again"
        )
    if index.found.metric_type != _faiss().METRIC_INNER_PRODUCT:
        raise UsageError(f"{folder} holds an index of distances, not of dot products; build the index again")
    return index


def _files(kind: IndexKind) -> tuple[str, str]:
    return (_WHOLE if kind == "flat" else _FAISS), _SKILL


def _flat(whole: I16, skill: I32) -> Index:
    """A flat index over examples `[E, D]`."""
    faiss, rounded = _faiss(), Rounded.of(whole)
    codes = faiss.ScalarQuantizer.QT_8bit_direct_signed
    index = faiss.IndexScalarQuantizer(whole.shape[1], codes, faiss.METRIC_INNER_PRODUCT)
    for _, block in _blocks(whole, rounded.step):
        index.add(block.astype(np.float32))
    return Index("flat", whole.shape[1], skill, index, rounded)


def _step(largest: F64) -> F64:
    """Steps of coordinates of which these are the largest; 1 where all are 0."""
    return np.where(largest > 0, largest / _CODES, 1.0)


def _length(rows: F64) -> F64:
    """Lengths of rows `[n, D]`."""
    lengths: F64 = np.sqrt(np.einsum("nd,nd->n", rows, rows))
    return lengths


def _blocks(whole: I16, step: float) -> Iterator[tuple[F64, F64]]:
    """Examples, some at a time, and their codes."""
    for first in range(0, len(whole), _CHUNK):
        block = whole[first : first + _CHUNK].astype(np.float64)
        yield block, np.rint(block / step)


def _spread(e: int, most: int) -> I64:
    """Up to `most` of e examples, evenly spread."""
    n = min(e, most)
    return np.arange(n, dtype=np.int64) * e // n


def _digest(file: Path) -> str:
    digest = blake2b(digest_size=16)
    for block in blocks_of(file):
        digest.update(block)
    return digest.hexdigest()


def _faiss() -> ModuleType:
    try:
        import faiss
    except ImportError as error:
        raise UsageError(f"an index over a shared skillbook needs FAISS: {install_hint('faiss')}") from error
    module: ModuleType = faiss
    return module
