"""The rule of the verdict, by properties and against scipy and statsmodels."""

from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from skg_bench.analysis.gate.judge import (
    GATE_ALPHA,
    GATE_POWER,
    Harm,
    _test,
    judge,
    judge_together,
    overall_state,
    trials_for,
)
from skg_bench.analysis.gate.rules import MIN_USERS, Role, Rule
from skg_bench.core.grid import F64

ORDER = ("pass", "inconclusive", "fail")


def harm(each: F64, margin: float = 0.01, trials: int = 100_000, name: str = "m", role: Role = "utility") -> Harm:
    return Harm(Rule(name, role, "lower", margin), np.arange(len(each)), each, 0, trials)


def normal(n: int, mean: float, sd: float) -> F64:
    """Values with exactly this mean and spread, and no skewness."""
    z = stats.norm.ppf((np.arange(n) + 0.5) / n)
    return np.asarray(mean + sd * z / z.std(ddof=1), np.float64)


@pytest.fixture
def unplanned() -> Iterator[None]:
    """Of thousands of verdicts it is not asked how many users would decide them, which takes most of their time."""
    with patch("skg_bench.analysis.gate.judge._users", lambda *_: None):
        yield


@st.composite
def builds(draw: st.DrawFn) -> list[Harm]:
    """Up to eight metrics of some hundred users: about normal, skewed, mostly zero, all equal."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    harms = []
    for at in range(draw(st.integers(1, 8))):
        n, margin = draw(st.integers(2, 300)), draw(st.sampled_from([0.001, 0.01, 0.03]))
        shape = draw(st.sampled_from(["normal", "skewed", "sparse", "equal"]))
        each = {
            "normal": rng.normal(0.0, 1.0, n),
            "skewed": rng.lognormal(0.0, 1.0, n) - 1.0,
            "sparse": rng.normal(0.0, 1.0, n) * (rng.random(n) < 0.1),
            "equal": np.zeros(n),
        }[shape]
        sd, mean = draw(st.sampled_from([0.1, 1.0, 10.0])), draw(st.sampled_from([-2.0, 0.0, 0.5, 1.0, 2.0, 20.0]))
        harms.append(harm(margin * (mean + sd * each), margin, draw(st.sampled_from([10, 300, 100_000])), f"m{at}"))
    return harms


@settings(max_examples=150, deadline=None)
@given(builds())
def test_a_verdict_is_what_the_rule_says_of_its_limits(harms: list[Harm]) -> None:
    judged = judge(harms)
    for judgement in judged:
        passes = judgement.upper < judgement.margin
        fails = judgement.lower > 0 and judgement.mean >= judgement.margin
        assert not (passes and fails)
        assert judgement.state in (("pass",) if passes else ("fail",) if fails else ()) + ("inconclusive",)
        if judgement.state == "inconclusive":
            assert judgement.why or not (passes or fails)
    states = [judgement.state for judgement in judged]
    assert (overall_state(judged) == "pass") == all(state == "pass" for state in states)
    assert (overall_state(judged) == "fail") == any(state == "fail" for state in states)


@settings(max_examples=100, deadline=None)
@given(builds(), st.sampled_from([0.01, 0.5, 1.0, 5.0]), st.integers(0, 7))
def test_more_harm_never_makes_a_verdict_better(harms: list[Harm], more: float, which: int) -> None:
    before = judge(harms)
    at = which % len(harms)
    worse = [
        harm(metric_harm.each + more * metric_harm.margin, metric_harm.margin, metric_harm.trials, metric_harm.metric)
        if i == at
        else metric_harm
        for i, metric_harm in enumerate(harms)
    ]
    after = judge(worse)
    assert ORDER.index(overall_state(after)) >= ORDER.index(overall_state(before))
    assert ORDER.index(after[at].state) >= ORDER.index(before[at].state)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 12))
def test_limits_are_those_of_scipy_and_statsmodels(seed: int, metrics: int) -> None:
    """Where harms are symmetric."""
    from statsmodels.stats.multitest import multipletests  # takes long, in each test process that collects this module

    rng = np.random.default_rng(seed)
    halves = [rng.normal(0.0, 0.05, 100) for _ in range(metrics)]
    means = rng.choice([0.0, 0.005, 0.03], metrics)
    harms = [
        harm(m + np.concatenate([z, -z]), name=f"m{i}") for i, (m, z) in enumerate(zip(means, halves, strict=True))
    ]
    judged = judge(harms)
    tests = [stats.ttest_1samp(metric_harm.each, 0.0, alternative="greater") for metric_harm in harms]
    with patch("gc.collect"):  # which multipletests does, and which takes longer than all else here
        rejected = multipletests([test.pvalue for test in tests], GATE_ALPHA, "holm")[0]
    for judgement, metric_harm, reject in zip(judged, harms, rejected, strict=True):
        assert not judgement.cantelli
        assert judgement.worse == reject
        assert judgement.mean == pytest.approx(metric_harm.each.mean(), abs=1e-15)
        upper = stats.ttest_1samp(metric_harm.each, 0.0, alternative="less").confidence_interval(1 - GATE_ALPHA).high
        assert judgement.upper == pytest.approx(upper, abs=1e-12)
    assert (
        min(judgement.lower for judgement in judged)
        <= min(test.confidence_interval(1 - GATE_ALPHA).low for test in tests) + 1e-12
    )


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_limits_of_skewed_harms_err_by_less_than_a_point_more_often(unplanned: None, sign: float) -> None:
    """The values are exponential, and users barely enough for that: Student's own limit errs in 7 % on one side."""
    rng, n, runs = np.random.default_rng(1), 150, 4000
    upper = lower = student = 0
    for each in rng.exponential(1.0, (runs, n)) - 1.0:
        (judgement,) = judge([harm(sign * each)])
        upper, lower = upper + (judgement.upper < 0), lower + (judgement.lower > 0)
        student += each.mean() / (each.std(ddof=1) / n**0.5) < -stats.t.ppf(0.95, n - 1)
    assert student / runs > 0.068
    assert max(upper, lower) / runs < 0.06


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(30, 300), st.floats(1e-4, 0.4))
def test_a_tail_is_the_inverse_of_a_quantile(seed: int, n: int, share: float) -> None:
    test = _test(harm(np.random.default_rng(seed).lognormal(0.0, 0.7, n)))
    assert test.tail(test.quantile(share)) == pytest.approx(share, rel=1e-6)


def test_one_metric_alone_has_a_lower_limit_of_ninety_five_percent() -> None:
    each = normal(100, 0.004, 0.01)
    (judgement,) = judge([harm(each)])
    assert judgement.lower == pytest.approx(
        stats.ttest_1samp(each, 0.0, alternative="greater").confidence_interval(0.95).low
    )


def test_clear_cases() -> None:
    def state(mean: float, sd: float, n: int = 100) -> str:
        return judge([harm(normal(n, mean, sd))])[0].state

    assert state(0.0, 0.01) == "pass"
    assert state(-0.5, 0.01) == "pass"
    assert state(0.02, 0.01) == "fail"
    assert state(0.0, 0.1) == "inconclusive"
    assert state(0.01, 0.01) == "fail"  # the margin itself is too much
    assert state(0.009, 0.01) == "inconclusive"
    assert state(0.02, 0.01, n=MIN_USERS - 1) == "inconclusive"


def test_proven_harm_below_the_margin_passes_and_is_flagged() -> None:
    (judgement,) = judge([harm(normal(100, 0.004, 0.01))])
    assert (judgement.state, judgement.worse) == ("pass", True)
    (judgement,) = judge([harm(normal(100, 0.001, 0.01))])
    assert (judgement.state, judgement.worse) == ("pass", False)


def test_equal_harm_of_all_users_is_decided_without_a_spread() -> None:
    for each, state, worse in (
        (0.0, "pass", False),
        (0.009, "pass", True),
        (0.01, "fail", True),
        (-0.2, "pass", False),
    ):
        (judgement,) = judge([harm(np.full(50, each))])
        assert (judgement.state, judgement.worse) == (state, worse)


def test_three_hundred_trials_but_one_show_a_rate_of_one_percent() -> None:
    assert trials_for(0.01) == 299
    assert (1 - 0.01) ** 299 <= 0.05 < (1 - 0.01) ** 298
    each = normal(100, 0.0, 0.001)
    (few,), (enough,) = judge([harm(each, trials=298)]), judge([harm(each, trials=299)])
    assert (few.state, enough.state) == ("inconclusive", "pass")
    assert "299" in few.why[0]
    assert few.users == 101


def test_too_few_users_are_never_judged_however_clear() -> None:
    for n in range(MIN_USERS):
        (judgement,) = judge([harm(np.full(n, 0.5))])
        assert judgement.state == "inconclusive"
        assert "too few users" in judgement.why[0]
        assert judgement.users == (MIN_USERS if n else None)
        assert judgement.alarm == 0.0


def test_a_few_changed_users_pass_if_little_and_are_inconclusive_if_much() -> None:
    little, much = np.zeros(100), np.zeros(100)
    little[:3], much[:3] = 0.01, 0.2
    (a,), (b,) = judge([harm(little)]), judge([harm(much)])
    assert a.cantelli
    assert b.cantelli
    assert (a.state, b.state) == ("pass", "inconclusive")
    assert "skewed" in b.why[-1]
    assert b.users is not None
    assert b.users > 100


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.floats(0.005, 0.2), st.integers(1, 6))
def test_with_the_users_asked_for_no_harm_passes_and_twice_the_margin_fails(seed: int, sd: float, metrics: int) -> None:
    rng = np.random.default_rng(seed)
    pilot = judge([harm(rng.normal(0.0, sd, 40), name=f"m{i}") for i in range(metrics)])
    if overall_state(pilot) != "inconclusive":
        return
    users = max(judgement.users or 0 for judgement in pilot)
    assert users > 40
    judgements = judge([harm(normal(users, 0.0, sd), name=f"m{i}") for i in range(metrics)])
    assert overall_state(judgements) == "pass"
    assert overall_state(judge([harm(normal(users, 0.02, sd), name=f"m{i}") for i in range(metrics)])) == "fail"


def test_a_harm_that_is_the_margin_less_a_hair_is_not_decided_by_any_affordable_number() -> None:
    (judgement,) = judge([harm(normal(1000, 0.0099999, 0.05))])
    assert (judgement.state, judgement.users) == ("inconclusive", None)


def test_alarms_are_as_frequent_as_said(unplanned: None) -> None:
    """A failure needs a harm of the margin by chance: its probability is that of Student's t beyond margin / se."""
    sd, n, margin = 0.05, 100, 0.01
    (judgement,) = judge([harm(normal(n, 0.0, sd), margin)])
    assert judgement.alarm == pytest.approx(stats.t.sf(margin / (sd / n**0.5), n - 1), rel=1e-9)
    rng = np.random.default_rng(0)
    failed = sum(judge([harm(rng.normal(0.0, sd, n), margin)])[0].state == "fail" for _ in range(2000))
    assert failed / 2000 == pytest.approx(judgement.alarm, abs=3 * (judgement.alarm / 2000) ** 0.5)


# ------------------------------------------------------------------------------------------------ efficiency


def traded(lost: float, errors: float, sd: float = 0.01) -> list[Harm]:
    """Right hits fall by `lost`, wrong answers rise by `errors`."""
    return [
        harm(normal(100, errors, sd), 0.005, name="errors", role="errors"),
        harm(normal(100, lost, sd), 0.005, name="hits", role="efficiency"),
    ]


def test_right_hits_pass_where_wrong_answers_are_proven_fewer() -> None:
    paid = judge(traded(0.02, -0.01))
    assert (overall_state(paid), paid[1].paid, paid[1].alarm) == ("pass", True, 0.0)
    assert overall_state(judge(traded(0.02, 0.0))) == "fail"
    assert overall_state(judge(traded(0.02, -0.001))) == "fail"  # fewer, but not proven
    (alone,) = judge([harm(normal(100, 0.02, 0.01), 0.005, role="efficiency")])
    assert alone.state == "fail"


def test_a_build_that_is_worse_has_two_ways_to_pass_of_half_the_level_each(unplanned: None) -> None:
    """Right hits fall by their margin and wrong answers stay: it passes in 5 % of cases at most."""
    rng, passed, runs = np.random.default_rng(3), 0, 2000
    for _ in range(runs):
        errors, hits = rng.normal(0.0, 0.02, 100), rng.normal(0.005, 0.02, 100)
        judged = judge([harm(errors, 1.0, role="errors"), harm(hits, 0.005, role="efficiency")])
        passed += overall_state(judged) == "pass"
    assert 0.03 < passed / runs < 0.06


def test_references_judged_together_alarm_as_rarely_as_one(unplanned: None) -> None:
    rng, runs, failed, apart = np.random.default_rng(5), 2000, 0, 0
    for _ in range(runs):
        harms = [[harm(rng.normal(0.0, 0.05, 60), 1e-4, name=f"m{i}") for i in range(5)] for _ in range(2)]
        failed += any(overall_state(judged) == "fail" for judged in judge_together(harms))
        apart += any(overall_state(judge(comparison)) == "fail" for comparison in harms)
    assert 0.03 < failed / runs < 0.06 < apart / runs


def test_the_mean_of_one_user_is_told_though_nothing_follows_from_it() -> None:
    (judgement,) = judge([harm(np.array([0.02]))])
    assert (judgement.n, judgement.mean, judgement.state) == (1, 0.02, "inconclusive")
    assert "1 have it before and after" in judgement.why[0]


@pytest.mark.parametrize(("each", "state"), [(0.01, "fail"), (0.00999, "pass")])
def test_harm_of_exactly_the_margin_to_every_user_fails(each: float, state: str) -> None:
    (judgement,) = judge([harm(np.full(300, each))])
    assert judgement.state == state


def test_a_skewed_harm_asks_for_the_users_of_cantellis_inequality() -> None:
    """With these a tail of that probability lies below the margin for any distribution (Cantelli 1929)."""
    each = np.zeros(100)
    each[:3] = 0.2
    (judgement,) = judge([harm(each)])
    sd = each.std(ddof=1) * (99 / stats.chi2.ppf(0.1, 99)) ** 0.5  # its upper 90 % limit
    wanted = (((1 - GATE_ALPHA) / GATE_ALPHA) ** 0.5 + stats.norm.ppf(GATE_POWER)) * sd / 0.01
    assert judgement.users == int(np.ceil(wanted**2))


def test_efficiency_is_held_to_half_the_level() -> None:
    each = normal(100, 0.004, 0.05)
    uppers = {role: judge([harm(each, role=role)])[0].upper for role in ("utility", "efficiency")}
    for role, level in (("utility", GATE_ALPHA), ("efficiency", GATE_ALPHA / 2)):
        assert uppers[role] == pytest.approx(0.004 + stats.t.ppf(1 - level, 99) * 0.005, rel=1e-6)
