"""Draws from the prior of the Guardian's world: each is an ordinary run, and none depends on another."""

from dataclasses import fields, replace
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import skg_bench
from skg_bench.assistant.pipeline.components import components
from skg_bench.core.errors import UsageError
from skg_bench.simulator.advice.guardian import Guardian
from skg_bench.simulator.advice.levels import ABANDONED, ACCEPTED, AUTO_APPROVED, OVERRIDDEN, WAIT
from skg_bench.study import prior
from skg_bench.study.guardian import drawing, mass_verdicts, study
from skg_bench.study.guardian.lives import Draw, Life, Lives, life_means, over_users, paired_lives
from skg_bench.study.masses import Share
from tests.study.measures import utility

USERS, TRIGGERS = 3, 8
FEWER = [f"~arms.{name}" for name in ("unworn_sham", "book_10", "book_40", "sham_40")]


def small(*overrides: str) -> study.DrawStudy:
    """Few users of the experiment with the most kinds of arms, without some of each kind."""
    return study.study("guardian_arc", [f"users={USERS}", *FEWER, *overrides], triggers=TRIGGERS)


@pytest.fixture(scope="module")
def whole() -> study.DrawStudy:
    return small()


# ------------------------------------------------------------------------------------------------------------ lives


@pytest.mark.req("P05")
def test_a_draw_is_an_ordinary_run_with_its_parameters(whole: study.DrawStudy, tmp_path: Path) -> None:
    draw = whole.draw(0)
    lives = study.lives(whole, draw)
    weeks = ceil(1.5 * TRIGGERS / draw.values["triggers_per_week"])
    given = [f"{name if '.' in name else f'simulator.{name}'}={value!r}" for name, value in draw.values.items()]
    size = [f"users={USERS}", f"weeks={weeks}", f"out={tmp_path / 'run'}"]
    run = skg_bench.run(["experiment=guardian_arc", *FEWER, *size, *given])
    for name in ("live", "frozen", "sham", "unworn", "book_5"):
        turns = run.turns(name).to_pandas()
        turns = turns[turns.turn < TRIGGERS]
        life = lives[name]
        user, turn = turns.user.to_numpy(), turns.turn.to_numpy()
        assert life.there.sum() == len(turns)
        paid = 0.05 * (turns.cost_usd + turns.learning_cost_usd) + 0.002 / 1000 * turns.latency_ms
        assert life.utility[user, turn] == pytest.approx((turns.worth - paid).to_numpy(), abs=1e-12)
        for column, values in {"fresh": turns.worth_fresh, "expected": turns.worth_expected, "wanted": turns.wanted,
                               "book_size": turns.book_size, "best": turns.worth_best}.items():  # fmt: skip
            assert (getattr(life, column)[user, turn] == values.to_numpy()).all(), (name, column)


def test_two_draws_have_no_user_in_common_and_other_parameters(whole: study.DrawStudy) -> None:
    one, other = whole.draw(0), whole.draw(1)
    assert all(one.values[p.name] != other.values[p.name] for p in whole.parameters)
    assert whole.draw(1) == other
    assert not np.array_equal(study.lives(whole, one)["frozen"].time, study.lives(whole, other)["frozen"].time)


def test_a_parameter_that_is_given_is_not_drawn_and_what_an_arm_sets_stays() -> None:
    arms = "+arms.hidden=[policy.rating=0]"
    given = small("simulator.wanted_share=0.25", "curator.rho=1", arms)
    names = {parameter.name for parameter in given.parameters}
    assert "habit" in names
    assert not names & {"wanted_share", "curator.rho"}
    drawn = given.draw(7)
    assert (drawn.values["wanted_share"], drawn.values["curator.rho"]) == (0.25, 1.0)
    by_name: dict[str, Any] = {arm.name: components(arm) for arm in given.arms_of(drawn)}
    assert by_name["hidden"].policy.rating == 0
    assert by_name["live"].policy.rating == drawn.values["policy.rating"] != 4.0
    assert by_name["sham"].curator.curator.rho == by_name["live"].curator.rho == 1.0
    assert by_name["sham"].curator.curator.adds == drawn.values["curator.adds"]
    trunk = next(arm for arm in given.arms_of(drawn) if arm.name == "book_5").fork
    assert trunk is not None
    assert components(trunk.arm) == by_name["live"]


def life(outcome: list[list[int]], utility: list[list[float]]) -> Life:
    """Some turns; the last of the second user is not there."""
    code, worth = np.array(outcome, np.int32), np.array(utility)
    empty = {f.name: np.zeros(code.shape) for f in fields(Life)}
    return Life(**{**empty, "there": code >= 0, "outcome": code, "utility": worth})


def test_who_is_left_alone_was_not_spoken_to_and_who_overrides_did_not_listen() -> None:
    some = life([[ACCEPTED, WAIT, OVERRIDDEN], [AUTO_APPROVED, ABANDONED, -1]], [[0.0] * 3] * 2)
    assert some.spoken.tolist() == [[True, True, True], [False, True, False]]
    assert some.listened.tolist() == [[True, True, False], [False, True, False]]


def test_differences_are_paired_by_user() -> None:
    nan = float("nan")
    some = life([[WAIT] * 3, [WAIT, WAIT, -1], [-1] * 3], [[1.0, 2.0, 3.0], [5.0, 7.0, nan], [nan] * 3])
    other = replace(some, utility=some.utility - np.array([[1.0], [2.0], [0.0]]))
    assert life_means(some, some.utility)[:2].tolist() == [2.0, 6.0]
    difference = paired_lives(some, other, lambda x: x.utility)
    assert difference.mean == 1.5
    assert difference.error == pytest.approx(0.5)
    assert (difference.better, difference.worse) == (True, False)
    assert np.isnan(over_users(np.array([1.0, nan])).error)


# ------------------------------------------------------------------------------------------------------------ draws


def test_what_was_stopped_goes_on_and_comes_out_the_same_in_one_process_and_in_two(
    whole: study.DrawStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "TOGETHER", 1)
    first = drawing.simulate(whole, utility, 1, tmp_path / "a", workers=1)
    made = drawing.simulate(whole, utility, 3, tmp_path / "a", workers=2)
    assert sorted(file.name for file in (tmp_path / "a").glob("*.parquet")) == [
        "draws-000000-1.parquet",
        "draws-000001-1.parquet",
        "draws-000002-1.parquet",
    ]
    at_once = drawing.simulate(whole, utility, 3, tmp_path / "b", workers=1)
    pd.testing.assert_frame_equal(made, at_once)
    pd.testing.assert_frame_equal(first, at_once[:1])
    assert made.draw.tolist() == [0, 1, 2]


def test_draws_are_read_whatever_the_code_has_become_and_only_added_to_by_their_own(
    whole: study.DrawStudy, tmp_path: Path
) -> None:
    made = drawing.simulate(whole, utility, 1, tmp_path, workers=1)
    later = replace(whole, setup=replace(whole.setup, content={**whole.setup.content, "code": "another"}))
    pd.testing.assert_frame_equal(drawing.simulate(later, _never, 1, tmp_path, workers=1), made)
    with pytest.raises(UsageError, match=r"holds some of the draws, made by .* may not add"):
        drawing.simulate(later, utility, 2, tmp_path, workers=1)
    for setup in (
        replace(whole.setup, data={**whole.setup.data, "prior": "another"}),
        replace(whole.setup, sizes={**whole.setup.sizes, "seed": 1}),
        small("utility.offer=0.2").setup,
    ):
        with pytest.raises(UsageError, match="holds draws of another prior, configuration or seed"):
            drawing.simulate(replace(whole, setup=setup), utility, 1, tmp_path, workers=1)


@pytest.mark.parametrize(
    ("manifest", "message"),
    [(None, "holds draws and no manifest.json"), ("{}", "KeyError: 'source'"), ("[]", "is not of its form"),
     ('{"source": {"overrides": 3}}', "source must have the keys"),
     ("{", "manifest.json")],
)  # fmt: skip
def test_a_folder_whose_manifest_does_not_say_what_it_holds_is_refused(
    whole: study.DrawStudy, tmp_path: Path, manifest: str | None, message: str
) -> None:
    pd.DataFrame({"draw": [0]}).to_parquet(tmp_path / "draws-000000-1.parquet")
    if manifest is not None:
        (tmp_path / "manifest.json").write_text(manifest, "utf-8")
    with pytest.raises(UsageError, match=message):
        drawing.simulate(whole, utility, 1, tmp_path, workers=1)


def test_findings_of_kept_draws_name_the_commit_that_made_them(whole: study.DrawStudy) -> None:
    manifest = {**whole.setup.manifest(), "commit": "abc", "dirty": None}
    evidence = drawing.Drawn(
        whole, pd.DataFrame({"draw": [0, 1]}), drawing.DrawRequest("generic", utility), manifest
    ).evidence
    command = "skg-bench experiment generic --profile demo"
    assert (evidence.command, evidence.commit, evidence.users, evidence.seeds) == (command, "abc", 2 * USERS, (0,))
    assert evidence.sources == (whole.setup.source(),)
    dirty = drawing.Drawn(
        whole, pd.DataFrame({"draw": [0]}), drawing.DrawRequest("generic", utility), {**manifest, "dirty": "0a"}
    ).evidence
    assert dirty.commit == "abc, with uncommitted changes"


def _never(_draw: Draw, _lives: Lives) -> dict[str, float]:
    raise AssertionError("all draws are there")


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["simulator=assistant"], "draws parameters of simulator=guardian"),
        (["weeks=9"], "takes as many weeks as its users need"),
    ],
)
def test_another_world_and_a_number_of_weeks_are_refused(overrides: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        study.study("generic", overrides)


def test_an_empty_panel_is_refused() -> None:
    with pytest.raises(UsageError, match="triggers=0 each is an empty panel"):
        study.study("generic", triggers=0)
    with pytest.raises(UsageError, match="users=0"):
        study.study("generic", ["users=0"])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("answered: {low: 0.5, high: 1.5, scale: linear, unit: 1, what: x, source: y}", "answered from 0.5 to 1.5"),
        ("curator.rho: {low: 0, high: 2, scale: linear, unit: 1, what: x, source: y}", "curator.rho from 0 to 2"),
        ("policy.temperature: {low: 0, high: 2, scale: linear, unit: 1, what: x, source: y}", "policy.temperature=0.0"),
        ("answerd: {low: 0, high: 1, scale: linear, unit: 1, what: x, source: y}", "answerd is no parameter"),
        ("habit: {low: 1, high: 0, scale: linear, unit: 1, what: x, source: y}", "habit goes from 1 to 0"),
        ("habit: {low: 0, high: 1, scale: log, unit: 1, what: x, source: y}", "needs numbers above 0"),
        ("habit: {low: 0, high: 1}", "is no prior: habit has low, high; a line reads name:"),
        ("habit", "is no prior: a line reads name:"),
        ("[", "cannot be read as yaml"),
    ],
)  # fmt: skip
def test_a_prior_that_leaves_the_range_of_a_parameter_is_refused(
    whole: study.DrawStudy, tmp_path: Path, line: str, words: str
) -> None:
    file = tmp_path / "prior.yaml"
    file.write_text(line, "utf-8")
    with pytest.raises(UsageError, match=words):
        study.check_prior(whole, file)


def test_another_prior_is_checked_before_anything_is_drawn(tmp_path: Path) -> None:
    file = tmp_path / "prior.yaml"
    file.write_text("curator.rho: {low: 0, high: 2, scale: linear, unit: 1, what: x, source: y}", "utf-8")
    with pytest.raises(UsageError, match=r"curator.rho from 0 to 2 leaves its range: curator.rho=2.0 must lie in"):
        study.study("generic", ["users=2"], file=file)


def test_every_parameter_of_the_prior_is_drawn_within_its_limits_and_says_where_it_comes_from() -> None:
    numbers = np.arange(2_000)
    for parameter in prior.read(study.PRIOR).parameters:
        assert parameter.source.strip()
        values = parameter.drawn(0, numbers)
        assert parameter.low <= values.min() < values.max() <= parameter.high
        middle = parameter.at(np.array(0.5))
        assert abs((values < middle).mean() - 0.5) < 4 * 0.5 / len(numbers) ** 0.5
        assert parameter.drawn(0, np.array([17]))[0] == values[17]


def test_the_world_as_it_is_configured_lies_in_the_prior(whole: study.DrawStudy) -> None:
    for parameter in whole.parameters:
        if "." not in parameter.name:
            assert isinstance(whole.world, Guardian)
            assert parameter.low <= getattr(whole.world, parameter.name) <= parameter.high, parameter.name


# --------------------------------------------------------------------------------------------------------- verdicts


def planted(whole: study.DrawStudy, n: int = 200) -> drawing.Drawn:
    """Draws in which one parameter decides."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({parameter.name: rng.random(n) for parameter in whole.parameters})
    table["gain"] = 0.5 - table.wanted_share + 0.05 * rng.standard_normal(n)
    table["gain_error"] = 0.1
    return drawing.Drawn(
        whole, table.assign(draw=np.arange(n)), drawing.DrawRequest("generic", utility), whole.setup.manifest()
    )


def test_the_unknown_that_decides_is_named_and_no_other(whole: study.DrawStudy) -> None:
    some = planted(whole)
    assert mass_verdicts.moving(some, "gain")[0][0] == "wanted_share"
    words = mass_verdicts.moved(some, "gain")
    assert words.startswith("wanted_share (-0.9")
    assert "," not in words
    noise = replace(some, table=some.table.assign(gain=np.random.default_rng(1).random(200)))
    assert mass_verdicts.moved(noise, "gain") == "none of the parameters alone"


def test_a_claim_is_judged_by_the_share_of_draws_in_which_it_holds(whole: study.DrawStudy) -> None:
    some = planted(whole)
    table = some.table
    better, worse = mass_verdicts.better(table, "gain"), mass_verdicts.worse(table, "gain")
    assert better == Share(int((table.gain > 0.196).sum()), 200)
    assert worse == Share(int((table.gain < -0.196).sum()), 200)
    statement = mass_verdicts.Statement("P05", "it gains", "gain", lambda t: mass_verdicts.above(t, "gain"), "utility")
    result = mass_verdicts.finding(some, statement)
    assert result.verdict == "attainable"
    assert "wanted_share (-0.9" in result.words
    assert Share(100, 100).verdict == "robust"
    assert Share(0, 100).verdict == "strained"
    assert Share(0, 20).verdict == "not testable here"  # so few draws leave 5 % open
    none = replace(some, table=table.assign(gain=np.nan))
    assert mass_verdicts.share(none.table, statement) == Share(0, 0)


def test_figures_that_no_parameter_moves_are_counted_and_not_listed(whole: study.DrawStudy) -> None:
    some = planted(whole)
    noise = np.random.default_rng(1).random((2, 200))
    some = replace(some, table=some.table.assign(one=noise[0], other=noise[0]))
    words = mass_verdicts.sensitivity_words(some, {"gain": "the gain", "one": "one", "other": "another"})
    assert words.endswith("the other 2: none of the parameters alone.")
    assert "another" not in words
    assert mass_verdicts.sensitivity_words(some, {"one": "one"}).endswith("all: none of the parameters alone.")


def test_a_difference_of_shares_is_shown_in_points_and_a_share_in_percent() -> None:
    assert [mass_verdicts.value(0.152, unit) for unit in ("points", "share", "utility")] == [
        "+15.2 pp",
        "15.2 %",
        "0.152",
    ]


def test_a_profile_that_is_no_number_of_draws_is_refused_with_those_that_are() -> None:
    with pytest.raises(UsageError, match="profile=smoke is no number of draws; valid: demo, paper; any other: --draws"):
        drawing.DrawRequest("generic", lambda _draw, _lives: {}, profile="smoke").drawn()


def test_draws_are_made_again_under_more_overrides_in_a_folder_inside(tmp_path: Path) -> None:
    request = drawing.DrawRequest("generic", utility, overrides=("users=3", "workers=1"), draws=2, out=tmp_path)
    first = request.drawn()
    again = first.again(["simulator.habit=0"], 1, "unworn")
    assert again.command == (
        "skg-bench experiment generic --profile demo --draws 1 users=3 workers=1 simulator.habit=0"
    )
    assert (len(first.table), len(again.table)) == (2, 1)
    assert again.table.habit.tolist() == [0.0]
    others = [name for name in again.parameters if name in first.table]
    assert again.table[others].iloc[0].equals(first.table[others].iloc[0])  # the same draw else
    assert (tmp_path / "unworn" / "manifest.json").is_file()
    assert len(first.again([], 1, "same").table) == 1
