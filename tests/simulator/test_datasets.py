"""Datasets of others: the manifest says whose they are, and a file is read only if it is the one it should be."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from skg_bench.core.errors import UsageError
from skg_bench.simulator.datasets import Dataset, datasets

GREETING = Dataset(
    "greeting", "one word", "public domain", "nobody", "https://example.org/", "nothing",
    {"hello.txt": "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"},
)  # fmt: skip


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Where datasets are looked for, first to last."""
    monkeypatch.setenv("SKG_BENCH_SHARED", str(tmp_path / "shared"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "shared" / "datasets" / "greeting", tmp_path / "cache" / "skg_bench" / "datasets" / "greeting"


def test_the_manifest_says_of_each_what_it_is_whose_and_where() -> None:
    for name, dataset in datasets().items():
        assert name == dataset.name
        assert all((dataset.what, dataset.licence, dataset.source, dataset.loader, dataset.files))
        assert dataset.address.startswith("https://")
        assert dataset.address.endswith("/")
        assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in dataset.files.values())


@pytest.mark.parametrize("name", datasets())
def test_the_shared_copies_are_those_of_the_manifest(published: Callable[[str], Path], name: str) -> None:
    dataset, folder = datasets()[name], published(name)
    for file in dataset.files:
        assert dataset.checked(file, (folder / file).read_bytes(), folder / file)


@pytest.mark.parametrize("which", [0, 1])
def test_a_file_is_read_from_either_home(homes: tuple[Path, Path], which: int) -> None:
    homes[which].mkdir(parents=True)
    (homes[which] / "hello.txt").write_bytes(b"hello")
    assert GREETING.read("hello.txt") == b"hello"


def test_a_file_that_is_nowhere_is_named_with_what_to_do(homes: tuple[Path, Path]) -> None:
    with pytest.raises(UsageError, match=r"hello\.txt of greeting is not here; get it: skg-bench data get greeting"):
        GREETING.read("hello.txt")


def test_a_file_of_other_contents_is_refused(homes: tuple[Path, Path]) -> None:
    homes[0].mkdir(parents=True)
    (homes[0] / "hello.txt").write_bytes(b"hallo")
    with pytest.raises(
        UsageError, match=r"is not the hello\.txt of greeting that is known here: SHA-256 d3751d33f9cd5049"
    ):
        GREETING.read("hello.txt")
