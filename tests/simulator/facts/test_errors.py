"""Errors that persist: as many as before, at the same requests and words."""

from dataclasses import fields

import numpy as np
import pytest

from skg_bench.core.draws import Purpose, draw, key
from skg_bench.core.world import Draws
from skg_bench.engine.scene import draws_of
from skg_bench.simulator.facts.errors import Persistence

N, TYPES, REPEATS = 60, 200, 12


def errors(persistence: Persistence, *, corrected: bool = False) -> np.ndarray:
    """Does the model err with ability 0.9? `[repeats, types, users]`, each time in other words."""
    keys, model = key(1, np.arange(N)), np.repeat(key(1, np.array([10**6])), N)
    every = np.ones(N, np.bool_)
    out = np.zeros((REPEATS, TYPES, N), np.bool_)
    for repeat in range(REPEATS):
        for type_ in range(TYPES):
            draws = draws_of(keys, np.full(N, repeat * TYPES + type_, np.int32))
            text = np.full(N, repeat * TYPES + type_, np.int32)
            types = np.full(N, type_, np.int32)
            luck = persistence.luck(draws, model, types, text, lasts=every, corrected=every & corrected)
            out[repeat, type_] = luck.llm_right >= 0.9
    return out


def again(wrong: np.ndarray) -> float:
    """P(wrong | wrong last time) - P(wrong | right last time)."""
    before, now = wrong[:-1], wrong[1:]
    return float(now[before].mean() - now[~before].mean())


def test_without_shares_draws_stay_as_they_are() -> None:
    draws = draws_of(key(1, np.arange(N)), np.arange(N, dtype=np.int32))
    none, zeros = np.zeros(N, np.bool_), np.zeros(N, np.int32)
    luck = Persistence(0, 0, 0).luck(draws, key(1, np.arange(N)), zeros, zeros, lasts=~none, corrected=none)
    assert all(np.array_equal(getattr(luck, f.name), getattr(draws, f.name)) for f in fields(Draws))


@pytest.mark.parametrize(("share", "least", "most"), [(0.0, -0.02, 0.02), (0.5, 0.15, 0.4), (1.0, 0.99, 1.0)])
def test_who_erred_at_a_request_errs_there_again(share: float, least: float, most: float) -> None:
    wrong = errors(Persistence(share, 0, 0))
    assert abs(wrong.mean() - 0.1) < 0.05
    assert least <= again(wrong) <= most


def test_errors_of_a_wording_are_not_those_of_another_wording() -> None:
    wrong = errors(Persistence(0, 1, 0))
    assert abs(wrong.mean() - 0.1) < 0.02
    assert (wrong == wrong[:, :, :1]).all()  # the same for all users
    assert abs(again(wrong)) < 0.06


def test_a_correction_in_the_prompt_repairs_by_its_share() -> None:
    assert abs(again(errors(Persistence(1, 0, 1), corrected=True))) < 0.02
    assert 0 < again(errors(Persistence(1, 0, 0.5), corrected=True)) < again(errors(Persistence(1, 0, 0)))


def test_the_three_draws_are_independent() -> None:
    keys = key(1, np.arange(20_000))
    u = np.stack([draw(keys, 3, p) for p in (Purpose.PERSISTS, Purpose.REPAIRED, Purpose.LLM_RIGHT)])
    assert np.abs(np.corrcoef(u) - np.eye(3)).max() < 0.03
