"""What all tests share: the requirement marker's check and the way to the shared datasets."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of datasets and oracles that are not part of the repository: SKG_BENCH_SHARED, default ../shared.

    Absent: the test is skipped, and in CI it fails.
    """
    folder = Path(os.environ.get("SKG_BENCH_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        missing = f"{folder} is absent; get the shared datasets, then: export SKG_BENCH_SHARED=/path/to/shared"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return folder
