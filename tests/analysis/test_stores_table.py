"""The benchmark of stores: what it counts, and that nothing is lost in it."""

from pathlib import Path

from experiments.speed import stores
from skg_bench.store.sqlite import SQLite


def test_rates_count_every_update_that_was_stored(tmp_path: Path) -> None:
    store = SQLite(str(tmp_path / "books.db"), 30.0)
    result = stores.rates(store, 2, tmp_path, writers=2, seconds=0.5)
    store.close()
    assert result.lost == 0
    assert result.per_second > 2
    assert 0 < result.p99 < 10
    assert result.syncs > 0


def test_a_line_holds_rates_against_what_the_disk_can_do() -> None:
    first, f, slowest, lost = stores._lines("SQLite", 10, stores.StoreRates(500.0, 0.25, 7, 0, 250.0), 8)
    assert first == ("SQLite: updates a second, 8 writers, 10 users", "500 = 2.00 f", "0.8 f", "2.50x")
    assert (f[1], slowest[1:], lost[1]) == ("250", ("0.250 s", "1.0 s", "0.25x"), "7; 0")
