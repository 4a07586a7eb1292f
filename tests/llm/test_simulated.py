"""The simulated LLM: what it is able to, tokens and price that add up, and latencies."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import Bool
from skg_bench.core.types import Completions, Prompts
from skg_bench.llm.simulated import Simulated

LLM = Simulated(0.9, 0.93, 0.3, 400, 60, 1.3, 120.0, 0.6, 3.0, 15.0, 2000.0, 0.4)
N = 40_000
FINE = (np.arange(N) + 0.5) / N
WORDS = (np.arange(N) % 40).astype(np.int32)
NO, YES = np.zeros(N, np.bool_), np.ones(N, np.bool_)


def prompts(with_skill: Bool) -> Prompts:
    return Prompts(WORDS, with_skill, FINE, FINE)


@pytest.mark.parametrize("llm", [LLM, replace(LLM, right=0.0, right_with_skill=1.0), replace(LLM, right=1.0)], ids=repr)
def test_its_ability_is_as_declared_without_a_skill_with_one_and_with_another(llm: Simulated) -> None:
    """That answers are right as often is the world's: tests/simulator/answers/test_judging.py."""
    with_skill = WORDS % 3 == 0
    for fitting, able in ((True, llm.right_with_skill), (False, llm.right * (1 - llm.misled))):
        assert np.array_equal(llm.ability(with_skill, fitting=fitting), np.where(with_skill, able, llm.right))


@pytest.mark.req("K20")
def test_tokens_and_price_add_up() -> None:
    for with_skill in (NO, YES):
        made = LLM.complete(prompts(with_skill))
        assert made.tokens_in.dtype == made.tokens_out.dtype == np.int32
        assert np.array_equal(made.tokens_in, 400 + np.rint(WORDS * 1.3) + 60 * with_skill)
        assert made.cost_usd == pytest.approx(made.tokens_in * 3e-6 + made.tokens_out * 15e-6)
        assert (made.tokens_out >= 1).all()
        assert np.median(made.tokens_out) == pytest.approx(120, abs=1)


def test_latencies_have_the_declared_median_and_spread() -> None:
    made = LLM.complete(prompts(NO))
    assert np.median(made.latency_ms) == pytest.approx(2000, abs=1)
    log = np.log(made.latency_ms)
    assert np.quantile(log, 0.8413) - np.log(2000) == pytest.approx(0.4, abs=0.02)
    assert (np.diff(made.latency_ms) >= 0).all()
    assert (made.latency_ms > 0).all()
    even = replace(LLM, latency_spread=0.0, answer_spread=0.0).complete(prompts(NO))
    assert (even.latency_ms == 2000).all()
    assert (even.tokens_out == 120).all()


def test_users_do_not_know_of_one_another() -> None:
    order = np.random.default_rng(1).permutation(N)
    with_skill = WORDS % 3 == 0

    def columns(made: Completions) -> list[np.ndarray]:
        return [made.tokens_in, made.tokens_out, made.cost_usd, made.latency_ms]

    whole = columns(LLM.complete(Prompts(WORDS, with_skill, FINE, FINE[::-1])))
    mixed = columns(LLM.complete(Prompts(WORDS[order], with_skill[order], FINE[order], FINE[::-1][order])))
    assert all(np.array_equal(a[order], b) for a, b in zip(whole, mixed, strict=True))


@pytest.mark.parametrize("key", [field.name for field in fields(LLM)])
def test_bad_parameters_are_refused_by_name(key: str) -> None:
    for bad in (-0.5, float("nan")):
        change: dict[str, Any] = {key: bad}
        with pytest.raises(UsageError, match=rf"llm\.{key}={bad} must"):
            replace(LLM, **change)
    if key.startswith("right"):
        with pytest.raises(UsageError, match=r"must lie in \[0, 1\]"):
            replace(LLM, **change | {key: 1.5})
