"""A small library of strategies in the place of the data."""

import pytest

from skg_bench.skillbook.library import strategies as library
from tests.curator.advised import LIBRARY, OTHER, Library


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Library:
    """That of every folder, but for `other`, where something else fits."""
    monkeypatch.setattr(library, "strategies", lambda folder=None: OTHER if folder == "other" else LIBRARY)
    return LIBRARY
