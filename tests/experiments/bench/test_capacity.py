"""What populations cost: prices are those of the runs that they are fitted to, and sizes those of the plans."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.bench.speed import capacity
from experiments.bench.speed.capacity import Prices, Size, Spent, fitted, size_of, spent
from skg_bench.core.errors import UsageError

SIZES = [
    Size(users, weeks, 60.0 * users * weeks, 300.0 * weeks) for users, weeks in ((2, 1), (64, 4), (9, 26), (500, 2))
]


def test_prices_are_found_where_there_are_such() -> None:
    known = Prices(np.array([3.0, 2e-3, 20e-6, 1e-6]), 57.0)
    took = [Spent(known.cpu_of(size), 0.0, known.disk_of(size)) for size in SIZES]
    found = fitted(SIZES, took)
    np.testing.assert_allclose(found.cpu, known.cpu, rtol=1e-6)
    assert found.disk == pytest.approx(57.0)
    dear = fitted(SIZES, [replace(run, cpu=2 * run.cpu) for run in took])
    assert dear.cpu_of(SIZES[0]) == pytest.approx(2 * known.cpu_of(SIZES[0]))
    assert (fitted(SIZES, [Spent(1.0, 0.0, 1.0)] * len(SIZES)).cpu >= 0).all()


def test_a_population_that_is_too_large_to_count_is_so_many_times_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    few = size_of("skg", 300, 1)
    assert few == size_of("never", 300, 1)
    monkeypatch.setattr(capacity, "_SAMPLE", 300)
    many = size_of("skg", 900, 1)
    assert (many.users, many.turns, many.steps) == (900, 3 * few.turns, 3 * few.steps)
    assert size_of("skg", 300, 1, cohort=30).steps > few.steps


def test_a_run_is_carried_out_and_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "_EVERY", 0.1)  # of two seconds, in which a fast machine carries out the run
    held = list[tuple[float, float]]()
    run = spent(capacity.overrides("never", 2, 1), tmp_path / "run", held)
    assert run.cpu > 0.3
    assert run.memory > 2**26
    assert 2**26 < max(size for _, size in held) < 2 * run.memory
    assert [at for at, _ in held] == sorted(at for at, _ in held)
    assert run.disk == sum(file.stat().st_size for file in (tmp_path / "run").glob("*/*.parquet"))
    assert len(capacity.shards_of(tmp_path / "run")) == 4
    with pytest.raises(SystemExit, match="ended with exit code 2"):
        spent(["users=-1"], tmp_path / "other")


def test_an_arm_that_it_does_not_know_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no arm 'skgg'; valid are never, skg, everything"):
        capacity.analyse(arms="skg, skgg")
