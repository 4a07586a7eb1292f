"""Tables of decisions in which all rows stand several times, as in a log that was exported again into one file."""

from pathlib import Path

import numpy as np
import pytest

import skg_bench
from skg_bench.core.errors import UsageError
from tests.app.test_estimating import as_csv, clicks


@pytest.mark.parametrize("with_users", [True, False])
@pytest.mark.parametrize("copied", ["at the end", "row by row", "in any order"])
def test_a_log_that_was_exported_twice_is_refused(copied: str, with_users: bool, tmp_path: Path) -> None:
    """Intervals by row would be narrower, and the log would be worth more rows than it has."""
    made = clicks()
    if not with_users:
        del made["user"]
    order = np.tile(np.arange(400), 3) if copied == "at the end" else np.repeat(np.arange(400), 3)
    if copied == "in any order":
        order = np.random.default_rng(2).permutation(order)
    path = as_csv({name: [cells[i] for i in order] for name, cells in made.items()}, tmp_path / "log.csv")
    if copied == "in any order" and not with_users:  # a handful of different rows: nothing tells
        assert skg_bench.estimate(path, {"second": "second"}).rows == 1200
        return
    with pytest.raises(UsageError, match=r"log\.csv: its 1,200 rows are 400 that stand there 3 times.*leave"):
        skg_bench.estimate(path, {"second": "second"})


def test_rows_that_are_alike_are_no_copies(tmp_path: Path) -> None:
    second = np.random.default_rng(3).integers(0, 2, 400).tolist()
    made = {"propensity": [0.5] * 400, "reward": [0] * 199 + [1] + [0] * 200, "second": second}
    assert skg_bench.estimate(as_csv(made, tmp_path / "log.csv"), {"second": "second"}).rows == 400
    made["reward"] = [1] * 400
    with pytest.raises(UsageError, match="every reward is 1"):
        skg_bench.estimate(as_csv(made, tmp_path / "log.csv"), {"second": "second"})
