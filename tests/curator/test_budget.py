"""A budget: never more skills than it allows, and what goes is what a cache of that rule lets go."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.assistant.pipeline.skillbook_table import SkillbookTable, Stamp, Stored
from skg_bench.core.batch import ADD, REMOVE, UPDATE, Batch
from skg_bench.core.errors import UsageError
from skg_bench.core.texts import Texts
from skg_bench.curator.budget import Budget, Evict
from skg_bench.curator.oracle import RightAnswers
from tests.core import samples
from tests.curator.test_curators import PAPER, UNHEARD, B, asked, columns, curated, operations, turn

RULES: list[Evict] = ["lru", "lfu", "ttl"]


@pytest.mark.parametrize("evict", RULES)
@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**32), capacity=st.integers(1, 8))
def test_what_goes_beyond_the_capacity_is_what_the_rule_says(evict: Evict, seed: int, capacity: int) -> None:
    seen, offer, name, known, books = turn(seed)
    books = replace(books, last_used=books.last_used // 10**6, born=books.born // 10**6)  # many ties
    budget = Budget(PAPER, capacity, evict)
    inside, batch = (curated(c, seen, offer, name, known, books) for c in (PAPER, budget))
    n = len(inside.op)
    assert [c[:n] for c in columns(batch)] == columns(inside)
    evicted: list[list[int]] = [[] for _ in range(B)]
    for op in operations(Batch(*(getattr(batch, f.name)[n:] for f in fields(Batch))), REMOVE):
        assert budget.reasons[op["reason"]] == "evicted"
        evicted[op["row"]].append(op["skill"])
    assert sum(map(len, evicted)) == len(batch.op) - n
    rules: dict[str, Callable[[int, int], tuple[int, ...]]] = {
        "lru": lambda u, s: (books.last_used[u, s], s),
        "lfu": lambda u, s: (books.uses[u, s], books.last_used[u, s], s),
        "ttl": lambda u, s: (books.born[u, s], s),
    }
    age = rules[evict]
    for u in range(B):
        mine = [o for op in (ADD, UPDATE, REMOVE) for o in operations(inside, op) if o["row"] == u]
        renewed = {o["skill"] for o in mine if o["skill"] >= 0 and o["text"] >= 0}
        gone = {o["skill"] for o in mine if o["skill"] >= 0 and o["text"] < 0}
        active = (set(np.flatnonzero(books.active[u]).tolist()) | renewed) - gone
        size = len(active) + sum(o["skill"] < 0 for o in mine)
        free = active - renewed - ({int(seen.skill[u])} if seen.hit[u] else set())
        oldest = [s for *_, s in sorted(age(u, s) for s in free)]
        assert evicted[u] == oldest[: max(size - capacity, 0)]


def test_a_book_that_grows_by_one_a_turn_stays_at_its_capacity() -> None:
    rng, b = np.random.default_rng(0), 3
    table = SkillbookTable(b).open(Texts([str(i) for i in range(100)], ["name"], None), samples.table(rng, 100))
    budget = Budget(PAPER, 4, "lru")
    for t in range(12):
        now = np.full(b, t * 3600)
        seen, _, _, _, _ = turn(t, b)
        seen = replace(seen, time=now, turn=t, skill=np.full(b, -1, np.int32))
        batch = curated(budget, seen, np.zeros(b, np.int32), np.full(b, t, np.int32), UNHEARD, table.view(b))
        nobody = np.full(b, -1, np.int32)
        stored = Stored(now[batch.row], np.zeros(len(batch.op), np.int32))
        table.apply(batch, Stamp(time=now, local=now, last_skill=nobody, event=np.full(b, t, np.int32)), stored)
        assert table.n_active.tolist() == [min(t + 1, 4)] * b
    assert np.flatnonzero(table.active[0]).tolist() == [8, 9, 10, 11]


def test_a_budget_that_is_never_reached_changes_nothing() -> None:
    seen, offer, name, known, books = turn(4)
    assert columns(curated(Budget(PAPER, 1000, "lru"), seen, offer, name, known, books)) == columns(
        curated(PAPER, seen, offer, name, known, books)
    )
    assert np.array_equal(asked(Budget(PAPER, 1, "lru"), seen), asked(PAPER, seen))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"capacity": 0}, "curator.capacity=0 must be at least 1"),
        ({"evict": "fifo"}, "curator.evict='fifo', valid are lru, lfu, ttl"),
        ({"curator": RightAnswers()}, "cannot wrap a curator that sees the truth"),
    ],
)
def test_a_bad_budget_is_refused_by_name(change: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as error:
        replace(Budget(PAPER, 4, "lru"), **change)
    assert says in str(error.value)
