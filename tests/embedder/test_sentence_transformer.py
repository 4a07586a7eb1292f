"""A model that is run here: what is missing is said."""

import pytest

from skg_bench.core.errors import UsageError
from skg_bench.embedder.sentence_transformer import SentenceTransformer


def test_an_empty_batch_is_refused() -> None:
    with pytest.raises(UsageError, match=r"embedder\.batch=0"):
        SentenceTransformer("all-MiniLM-L6-v2", batch=0)
