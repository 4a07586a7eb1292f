"""Intervals hold the truth, and what a log cannot carry is withheld, on logs whose truth is known."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isnan, nan

import numpy as np
import pytest

from skg_bench.analysis.policy_value.decision_sums import (
    BLOCK_ROWS,
    DecisionSums,
    LoggedDecisions,
    PolicyChoices,
    needed_terms,
)
from skg_bench.analysis.policy_value.estimates import LOG, PolicyEstimates
from skg_bench.analysis.policy_value.estimators import ESTIMATORS, TUNING_GRID, chosen_estimators
from skg_bench.analysis.policy_value.step_values import step_values
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I64


@dataclass(frozen=True)
class Planted:
    """A log of two actions, and a policy that would do them with other chances."""

    user: I64
    propensity: F64
    reward: F64
    probability: F64
    predicted: F64
    expected: F64


REWARDS = np.array([[0.2, 0.5], [0.6, 0.3]])  # by context and action
LOGGED, ASKED, MODEL = np.array([0.3, 0.6]), np.array([0.7, 0.5]), np.array([[0.3, 0.4], [0.5, 0.4]])
TRUTH = float(np.mean((1 - ASKED) * REWARDS[:, 0] + ASKED * REWARDS[:, 1]))
LOG_TRUTH = float(np.mean((1 - LOGGED) * REWARDS[:, 0] + LOGGED * REWARDS[:, 1]))


def planted(rng: np.random.Generator, users: int, spread: float, sizes: Sequence[int] | None = None) -> Planted:
    """Users differ in how many decisions they have and, by `spread`, in what is good for them."""
    user = np.repeat(np.arange(users), rng.integers(10, 41, users) if sizes is None else sizes)
    context = rng.integers(0, 2, len(user))
    action = (rng.random(len(user)) < LOGGED[context]).astype(np.int64)
    taste = spread * rng.standard_normal((users, 3))  # for the actions, and for everything
    mean = REWARDS[context, action] + taste[user, action] + taste[user, 2]
    return Planted(
        user,
        np.where(action, LOGGED[context], 1 - LOGGED[context]),
        mean + 0.2 * rng.standard_normal(len(user)),
        np.where(action, ASKED[context], 1 - ASKED[context]),
        MODEL[context, action],
        (1 - ASKED[context]) * MODEL[context, 0] + ASKED[context] * MODEL[context, 1],
    )


def answered(
    log: Planted, names: Sequence[str] = (), *, chance: F64 | None = None, by_user: bool = True
) -> PolicyEstimates:
    """Values of the policy and of the log."""
    chosen = chosen_estimators(names, model=True)
    wanted = {LOG: [ESTIMATORS["ips"]], "new": chosen}
    sums = DecisionSums([needed_terms(each) for each in wanted.values()], rows=True)
    user = log.user if by_user else None
    decisions = LoggedDecisions(log.propensity, log.reward, chance, user, log.predicted)
    sums.add(decisions, [PolicyChoices(log.propensity), PolicyChoices(log.probability, log.expected)])
    return step_values(sums.total(), wanted, reference=LOG, users=by_user)


@pytest.mark.parametrize(("spread", "rows"), [(0.0, (0.91, 0.99)), (0.2, (0.3, 0.85))])
def test_intervals_by_user_hold_the_truth_and_those_by_row_only_where_users_are_alike(
    spread: float, rows: tuple[float, float]
) -> None:
    logs, names = 400, ("ips", "snips", "dr", "sndr")
    by_user, by_row, paired = (np.zeros((logs, len(names)), np.bool_) for _ in range(3))
    for i in range(logs):
        made = answered(planted(np.random.default_rng(i), 40, spread), names)
        for j, value in enumerate(made.values[1:]):
            assert value.row_interval is not None
            by_user[i, j] = value.interval[0] <= TRUTH <= value.interval[1]
            by_row[i, j] = value.row_interval[0] <= TRUTH <= value.row_interval[1]
            low, high = value.difference_interval
            paired[i, j] = low <= TRUTH - LOG_TRUTH <= high
    assert ((by_user.mean(axis=0) > 0.91) & (by_user.mean(axis=0) < 0.985)).all(), by_user.mean(axis=0)
    assert ((paired.mean(axis=0) > 0.91) & (paired.mean(axis=0) < 0.985)).all(), paired.mean(axis=0)
    assert ((by_row.mean(axis=0) > rows[0]) & (by_row.mean(axis=0) < rows[1])).all(), by_row.mean(axis=0)


@pytest.mark.parametrize("sizes", [[300] + [31] * 29, [900] + [31] * 29, [450] * 3 + [31] * 29, [60] * 5])
def test_intervals_hold_the_truth_where_few_users_have_most_of_the_log(sizes: list[int]) -> None:
    held = np.zeros((300, 2), np.bool_)
    for i in range(300):
        made = answered(planted(np.random.default_rng(i), len(sizes), 0.2, sizes), ("ips", "snips"))
        held[i] = [not value.interval[0] > TRUTH and not value.interval[1] < TRUTH for value in made.values[1:]]
    assert ((held.mean(axis=0) > 0.86) & (held.mean(axis=0) < 0.995)).all(), held.mean(axis=0)


def test_rewards_that_are_missing_by_a_known_chance_cost_precision_and_no_truth() -> None:
    held, dropped, width = np.zeros((300, 4), np.bool_), np.zeros(300, np.bool_), np.zeros((300, 2))
    for i in range(300):
        rng = np.random.default_rng(i)
        log = planted(rng, 40, 0.1)
        chance = np.where(log.reward > 0.4, 0.9, 0.3)  # good ones are judged more often
        judged = rng.random(len(chance)) < chance
        made = answered(changed(log, reward=np.where(judged, log.reward, nan)), chance=chance)
        held[i] = [value.interval[0] <= TRUTH <= value.interval[1] for value in made.values[1:]]
        left = answered(Planted(*(getattr(log, name)[judged] for name in Planted.__dataclass_fields__)))
        dropped[i] = left.values[2].interval[0] <= TRUTH <= left.values[2].interval[1]
        width[i] = [each.values[1].interval[1] - each.values[1].interval[0] for each in (made, answered(log))]
    assert ((held.mean(axis=0) > 0.91) & (held.mean(axis=0) < 0.985)).all(), held.mean(axis=0)
    assert dropped.mean() < 0.2  # who leaves the others out is wrong
    assert np.nanmean(width[:, 0]) > 1.05 * np.nanmean(width[:, 1])  # a few are withheld by their mean weight


@pytest.mark.parametrize(("of_good", "of_bad", "edge"), [(0.4, 0.1, "low"), (0.1, 0.4, "high"), (0.3, 0.3, "value")])
def test_bounds_by_odds_are_sharp_where_ratings_are_given_by_such_odds(
    of_good: float, of_bad: float, edge: str
) -> None:
    """Odds of .4 and of .1 are six times apart."""
    rng = np.random.default_rng(8)
    log = planted(rng, 3000, 0.0)
    good = rng.random(len(log.user)) < log.reward
    rated = rng.random(len(log.user)) < np.where(good, of_good, of_bad)
    weights = answered(replace(log, reward=np.where(rated, good, np.nan))).weights[1]
    truth = float((log.probability / log.propensity * good).mean())
    assert weights.rated is not None
    assert getattr(weights.rated, edge) == pytest.approx(truth, abs=0.01)
    assert weights.bounds is not None
    assert weights.bounds[0] < weights.rated.low < weights.rated.value < weights.rated.high < weights.bounds[1]
    assert "if the odds of being known are up to 6 times as large" in weights.withheld


def test_rewards_that_are_missing_by_an_unknown_chance_leave_bounds_alone() -> None:
    rng = np.random.default_rng(0)
    log = planted(rng, 60, 0.1)
    reward = np.where((log.reward > 0.4) & (rng.random(len(log.reward)) < 0.5), nan, log.reward)
    made = answered(changed(log, reward=reward))
    weights = made.weights[1]
    assert weights.bounds is not None
    assert weights.bounds[0] < TRUTH < weights.bounds[1]
    assert "missing, and nothing says by what chance" in weights.withheld
    assert "reward_propensity" in weights.withheld
    for value in made.values[1:]:
        assert value.verdict == "withheld"
        assert isnan(value.value) and isnan(value.interval[0]) and isnan(value.difference)  # noqa: PT018


def test_an_estimate_is_the_mean_that_its_definition_says_with_the_error_of_a_jackknife_over_users() -> None:
    log = planted(np.random.default_rng(5), 80, 0.2)
    names = ["ips", "snips", "dm", "dr", "sndr", "clipped=1.5", "clipped-dr=1.5", "switch=1.5", "dros=2", "sg-ips=0.1",
             "sg-dr=0.1"]  # fmt: skip
    made = answered(log, names)

    def naive(which: np.ndarray) -> list[float]:
        w = (log.probability / log.propensity)[which]
        r, q, v = log.reward[which], log.predicted[which], log.expected[which]
        smaller = [np.minimum(w, 1.5), np.minimum(w, 1.5), np.where(w <= 1.5, w, 0), 2 * w / (w**2 + 2)]
        harmonic = w / (0.9 + 0.1 * w)
        terms = [w * r, w / w.mean() * r, v, v + w * (r - q), v + w / w.mean() * (r - q), smaller[0] * r]
        terms += [v + shrunk * (r - q) for shrunk in smaller[1:]] + [harmonic * r, v + harmonic * (r - q)]
        return [float(term.mean()) for term in terms]

    left_out = np.array([naive(log.user != user) for user in range(80)])
    jackknife = np.sqrt(79 / 80 * ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0))
    assert [value.value for value in made.values[1:]] == pytest.approx(naive(log.user >= 0), abs=1e-12)
    errors = [(value.interval[1] - value.interval[0]) / 2 / 1.99045 for value in made.values[1:]]
    assert errors == pytest.approx(jackknife.tolist(), rel=0.03)
    assert [value.estimator for value in made.values if value.verdict == "biased"] == names[2:3] + names[5:]


def test_users_may_come_in_any_order_and_blocks_of_any_size() -> None:
    log = planted(np.random.default_rng(1), 1200, 0.2)
    assert len(log.user) > BLOCK_ROWS
    order = np.random.default_rng(2).permutation(len(log.user))
    first = {user: i for i, user in reversed(list(enumerate(dict.fromkeys(log.user[order].tolist()))))}
    shuffled = Planted(
        np.array([first[u] for u in log.user[order].tolist()]),
        *(getattr(log, name)[order] for name in ("propensity", "reward", "probability", "predicted", "expected")),
    )
    for one, other in zip(answered(log).values, answered(shuffled).values, strict=True):
        assert one.interval == pytest.approx(other.interval, abs=1e-10)
        assert one.difference_interval == pytest.approx(other.difference_interval, abs=1e-10)


def test_without_users_each_row_is_one() -> None:
    log = planted(np.random.default_rng(1), 50, 0.2)
    alone = Planted(np.arange(len(log.user)), log.propensity, log.reward, log.probability, log.predicted, log.expected)
    for one, other in zip(answered(log, by_user=False).values, answered(alone).values, strict=True):
        assert one.interval == pytest.approx(other.interval, rel=1e-3)  # of weights of a row that is a user
        assert one.interval == one.row_interval
    assert answered(log, by_user=False).users is None
    assert answered(log).users == 50


def changed(log: Planted, **columns: F64) -> Planted:
    return Planted(**{name: columns.get(name, getattr(log, name)) for name in Planted.__dataclass_fields__})


def test_what_a_log_does_not_carry_is_withheld_with_the_reason() -> None:
    log = planted(np.random.default_rng(3), 60, 0.1)
    assert answered(log).weights[1].withheld == ""
    assert {value.verdict for value in answered(log).values[1:]} <= {"higher", "lower", "inconclusive"}

    def reason(other: Planted) -> str:
        made = answered(other)
        assert {value.verdict for value in made.values[1:]} == {"withheld"}
        assert all(isnan(value.difference) and isnan(value.interval[1]) for value in made.values[1:])
        assert made.weights[0].withheld == ""
        return made.weights[1].withheld

    wrong = np.clip(log.propensity * 1.3, 0, 1)
    assert "from 1: it does what the log never did, or propensities are too large" in reason(
        changed(log, propensity=wrong)
    )
    assert "from 1: propensities are too small" in reason(changed(log, propensity=log.propensity * 0.8))
    assert "it never does what the log did" in reason(changed(log, probability=np.zeros(len(log.user))))
    rare = Planted(
        np.arange(400) // 10,
        np.where(np.arange(400) % 8 == 0, 0.125, 0.875),
        np.arange(400) % 3 / 2,
        np.where(np.arange(400) % 8 == 0, 1.0, 0.0),
        np.full(400, 0.5),
        np.full(400, 0.5),
    )
    assert "for it the log is worth 50 rows (effective sample size), and 100 are needed" in reason(rare)
    heavy = np.where(np.arange(2000) == 7, 1 / 201, 0.5)
    one = Planted(
        np.arange(2000) // 20,
        heavy,
        np.arange(2000) % 3 / 2,
        np.where(np.arange(2000) == 7, 1.0, 0.475),
        np.full(2000, 0.5),
        np.full(2000, 0.5),
    )
    assert "one row has 9.6 % of its weight, 201" in reason(one)


def test_eight_rows_of_which_a_log_without_chance_says_nothing_make_no_verdict() -> None:
    n = 20_000
    other = np.arange(n) % 2_500 == 7
    log = Planted(np.arange(n) // 20, np.ones(n), np.where(other, 1.0, np.arange(n) % 2), np.where(other, 0.0, 1.0),
                  np.full(n, 0.5), np.full(n, 0.5))  # fmt: skip
    made = answered(log)
    assert abs(made.weights[1].mean - 1.0) < 3 * made.weights[1].error  # so this alone would let it pass
    assert "in 8 of 20,000 rows it would do something else, and the log took no chance" in made.weights[1].withheld
    assert {value.verdict for value in made.values[1:]} == {"withheld"}
    assert answered(changed(log, probability=np.ones(n))).weights[1].withheld == ""


def test_a_withheld_reference_withholds_the_differences_to_it_and_no_value() -> None:
    log = planted(np.random.default_rng(3), 60, 0.1)
    wanted = {"new": [ESTIMATORS["ips"]], "none": [ESTIMATORS["ips"]]}
    sums = DecisionSums([needed_terms(each) for each in wanted.values()], rows=False)
    decisions = LoggedDecisions(log.propensity, log.reward, user=log.user)
    sums.add(decisions, [PolicyChoices(log.probability), PolicyChoices(0.5 * log.probability)])
    new, none = step_values(sums.total(), wanted, reference="none", users=True).values
    assert (new.verdict, none.verdict) == ("withheld", "reference")
    assert not isnan(new.interval[0])
    assert isnan(new.difference)
    assert isnan(none.interval[0])


def test_a_policy_that_is_the_log_differs_by_nothing() -> None:
    log = planted(np.random.default_rng(3), 60, 0.1)
    made = answered(changed(log, probability=log.propensity * (1 + 3e-8)), ["ips", "snips"])
    assert [value.verdict for value in made.values] == ["reference", "inconclusive", "inconclusive"]


def test_users_who_are_all_alike_say_nothing_of_others() -> None:
    i, half = np.tile(np.arange(400), 2), np.full(800, 0.5)  # one user, who stands there twice
    log = Planted(np.repeat([0, 1], 400), half, np.where(i % 4, 0.0, 1.0), np.where(i % 2, 0.0, 1.0), half, half)
    new = answered(log).values[1]
    assert new.difference == pytest.approx(0.25)
    assert new.verdict == "inconclusive"
    assert isnan(new.difference_interval[0])


def test_a_log_of_one_user_and_rewards_that_do_not_differ_are_refused() -> None:
    log = planted(np.random.default_rng(3), 60, 0.1)
    with pytest.raises(UsageError, match="one user; an interval for other users needs two"):
        answered(changed(log, user=np.zeros(len(log.user), np.int64)))
    with pytest.raises(UsageError, match=r"every reward is 0\.5: .* map a column of rewards that differ"):
        answered(changed(log, reward=np.full(len(log.user), 0.5)))
    with pytest.raises(UsageError, match="no reward is there"):
        answered(changed(log, reward=np.full(len(log.user), nan)))


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("isp", "did you mean 'ips'"), ("ips=3", "ips has no size"), ("clipped", "clipped needs a size, 0 or more"),
        ("clipped=-1", "clipped needs a size"), ("switch=big", "slope or mse, such as switch=10"),
        ("sg-ips=1", "from 0 to below 1, such as sg-ips=0.05"), ("sg-dr=slope", "from 0 to below 1"),
        ("dros=nan", "dros needs a size"),
    ],
)  # fmt: skip
def test_an_estimator_that_is_none_is_refused(word: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        chosen_estimators([word], model=True)


def test_an_estimator_that_needs_a_model_is_refused_without_one() -> None:
    with pytest.raises(UsageError, match="--estimator dros=10 needs a model of the reward"):
        chosen_estimators(["ips", "dros=10"], model=False)
    assert [each.title for each in chosen_estimators([], model=False)] == ["ips", "snips"]
    assert [each.title for each in chosen_estimators([], model=True)] == ["ips", "snips", "dr", "sndr"]
    assert chosen_estimators(["switch=inf"], model=True)[0].size == inf == TUNING_GRID[-1]


def test_a_difference_that_few_rows_carry_is_withheld_however_long_the_log_is() -> None:
    """Both actions are as good; without the guard a fifth of such logs call the policy lower than the log."""
    n, rare, reasons = 4000, 0.05, list[str]()
    coin = np.arange(n) < 40
    for i in range(20):
        rng = np.random.default_rng(i)
        taken = coin & (rng.random(n) < rare)
        log = Planted(
            rng.permutation(np.arange(n) % 40), np.where(coin, np.where(taken, rare, 1 - rare), 1.0),
            (rng.random(n) < 0.5).astype(float), np.where(coin, taken, 1.0), np.zeros(n), np.zeros(n),
        )  # fmt: skip
        made = answered(log, ("ips", "snips"))
        assert {each.verdict for each in made.values[1:]} == {"withheld"}
        reasons.append(made.weights[1].withheld)
    assert sum("its difference hangs on few rows" in reason for reason in reasons) > 10


def test_two_policies_that_differ_in_few_rows_get_no_verdict_and_each_has_one_against_the_log() -> None:
    rng = np.random.default_rng(3)
    n = 4000
    taken = rng.integers(0, 2, n).astype(float)
    second = np.where(np.arange(n) < 30, 1 - taken, taken)
    wanted = {name: [ESTIMATORS["ips"]] for name in (LOG, "first", "second")}
    propensity, user = np.full(n, 0.5), rng.permutation(np.arange(n) % 40)
    withheld = {}
    for reference in (LOG, "first"):
        terms = [needed_terms(each) for each in wanted.values()]
        sums = DecisionSums(terms, rows=False, reference=list(wanted).index(reference))
        decisions = LoggedDecisions(propensity, (rng.random(n) < 0.5).astype(float), user=user)
        sums.add(decisions, [PolicyChoices(share) for share in (propensity, taken, second)])
        made = step_values(sums.total(), wanted, reference=reference, users=True)
        withheld[reference] = [value.verdict == "withheld" for value in made.values]
    assert withheld == {LOG: [False, False, False], "first": [False, False, True]}


def test_a_model_that_saw_the_rewards_of_the_log_gets_no_verdict() -> None:
    log = planted(np.random.default_rng(5), 200, 0.0)
    honest = answered(log, ["ips", "dr"])
    assert not honest.weights[1].withheld
    copied = answered(replace(log, predicted=log.reward, expected=np.ones_like(log.reward)), ["ips", "dr"])
    assert "fitted on the same rows" in copied.weights[1].withheld
    assert {value.verdict for value in copied.values} == {"reference", "withheld"}


def test_honest_models_are_doubted_in_hardly_any_log() -> None:
    rng = np.random.default_rng(6)
    logs = [planted(rng, users, 0.3) for users in (20, 60) for _ in range(150)]
    assert not any("same rows" in weights.withheld for log in logs for weights in answered(log, ["dr"]).weights)
