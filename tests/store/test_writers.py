"""Several processes write the same skillbooks, and some are killed."""

import time
from collections.abc import Callable
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import pytest

from skg_bench.core.store import Store
from tests.store.writers import acknowledged, helpful, names, seed, start

USERS = [f"user-{i}" for i in range(10)]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.req("P25", "P26")
def test_eight_processes_lose_and_double_nothing(
    kind: str, make: Callable[..., Any], tmp_path: Path, forked: ForkServerContext
) -> None:
    store: Store = make(kind)
    seed(store, USERS)
    barrier = forked.Barrier(8)
    processes = [start(store, USERS, [*names(w, 60)], tmp_path / f"{w}.log", barrier, context=forked) for w in range(8)]
    for process in processes:
        process.join(300)
    assert [process.exitcode for process in processes] == [0] * 8
    assert [helpful(store, user) for user in USERS] == [48] * 10


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.req("P26")
def test_writers_killed_in_mid_run_go_on_and_lose_and_double_nothing(
    kind: str, make: Callable[..., Any], tmp_path: Path, forked: ForkServerContext
) -> None:
    store: Store = make(kind)
    seed(store, USERS[:3])
    logs = [tmp_path / f"{w}.log" for w in range(3)]
    for kill in range(3):
        barrier, before = forked.Barrier(3), sum(len(acknowledged(log)) for log in logs)
        left = [[key for key in names(w, 150) if key not in acknowledged(log)] for w, log in enumerate(logs)]
        processes = [
            start(store, USERS[:3], keys, log, barrier, context=forked) for keys, log in zip(left, logs, strict=True)
        ]
        if kill < 2:
            deadline = time.monotonic() + 60
            while sum(len(acknowledged(log)) for log in logs) < before + 40 and time.monotonic() < deadline:
                time.sleep(0.001)
            for process in processes:
                process.kill()
        for process in processes:
            process.join(120)
        assert all(process.exitcode == (-9 if kill < 2 else 0) for process in processes)
    assert [len(acknowledged(log)) for log in logs] == [150] * 3
    assert [helpful(store, user) for user in USERS[:3]] == [150] * 3
