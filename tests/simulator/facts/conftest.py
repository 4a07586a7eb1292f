"""Runs of the world of facts, whose messages are embedded once."""

from collections.abc import Iterator

import pytest

from tests.embedded import hashed_once


@pytest.fixture(scope="module", autouse=True)
def _embedded_once() -> Iterator[None]:
    with hashed_once():
        yield
