"""What all tests of experiments share: runs beside that of a module need no page."""

from collections.abc import Iterator

import pytest

from tests.runs import tables_alone


@pytest.fixture(autouse=True)
def _pageless() -> Iterator[None]:
    """A run that a test makes itself ends without the page. That of its module, which is made before, has one."""
    with tables_alone():
        yield
