"""The nearest examples of a large skillbook, by FAISS (extra `faiss`).

* `flat` looks at every example: exact, at the price of reading them all, with two bytes a coordinate.
* `hnsw` walks a graph of neighbours (Malkov and Yashunin 2018): fastest to search, slow to build.
* `ivf` looks into the lists of some of the cluster centres nearest to a message (Jegou, Douze and Schmid 2011).

Vectors are on the embedding grid, so the dot products that come back are exact integers whatever the index; what an
approximate one may miss is an example, not a digit. Searching repeats to the bit. Building does for `flat`; an `hnsw`
built with several threads is another graph each time, so what is to be repeated is saved and loaded.
"""

import json
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np

from skg_bench.core.errors import UsageError, install_hint
from skg_bench.core.foreign import array_of, blocks_of, raw_bytes
from skg_bench.core.grid import F32, I16, I32, I64

IndexKind = Literal["flat", "hnsw", "ivf"]
_CHUNK = 1 << 16  # vectors that are widened to float32 at a time
_WHOLE = 2048  # whole numbers up to here are exact in float16: 11 bits, IEEE 754
_PER_LIST = 39  # training vectors a list, the least that FAISS takes without a warning
_FILES = ("index.faiss", "skill.npy")


@dataclass(frozen=True, eq=False)
class Index:
    """E examples, ready to be searched."""

    kind: IndexKind
    dimensions: int
    skill: I32  # [E] the skill that each example belongs to
    found: Any  # faiss.Index over the examples

    def search(self, vectors: I16, k: int) -> tuple[I32, F32]:
        """Messages `[B, D]` to the `k` nearest examples: indices `[B, k]` and exact dot products, nearest first.

        Equal dot products are ordered by skill, then by example; -1 and 0 beyond the end. Raises UsageError for
        vectors of other dimensions.
        """
        if vectors.ndim != 2 or vectors.shape[1] != self.dimensions:
            raise UsageError(
                f"messages of shape {vectors.shape} in an index of {self.dimensions} dimensions; embed both with the "
                "same model, or build the index again"
            )
        dots, example = self.found.search(vectors.astype(np.float32), k)
        skill = self.skill[np.maximum(example, 0)]
        order = np.lexsort((example, skill, np.where(example < 0, np.inf, -dots)), axis=1)
        rows = np.arange(len(order))[:, None]
        example, dots = example[rows, order].astype(np.int32), dots[rows, order]
        return example, np.where(example < 0, np.float32(0.0), dots)

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
        if self.kind == "flat":  # a GPU has no index of float16 that looks at every example
            cpu = faiss.IndexFlatIP(self.dimensions)
            cpu.add(self.found.reconstruct_n(0, self.found.ntotal))
        on_gpu = faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, cpu)
        return Index(self.kind, self.dimensions, self.skill, on_gpu)

    def save(self, folder: Path) -> None:
        """Write `index.faiss`, `skill.npy` and `index.json`, which holds the others' hashes."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _faiss().write_index(self.found, str(folder / _FILES[0]))
        np.save(folder / _FILES[1], self.skill)
        description = {"kind": self.kind, "dimensions": self.dimensions, "examples": len(self.skill)}
        text = json.dumps(description | {"blake2b": {name: _digest(folder / name) for name in _FILES}}, indent=1)
        (folder / "index.json").write_text(text + "\n", "utf-8")


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

    flat: coordinates are float16, which holds them exactly up to 2,048, or float32 where one is larger (unit vectors
    of text models stay below 1,200). Products are summed in float32, so they are exact either way.
    hnsw: `links` of each example, and `effort`, how many candidates a search keeps. ivf: `lists` of examples (None:
    4 sqrt(E), the usual choice) and `probes`, how many a search looks into.

    Raises UsageError for no examples, and for settings that make no sense.
    """
    if vectors.ndim != 2 or not len(vectors) or len(vectors) != len(skill):
        raise UsageError(
            f"{vectors.shape} vectors and {len(skill)} skills; an index needs one vector and skill an example"
        )
    if not np.issubdtype(vectors.dtype, np.int16):
        raise UsageError(
            f"vectors are {vectors.dtype}; an index takes int16 on the grid, as `core.embedding_grid.quantise` gives"
        )
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
        half = int(np.abs(vectors, dtype=np.int32).max()) <= _WHOLE
        made = faiss.IndexScalarQuantizer(d, faiss.ScalarQuantizer.QT_fp16, inner) if half else faiss.IndexFlatIP(d)
    elif kind == "hnsw":
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
    return Index(kind, d, np.ascontiguousarray(skill, np.int32), made)


def load_index(folder: Path) -> Index:
    """The index that `save` wrote. Nothing is unpickled, and files of another content are refused (UsageError)."""
    try:
        description = json.loads(raw_bytes(folder / "index.json"))
        kind, dimensions, examples, digests = (description[k] for k in ("kind", "dimensions", "examples", "blake2b"))
        if changed := [name for name in _FILES if _digest(folder / name) != digests[name]]:
            raise UsageError(
                f"{folder}: {', '.join(changed)} changed since index.json was written; build the index again"
            )
        skill = array_of(folder / _FILES[1])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{folder} holds no index ({error!r}); build one and save it there") from error
    index = _faiss().read_index(str(folder / _FILES[0]))
    if (index.d, index.ntotal, len(skill)) != (dimensions, examples, examples):
        raise UsageError(
            f"{folder}: index.json says {examples} examples of {dimensions} dimensions, the files hold "
            f"{index.ntotal} of {index.d} and {len(skill)} skills; build the index again"
        )
    return Index(kind, dimensions, skill, index)


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
