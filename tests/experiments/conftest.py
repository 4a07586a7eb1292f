"""What all tests of experiments share: their runs need no page."""

from collections.abc import Iterator

import pytest

from tests.runs import tables_alone


@pytest.fixture(scope="module", autouse=True)
def _pageless() -> Iterator[None]:
    """Runs of tests and of their modules end without the page."""
    with tables_alone():
        yield
