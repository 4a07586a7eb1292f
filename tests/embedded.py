"""Vectors of `embedder=hashing`, which runs of a test process share."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any
from unittest.mock import patch

from skg_bench.embedder.hashing import Hashing

_MOST = 4  # that are kept, of up to 41 MB each
_FEW = 1000  # texts that are embedded anew each time
_known: dict[tuple[str, bytes], Any] = {}


@contextmanager
def hashed_once() -> Iterator[None]:
    """Many texts are hashed once by each embedder, whatever run they belong to."""
    embed = Hashing.embed

    def once(embedder: Hashing, texts: Sequence[str], progress: Any = None) -> Any:
        if len(texts) < _FEW:
            return embed(embedder, texts, progress)
        key = embedder.digest, sha256("\0".join(texts).encode()).digest()
        if key not in _known:
            while len(_known) >= _MOST:
                del _known[next(iter(_known))]
            _known[key] = embed(embedder, texts, progress)
            _known[key].setflags(write=False)
        return _known[key]

    with patch.object(Hashing, "embed", once):
        yield
