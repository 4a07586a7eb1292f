"""What all tests share: the way to datasets of others."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from skg_bench.core.datasets import datasets

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session", autouse=True)
def _wide() -> None:
    """Commands print as into a file, 160 characters wide; pytest-xdist tells its workers that they have 80."""
    os.environ.pop("COLUMNS", None)


@pytest.fixture(scope="session")
def published() -> Callable[[str], Path]:
    """Folder of a dataset by its name in `data/manifest.toml`: $SKG_BENCH_SHARED/datasets, default ../shared, or where
    `skg-bench data get` puts it.

    Absent: the test is skipped, and in CI it fails.
    """

    def folder(name: str) -> Path:
        dataset = datasets()[name]
        shared = Path(os.environ.get("SKG_BENCH_SHARED", ROOT.parent / "shared")) / "datasets" / name
        fetched = next(iter(dataset.files))
        homes = (shared, dataset.locations(fetched)[-1].parents[fetched.count("/")])
        for home in homes:
            if all((home / file).is_file() for file in dataset.files):
                return home
        missing = f"dataset {name} is absent; get it: skg-bench data get {name}"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)

    return folder
