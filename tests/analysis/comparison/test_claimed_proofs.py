"""The article's three proofs, on lives that are known to the last purchase."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skg_bench.analysis.comparison.claimed_proofs import Trio, claimed_proofs, trios
from skg_bench.runfolder.run import Run
from tests.analysis.advised import Purchase, make_advice_run

Components = Mapping[str, Mapping[str, Any]]
NONE: Mapping[str, Any] = {"curator": {"_target_": "skg_bench.curator.none.NoLearning"}}
SHAM: Mapping[str, Any] = {"curator": {"_target_": "skg_bench.curator.sham.Sham"}}
CONTROLS: Components = {
    "live": {"seeds": "rookie"},
    "frozen": {**NONE, "seeds": "rookie"},
    "sham": {**SHAM, "seeds": "rookie"},
}
SILENT = Purchase("auto_approved", "analyst", worths=(0.0, 0.0, 0.0, 0.0, 0.0))


def interaction(*, listens: bool, worth: float = 0.0, **more: Any) -> Purchase:
    return Purchase("wait" if listens else "overridden", worths=(0.0, 0.0, 0.0, 0.0, worth), **more)


def life(listened: str, worth: float = 0.0) -> list[Purchase]:
    """1: the user listens, 0: overrides, -: nothing is said; a skill is learned at the sixth trigger."""
    return [
        SILENT if sign == "-" else interaction(listens=sign == "1", worth=worth, day=n / 4, learned=n == 5)
        for n, sign in enumerate(listened)
    ]


def made(path: Path, arms: Mapping[str, Sequence[Sequence[Purchase]]], components: Components = CONTROLS) -> Run:
    return make_advice_run(path, arms, components=components, reference="frozen")


RISES = "--10000" + "-" + "11000" + "11110" + "11111"
STAYS = "--10000" + "-" + "10000" + "10000" + "10000"


@pytest.mark.req("P31", "P46", "P47")
def test_looks_count_the_first_the_next_and_the_last_five_interventions_of_every_user(tmp_path: Path) -> None:
    lives = {"live": [life(RISES), life(STAYS)], "frozen": [life(STAYS)] * 2, "sham": [life(STAYS)] * 2}
    proofs = claimed_proofs(made(tmp_path / "run", lives))
    assert proofs is not None
    assert proofs.users == 2
    arc = proofs.arcs["live"]
    assert [look.mean for look in arc.looks] == pytest.approx([0.2, 0.3, 0.6])
    assert arc.rise.mean == pytest.approx(0.4)
    assert arc.climbs == 0.5  # one of two users
    assert (arc.skills, proofs.arcs["live"].looks[0].df) == ((2.0, 2.0), 1.0)
    assert proofs.positions == [5, 10, 20]
    assert arc.acceptance.mean.tolist() == pytest.approx([0.2, 0.3, 0.55])
    assert proofs.arcs["frozen"].climbs == 0


@pytest.mark.req("P31")
def test_utility_of_the_same_interventions_stands_beside_acceptance(tmp_path: Path) -> None:
    paid = [*life(RISES)[:-5], *(interaction(listens=True, worth=-0.5, day=9 + n / 9) for n in range(5))]
    lives = {"live": [paid] * 2, "frozen": [life(STAYS, 0.25)] * 2, "sham": [life(STAYS)] * 2}
    proofs = claimed_proofs(made(tmp_path / "run", lives))
    assert proofs is not None
    cost = 10.0 * 0.001 + 0.02 * 1.0  # usd and seconds of an intervention
    assert [test.mean for test in proofs.arcs["live"].worth] == pytest.approx([-cost, -cost, -0.5 - cost])
    assert proofs.arcs["live"].gain.mean == pytest.approx(-0.5)
    assert proofs.beyond["live", "frozen"].mean == pytest.approx(-0.5 * 5 / 20 - 0.25)
    assert proofs.beyond["live", "sham"].mean == pytest.approx(-0.5 * 5 / 20)


def pair_of(tmp_path: Path, first: Purchase, second: Purchase, turns: tuple[int, int]) -> tuple[float, float]:
    """Shares of users with a pair, and with one the other way round, who have these two purchases at these turns; all
    else is of other contexts.
    """
    lived = [interaction(listens=True, context=f"other {n}", day=n / 4) for n in range(40)]
    lived[turns[0]], lived[turns[1]] = first, second
    proofs = claimed_proofs(made(tmp_path / "run", {arm: [lived] * 2 for arm in CONTROLS}))
    assert proofs is not None
    pair = proofs.pairs["live"]
    return pair.share.mean, pair.reverse.mean


OVERRIDE = Purchase("overridden", context="shoes", learned=True)
LISTEN = Purchase("accepted", context="shoes", strategy="time_cost", day=5.0)


@pytest.mark.req("P32", "P33")
@pytest.mark.parametrize(
    ("first", "second", "turns", "expected"),
    [
        (OVERRIDE, LISTEN, (0, 1), (1.0, 0.0)),
        (OVERRIDE, LISTEN, (0, 17), (1.0, 0.0)),
        (OVERRIDE, LISTEN, (0, 18), (0.0, 0.0)),  # not among the first eighteen
        (OVERRIDE, LISTEN, (9, 17), (1.0, 0.0)),
        (OVERRIDE, LISTEN, (9, 18), (0.0, 0.0)),
        (OVERRIDE, Purchase("accepted", context="coffee", strategy="time_cost"), (0, 1), (0.0, 0.0)),
        (OVERRIDE, Purchase("accepted", context="shoes"), (0, 1), (0.0, 0.0)),  # the generic question again
        (OVERRIDE, Purchase("overridden", context="shoes", strategy="time_cost"), (0, 1), (0.0, 0.0)),
        (OVERRIDE, Purchase("auto_approved", "analyst", context="shoes"), (0, 1), (0.0, 0.0)),
        (
            Purchase("wait", context="shoes", learned=True),
            Purchase("overridden", context="shoes", strategy="time_cost"),
            (0, 1),
            (0.0, 1.0),
        ),
    ],
)
def test_a_pair_is_an_override_and_then_in_the_same_context_another_strategy_and_no_override(
    tmp_path: Path, first: Purchase, second: Purchase, turns: tuple[int, int], expected: tuple[float, float]
) -> None:
    assert pair_of(tmp_path, first, second, turns) == expected


@pytest.mark.req("P44")
def test_two_seeds_are_two_arms_that_differ_in_their_first_book_alone(tmp_path: Path) -> None:
    components = {
        **CONTROLS, "expert": {**NONE, "seeds": "pro"}, "taught": {"seeds": "pro"},
        "other": {**NONE, "seeds": "pro", "policy": {"_target_": "skg_bench.policy.always.Always"}},
    }  # fmt: skip
    high, low = life("1" * 20, 0.5), life(STAYS)
    lives = {"live": low, "frozen": low, "sham": low, "expert": high, "taught": low, "other": low}
    proofs = claimed_proofs(made(tmp_path / "run", {arm: [one, one] for arm, one in lives.items()}, components))
    assert proofs is not None
    assert [(c.arm, c.reference, c.seeds, c.learns) for c in proofs.seeds] == [
        ("expert", "frozen", ("pro", "rookie"), False), ("taught", "live", ("pro", "rookie"), True),
    ]  # fmt: skip
    mine, theirs, difference = proofs.seeds[0].acceptance
    assert (mine.mean, theirs.mean, difference.mean) == pytest.approx((1.0, 0.2, 0.8))


@pytest.mark.parametrize(
    ("components", "expected"),
    [
        (CONTROLS, [Trio("live", "frozen", "sham")]),
        ({**CONTROLS, "live": {"seeds": "rookie", "signs": {"merge": "sum"}}}, [Trio("live", "frozen", "sham")]),
        ({**CONTROLS, "sham": {}}, []),  # other seeds
        ({**CONTROLS, "frozen": {"seeds": "rookie"}}, []),  # two arms that learn
        ({**CONTROLS, "live": {"seeds": "rookie", "router": {"_target_": "skg_bench.router.oracle.RightSkill"}}}, []),
    ],
)
def test_arms_are_told_by_their_curators_and_are_else_the_same(
    tmp_path: Path, components: Components, expected: Sequence[Trio]
) -> None:
    run = made(tmp_path / "run", {arm: [life(STAYS)] * 2 for arm in CONTROLS}, components)
    assert trios(run) == expected
    assert (claimed_proofs(run) is not None) == bool(expected)


def test_users_with_too_few_interventions_are_not_looked_at(tmp_path: Path) -> None:
    few, many = life("1" * 14), life("1" * 15)
    one = made(tmp_path / "one", {arm: [many, few] for arm in CONTROLS})
    assert claimed_proofs(one) is None
    two = claimed_proofs(made(tmp_path / "two", {arm: [many, few, many] for arm in CONTROLS}))
    assert two is not None
    assert two.users == 2


@pytest.mark.req("P31")
def test_arms_that_do_the_same_differ_by_nothing(tmp_path: Path) -> None:
    proofs = claimed_proofs(made(tmp_path / "run", {arm: [life(RISES), life(STAYS)] for arm in CONTROLS}))
    assert proofs is not None
    for test in (*proofs.beyond.values(), *proofs.found.values()):
        assert (test.mean, test.se) == (0.0, 0.0)
    live, sham = (proofs.arcs[arm] for arm in ("live", "sham"))
    assert np.array_equal(live.acceptance.low, sham.acceptance.low)
    assert live.looks == sham.looks
