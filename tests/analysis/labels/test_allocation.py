"""Which turns are judged next: those that decide, each pair once, and fewer than at random."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

import numpy as np
import pyarrow as pa

from skg_bench.analysis.labels.allocation import next_turns
from skg_bench.analysis.labels.hit_pairs import SAME_TEXT, ArmHits, HitPairs, hit_pairs
from skg_bench.analysis.labels.label_shares import PairLabel, arm_shares
from skg_bench.analysis.labels.price_decision import HitSaving, PriceDecision
from skg_bench.core.grid import I64
from skg_bench.runfolder.run import Run
from tests.analysis.labels.planted_log import judged_turns, truth

Truth = list[tuple[I64, I64]]
LOGS, BATCH, MOST = 100, 10, 600


def unjudged(pairs: HitPairs) -> Truth:
    return [
        (np.full(len(arm.turn), PairLabel.UNJUDGED), np.full(len(arm.turn), PairLabel.UNJUDGED)) for arm in pairs.arms
    ]


def test_a_pair_that_occurs_again_is_asked_once(log_run: Run) -> None:
    pairs = hit_pairs(log_run, ["all", "near"])
    turns = next_turns(pairs, unjudged(pairs), 60, decides=False)
    assert len(set(turns)) == 60
    known = judged_turns(pairs, truth(pairs), turns)
    assert set(next_turns(pairs, known, 60, decides=False)).isdisjoint(turns)


def test_hits_of_the_logs_own_text_do_not_decide(log_run: Run) -> None:
    pairs = hit_pairs(log_run, ["all"])
    (arm,) = pairs.arms
    turns = next_turns(pairs, unjudged(pairs), 60, decides=True)
    assert not set(turns) & set(arm.turn[arm.stratum == SAME_TEXT].tolist())


def test_where_all_is_judged_nothing_is_next(log_run: Run) -> None:
    pairs = hit_pairs(log_run, ["all"])
    assert next_turns(pairs, truth(pairs), 10, decides=False) == []


def planted(seed: int) -> tuple[HitPairs, Truth, float]:
    """A log of 1,000 hits, and a price at which its truth is a clear decision."""
    random = np.random.default_rng(seed)
    n = 1000
    stratum = random.choice(4, n, p=random.dirichlet([3, 4, 2, 1]))
    logged = np.where(random.random(n) < 0.1, PairLabel.WRONG, PairLabel.RIGHT)
    wrong = random.random(n) < np.array([0, random.uniform(0.05, 0.5), random.uniform(0.5, 1.0), 0.5])[stratum]
    stored = np.where(stratum == SAME_TEXT, logged, np.where(wrong, PairLabel.WRONG, PairLabel.RIGHT))
    ids = np.arange(n, dtype=np.uint64)
    arm = ArmHits("a", np.arange(n), 2 * ids, np.where(stratum == SAME_TEXT, 2 * ids, 2 * ids + 1), stratum)
    excess = (stored == PairLabel.WRONG).mean() - (logged == PairLabel.WRONG).mean()
    threshold = max(excess + random.choice([-1, 1]) * random.uniform(0.05, 0.15), 0.01)
    return HitPairs(pa.table({}), ids, random.random(n), [arm], {}), [(stored, logged)], 1.0 / threshold


def needed(pairs: HitPairs, right: Truth, price: float, choose: Callable[[Truth], list[int]]) -> tuple[int, bool]:
    """Judged turns until the decision, looking after each batch, and whether it is right."""
    true = [(values == PairLabel.WRONG).mean() for values in right[0]]
    turns = list[int]()
    while len(turns) < MOST:
        turns += choose(judged_turns(pairs, right, turns))
        shares = arm_shares(pairs.arms[0], *judged_turns(pairs, right, turns)[0])
        verdict = PriceDecision(HitSaving(1.0, "calls"), shares.excess).verdict(price)
        if verdict != "open":
            return len(turns), (verdict == "pays") == (price * (true[0] - true[1]) < 1.0)
    return MOST, True


def drawn(order: Iterator[int], _labels: Truth) -> list[int]:
    return list(islice(order, BATCH))


def test_the_next_turns_decide_sooner_than_random_ones() -> None:
    """In the median of 100 logs 10 turns sooner (10 to 20); no more than one in twenty decides wrongly."""
    saved, wrong = [], 0
    for seed in range(LOGS):
        pairs, right, price = planted(seed)
        order = iter(range(1000))  # the hits are planted in random order
        sooner, ok = needed(pairs, right, price, partial(next_turns, pairs, n=BATCH, decides=True))
        later, _ = needed(pairs, right, price, partial(drawn, order))
        saved.append(later - sooner)
        wrong += not ok
    low, high = np.sort(saved)[[39, 60]]  # 95 % of the median, by the order statistics of a sign test
    assert 0 < low <= np.median(saved) <= high
    assert wrong <= 0.05 * LOGS
