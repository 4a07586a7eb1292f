"""Peers beside ours: what is measured, and that their routers decide as their libraries say.

Those that need the peers run in their environment only: `make peers`.
"""

import time
from pathlib import Path

import numpy as np
import pytest

from experiments.bench.speed import peers
from experiments.bench.speed.peer_routers import Encoder, GPTCache, SemanticRouter, cached, gptcache
from skg_bench.core.embedding_grid import quantise
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64
from skg_bench.core.shortlist import max_dots
from skg_bench.core.types import Query, Skillbooks
from skg_bench.engine.vectors import Rows
from tests.core import samples

D = 64


def world(seed: int, users: int = 6, examples: int = 12) -> tuple[F64, Query, Skillbooks]:
    """Users with books of a few skills, whose messages resemble examples more or less; vectors on the grid."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(10, D))
    grid = quantise(centres[rng.integers(0, 10, 100)] + 0.7 * rng.normal(size=(100, D)))
    books = samples.ragged(rng, users, examples, texts=100, skills=5)
    return (
        grid.astype(np.float64),
        samples.query(rng.integers(0, 100, users).astype(np.int32), Rows(grid), books),
        books,
    )


def test_without_the_peers_it_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(peers, "version", absent)
    with pytest.raises(UsageError, match="make peers"):
        peers.analyse()


def test_calls_are_timed_on_the_same_messages_in_turn_and_the_first_of_a_block_only_warms_up() -> None:
    called: list[tuple[str, int]] = []

    def call(name: str, i: int) -> None:
        called.append((name, i))
        time.sleep(0.05 if i % peers.BLOCK == 0 else 0.002 if name == "slow" else 0.0)

    items = range(2 * peers.BLOCK)
    fast, slow = peers.in_turn({"fast": lambda i: call("fast", i), "slow": lambda i: call("slow", i)}, items)
    block = list(items[: peers.BLOCK])
    assert called[: 2 * peers.BLOCK] == [("fast", i) for i in block] + [("slow", i) for i in block]
    assert fast.seconds < 0.002 <= slow.least <= slow.seconds < 0.04


@pytest.mark.parametrize(("theirs", "verdict"), [(0.0101, "Reached"), (0.0099, "against: semantic-router, a call.")])
def test_the_mark_is_ten_times_as_fast_as_each_peer(theirs: float, verdict: str) -> None:
    timed = [
        peers.Timed(peers.OWN, 0.001, 0.0005),
        peers.Timed("skg_bench, all of it", 0.002, 0.001),
        peers.Timed("semantic-router, a call", theirs, 0.005),
        peers.Timed("GPTCache, a get", 0.05, 0.01),
    ]
    page = peers.speed_section(timed)
    assert verdict in page
    assert "| GPTCache, a get | 50.00 ms | 50.0x | 10.00 ms | 20.0x |" in page


def test_semantic_router_lists_the_skills_of_the_five_nearest_examples_by_its_own_score() -> None:
    pytest.importorskip("semantic_router", reason="run `make peers`")
    for seed in range(4):
        vectors, query, books = world(seed)
        nearest = SemanticRouter(vectors, 5, "max").route(query, books)
        best = max_dots(query, books) / 4000.0**2
        for row in range(len(query.text)):
            n = int(books.examples.count[row])
            skill, example = books.examples.skill[row, :n], books.examples.text[row, :n]
            mask = books.active[row, skill]
            pairs = dict.fromkeys(zip(skill[mask].tolist(), example[mask].tolist(), strict=True))
            message = vectors[query.text[row]]
            dots = [(float(vectors[e] @ message), s) for s, e in pairs]
            expected = {s for dot, s in sorted(dots)[-5:] if dot > 0}
            listed = [int(s) for s in nearest.skill[row] if s >= 0]
            assert set(listed) == expected
            assert (np.diff(nearest.similarity[row, : len(listed)]) <= 0).all()
            assert nearest.similarity[row, : len(listed)] == pytest.approx(best[row, listed], abs=2e-3)


def test_semantic_routers_answer_does_not_depend_on_who_else_is_asked() -> None:
    pytest.importorskip("semantic_router", reason="run `make peers`")
    vectors, query, books = world(9)
    together = SemanticRouter(vectors, 5, "mean").route(query, books)
    for row in range(len(query.text)):
        own = samples.one(books, row)
        asked_alone = samples.asked_with(samples.some_queries(query, [row]), own)
        alone = SemanticRouter(vectors, 5, "mean").route(asked_alone, own)
        assert np.array_equal(alone.skill[0], together.skill[row])
        assert np.array_equal(alone.similarity[0], together.similarity[row])


@pytest.mark.filterwarnings("ignore:.*declarative_base:DeprecationWarning")  # theirs
def test_gptcache_answers_from_the_nearest_example_if_its_cosine_is_at_least_three_fifths(tmp_path: Path) -> None:
    pytest.importorskip("gptcache", reason="run `make peers`")
    vectors, query, books = world(3, examples=8)
    unit = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    shortlist = GPTCache(unit, tmp_path / "stores", 5).route(query, books)
    hits = 0
    for row in range(len(query.text)):
        n = int(books.examples.count[row])
        cosine = unit[books.examples.text[row, :n]] @ unit[query.text[row]]
        at = int(cosine.argmax()) if n else 0
        if n and cosine[at] >= 0.6:
            hits += 1
            assert shortlist.skill[row].tolist() == [int(books.examples.skill[row, at]), -1, -1, -1, -1]
        else:
            assert (shortlist.skill[row] == -1).all()
    assert 0 < hits < len(query.text)
    cache = gptcache(Encoder(unit), tmp_path / "one")
    cache.import_data(["0", "1"], ["7", "8"])
    skill, score = cached(cache, 1)
    assert skill == 8
    assert score == pytest.approx(1.0, abs=1e-6)
