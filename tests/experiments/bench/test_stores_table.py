"""The benchmark of stores: what it counts, and that nothing is lost in it."""

import signal
import time
from collections.abc import Callable
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

import pytest

from experiments.bench import server
from experiments.bench.speed import counted, stores
from skg_bench.core.errors import UsageError
from skg_bench.skillbook.storing import update
from skg_bench.store.memory import InMemory
from skg_bench.store.sqlite import SQLite

RATES = stores.StoreRates(500.0, 0.25, 7, 0, 250.0, 0.001, 0.9)


def test_rates_count_every_update_that_was_stored(tmp_path: Path) -> None:
    store = SQLite(str(tmp_path / "books.db"), 30.0)
    result = stores.rates(store, 2, tmp_path, writers=2, seconds=0.5)
    store.close()
    assert result.lost == 0
    assert result.per_second > 2
    assert 0 < result.p99 < 10
    assert result.syncs > 0
    assert 0 < result.cost < 0.1
    assert 0 <= result.busy <= 1


def test_a_line_holds_rates_against_what_the_disk_and_the_processors_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    first, f, processors, slowest, lost = stores._lines("SQLite", 10, RATES, 8)
    assert first == ("SQLite: updates a second, 8 writers, 10 users", "500 = 2.00 f", "0.8 f", "2.50x")
    assert processors[1:] == ("90%; 1.00 ms; 2,000 a second", "", "0.25 of that")
    assert (f[1], slowest[1:], lost[1]) == ("250", ("0.250 s", "1.0 s", "0.25x"), "7; 0")
    unknown = [*stores._lines("PostgreSQL", 10, replace(RATES, cost=nan), 8)][2]
    assert unknown[1:] == ("90%; not known", "", "")


def test_counted_updates_are_all_there(tmp_path: Path) -> None:
    store = SQLite(str(tmp_path / "books.db"), 30.0)
    result = counted.counted(store, 61, 3, 2)
    store.close()
    assert (result.updates, result.lost, result.doubled, result.unstored, result.kills) == (61, 0, 0, 0, 0)


@pytest.mark.parametrize(("change", "lost", "doubled"), [(1, 1, 0), (-2, 0, 2), (0, 0, 0)])
def test_what_a_writer_was_told_is_held_against_the_documents(change: int, lost: int, doubled: int) -> None:
    store = InMemory()
    counted.begin(store, ["anna", "bert"], 2)
    for number in range(5):
        update(store, "anna", counted.batch(1), key=str(number), now="2026-01-05T09:00:00+00:00")
    told = [counted.Told({}, 0, 0, 0.0, 1.0), counted.Told({"anna": 5 + change}, 0, 3, 0.5, 2.0)]
    result = counted.held(store, ["anna", "bert"], told, 4)
    assert result == counted.CountedUpdates(5 + change, lost, doubled, 0, 3, 4, 2.0)


def test_backends_are_killed_again_once_the_server_has_recovered(monkeypatch: pytest.MonkeyPatch) -> None:
    backends, killed = iter([None, 7, 7, None, 7, 8, 8]), list[tuple[int, int]]()
    monkeypatch.setattr(server, "_backend", lambda _: next(backends, None))
    monkeypatch.setattr("os.kill", lambda *call: killed.append(call))
    with server.killing("postgresql:///", 0.01) as kills:
        deadline = time.monotonic() + 10
        while len(kills) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert killed == [(7, signal.SIGKILL), (8, signal.SIGKILL)]
    assert kills == [7, 8]


@pytest.mark.parametrize(("lost", "line"), [(0, "0; 0"), (2, "2; 0")])
def test_lost_updates_end_the_benchmark_with_failure(
    lost: int, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def few(*_: Any) -> counted.CountedUpdates:
        return counted.CountedUpdates(20, lost, 0, 0, 1, 0, 2.0)

    nothing: Callable[..., Any] = lambda *_, **__: iter(())  # noqa: E731
    monkeypatch.setattr(stores, "counted", few)
    monkeypatch.setattr(stores, "rows", nothing)
    monkeypatch.setattr("experiments.bench.server.find_spec", lambda _: None)
    report = stores.analyse(folder=tmp_path, updates=20)
    assert f"| SQLite | 20 | {line} | 2 s, 1 retries, 0 kills |" in report.page
    assert report.holds == (lost == 0)


def test_kills_without_counted_updates_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--kill-every 3: .* give --updates, such as 2000"):
        stores.analyse(folder=tmp_path, kill_every=3.0)
