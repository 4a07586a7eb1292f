"""Law 2 where events are left out: those that stay get the draws that they always get."""

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.grid import I64
from skg_bench.core.world import Events
from skg_bench.engine.cohort import Setting
from skg_bench.engine.excerpt import Excerpts, events_of_user, excerpted, run_excerpts
from skg_bench.engine.logbook import Logbook
from skg_bench.engine.plan import Plan
from skg_bench.engine.vectors import Rows
from tests.laws import world

ARMS = ("skg", "always", "never", "exact", "epsilon")
DRAWN = ("tokens_in", "tokens_out", "cost_usd", "latency_ms", "answer_correct", "user_satisfaction")


@lru_cache(maxsize=1)
def place() -> tuple[Plan, Setting, Events]:
    """The dense world, and a user with many events."""
    plan = world.plan(12, ARMS)
    vectors = plan.embedder.embed(plan.simulator.messages)
    users = np.arange(12, dtype=np.int32)
    busiest = int(np.argmax(plan.simulator.count(plan.seed, users, plan.weeks)))
    events = events_of_user(plan.simulator, plan.seed, busiest, plan.weeks)
    return plan, Setting(plan.seed, excerpted(plan.simulator), lambda: Rows(vectors), plan.weeks), events


def of_row(log: Logbook, name: str, row: int) -> np.ndarray:
    """A column of one row."""
    column: np.ndarray = log.columns[name][log.start[: log.n[row]] + row]
    return column


@lru_cache(maxsize=1)
def whole() -> list[Logbook]:
    """The user's life under each arm."""
    plan, here, events = place()
    return run_excerpts(here, plan.arms, Excerpts(here, events).cohort(events), 5)


def part(kept: list[I64]) -> tuple[Events, list[Logbook]]:
    """Excerpts, and what each arm does with them."""
    plan, here, events = place()
    excerpts = Excerpts(here, events)
    some = excerpts.rows(kept)
    return some, run_excerpts(here, plan.arms, excerpts.cohort(some), 5)


def test_all_of_a_users_events_are_the_life_that_a_run_logs(tmp_path: Path) -> None:
    plan, _, events = place()
    run, user = world.carry_out(plan, tmp_path / "run", 12, 60), int(events.user[0])
    for log in whole():
        logged = run.turns(log.arm, ["skill", "answer_correct", "latency_ms", "combined", "event"], [user])
        for name, column in (("skill", "skill"), ("answer_correct", "answer_correct"), ("latency_ms", "latency_ms")):
            assert np.array_equal(of_row(log, name, 0), logged[column].to_numpy())
        assert np.array_equal(of_row(log, "combined", 0), np.array(logged["combined"].to_pylist(), np.float32))
        assert np.array_equal(logged["event"].to_numpy(), events.number[0])


def test_the_beginning_of_a_life_does_not_depend_on_its_end() -> None:
    n = int(place()[2].n[0])
    _, logs = part([np.arange(n), np.arange(n // 2), np.arange(0)])
    for log, long in zip(logs, whole(), strict=True):
        for name in log.columns:
            assert of_row(log, name, 0).tobytes() == of_row(long, name, 0).tobytes()
            assert of_row(log, name, 1).tobytes() == of_row(long, name, 0)[: n // 2].tobytes()


@settings(deadline=None, max_examples=6)
@given(seed=st.integers(0, 2**32))
def test_an_event_keeps_its_draws_whatever_else_is_left_out(seed: int) -> None:
    _, _, events = place()
    rng, n = np.random.default_rng(seed), int(events.n[0])
    kept = sorted((np.sort(rng.choice(n, size, replace=False)) for size in rng.integers(1, n, 12)), key=len)[::-1]
    some, logs = part(kept)
    compared = 0
    for log, long in zip(logs, whole(), strict=True):
        for row, turns in enumerate(kept):
            assert np.array_equal(some.number[row, : len(turns)], turns)
            both = (of_row(log, "skill", row) < 0) & (of_row(long, "skill", 0)[turns] < 0)
            compared += both.sum()
            for name in DRAWN:
                assert np.array_equal(of_row(log, name, row)[both], of_row(long, name, 0)[turns][both]), name
    assert compared > 100


def test_what_can_be_answered_is_counted_within_the_part() -> None:
    plan, here, events = place()
    rng, n = np.random.default_rng(0), int(events.n[0])
    kept = [np.sort(rng.choice(n, size, replace=False)) for size in (n - 1, n // 2, 3)]
    some = Excerpts(here, events).rows(kept)
    for row, turns in enumerate(kept):
        type_, time = events.truth.type[0, turns], events.time[0, turns]
        holds = plan.simulator.judging.ttl_of[type_]  # type: ignore[attr-defined]
        age = np.maximum(time[:, None] - time[None], 0)
        same = (type_[:, None] == type_) & (type_[:, None] >= 0) & (age < holds[:, None])
        assert np.array_equal(some.truth.answerable[row, : len(turns)], np.tril(same, -1).sum(axis=1))
    assert some.truth.answerable[0].max() > some.truth.answerable[2].max()
    assert np.array_equal(Excerpts(here, events).rows([np.arange(n)]).truth.answerable, events.truth.answerable)


@pytest.mark.parametrize("turns", [[0], [5, 6, 7]])
def test_padding_says_nothing(turns: list[int]) -> None:
    _, here, events = place()
    some = Excerpts(here, events).rows([np.arange(9), np.array(turns)])
    beyond = np.arange(9) >= len(turns)
    assert (some.time[1, beyond] == np.iinfo(np.int64).max).all()
    assert (some.truth.type[1, beyond] == -1).all()
    assert not some.truth.answerable[1, beyond].any()
