"""Vectors that were computed before and lie on disk: `<path>.npy` with int16 rows, `<path>.json` with what they are.

The vectors of the built-in corpora come with the package, so the main job needs no model.
Rebuild them with `python data/rebuild_vectors.py` (extra `embed`).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import array_of, raw_bytes
from skg_bench.core.grid import I16, U64
from skg_bench.core.package import DATA
from skg_bench.core.reach import Reach, Reaches
from skg_bench.core.text import text_hash
from skg_bench.embedder.cache import TextProgress

_BUILT_IN = "data:"
CORPUS_VECTORS = ("data:corpus/minilm", "data:more/minilm")  # paths of the vectors of the built-in corpus


@dataclass(frozen=True)
class VectorFile:
    """Vectors on disk, and their description beside them."""

    stem: Path  # without suffix

    def file(self, suffix: str) -> Path:
        """Path of the vectors (.npy) or of their description (.json)."""
        return self.stem.with_name(self.stem.name + suffix)

    @cached_property
    def description(self) -> dict[str, Any]:
        """Hashes of the texts, width, model, and digest of the vectors.

        Raises UsageError.
        """
        file = self.file(".json")
        if not file.is_file() or not self.file(".npy").is_file():
            raise UsageError(f"embedder.path: {file} and {self.file('.npy').name} must both exist")
        try:
            read = json.loads(raw_bytes(file))
            hashes = [int(h, 16) for h in read["texts"]]
            if not hashes:
                raise UsageError(f"{file} describes no vectors; rebuild them")
            return {"hashes": np.array(hashes, np.uint64), "width": read["dimensions"], "digest": str(read["blake2b"]),
                    "model": str(read.get("model"))}  # fmt: skip
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise UsageError(f"{file} does not describe vectors ({error!r}); rebuild them") from error

    def vectors(self) -> I16:
        """int16 `[N, D]`. Raises UsageError for a file of other contents than its description says."""
        file, description = self.file(".npy"), self.description
        try:
            vectors: I16 = array_of(file)
        except (EOFError, OSError, ValueError) as error:
            raise UsageError(f"{file} is not a whole array ({error}); rebuild it") from error
        shape = (len(description["hashes"]), description["width"])
        if vectors.dtype != np.int16 or vectors.shape != shape:
            raise UsageError(
                f"{file} holds {vectors.dtype} {vectors.shape}, its description says int16 {shape}; rebuild it"
            )
        if _digest(vectors) != description["digest"]:
            raise UsageError(f"{file} has other contents than its description says; rebuild both")
        return vectors


@dataclass(frozen=True)
class Precomputed:
    """Looks texts up by their hash; `path` without suffix, or several of one model. `data:NAME` is a path below the
    package's data; None: the vectors of the built-in corpus, made by all-MiniLM-L6-v2.
    """

    path: str | Sequence[str] | None
    pure: ClassVar[bool] = True
    reaches: ClassVar[Reaches] = {"path": Reach(("reads",), data=_BUILT_IN)}

    @cached_property
    def _files(self) -> list[VectorFile]:
        """Files of vectors; raises UsageError unless all are of one model."""
        given = [self.path] if isinstance(self.path, str | None) else self.path
        files = [VectorFile(_stem(path)) for each in given for path in ([each] if each else CORPUS_VECTORS)]
        if not files:
            raise UsageError("embedder.path=[] names no vectors; null: those of the built-in corpus")
        first = files[0].description
        for file in files[1:]:
            for key in ("model", "width"):
                if file.description[key] != first[key]:
                    raise UsageError(
                        f"embedder.path: {file.file('.json')} has vectors of another {key}, {file.description[key]}; "
                        f"valid is that of {files[0].file('.json')}, {first[key]}: embed its texts again"
                    )
        return files

    @property
    def digest(self) -> str:
        """Hash of the vectors, as recorded beside them."""
        return "+".join(file.description["digest"] for file in self._files)

    def embed(self, texts: Sequence[str], progress: TextProgress | None = None) -> I16:
        """int16 `[N, D]`. Raises UsageError for texts that have no vector, and for a file of other contents."""
        files = self._files
        vectors = np.concatenate([file.vectors() for file in files])
        hashes = np.concatenate([file.description["hashes"] for file in files])
        order = np.argsort(hashes, kind="stable")
        wanted = np.array([text_hash(t) for t in texts], np.uint64)
        at = np.minimum(np.searchsorted(hashes[order], wanted), len(order) - 1)
        rows = order[at]
        if missing := np.flatnonzero(hashes[rows] != wanted).tolist():
            raise UsageError(
                f"{len(missing)} of {len(texts)} texts have no vector in "
                f"{', '.join(str(file.file('.npy')) for file in files)} (first: {texts[missing[0]]!r}); choose another "
                f"embedder, rebuild the vectors, or name more: embedder.path=[{','.join(CORPUS_VECTORS)},MORE]"
            )
        return np.ascontiguousarray(vectors[rows])


def _stem(path: str) -> Path:
    return DATA / path.removeprefix(_BUILT_IN) if path.startswith(_BUILT_IN) else Path(path)


def save_vectors(path: Path, texts: Sequence[str], vectors: I16, model: str) -> None:
    """Write `<path>.npy` and `<path>.json`."""
    np.save(path.with_name(path.name + ".npy"), vectors)
    hashes: U64 = np.array([text_hash(t) for t in texts], np.uint64)
    description = {"model": model, "dimensions": vectors.shape[1], "scale": 4000, "blake2b": _digest(vectors),
                   "rebuild": "python data/rebuild_vectors.py", "texts": [f"{h:016x}" for h in hashes]}  # fmt: skip
    path.with_name(path.name + ".json").write_text(json.dumps(description) + "\n", "utf-8")


def _digest(vectors: I16) -> str:
    return blake2b(np.ascontiguousarray(vectors).tobytes(), digest_size=16).hexdigest()
