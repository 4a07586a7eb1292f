"""The table of embedders: what it counts, and what it says."""

from collections.abc import Sequence

import numpy as np
import pytest

from experiments.bench.speed import embedding
from experiments.bench.speed.embedding import HASHING, LIBRARY, Way
from skg_bench.core.grid import I16
from skg_bench.embedder.hashing import Hashing

ALONE = Hashing(64, 0)


def by_neighbours(texts: Sequence[str]) -> I16:
    """Vectors that are other ones where several texts are embedded."""
    return Hashing(64, int(len(texts) > 1)).embed(texts)


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[Way]:
    ways = [Way(LIBRARY, ALONE.embed), Way("one thread", by_neighbours), Way(HASHING, ALONE.embed)]
    monkeypatch.setattr(embedding, "ways", lambda: ways)
    return embedding.measure(2)


def test_each_way_embeds_each_block_and_texts_that_neighbours_move_are_counted(compared: list[Way]) -> None:
    assert [way.moved for way in compared] == [0, embedding.ALONE, 0]
    assert all(len(way.seconds) == len(way.busy) == len(way.vectors) == 2 for way in compared)
    assert compared[0].cosine(compared[0]) == pytest.approx(1.0)
    assert compared[0].cosine(compared[1]) < 0.9
    compared[1].seconds, compared[0].seconds = [2.0, 2.0], [1.0, 4.0]
    assert compared[1].faster(compared[0]) == 1.25


def test_the_report_has_a_line_for_each_way_and_no_cosine_where_none_is_meant(compared: list[Way]) -> None:
    text = embedding.markdown(compared, (51.4, 30.2))
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| ---")]
    assert len(rows) == 1 + len(compared)
    assert rows[1].startswith(f"| {LIBRARY} | ")
    assert rows[2].endswith("| 16 of 16 |")
    assert rows[3].split(" | ")[-2] == ""
    assert "loaded in 51 ms, 30 of them at work (mark 50)" in text


def test_loading_is_timed_on_a_cache_of_its_own() -> None:
    wall, core = embedding.loading(600)
    assert core > 0
    assert 0 < wall < 5_000


def test_the_sample_of_messages_is_the_same_each_time() -> None:
    assert embedding.messages(300)[:100] == embedding.messages(100)
    assert len(np.unique(embedding.messages(300))) == 300
