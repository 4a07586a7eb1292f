"""The turns that explain a verdict, against the logs of both runs."""

from dataclasses import replace
from pathlib import Path

import pytest

from skg_bench.analysis.comparison.flips import REASONS
from skg_bench.analysis.gate.against import Held
from skg_bench.analysis.gate.panel import Panel, panel
from skg_bench.analysis.gate.rules import RULES, Rule
from skg_bench.analysis.gate.verdict_turns import FLIP_OUTCOMES, TURNS, USERS, HarmedTurns, _flipped, explain
from skg_bench.runfolder.run import Run
from tests.analysis.gate.panels import ANCHORS, held_to, rule
from tests.analysis.synthetic import World, make_run

WORLDS = {
    "before": World(),
    "wrong": World(hit_right=0.4),
    "forgets": World(hit=0.3, hit_right=0.85, llm_right=0.9),
    "llm": World(llm_right=0.5),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("runs")
    return {
        name: make_run(folder / name, users=32, weeks=4, arms={"skg": world, **ANCHORS})
        for name, world in WORLDS.items()
    }


def panels(runs: dict[str, Run], name: str) -> tuple[Panel, Panel]:
    """Before and after; what the LLM answers is the system's here."""
    real = [panel(runs[key], "skg") for key in ("before", name)]
    for each in real:
        each.made["compositions"]["skg"]["llm"] = {"_target_": "package.RealModel"}
    return real[0], real[1]


def explained(runs: dict[str, Run], name: str, metric: str) -> tuple[Held, HarmedTurns]:
    known = [replace(each, margin=0.01) for each in RULES if each.blocks and each.metric == metric]
    before, after = panels(runs, name)
    held = held_to(after, before, *(known or [Rule(metric, "errors", "lower", 0.01)]))
    flips = explain(held, runs[name])
    assert flips is not None
    return held, flips


@pytest.mark.parametrize(
    ("name", "metric"),
    [("wrong", "err_per_request"), ("wrong", "err_per_hit"), ("forgets", "right_hits"), ("llm", "utility")],
)
def test_named_turns_became_worse_and_the_reason_is_the_logs(runs: dict[str, Run], name: str, metric: str) -> None:
    held, flips = explained(runs, name, metric)
    columns = ["fallback_to_llm", "answer_correct", "cause", "message"]
    before, after = (
        runs[key].turns("skg", columns).to_pandas().set_index(["user", "turn"]) for key in ("before", name)
    )
    hit, was_hit = ~after.fallback_to_llm, ~before.fallback_to_llm
    wrong, was_wrong = ~after.answer_correct, ~before.answer_correct
    worse = {
        "err_per_request": wrong & ~was_wrong,
        "utility": wrong & ~was_wrong,
        "err_per_hit": hit & wrong & ~(was_hit & was_wrong),
        "right_hits": was_hit & ~was_wrong & ~(hit & ~wrong),
    }[metric]
    assert flips.worse == worse.sum() > 50
    assert sum(n for _, n in flips.reasons) == flips.worse
    assert 0 < len(flips.users) <= USERS
    harms = dict(zip(held.harms[0].users.tolist(), held.harms[0].each.tolist(), strict=True))
    assert [user.harm for user in flips.users] == sorted(harms.values(), reverse=True)[: len(flips.users)]
    for user in flips.users:
        assert user.harm == harms[user.user]
        assert user.of == worse[user.user].sum()
        assert [turn.turn for turn in user.turns] == worse[user.user][worse[user.user]].index[:TURNS].tolist()
        for turn in user.turns:
            at = (user.user, turn.turn)
            assert turn.message == after.message[at]
            assert turn.before == FLIP_OUTCOMES[2 * was_hit[at] + was_wrong[at]]
            assert turn.after.startswith(FLIP_OUTCOMES[2 * hit[at] + wrong[at]])
            assert turn.lost == (wrong[at] and not was_wrong[at])
            assert turn.reason == ("LLM" if not (hit[at] or was_hit[at]) else REASONS[after.cause[at]])


def test_the_metric_with_the_largest_harm_in_margins_is_explained(runs: dict[str, Run]) -> None:
    before, after = panels(runs, "forgets")
    flips = explain(held_to(after, before, rule("err_per_request"), rule("right_hits")), runs["forgets"])
    assert flips is not None
    assert flips.metric == "right_hits"


@pytest.mark.parametrize("name", ["wrong", "forgets", "llm"])
@pytest.mark.parametrize("metric", ["right_hits", "err_per_hit", "err_per_request", "utility", "worst_users"])
def test_a_turn_that_became_right_is_never_listed_as_worse(runs: dict[str, Run], name: str, metric: str) -> None:
    before, after = panels(runs, name)
    for old, new in ((before, after), (after, before)):
        worse = _flipped(metric, old, new)
        assert not (worse & old.wrong & ~new.wrong).any()


def test_harm_to_few_is_explained_by_the_wrong_answers_of_each(runs: dict[str, Run]) -> None:
    before, after = panels(runs, "wrong")
    flips = explain(held_to(after, before, rule("worst_users")), runs["wrong"])
    assert flips is not None
    rise = (after.counts["wrong"] - before.counts["wrong"]) / after.counts["turn"]
    assert [user.harm for user in flips.users] == pytest.approx(sorted(rise, reverse=True)[: len(flips.users)])


@pytest.mark.parametrize("narrow", ["utility", "err_per_request"])
def test_a_harm_is_the_larger_the_narrower_its_margin(runs: dict[str, Run], narrow: str) -> None:
    before, after = panels(runs, "wrong")
    both = (replace(rule(name), margin=0.005 if name == narrow else 0.05) for name in ("utility", "err_per_request"))
    flips = explain(held_to(after, before, *both), runs["wrong"])
    assert flips is not None
    assert flips.metric == narrow


def test_the_same_bits_have_nothing_to_explain(runs: dict[str, Run], tmp_path: Path) -> None:
    same = panel(runs["before"], "skg")
    assert explain(held_to(same, same), runs["before"]) is None


def test_the_largest_harm_of_the_worst_verdict_is_explained(runs: dict[str, Run]) -> None:
    before, after = panels(runs, "wrong")
    rules = [Rule(metric, "errors", "lower", 0.01) for metric in ("err_per_request", "err_per_hit")]
    held = held_to(after, before, *rules)
    small, large = (replace(judged, mean=n * judged.margin, state="fail") for n, judged in enumerate(held.judged, 1))
    passed = replace(small, state="pass")
    cases = {
        "err_per_hit": [(small, large), (passed, large), (replace(small, mean=3 * small.margin, state="pass"), large)],
        "err_per_request": [(small, replace(large, state="pass")), (small, replace(large, paid=True)),
                            (small, replace(large, n=0))],
    }  # fmt: skip
    for metric, pairs in cases.items():
        for pair in pairs:
            turns = explain(replace(held, judged=pair), runs["wrong"])
            assert turns is not None
            assert turns.metric == metric, pair
    assert explain(replace(held, judged=(replace(small, n=0), replace(large, paid=True))), runs["wrong"]) is None


def test_a_panel_has_the_ratings_before_the_first_hit_by_level(runs: dict[str, Run]) -> None:
    after = panel(runs["wrong"], "skg")
    rows = runs["wrong"].turns("skg", ["user", "user_satisfaction", "fallback_to_llm"]).to_pandas()
    hits = (~rows.fallback_to_llm).groupby(rows.user).cumsum()
    level = rows.user_satisfaction.astype(object).map({"ok": 1, "partial": 2, "miss": 3}).fillna(0)
    assert after.rated.tolist() == level.where(hits == 0, 0).astype(int).tolist()
    assert set(after.rated.tolist()) == {0, 1, 3}
