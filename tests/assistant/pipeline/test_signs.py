"""Which feedback of advice counts as which rating, and who learns from it."""

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skg_bench
from skg_bench.app.building import build
from skg_bench.app.compose import composer
from skg_bench.app.overrides import parse
from skg_bench.app.skillbook import rebuilt
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.assistant.pipeline.signs import HeardOutcomes, Loop, SignMerge, Signs
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import (
    AFTERWARDS,
    AGREES,
    RATING,
    RETRACTED,
    KnownFeedback,
)
from skg_bench.core.types import RATINGS
from skg_bench.policy.always import Always
from skg_bench.simulator.advice.levels import OUTCOME, OUTCOMES, SATISFACTION, SATISFACTIONS
from skg_bench.simulator.advice.outcome import advice
from skg_bench.skillbook.skillbook import rebuild
from tests.arms import changed
from tests.assistant.pipeline.advice import NOTHING_SAID, Advising, Play, rows
from tests.assistant.pipeline.test_stack import ARM

ACCEPTED, OVERRIDDEN, WAIT = (OUTCOMES.index(name) for name in ("accepted", "overridden", "wait"))
WORTH_IT, REGRET_IT, NOT_SURE = range(3)
OK, PARTIAL, MISS = range(3)
DOMAIN = advice(["delay"])
BOTH: tuple[Loop, ...] = ("immediate", "retrospective")


def signs(option: str = "pause", **changes: Any) -> Signs:
    """Those of a yaml, with changes."""
    return replace(_of_yaml(option), **changes)


@cache
def _of_yaml(option: str) -> Signs:
    made: Signs = build("signs", composer().root(parse([f"signs={option}"]))["signs"], COMMAND_LINE)
    return made


def known(*said: tuple[int, int, int, int, int]) -> KnownFeedback:
    """Rows: user, turn, kind, value, skill."""
    return KnownFeedback(*(np.array(column, np.int32) for column in zip(*said, strict=True)))


def told(feedback: KnownFeedback) -> list[tuple[str, str]]:
    """Kinds and values in words."""
    levels = DOMAIN.feedback()
    kinds = [list(levels)[kind] for kind in feedback.kind.tolist()]
    return [(kind, levels[kind][value]) for kind, value in zip(kinds, feedback.value.tolist(), strict=True)]


def after(outcome: str, satisfaction: str | None, made: Signs, skill: int = 4) -> list[tuple[str, str]]:
    """What one user's components hear, over two turns, of a turn that ended so and of what was said of it later."""
    heard = HeardOutcomes(1)
    rated, _ = made.rate(known((0, 0, OUTCOME, OUTCOMES.index(outcome), skill)), heard, DOMAIN)
    if satisfaction is None:
        return told(rated)
    later, _ = made.rate(known((0, 0, SATISFACTION, SATISFACTIONS.index(satisfaction), skill)), heard, DOMAIN)
    return [*told(rated), *told(later)]


# ------------------------------------------------------------------------------------------------------ signs

TABLE = {  # of Pause: what the user did, and what was said later
    "accepted": ("ok", "ok", "miss"),
    "wait": ("ok", "ok", "miss"),
    "wizard_bookmark": ("ok", "partial", "partial"),
    "overridden": ("miss", "miss", "ok"),
    **dict.fromkeys(("abandoned", "auto_approved", "break_glass", "timeout", "wizard_abandoned"), ("partial",) * 3),
}


@pytest.mark.req("P07", "P09", "P22", "P30")
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_pause_rates_what_users_do_and_what_they_say_later(outcome: str) -> None:
    at_once, *later = TABLE[outcome]
    for satisfaction, rating in zip(SATISFACTIONS, [*later, "partial"], strict=True):
        assert after(outcome, satisfaction, signs()) == [
            ("outcome", outcome), ("rating", at_once), ("satisfaction", satisfaction), ("rating", rating),
        ]  # fmt: skip


def test_neutral_differs_from_pause_in_one_place_and_wrong_turns_all_of_it_round() -> None:
    pause, neutral, wrong = (signs(option) for option in ("pause", "neutral", "wrong"))
    turned = {"ok": "miss", "partial": "partial", "miss": "ok"}
    differs = []
    for outcome in OUTCOMES:
        for satisfaction in SATISFACTIONS:
            usual = after(outcome, satisfaction, pause)
            if after(outcome, satisfaction, neutral) != usual:
                differs.append((outcome, satisfaction, after(outcome, satisfaction, neutral)[-1][1]))
            mirrored = [(kind, turned[value] if kind == "rating" else value) for kind, value in usual]
            assert after(outcome, satisfaction, wrong) == mirrored
    assert differs == [("overridden", "regret_it", "partial")]


@pytest.mark.parametrize(
    ("merge", "heard"),
    [
        ("sum", [("rating", "ok")]),
        ("replace", [("retracted", "miss"), ("rating", "ok")]),
        ("separate", [("afterwards", "ok")]),
    ],
)
def test_a_later_sign_is_one_more_rating_or_replaces_the_earlier_one_or_is_kept_apart(
    merge: SignMerge, heard: list[tuple[str, str]]
) -> None:
    before = [("outcome", "overridden"), ("rating", "miss"), ("satisfaction", "regret_it")]
    assert after("overridden", "regret_it", signs(merge=merge)) == [*before, *heard]


def test_loops_that_are_left_out_rate_nothing_and_nothing_is_taken_back_that_was_not_given() -> None:
    both = [("outcome", "overridden"), ("satisfaction", "regret_it")]
    at_once = signs(loops=("immediate",), merge="replace")
    assert after("overridden", "regret_it", at_once) == [both[0], ("rating", "miss"), both[1]]
    later = signs(loops=("retrospective",), merge="replace")
    assert after("overridden", "regret_it", later) == [*both, ("rating", "ok")]


def test_where_no_skill_served_nothing_is_rated_and_nothing_taken_back() -> None:
    for merge in ("sum", "replace", "separate"):
        assert after("overridden", "regret_it", signs(merge=merge), skill=-1) == [
            ("outcome", "overridden"), ("satisfaction", "regret_it"),
        ]  # fmt: skip


def test_what_is_said_before_the_outcome_is_known_is_partial_and_takes_nothing_back() -> None:
    early, heard = known((0, 0, SATISFACTION, REGRET_IT, 4)), HeardOutcomes(1)
    made = signs(merge="replace")
    assert told(made.rate(early, heard, DOMAIN)[0]) == [("satisfaction", "regret_it"), ("rating", "partial")]
    assert told(made.rate(known((0, 0, OUTCOME, WAIT, 4)), heard, DOMAIN)[0]) == [("outcome", "wait"), ("rating", "ok")]


def test_an_outcome_that_becomes_known_along_with_what_is_said_of_it_counts() -> None:
    both = known((0, 3, OUTCOME, OVERRIDDEN, 4), (0, 3, SATISFACTION, WORTH_IT, 4))
    rated, _ = signs(merge="replace").rate(both, HeardOutcomes(1), DOMAIN)
    assert told(rated) == [
        ("outcome", "overridden"), ("rating", "miss"), ("satisfaction", "worth_it"), ("retracted", "miss"),
        ("rating", "miss"),
    ]  # fmt: skip


# --------------------------------------------------------------------------------------------------- as rows


@st.composite
def feedback(draw: st.DrawFn) -> KnownFeedback:
    """Of five users, in order of their turns, of any kind that a world gives."""
    keys = draw(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 70), st.sampled_from([RATING, AGREES, OUTCOME,
                SATISFACTION])), unique=True, max_size=30))  # fmt: skip
    skills = draw(st.lists(st.integers(-1, 3), min_size=71, max_size=71))
    values = [draw(st.integers(0, len(list(DOMAIN.feedback().values())[kind]) - 1)) for *_, kind in keys]
    said = [(*key, value, skills[key[1]]) for key, value in sorted(zip(keys, values, strict=True))]
    return known(*said) if said else KnownFeedback(*np.zeros((5, 0), np.int32))


@settings(deadline=None)
@given(feedback(), st.sampled_from(["sum", "replace", "separate"]), st.sampled_from([BOTH, BOTH[:1], BOTH[1:]]))
def test_rows_that_were_given_stay_in_order_with_what_is_made_of_each_right_behind_it(
    raw: KnownFeedback, merge: SignMerge, loops: tuple[Loop, ...]
) -> None:
    rated, place = signs(merge=merge, loops=loops).rate(raw, HeardOutcomes(5), DOMAIN)
    assert (np.diff(place) >= 0).all()
    first = np.flatnonzero(np.diff(place, prepend=-1))
    for f in fields(KnownFeedback):
        assert getattr(rated, f.name).dtype == np.int32
        assert np.array_equal(getattr(rated, f.name)[first], getattr(raw, f.name)), f.name
        if f.name in ("row", "turn", "skill"):
            assert np.array_equal(getattr(rated, f.name), getattr(raw, f.name)[place])
    added = np.setdiff1d(np.arange(len(place)), first)
    assert (rated.skill[added] >= 0).all()
    made = {OUTCOME: {RATING}, SATISFACTION: {RATING} if merge == "sum" else {AFTERWARDS} if merge == "separate" else
            {RATING, RETRACTED}}  # fmt: skip
    for at in added.tolist():
        assert rated.kind[at] in made[raw.kind[place[at]]]


@settings(deadline=None)
@given(feedback())
def test_feedback_of_worlds_without_advice_is_handed_on_as_it_is(raw: KnownFeedback) -> None:
    plain = raw.rows((raw.kind == RATING) | (raw.kind == AGREES))
    rated, place = signs().rate(plain, HeardOutcomes(5), DOMAIN)
    assert rated is plain
    assert place.tolist() == list(range(len(plain.row)))


# ----------------------------------------------------------------------------------------------- in a pipeline


def play(made: Signs) -> tuple[Play, Advising]:
    """Three users, after the turn at which each got a skill."""
    curator = Advising()
    arm = changed(ARM, curator=curator, policy=Always(), serving="prompted", signs=made, refit_every=1)
    started = Play([arm], 3)
    started.answered(3)
    started.learned(NOTHING_SAID)
    return started, curator


@pytest.mark.req("P07")
def test_components_learn_from_ratings_and_still_hear_what_was_said() -> None:
    playing, curator = play(signs())
    playing.answered(3)
    playing.learned(rows((0, OUTCOME, ACCEPTED, 0), (1, OUTCOME, OVERRIDDEN, 0), (1, SATISFACTION, REGRET_IT, 1)))
    assert told(curator.known[-1]) == [
        ("outcome", "accepted"), ("rating", "ok"), ("outcome", "overridden"), ("rating", "miss"),
    ]  # fmt: skip
    assert curator.seen[-1].rating.tolist() == [OK, MISS, -1]
    assert playing.assistant.columns(playing.state)["user_satisfaction"].tolist() == [OK, MISS, -1]
    playing.answered(3)
    playing.learned(NOTHING_SAID)
    assert told(curator.known[-1]) == [("satisfaction", "regret_it"), ("rating", "ok")]
    assert curator.seen[-1].rating.tolist() == [-1, -1, -1]  # it is about the turn before


def test_the_rating_of_a_turn_is_that_of_its_outcome_even_where_all_is_said_at_once() -> None:
    playing, curator = play(signs())
    playing.answered(3)
    playing.learned(rows((0, OUTCOME, OVERRIDDEN, 0), (0, SATISFACTION, REGRET_IT, 0)))
    assert [value for kind, value in told(curator.known[-1]) if kind == "rating"] == ["miss", "ok"]
    assert curator.seen[-1].rating.tolist() == [MISS, -1, -1]


def test_an_outcome_that_is_known_later_is_no_rating_of_its_turn_when_that_is_logged() -> None:
    playing, curator = play(signs())
    playing.answered(3)
    playing.learned(rows((0, OUTCOME, WAIT, 1)))
    assert curator.seen[-1].rating.tolist() == [-1, -1, -1]
    playing.answered(3)
    playing.learned(rows((0, OUTCOME, OVERRIDDEN, 0)))
    assert told(curator.known[-1]) == [
        ("outcome", "wait"),
        ("rating", "ok"),
        ("outcome", "overridden"),
        ("rating", "miss"),
    ]
    assert curator.seen[-1].rating.tolist() == [MISS, -1, -1]


@pytest.mark.parametrize("merge", ["sum", "replace", "separate"])
def test_a_late_rating_teaches_the_reranker_with_the_shortlist_of_the_turn_that_it_is_about(merge: SignMerge) -> None:
    """Ratings that become known together, of several users and turns, with rows before and between them that rate
    nothing.
    """
    playing, _ = play(signs(merge=merge))
    for late in (
        rows((0, OUTCOME, WAIT, 2), (1, SATISFACTION, NOT_SURE, 2), (2, OUTCOME, OVERRIDDEN, 2)),
        rows((0, SATISFACTION, WORTH_IT, 1), (1, OUTCOME, ACCEPTED, 1), (2, SATISFACTION, REGRET_IT, 1)),
    ):
        playing.answered(3)
        playing.learned(late)
    events: list[tuple[int, int, int]] = []

    def add(row: Any, rating: Any, context: Any) -> None:
        events.extend(zip(row.tolist(), rating.tolist(), context.event.tolist(), strict=True))

    playing.state.ratings.add = add  # type: ignore[method-assign]
    playing.answered(3)
    playing.learned(NOTHING_SAID)
    early = [] if merge == "separate" else [(0, PARTIAL, 2000), (1, PARTIAL, 1001), (2, PARTIAL, 2002)]
    assert sorted(events) == sorted([(0, OK, 1000), (1, OK, 2001), (2, MISS, 1002), *early])


# --------------------------------------------------------------------------------------------------- bad input

GOOD: Mapping[str, Any] = {
    "outcome": dict.fromkeys(OUTCOMES, 0), "satisfaction": {}, "loops": ["immediate"], "merge": "sum",
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"outcome": {"accepted": 1}}, r"signs.outcome leaves out overridden, wait, .*; give each outcome a sign"),
        ({"outcome": {**GOOD["outcome"], "bought": 1}}, r"signs.outcome has 'bought', valid are accepted, overridden"),
        ({"outcome": {**GOOD["outcome"], "wait": 2}}, r"signs.outcome.wait=2 must be a sign: -1, 0 or 1"),
        ({"outcome": {**GOOD["outcome"], "wait": 0.5}}, r"signs.outcome.wait=0.5 must be a sign"),
        ({"outcome": {**GOOD["outcome"], "wait": 1.0}}, r"signs.outcome.wait=1.0 must be a sign"),
        ({"outcome": {**GOOD["outcome"], "wait": True}}, r"signs.outcome.wait=True must be a sign"),
        ({"outcome": {**GOOD["outcome"], "wait": [1]}}, r"signs.outcome.wait=\[1\] must be a sign"),
        ({"satisfaction": {"bought": {}}}, r"signs.satisfaction has 'bought', valid are accepted"),
        ({"satisfaction": {"wait": 1}}, r"signs.satisfaction.wait=1 must give signs by what is said later"),
        ({"satisfaction": {"wait": {"fine": 1}}}, r"signs.satisfaction.wait has 'fine', valid are worth_it"),
        ({"satisfaction": {"wait": {"worth_it": 3}}}, r"signs.satisfaction.wait.worth_it=3 must be a sign"),
        ({"loops": []}, r"signs.loops is empty, .* name immediate or retrospective"),
        ({"loops": ["later"]}, r"signs.loops has 'later', valid are immediate, retrospective"),
        ({"merge": "both"}, r"signs.merge='both', valid are sum, replace, separate"),
    ],
)
def test_bad_signs_are_refused_by_name(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Signs(**{**GOOD, **change}).check(DOMAIN)


def test_a_sign_of_the_command_line_reaches_the_arm_and_a_bad_one_is_refused() -> None:
    root = composer().root(parse(["signs.satisfaction.overridden.regret_it=0"]))["signs"]
    assert build("signs", root, COMMAND_LINE) == signs("neutral")
    with pytest.raises(UsageError, match=r"signs.merge='both' must be one of sum, replace, separate"):
        build("signs", root | {"merge": "both"}, COMMAND_LINE)
    with pytest.raises(UsageError, match=r"signs.outcome.wait=7 must be a sign"):
        build("signs", root | {"outcome": root["outcome"] | {"wait": 7}}, COMMAND_LINE)


# ------------------------------------------------------------------------------------------------- a whole run


@pytest.mark.req("P07", "P40")
@pytest.mark.usefixtures("bare")
def test_ratings_that_are_replaced_are_in_the_log_and_all_books_are_rebuilt_from_it(tmp_path: Path) -> None:
    """For the simulated reflector, which remembers whom it rated, and for the capturing curators, which look."""
    arms = "{taught: [], plain: [curator=everything], added: [signs.merge=sum], later: ['fork=added@9']}"
    setup = [
        "simulator=guardian",
        "contrasts=[]",
        "signs.merge=replace",
        f"arms={arms}",
        "reference=taught",
        "users=8",
        "weeks=5",
    ]
    run = skg_bench.run([*setup, f"out={tmp_path / 'run'}"])
    for arm in run.arms:
        words = set(run.updates(arm)["rating"].cast("string").to_pylist()) - {None}
        assert words == set(RATINGS) if arm == "added" else {"ok taken back", "miss taken back"} < words, arm
        for user in range(8):
            book, _ = rebuild(rebuilt.updates(run, arm, user))
            assert book.hash == run.turns(arm, ["book_hash"], [user])["book_hash"].to_pylist()[-1]
    counts = {arm: sum(sum((s.ok, s.partial, s.miss)) for s in rebuilt.book(run, arm, 1).skills) for arm in run.arms}
    assert counts["taught"] < counts["added"]
