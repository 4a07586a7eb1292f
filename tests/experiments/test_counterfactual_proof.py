"""The counterfactual proof of learning: found where something is learned, and nothing where there is nothing."""

from dataclasses import fields

import numpy as np
import pandas as pd
import pytest

from experiments.counterfactual_proof import analysis, measure
from skg_bench.core.errors import UsageError
from skg_bench.simulator.advice.levels import ACCEPTED, AUTO_APPROVED, OVERRIDDEN, WAIT
from skg_bench.study.guardian import study
from skg_bench.study.guardian.drawing import Drawn, DrawRequest
from skg_bench.study.guardian.lives import Draw, Life, Lives
from skg_bench.study.guardian.replays import books_of_others

NAME, TRIGGERS = "counterfactual_proof", 44
NOTHING = (  # whatever is said is worth the same
    "simulator.kinds_apart=0", "simulator.persuades=-0.5", "simulator.generic=-0.5", "simulator.fits=0",
    "simulator.liking=0", "simulator.liking_here=0", "simulator.discerns=0", "simulator.unsound=0",
)  # fmt: skip
MUCH = (  # kinds differ, few purchases are wanted, and the seed book is a poor one
    "simulator.kinds_apart=2", "simulator.fits=1.5", "simulator.wanted_share=0.1", "simulator.generic=-2",
    "simulator.habit=0.3", "curator.rho=0.9", "curator.adds=0.9", "curator.useless=0", "policy.rating=6",
)  # fmt: skip


def lives(users: int, *overrides: str) -> tuple[study.DrawStudy, Lives]:
    """Those of one draw, with all that is replayed."""
    whole = study.study(NAME, [f"users={users}", *overrides], triggers=TRIGGERS)
    draw = whole.draw(0)
    lived = study.lives(whole, draw)
    return whole, {**lived, **measure.replayed(whole, draw, lived)}


@pytest.fixture(scope="module")
def known() -> tuple[study.DrawStudy, Lives]:
    return lives(30, *NOTHING)


@pytest.fixture(scope="module")
def nothing(known: tuple[study.DrawStudy, Lives]) -> Lives:
    return known[1]


def figures(every: Lives) -> dict[str, float]:
    """Of a draw, whose parameters do not matter."""
    return dict(measure.measure(Draw(0, {}), every))


@pytest.mark.req("P31")
def test_where_all_advice_is_worth_the_same_the_counterfactual_is_nothing_and_pairs_are_found_all_the_same(
    nothing: Lives,
) -> None:
    row = figures(nothing)
    for name in ("live", "sham_content", "sham_ratings", "sham", "donor"):
        assert row[f"proof_{name}"] == pytest.approx(0.0, abs=1e-12)
    assert row["life"] == row["step"] == pytest.approx(0.0, abs=1e-12)
    assert row["pair_live"] > 0.5  # the article's two evenings
    assert row["pair_variety"] > 0.5


@pytest.mark.req("P31")
def test_where_kinds_differ_and_common_sense_is_good_learning_is_proven_beyond_all_placebos() -> None:
    row = figures(lives(60, *MUCH)[1])
    for name in ("proof_live", "life", *(f"proof_live_less_{sham}" for sham in measure.SHAMS)):
        assert row[name] > 1.96 * row[f"{name}_error"], name
    assert analysis.beyond_shams(pd.DataFrame([row])).all()


@pytest.mark.req("P31")
def test_a_given_book_is_served_as_a_fork_with_hindsight_serves_it() -> None:
    arm = "+arms.again=[fork=live@15,curator=none,book=hindsight,mood=fresh]"
    whole, every = lives(6, arm)
    assert np.array_equal(every["book_before"].fresh, every["again"].expected, equal_nan=True)
    assert not np.array_equal(every["book_before"].fresh, every["frozen"].fresh, equal_nan=True)
    with pytest.raises(UsageError, match="arm live learns"):
        study.served(whole, whole.draw(0), "live", {})


def test_another_users_book_is_that_of_the_next_one_who_has_had_enough_triggers(nothing: Lives) -> None:
    some = nothing["live_30"]
    enough = np.flatnonzero(some.there.sum(axis=1) >= 30)
    books = books_of_others(some, 30)
    for user in range(len(some.there)):
        later = enough[enough > user]
        donor = later[0] if len(later) else enough[0]
        assert (books.hash[user] == some.books.hash[donor]).all()


# --------------------------------------------------------------------------------------------------- made up lives


def life(outcome: list[int], kind: list[int], context: list[int] | None = None) -> Life:
    """One user's."""
    columns = {"outcome": outcome, "kind": kind, "context": context or [0] * len(kind)}
    empty = {f.name: np.zeros((1, len(kind))) for f in fields(Life)}
    made = {name: np.array([column], np.int32) for name, column in columns.items()}
    return Life(**{**empty, **made, "there": np.ones((1, len(kind)), np.bool_)})  # type: ignore[arg-type]


@pytest.mark.req("P32", "P33")
def test_the_pair_is_an_override_and_then_another_strategy_in_the_same_context_that_is_none() -> None:
    evenings = life([OVERRIDDEN, WAIT], [0, 1])
    assert measure.pairs(evenings).all()
    assert not measure.pairs(evenings, reverse=True).any()
    assert not measure.pairs(life([OVERRIDDEN, WAIT], [1, 1])).any()  # the same strategy
    assert not measure.pairs(life([OVERRIDDEN, WAIT], [0, 1], [0, 1])).any()  # elsewhere
    assert not measure.pairs(life([OVERRIDDEN, AUTO_APPROVED], [0, -1])).any()  # nothing was said
    turned = life([ACCEPTED, OVERRIDDEN], [0, 1])
    assert measure.pairs(turned, reverse=True).all()
    assert not measure.pairs(turned).any()


def test_the_second_evening_comes_within_18_triggers() -> None:
    for apart, expected in ((18, True), (19, False)):
        between = [AUTO_APPROVED] * (apart - 1)
        some = life([OVERRIDDEN, *between, WAIT], [0, *[-1] * (apart - 1), 1])
        assert measure.pairs(some).tolist() == [expected]


@pytest.mark.req("P31")
def test_a_rise_is_from_the_first_third_of_a_life_to_the_last() -> None:
    some = life([OVERRIDDEN, OVERRIDDEN, WAIT, OVERRIDDEN, WAIT, ACCEPTED], [0] * 6)
    assert measure.rise(some).tolist() == [1.0]


@pytest.mark.req("P32")
def test_the_first_evening_is_generic_advice_about_electronics_late_at_night() -> None:
    context, generic = measure.evening()
    some = life(
        [OVERRIDDEN, WAIT, WAIT, OVERRIDDEN], [generic, -1, generic + 1, generic], [context] * 3 + [context + 1]
    )
    assert measure.first_evening(some) == 0.5
    assert np.isnan(measure.first_evening(life([WAIT], [generic], [context + 1])))


# ---------------------------------------------------------------------------------------------------------- report


@pytest.mark.req("P31")
def test_a_rise_deceives_where_no_gain_is_shown_and_the_pair_tells_where_all_controls_have_fewer() -> None:
    arms = ("live", "sham_content", "sham_ratings", "sham", "variety", "frozen")
    row = {f"rise_{name}": 0.0 for name in arms} | {f"rise_{name}_error": 0.01 for name in arms}
    row |= {f"proof_{name}": 0.05 for name in arms[:4]} | {f"proof_{name}_error": 0.01 for name in arms[:4]}
    row |= {f"pairs_live_less_{name}": 0.1 for name in arms[1:]} | {
        f"pairs_live_less_{n}_error": 0.02 for n in arms[1:]
    }
    table = pd.DataFrame([row, row | {"rise_variety": 0.1}, row | {"rise_live": 0.1},
                          row | {"rise_live": 0.1, "proof_live": 0.0, "pairs_live_less_sham": 0.0}])  # fmt: skip
    assert analysis.deceived(table).tolist() == [False, True, False, True]
    assert analysis.told_apart(table).tolist() == [True, True, True, False]


def test_the_report_tells_every_claim_and_what_order_changes(known: tuple[study.DrawStudy, Lives]) -> None:
    whole, every = known
    table = pd.DataFrame([{"draw": n, **whole.draw(n).values, **figures(every)} for n in range(3)])
    told = analysis.report(
        Drawn(whole, table, DrawRequest(NAME, measure.measure), whole.setup.manifest()),
        analysis.Orders(table[:1], table[:1]),
    )
    assert told.findings is not None
    assert {finding.id for finding in told.findings()} == {"P31", "P32", "P33"}
    assert "## What would have looked like proof" in told.page
    assert "## Order: the triggers of each user permuted" in told.page
    assert "median of 1 draws" in told.page
    assert "<svg" in told.figures["counterfactual_proof.svg"]
