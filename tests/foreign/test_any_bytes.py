"""Whatever stands in other people's files, they are read, or refused with a message that names the file."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.errors import UsageError
from tests.foreign.files import READERS
from tests.foreign.mutations import FOLDER, Files, mutated

SEEDS = st.integers(0, 2**32 - 1)


@pytest.fixture(scope="module")
def above() -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        yield Path(folder)


def put(files: Files, folder: Path) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content == FOLDER:
            path.mkdir()
        else:
            path.write_bytes(content)


def refusal(name: str, files: Files, above: Path) -> str:
    """What the reader says where it refuses them, with the folder's name left out; nothing where it reads them."""
    with TemporaryDirectory(dir=above) as place:
        put(files, Path(place))
        try:
            READERS[name].read(Path(place))
        except UsageError as error:
            where = str(error)
            if Path(place).name not in where:
                raise AssertionError(f"it does not say where: {where}") from error
            return where.replace(place, "")
    return ""


@pytest.mark.parametrize("name", READERS)
def test_files_as_they_should_be_are_read(name: str, above: Path) -> None:
    assert refusal(name, READERS[name].files(), above) == ""


@pytest.mark.parametrize("name", READERS)
def test_files_with_faults_are_read_or_refused_with_their_place(name: str, above: Path) -> None:
    @settings(max_examples=READERS[name].tries, deadline=None, derandomize=True, database=None)
    @given(SEEDS)
    def once(seed: int) -> None:
        refusal(name, mutated(READERS[name].files(), seed), above)

    once()


@pytest.mark.soak
@pytest.mark.parametrize("name", READERS)
def test_many_files_with_faults_are_read_or_refused_with_their_place(name: str, above: Path) -> None:
    @settings(max_examples=200 * READERS[name].tries, deadline=None, database=None)
    @given(SEEDS)
    def once(seed: int) -> None:
        refusal(name, mutated(READERS[name].files(), seed), above)

    once()
