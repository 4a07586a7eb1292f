"""Vectors that were computed before and lie on disk: `<path>.npy` with int16 rows, `<path>.json` with what they are.

The built-in corpus' vectors come with the package, so the main job needs no model. Rebuild them with
`python data/rebuild_vectors.py` (extra `embed`).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I16, U64
from skg_bench.core.paths import DATA
from skg_bench.core.statehash import text_hash


@dataclass(frozen=True)
class Precomputed:
    """Looks texts up by their hash; `path` without suffix, None for the built-in vectors of all-MiniLM-L6-v2."""

    path: str | None

    @cached_property
    def _description(self) -> dict[str, Any]:
        file = self._file(".json")
        if not file.is_file() or not self._file(".npy").is_file():
            raise UsageError(f"embedder.path: {file} and {self._file('.npy').name} must both exist")
        read: dict[str, Any] = json.loads(file.read_text("utf-8"))
        return read

    def _file(self, suffix: str) -> Path:
        stem = Path(self.path) if self.path else DATA / "corpus" / "minilm"
        return stem.with_name(stem.name + suffix)

    @property
    def digest(self) -> str:
        """Hash of the vectors, as recorded beside them."""
        return str(self._description["blake2b"])

    def embed(self, texts: Sequence[str]) -> I16:
        """int16 `[N, D]`. Raises UsageError for texts that have no vector, and for a file of other contents."""
        vectors: I16 = np.load(self._file(".npy"), mmap_mode="r", allow_pickle=False)
        hashes = np.array([int(h, 16) for h in self._description["texts"]], np.uint64)
        if vectors.dtype != np.int16 or vectors.shape != (len(hashes), self._description["dimensions"]):
            raise UsageError(
                f"{self._file('.npy')} holds {vectors.dtype} {vectors.shape}, its description says int16 "
                f"({len(hashes)}, {self._description['dimensions']}); rebuild it"
            )
        order = np.argsort(hashes)
        wanted = np.array([text_hash(t) for t in texts], np.uint64)
        at = np.minimum(np.searchsorted(hashes[order], wanted), len(order) - 1)
        found = order[at]
        if missing := np.flatnonzero(hashes[found] != wanted).tolist():
            raise UsageError(
                f"{len(missing)} of {len(texts)} texts have no vector in {self._file('.npy')} (first: "
                f"{texts[missing[0]]!r}); choose another embedder, or rebuild the vectors"
            )
        return np.ascontiguousarray(vectors[found])


def save(path: Path, texts: Sequence[str], vectors: I16, model: str) -> None:
    """Write `<path>.npy` and `<path>.json`."""
    np.save(path.with_name(path.name + ".npy"), vectors)
    digest = blake2b(np.ascontiguousarray(vectors).tobytes(), digest_size=16).hexdigest()
    hashes: U64 = np.array([text_hash(t) for t in texts], np.uint64)
    description = {"model": model, "dimensions": vectors.shape[1], "scale": 4000, "blake2b": digest,
                   "rebuild": "python data/rebuild_vectors.py", "texts": [f"{h:016x}" for h in hashes]}  # fmt: skip
    path.with_name(path.name + ".json").write_text(json.dumps(description) + "\n", "utf-8")
