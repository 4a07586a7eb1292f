"""The simulated LLM: frequencies, tokens and price that add up, latencies, and what a stored answer costs."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.errors import UsageError
from skg_bench.core.types import Answer
from skg_bench.llm.simulated import Simulated
from tests.core import samples

LLM = Simulated(0.9, 0.93, 400, 60, 1.3, 120.0, 0.6, 3.0, 15.0, 2000.0, 0.4, 50.0)
N = 40_000
FINE = (np.arange(N) + 0.5) / N
DRAWS = replace(
    samples.draws(np.random.default_rng(0), N), llm_right=FINE, skill_right=FINE[::-1], length=FINE, latency=FINE
)
WORDS = (np.arange(N) % 40).astype(np.int32)
NO, YES = np.zeros(N, np.bool_), np.ones(N, np.bool_)


@pytest.mark.parametrize("llm", [LLM, replace(LLM, right=0.0, right_with_skill=1.0), replace(LLM, right=1.0)], ids=repr)
def test_it_is_right_as_often_as_declared(llm: Simulated) -> None:
    assert llm.answer(WORDS, NO, DRAWS).right.mean() == pytest.approx(llm.right, abs=1 / N)
    assert llm.answer(WORDS, YES, DRAWS).right.mean() == pytest.approx(llm.right_with_skill, abs=1 / N)


@settings(deadline=None, max_examples=30)
@given(first=st.floats(0, 1), other=st.floats(0, 1))
def test_a_better_llm_is_right_wherever_a_worse_one_is(first: float, other: float) -> None:
    low, high = sorted((first, other))
    for key, with_skill in (("right", NO), ("right_with_skill", YES)):
        changes: list[dict[str, Any]] = [{key: low}, {key: high}]
        worse, better = (replace(LLM, **change).answer(WORDS, with_skill, DRAWS).right for change in changes)
        assert (better | ~worse).all()


@pytest.mark.req("K20")
def test_tokens_and_price_add_up() -> None:
    for with_skill in (NO, YES):
        made = LLM.answer(WORDS, with_skill, DRAWS)
        assert made.tokens_in.dtype == made.tokens_out.dtype == np.int32
        assert np.array_equal(made.tokens_in, 400 + np.rint(WORDS * 1.3) + 60 * with_skill)
        assert made.cost_usd == pytest.approx(made.tokens_in * 3e-6 + made.tokens_out * 15e-6)
        assert (made.tokens_out >= 1).all()
        assert np.median(made.tokens_out) == pytest.approx(120, abs=1)


def test_latencies_have_the_declared_median_and_spread() -> None:
    made = LLM.answer(WORDS, NO, DRAWS)
    assert np.median(made.latency_ms) == pytest.approx(2000, abs=1)
    log = np.log(made.latency_ms)
    assert np.quantile(log, 0.8413) - np.log(2000) == pytest.approx(0.4, abs=0.02)
    assert (np.diff(made.latency_ms) >= 0).all()
    assert (made.latency_ms > 0).all()
    even = replace(LLM, latency_spread=0.0, answer_spread=0.0).answer(WORDS, NO, DRAWS)
    assert (even.latency_ms == 2000).all()
    assert (even.tokens_out == 120).all()


@pytest.mark.req("K20")
def test_a_stored_answer_needs_no_tokens_and_takes_the_latency_of_a_hit() -> None:
    made = LLM.serve(WORDS, DRAWS)
    assert not made.tokens_in.any()
    assert not made.tokens_out.any()
    assert not made.cost_usd.any()
    assert made.latency_ms.tolist() == [50.0] * N


def test_users_do_not_know_of_one_another() -> None:
    order = np.random.default_rng(1).permutation(N)
    with_skill = WORDS % 3 == 0

    def columns(made: Answer) -> list[np.ndarray]:
        return [made.right, made.tokens_in, made.tokens_out, made.cost_usd, made.latency_ms]

    whole = columns(LLM.answer(WORDS, with_skill, DRAWS))
    mixed = columns(LLM.answer(WORDS[order], with_skill[order], samples.some_draws(DRAWS, order)))
    assert all(np.array_equal(a[order], b) for a, b in zip(whole, mixed, strict=True))


@pytest.mark.parametrize("key", list(LLM.__dataclass_fields__))
def test_bad_parameters_are_refused_by_name(key: str) -> None:
    for bad in (-0.5, float("nan")):
        change: dict[str, Any] = {key: bad}
        with pytest.raises(UsageError, match=rf"llm\.{key}={bad} must"):
            replace(LLM, **change)
    if key.startswith("right"):
        with pytest.raises(UsageError, match=r"must lie in \[0, 1\]"):
            replace(LLM, **change | {key: 1.5})
