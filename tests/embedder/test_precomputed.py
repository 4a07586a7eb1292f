"""Vectors from disk are found by text."""

import pytest

from skg_bench.core.errors import UsageError
from skg_bench.embedder.precomputed import Precomputed


def test_a_text_without_a_vector_is_named() -> None:
    with pytest.raises(UsageError, match="'never said before'"):
        Precomputed(None).embed(["never said before"])
