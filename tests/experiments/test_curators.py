"""Curators beside their controls: who is one, what verdicts say together, one log for all, and what is not claimed."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import skg_bench
from experiments.curators import analysis
from experiments.curators.analysis import (
    analyse,
    holding,
    pruning_findings,
    reflection_finding,
    same_log,
    words_of,
)
from experiments.curators.frontier import Point, drawn, frontier
from experiments.curators.lineup import (
    AS_IT_IS,
    TELLING,
    TELLS,
    Entry,
    cap_of,
    entries,
    model_of,
    parted,
    real_models,
    world_of_run,
    wrong_of,
)
from experiments.curators.pruning import Truth, Verdict, share_over_users
from experiments.curators.worths import Row, Worths, erring_arms, paid, reading
from skg_bench.analysis.comparison.findings import Evidence
from skg_bench.analysis.counts.measure import differences
from skg_bench.analysis.counts.metrics import Utility, metrics
from skg_bench.analysis.statistics.intervals import Cells, estimates
from skg_bench.app.experiment_report import Table
from skg_bench.core.errors import UsageError
from skg_bench.core.package import CONF
from skg_bench.runfolder.run import Run

C, SHAM = "curator.curator", "curator.curator=sham, curator.curator.curator=reflective, curator.curator.tags=coin"
LOG = "policy=uniform_oldest, router.order=inserted"
KEEPS = f"{C}.remove_after=null, {C}.rewords=0"
ARMS = {  # curators that cost little
    "frozen": "curator=none",
    "reflective": f"{C}=reflective",
    "reflective_empty": f"{C}=reflective, policy=never",
    "reflective_sham": f"{SHAM}, {C}.says=any",
    "reflective_log": f"{C}=reflective, {KEEPS}, {LOG}",
    "reflective_given": "fork=reflective_log@12, curator=none, mood=fresh",
    "reflective_sham_log": f"{SHAM}, {C}.says=any, {C}.curator.remove_after=null, {C}.curator.rewords=0, {LOG}",
    "reflective_sham_given": "fork=reflective_sham_log@12, curator=none, mood=fresh",
    "reasoning_bank_log": f"{C}=reasoning_bank, {LOG}",
    "empty_given": "fork=reflective_log@12, curator=none, mood=fresh, policy=never",
    "frozen_given": "curator=none, mood=fresh",
}
CARELESS = f"careless_log: [{C}=reflective, {C}.remove_after=1, {C}.remove_margin=1, {LOG}]"
REWORDING = f"rewording_log: [{C}=reflective, {C}.remove_after=null, {C}.rewords=1, {LOG}]"
EVIDENCE = Evidence("make it", "abc", 3, 5, (0,))


def made(folder: Path, *more: str, arms: str = "") -> Run:
    listed = ", ".join(f"{name}: [{changes}]" for name, changes in ARMS.items())
    return Run(
        skg_bench.run([
            "experiment=curators", f"arms={{{listed}{arms}}}", "users=4", "weeks=7", "freeze_at=12", *more,
            f"out={folder}",
        ]).path
    )  # fmt: skip


def short_of(run: Run, arm: str) -> Run:
    """The run without an arm."""
    other = Run(run.path)
    other.__dict__["manifest"] = {**run.manifest, "arms": [name for name in run.arms if name != arm]}
    return other


def composed(run: Run, arm: str, **parts: Any) -> Run:
    """The run as if an arm had been composed of other parts."""
    other, compositions = Run(run.path), run.manifest["compositions"]
    changed = {**compositions, arm: {**compositions[arm], **parts}}
    other.__dict__["manifest"] = {**run.manifest, "compositions": changed}
    return other


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return made(tmp_path_factory.mktemp("curators") / "run", arms=f", {CARELESS}, {REWORDING}")


def row(curator: str = "x", **verdicts: float) -> Row:
    """A curator that is ahead of each control by so many standard errors."""
    cells = Cells(np.arange(40), np.arange(40), 40, 40)
    against = {}
    for name, gap in verdicts.items():
        spread = np.tile([-1.0, 1.0], 20) + gap / 40**0.5
        (e,) = estimates(cells, [np.ones(40)], [[spread]])
        (against[name],) = differences(metrics(Utility(1.0, 0.0, 0.0, 0.0))["utility"], [e])
    utility = next(iter(against.values())).estimate
    entry = Entry(curator, "closed loop", curator, curator, {})
    return Row(entry, "none", AS_IT_IS, "scripted", utility, against, 0.1, 10.0)


def test_an_arm_with_an_empty_and_a_sham_control_is_a_curator_in_each_regime_that_it_has() -> None:
    arms = [
        "frozen",
        "a",
        "a_empty",
        "a_sham",
        "a_coin",
        "b",
        "b_sham",
        "a_log",
        "a_given",
        "a_sham_given",
        "empty_given",
    ]
    closed, logged = entries(arms)
    assert closed == Entry(
        "a", "closed loop", "a", "a", {"frozen": "frozen", "empty": "a_empty", "sham": "a_sham", "coin": "a_coin"}
    )
    assert (logged.learns, logged.measured) == ("a_log", "a_given")
    assert logged.against == {"empty": "empty_given", "sham": "a_sham_given"}
    assert [entry.curator for entry in entries(["real", "real_empty", "real_sham"])] == ["real"]


def test_the_experiment_has_five_curators_in_both_regimes_each_beside_its_controls() -> None:
    import yaml

    arms = list(yaml.safe_load((CONF / "experiment" / "curators.yaml").read_text("utf-8"))["arms"])
    lineup = entries(arms)
    assert len(lineup) == 10
    for entry in lineup:
        rates = entry.curator in ("reflecting", "reflective")
        assert [*entry.against] == ["frozen", "empty", "sham", *(["coin"] if rates else [])], entry


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        ({"empty": "better", "sham": "better"}, "ahead of all its controls (empty, sham)"),
        ({"empty": "better", "sham": "inconclusive"},
         "ahead of empty, not told apart from sham"),
        ({"empty": "worse", "sham": "better", "coin": "identical"},
         "ahead of sham, behind empty, the same as coin"),
        ({"empty": "depends on the interval"}, "not told apart from empty"),
    ],
)  # fmt: skip
def test_a_curator_is_ahead_of_all_only_where_no_control_is_left(verdicts: Mapping[str, str], words: str) -> None:
    assert reading(verdicts) == words


def test_a_talkative_curator_that_the_frozen_book_praises_and_sham_does_not_is_named_so() -> None:
    useless, good = row("useless", frozen=9, empty=9, sham=0), row("good", frozen=9, empty=9, sham=9)
    (line,) = words_of([useless, good])
    assert "ahead of all controls: good." in line
    assert "Ahead of the frozen book, but not of all controls: useless." in line
    (idle,) = words_of([row("idle", frozen=0, empty=0, sham=0)])
    assert "no curator is ahead of all its controls." in idle
    assert "Ahead of the frozen book" not in idle


def test_curators_read_the_very_same_turns_and_one_that_removes_seeds_is_found(run: Run) -> None:
    arms = ["reflective_log", "reasoning_bank_log", "careless_log"]
    apart = parted(run, arms, 12)
    assert (apart["reflective_log"], apart["reasoning_bank_log"]) == (0, 0)
    assert apart["careless_log"] > 0
    assert parted(run, ["careless_log", "rewording_log"], 1) == {"careless_log": 0, "rewording_log": 0}
    (alone,) = parted(run, ["rewording_log"], 12).values()
    assert alone > 0  # nothing beside it differs: seeds say something else
    books = {arm: run.turns(arm, ["book_size"]).column(0).to_pylist() for arm in arms}
    assert books["reflective_log"] != books["reasoning_bank_log"]  # what they made of it differs
    (words,), same = same_log(run, 12)
    assert not same
    assert words.startswith("NOT the same log")
    assert "careless_log" in words


def test_once_books_stay_nothing_is_paid_or_changed_and_what_learning_cost_is_that_of_its_jobs(run: Run) -> None:
    for arm in ("reflective", "reflective_log", "reflective_given"):
        turns = run.turns(arm, ["turn", "learning_cost_usd", "book_hash"]).to_pandas()
        assert turns["learning_cost_usd"][turns["turn"] >= 12].sum() == 0
    usd, tokens = paid(run, "reflective")
    jobs = run.learning("reflective").to_pandas()
    assert usd == pytest.approx(jobs["cost_usd"].sum() / 4)
    assert tokens == pytest.approx((jobs["tokens_in"] + jobs["tokens_out"]).sum() / 4)
    known = Worths.of(run)
    closed = known.rows[0]
    later = run.turns("reflective").to_pandas().query("turn >= 12")
    plain = later["worth"] - 0.05 * later["cost_usd"] - 0.002 * later["latency_ms"] / 1000
    assert closed.utility.mean == pytest.approx(plain.groupby(later["user"]).mean().mean(), abs=1e-9)


def test_the_report_says_which_models_were_asked_and_what_is_not_claimed_without_a_key(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis, "confusion", lambda: Table("Soundness", ("text",), [("sound",)]))  # takes seconds
    report = analyse([run])
    assert not report.holds  # `careless_log` read another log
    table = next(part for part in report.parts if isinstance(part, Table))
    assert {cells[4] for cells in table.rows} == {"none, simulated"}
    assert "0 USD were spent" in report.page
    growth = reflection_finding(Worths.of(run).rows, real_models(run), EVIDENCE)
    assert (growth.id, growth.verdict) == ("P49", "not testable here")
    assert report.findings is not None
    assert "P49" not in {finding.id for finding in report.findings()}
    real = {"real": "Endpoint"}
    assert reflection_finding([row("real", frozen=9, sham=9)], real, EVIDENCE).verdict == "reproduced"
    assert reflection_finding([row("real", frozen=0, sham=9)], real, EVIDENCE).verdict == "not reproduced"
    assert reflection_finding([row("real", frozen=9, sham=0)], real, EVIDENCE).verdict == "not reproduced"
    alone = reflection_finding([row("x", frozen=9, sham=9)], real, EVIDENCE)
    assert (alone.verdict, "0 USD" in alone.words) == ("not testable here", False)
    assert "real asked a model, and no such arm has controls" in alone.words
    assert all(ET.fromstring(figure) is not None for figure in report.figures.values())  # noqa: S314


def test_a_model_is_named_by_what_is_asked_at_last() -> None:
    scripted = {"_target_": "a.Scripted"}
    assert model_of({"curator": {"_target_": "c.Metered", "curator": {"llm": scripted}}}) == "scripted"
    assert model_of({"curator": {"curator": {"llm": {"_target_": "a.Erring", "llm": scripted}}}}) == "scripted"
    recorded = {"_target_": "a.RecordedModel", "llm": {"_target_": "a.Endpoint"}}
    assert model_of({"curator": {"llm": recorded}}) == "Endpoint"
    assert model_of({"curator": {"_target_": "c.Reflective"}}) == "none, simulated"


def test_two_runs_of_one_world_and_cap_and_a_run_without_curators_are_refused_by_name(run: Run, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="two runs have the cap none and the world 'as it is'"):
        analyse([run, run])
    other = skg_bench.run(["users=1", "weeks=1", "arms={skg: []}", "reference=skg", f"out={tmp_path / 'other'}"])
    with pytest.raises(UsageError, match="has no curator beside its controls"):
        Worths.of(Run(other.path))
    manifest = short_of(run, "frozen_given")
    with pytest.raises(UsageError, match="has 'reflective_given' and no arm whose book stays as it began"):
        Worths.of(manifest)
    manifest = composed(run, "reflective_log", freeze=None, freeze_at=None)
    with pytest.raises(UsageError, match="'reflective_log' has freeze=None and freeze_at=None, so that it learns on"):
        Worths.of(manifest)
    for arm, lacking in (("empty_given", "empty"), ("reflective_sham_given", "sham")):
        with pytest.raises(UsageError, match=f"has 'reflective_given' and no {lacking} control beside it"):
            Worths.of(short_of(run, arm))
    parts = run.manifest["compositions"]["reflective_log"]
    with pytest.raises(UsageError, match="'reflective_empty' serves skills; give it policy=never"):
        Worths.of(composed(run, "reflective_empty", policy=parts["policy"]))
    with pytest.raises(UsageError, match="'frozen' learns; give it curator=none"):
        Worths.of(composed(run, "frozen", curator=parts["curator"]))
    capped = run.manifest["compositions"]["reflective_sham"]["curator"]
    sham = capped["curator"]
    cheats = [sham["curator"], {**sham, "says": "own"}, {**sham, "curator": {**sham["curator"], "remove_after": 99}}]
    for cheat in [parts["curator"], {**capped, "tokens": 1}, *({**capped, "curator": each} for each in cheats)]:
        with pytest.raises(UsageError, match="'reflective_sham' is no sham control of 'reflective'; give it the same"):
            Worths.of(composed(run, "reflective_sham", curator=cheat))
    with pytest.raises(UsageError, match="'reflective_sham_given' is no sham control of 'reflective_log'"):
        Worths.of(composed(run, "reflective_sham_log", curator=parts["curator"]))
    for fork in (None, "reflective_log@11", "reflective@12"):
        with pytest.raises(UsageError, match="does not serve what 'reflective_log' has learned; give it fork="):
            Worths.of(composed(run, "reflective_given", fork=fork))
    short = made(tmp_path / "short", "users=1", "weeks=1")
    with pytest.raises(UsageError, match="has no user with more than 12 purchases"):
        Worths.of(short)


def test_arms_are_held_to_one_log_by_their_name_whatever_their_policy(run: Run) -> None:
    chooser, other = run.manifest["compositions"]["reflective"]["policy"], run
    for arm in run.arms:
        other = composed(other, arm, policy=chooser)
    assert same_log(other, 12)[1]  # what is named so read one log
    compositions = {**other.manifest["compositions"], "careless_given": other.manifest["compositions"]["frozen"]}
    other.__dict__["manifest"] = {**other.manifest, "arms": [*compositions], "compositions": compositions}
    (words,), same = same_log(other, 12)
    assert words.startswith("NOT the same log")
    assert not same


def test_runs_that_learn_for_other_times_are_not_put_beside_one_another(run: Run) -> None:
    later, made_of = Run(run.path), run.manifest
    given = made_of["compositions"]
    parts = {arm: {**part, "freeze_at": 11} for arm, part in given.items()}
    for arm in ("reflective", "reflective_sham"):
        parts[f"{arm}_given"] = {**parts[f"{arm}_given"], "fork": f"{arm}_log@11"}
    later.__dict__["manifest"] = {**made_of, "compositions": parts, "config": {**run.config, "freeze_at": 11}}
    assert later.config["freeze_at"] == 11
    with pytest.raises(UsageError, match="learn at a user's first 11 and 12 purchases"):
        analyse([run, later])


def test_how_often_a_reflector_errs_is_read_from_its_model_and_needs_one_that_does_not(run: Run) -> None:
    def erring(**shares: float) -> Run:
        other, made = Run(run.path), run.manifest["compositions"]
        curators = {
            arm: {"curator": {"llm": {"_target_": "a.Erring", "wrong": share}}} for arm, share in shares.items()
        }
        compositions = {**made, **curators}
        other.__dict__["manifest"] = {**run.manifest, "arms": [*compositions], "compositions": compositions}
        return other

    told = erring(reflecting=0.0, wrong_10=0.3)
    assert (wrong_of(told, "wrong_10"), wrong_of(told, "frozen")) == (0.3, 0.0)
    assert erring_arms(told) == ["reflecting", "wrong_10"]
    assert erring_arms(erring(wrong_10=0.1, wrong_25=0.25)) == []
    assert erring_arms(erring(reflecting=0.2, wrong_25=0.25)) == []


def test_worlds_and_caps_are_told_by_what_was_run_and_not_by_words_of_a_command(run: Run, tmp_path: Path) -> None:
    assert (world_of_run(run), cap_of(run, "reflective"), cap_of(run, "frozen")) == (AS_IT_IS, "none", "none")
    world = [f"simulator.{text}" for text in reversed(TELLING)]
    arms = f"arms={{a: [{C}=reflective], b: [{C}=reflective, curator.tokens=500]}}"
    short = ["experiment=curators", arms, "reference=a", "users=1", "weeks=1", "curator.tokens=20000"]
    told = Run(skg_bench.run([*short, *world, f"out={tmp_path / 'told'}"]).path)
    assert (world_of_run(told), cap_of(told, "a"), cap_of(told, "b")) == (TELLS, "20,000 tokens", "500 tokens")
    other = Run(skg_bench.run([*short, "simulator.habit=0.1", f"out={tmp_path / 'other'}"]).path)
    assert world_of_run(other) == "habit=0.1"


# ------------------------------------------------------------------------------------------------------- removals


def truth(precision: float, *, better: float = 0.5, done: int = 100) -> Truth:
    """A truth in which one skill in five is bad."""
    removed = Verdict(500, 100, done, round(done * precision))
    bad, well = ((share, share - 0.05, share + 0.05) for share in (precision, better))
    return Truth(removed, removed, 0.6, bad, well, np.zeros(3))


@pytest.mark.req("U14")
@pytest.mark.parametrize(
    ("base", "tells", "verdicts"),
    [
        (truth(0.8, better=0.8), truth(0.8), ("reproduced", "reproduced")),
        (truth(0.3), truth(0.8), ("attainable", "not reproduced")),
        (truth(0.2), truth(0.2, better=0.9), ("not reproduced", "attainable")),
        (truth(0.45), truth(0.45), ("not reproduced", "not reproduced")),  # better than a coin, and mostly wrong
    ],
)
def test_pruning_is_right_if_most_of_the_removed_are_bad_and_more_than_a_coin_hits(
    base: Truth, tells: Truth, verdicts: tuple[str, str]
) -> None:
    results = pruning_findings({AS_IT_IS: base, TELLS: tells}, EVIDENCE)
    assert tuple(finding.verdict for finding in results) == verdicts
    assert all(bool(finding.where) == (finding.verdict == "attainable") for finding in results)
    assert f"Of all 500 with 4 ratings, {base.removed.base:.1%} were bad" in results[0].words
    assert pruning_findings({TELLS: tells}, EVIDENCE) == []


def test_a_share_is_less_certain_where_few_users_bring_it() -> None:
    one_each = [(user, user % 4 == 0) for user in range(80)]
    in_blocks = [(user // 20, user // 20 == 0) for user in range(80)]
    (share, low, high), (same, lowest, highest) = share_over_users(one_each), share_over_users(in_blocks)
    assert share == same == 0.25
    assert highest - lowest > 2 * (high - low)
    assert np.isnan(share_over_users([(0, True)])[0])
    nothing = (float("nan"),) * 3
    (removed, _) = Truth(Verdict(1, 0, 1, 0), Verdict(0, 0, 0, 0), float("nan"), nothing, nothing, np.zeros(0)).rows(
        "x"
    )
    assert removed[5:9] == ("0.0%", "- to -", "-", "100.0%")
    assert removed[10] == "-"
    assert holding(Truth(Verdict(0, 0, 0, 0), Verdict(0, 0, 0, 0), 0.5, nothing, nothing, np.zeros(0))) == (
        False,
        False,
    )


# --------------------------------------------------------------------------------------------------------- figure


def test_on_the_frontier_nobody_else_gains_as_much_for_less() -> None:
    cheap, dear, waste, level = (
        Point(name, False, usd, gain, gain - 0.01, gain + 0.01)
        for name, usd, gain in (("cheap", 0.1, 0.02), ("dear", 0.5, 0.05), ("waste", 0.4, 0.01), ("level", 0.3, 0.02))
    )
    assert frontier([waste, dear, level, cheap]) == [cheap, dear]
    assert frontier([replace(cheap, gain=-0.01)]) == []  # to learn nothing is cheaper, and better
    alone = drawn("Title", [], {"one": [replace(cheap, low=float("nan"), high=float("nan"))]})  # one user
    assert "nan" not in alone
    figure = drawn("Title & more", ["how <so>"], {"one": [cheap, dear], "two": [waste, replace(level, capped=True)]})
    root = ET.fromstring(figure)  # noqa: S314
    circles = [each for each in root.iter() if each.tag.endswith("circle")]
    assert len(circles) == 4 + 4 + 2  # points, and a key of curators and caps
    assert sum(circle.get("fill") == "var(--paper)" for circle in circles) == 2
