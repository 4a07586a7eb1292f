"""`summary.json` and `curves.csv`: the definitions of the figures, and that their bytes are always the same."""

import json
import os
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skg_bench.analysis import summary
from skg_bench.analysis.counts.measure import PROVEN
from skg_bench.analysis.statistics.intervals import LEAST_INTENTS
from skg_bench.analysis.summary import Summary
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run, ratings
from tests.analysis.synthetic import ARMS, UTILITY, World, make_run
from tests.runs import accept


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    made = make_run(tmp_path_factory.mktemp("runs") / "run", users=16, weeks=5)
    summary.write_summary(made)
    return made


@pytest.fixture(scope="module")
def figures(run: Run) -> dict[str, Any]:
    """As they stand in the file."""
    content: dict[str, Any] = json.loads((run.path / "summary.json").read_text("utf-8"))
    return content


def _turns(run: Run, arm: str) -> pd.DataFrame:
    t: pd.DataFrame = run.turns(arm).to_pandas()
    t["hit"], t["wrong"] = ~t.fallback_to_llm, ~t.answer_correct
    t["utility"] = (
        t.answer_correct
        - UTILITY["wrong"] * t.wrong
        - UTILITY["usd"] * t.cost_usd
        - UTILITY["second"] * t.latency_ms / 1000
        - UTILITY["offer"] * t.offer.notna()
    )
    t["week"] = (t.time - pd.Timestamp("2026-01-05")).dt.days // 7
    return t


@pytest.mark.req("K24", "K25")
def test_figures_are_means_over_users_of_what_the_log_says(run: Run, figures: dict[str, Any]) -> None:
    for arm in run.arms:
        t, arm_figures = _turns(run, arm), figures["arms"][arm]
        users = t.groupby("user")
        expected = {
            "hit_rate": users.hit.mean(), "correct": users.answer_correct.mean(), "utility": users.utility.mean(),
            "err_per_request": users.wrong.mean(), "err_per_hit": t[t.hit].groupby("user").wrong.mean(),
            "cost_usd": users.cost_usd.mean(), "latency_ms": users.latency_ms.mean(),
            "offers_per_week": users.offer.count() / 5, "skills": users.book_size.last(),
            "tokens": (t.tokens_in + t.tokens_out).groupby(t.user).mean(),
            "err_per_request_hits": (t.wrong & t.hit).groupby(t.user).mean(),
            "calls_saved": (t.serving == "stored").groupby(t.user).mean(),
            "new_skills_per_week": run.updates(arm).to_pandas().groupby("user").size().reindex(range(16)).fillna(0) / 5,
        }  # fmt: skip
        for name, of_user in expected.items():
            if len(of_user):
                assert arm_figures[name]["mean"] == pytest.approx(of_user.mean(), rel=1e-8), (arm, name)
            else:
                assert arm_figures[name]["mean"] is None
            assert arm_figures[name]["n_users"] + arm_figures[name]["excluded"] == 16
        assert arm_figures["hit_rate"]["n_turns"] == len(t)
        assert arm_figures["err_per_hit"]["n_turns"] == t.hit.sum()


def test_rated_ok_counts_the_ratings_that_became_known(run: Run, figures: dict[str, Any]) -> None:
    f = ratings(run.feedback("skg")).to_pandas()
    f = f[f.known_at < pd.Timestamp("2026-01-05") + pd.Timedelta(weeks=5)]
    expected = (f.rating == "ok").groupby(f.user).mean()
    assert figures["arms"]["skg"]["rated_ok"]["mean"] == pytest.approx(expected.mean())
    assert figures["pending_feedback"] == sum(figures["totals"][arm]["pending"] for arm in run.arms) > 0


def test_excess_errors_and_saved_cost_are_paired_with_never(run: Run, figures: dict[str, Any]) -> None:
    skg, never = _turns(run, "skg"), _turns(run, "never")
    excess = (skg.wrong.astype(float) - never.wrong.astype(float)).groupby(skg.user).mean()
    assert figures["arms"]["skg"]["err_excess"]["mean"] == pytest.approx(excess.mean())
    saved = (never.cost_usd - skg.cost_usd).groupby(skg.user).mean()
    assert figures["arms"]["skg"]["cost_saved_usd"]["mean"] == pytest.approx(saved.mean())
    assert figures["arms"]["never"]["err_excess"]["mean"] == 0


def test_the_learning_effect_compares_live_and_frozen_from_the_freeze_on(run: Run, figures: dict[str, Any]) -> None:
    live, frozen = _turns(run, "skg"), _turns(run, "frozen")
    late = live.turn >= 30
    of_user = (live.utility - frozen.utility)[late].groupby(live.user[late]).mean()
    effect = figures["effects"]["frozen"]
    assert (effect["live"], effect["since"]) == ("skg", 30)
    assert effect["metrics"]["utility"]["mean"] == pytest.approx(of_user.mean())
    assert effect["metrics"]["utility"]["n_turns"] == late.sum()
    assert effect["metrics"]["utility"]["excluded"] == 16 - len(of_user)
    early = (live.utility - frozen.utility)[~late]
    assert (early == 0).all()


def test_differences_are_corrected_for_the_arms_of_the_table(figures: dict[str, Any]) -> None:
    assert set(figures["differences"]) == {"skg", "frozen"}
    for metric in figures["metrics"].keys() & figures["differences"]["skg"].keys():
        pair = [figures["differences"][arm][metric] for arm in ("skg", "frozen")]
        if any(d["p_new"] is None for d in pair):
            continue
        low, high = sorted(d["p_new"] for d in pair)
        expected = [min(1.0, 2 * low), max(min(1.0, 2 * low), high)]
        assert sorted(d["p_holm"] for d in pair) == pytest.approx(expected)
        for d in pair:
            assert (d["verdict"] in PROVEN) == d["significant"]
            exaggerates = d["significant"] and abs(d["mean"]) < d["mde_new"]
            assert (d["shrunken"] is not None) == exaggerates


def test_a_difference_over_requests_of_few_intents_is_withheld_and_says_of_how_many(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", users=8, weeks=2, types=4, one_offs=0.0)
    difference = summary.write_summary(run).differences["skg"]["correct"]
    assert difference.verdict == "withheld"
    assert (difference.low_new, difference.p_new, difference.mde_new) == (None, None, None)
    assert difference.low is not None
    assert difference.intents is not None
    assert 1 <= difference.intents < LEAST_INTENTS


def test_a_worse_arm_is_called_worse(tmp_path: Path) -> None:
    arms = {"skg": World(hit_right=0.3), "never": ARMS["never"]}
    differences = summary.write_summary(make_run(tmp_path / "run", arms=arms)).differences["skg"]
    assert differences["utility"].verdict == "worse"
    assert differences["err_per_request"].verdict == "worse"
    assert differences["calls_saved"].verdict == "better"


def test_sensitivity_is_utility_at_other_prices_and_breaks_even_where_it_says(
    run: Run, figures: dict[str, Any]
) -> None:
    swept = figures["sensitivity"]
    at = swept["wrong"].index(UTILITY["wrong"])
    assert swept["arms"]["skg"][at] == figures["arms"]["skg"]["utility"]
    means = [d["mean"] for d in swept["differences"]["skg"]]
    price = swept["break_even"]["skg"]
    assert np.interp(price, swept["wrong"], means) == pytest.approx(0.0, abs=1e-6)
    t = _turns(run, "never")
    expected = (t.utility - 2.0 * t.wrong).groupby(t.user).mean().mean()
    assert swept["arms"]["never"][swept["wrong"].index(3.0)]["mean"] == pytest.approx(expected)


def test_the_ceiling_is_the_share_of_requests_with_answers_that_hold(run: Run, figures: dict[str, Any]) -> None:
    t = _turns(run, "skg")
    for k in (1, 2, 3):
        share = (t.answerable >= k).groupby(t.user).mean().mean()
        assert figures["ceiling"][str(k)]["mean"] == pytest.approx(share)


def test_curves_hold_every_metric_of_every_arm_by_calendar_week(run: Run) -> None:
    curves = pd.read_csv(run.path / "curves.csv")
    assert list(curves.columns) == ["arm", "period", "metric", "n", "mean", "low", "high"]
    t = _turns(run, "skg")
    hits = t.groupby(["week", "user"]).hit.mean().groupby("week").agg(["mean", "size"])
    row = curves[(curves.arm == "skg") & (curves.metric == "hit_rate")].set_index("period")
    assert row["mean"].to_numpy() == pytest.approx(hits["mean"].to_numpy())
    assert row.n.tolist() == hits["size"].tolist()
    assert (row.low <= row["mean"]).all()
    assert (row["mean"] <= row.high).all()
    effect = curves[(curves.arm == "frozen") & (curves.metric == "learning_effect")]
    assert effect["mean"].iloc[-1] != 0
    assert set(curves[curves.arm == "*"].metric) == {"ceiling_1", "ceiling_2", "ceiling_3"}
    assert curves.groupby(["arm", "metric"]).size().eq(5).all()


def test_a_mean_of_many_digits_is_rounded_and_what_does_not_exist_is_null(figures: dict[str, Any]) -> None:
    assert figures["arms"]["never"]["err_per_hit"]["mean"] is None
    assert figures["arms"]["never"]["err_per_hit"]["excluded"] == 16

    def leaves(value: Any) -> list[Any]:
        if isinstance(value, dict):
            return [x for item in value.values() for x in leaves(item)]
        return [x for item in value for x in leaves(item)] if isinstance(value, list) else [value]

    assert all(float(f"{x:.9g}") == x for x in leaves(figures) if isinstance(x, float))


@pytest.mark.parametrize("kernel", ["Haswell", "SkylakeX", "Prescott"])
def test_the_bytes_do_not_depend_on_the_blas_kernel(run: Run, kernel: str) -> None:
    code = (
        "import sys; from skg_bench.runfolder.run import Run; from skg_bench.analysis import summary;"
        "f, c = summary.describe(Run(sys.argv[1]));"
        "sys.stdout.write(f.to_json() + summary.csv(c))"
    )
    here = Path(summary.__file__).parents[3]
    environment = {**os.environ, "OPENBLAS_CORETYPE": kernel, "PYTHONPATH": str(here)}
    done = subprocess.run(
        [sys.executable, "-c", code, str(run.path)], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == (run.path / "summary.json").read_text() + (run.path / "curves.csv").read_text()


def test_what_is_read_is_what_was_written(run: Run) -> None:
    content, _ = summary.describe(run)
    assert summary.read_summary(run) == Summary.from_json(content.to_json())
    assert summary.read_summary(run).to_json() == (run.path / "summary.json").read_text("utf-8")
    assert summary.read_summary(run) is summary.read_summary(run)  # its fields are checked once


def test_a_summary_that_is_not_there_or_of_another_version_says_what_to_do(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", users=3, weeks=1)
    with pytest.raises(UsageError, match=r"no summary\.json yet; finish the run"):
        summary.read_summary(run)
    for text, version in (('{"schema": 3}', "None"), ('{"version": 5}', "5"), ("[]", "None")):
        (run.path / "summary.json").write_text(text)
        accept(run.path, "summary.json")
        with pytest.raises(UsageError, match=rf"version {version}, this program reads version 12; .*report {run.path}"):
            summary.read_summary(run)


@pytest.mark.parametrize(
    ("path", "value", "error"),
    [
        (("turns",), "many", r"summary\.turns is 'many', which is not of type int"),
        (("turns",), True, r"summary\.turns is True"),
        (("arms", "skg", "hit_rate", "mean"), "0.5", r"summary\.arms\.skg\.hit_rate\.mean is '0\.5'"),
        (("arms", "skg", "hit_rate"), {"mean": 0.5}, r"summary\.arms\.skg\.hit_rate must have the keys mean, low,"),
        (("differences", "skg", "utility", "verdict"), "nice", r"differences\.skg\.utility\.verdict is 'nice'"),
        (("saturation", "reasons"), "none", r"summary\.saturation\.reasons is 'none'"),
        (("waterfall",), None, r"summary\.waterfall is None"),
        (("surplus",), 1, r"summary must have the keys version, question"),
    ],
)
def test_a_summary_of_other_content_says_where_it_is_wrong(
    tmp_path: Path, figures: dict[str, Any], path: tuple[str, ...], value: Any, error: str
) -> None:
    run = make_run(tmp_path / "run", users=3, weeks=1)
    changed = node = deepcopy(figures)
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    (run.path / "summary.json").write_text(json.dumps(changed))
    accept(run.path, "summary.json")
    with pytest.raises(UsageError, match=error):
        summary.read_summary(run)


@pytest.mark.parametrize("name", ["summary.json", "curves.csv"])
def test_a_table_that_was_changed_is_refused_and_made_again(tmp_path: Path, name: str) -> None:
    run = make_run(tmp_path / "run", users=3, weeks=1)
    summary.write_summary(run)
    before = (run.path / name).read_bytes()
    (run.path / name).write_bytes(before.replace(b"0.5", b"0.6", 1) if b"0.5" in before else before + b" ")
    with pytest.raises(UsageError, match=rf"{name} is not as it was written; `skg-bench report {run.path}` makes it"):
        run.table(name)
    summary.write_summary(run)
    assert run.table(name).read_bytes() == before


def test_a_reference_that_is_no_arm_is_refused(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", users=3, weeks=1, reference="nobody")
    with pytest.raises(UsageError, match=r"reference='nobody' is no arm .* skg, frozen, never"):
        summary.write_summary(run)


def test_a_frozen_arm_can_be_the_reference(tmp_path: Path, run: Run) -> None:
    content, other = (
        summary.write_summary(make_run(tmp_path / "run", users=16, weeks=5, reference="frozen")),
        summary.read_summary(run),
    )
    assert content.effects["frozen"].metrics == other.effects["frozen"].metrics
    assert content.arms == other.arms
    assert set(content.differences) == {"skg", "never"}


def test_importing_the_analysis_is_cheap() -> None:
    code = (
        "import sys, skg_bench.analysis.summary, skg_bench.analysis.comparison.compare; print('scipy' in sys.modules)"
    )
    here = Path(summary.__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", code], cwd=here, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_utility_is_known_at_other_prices_of_an_offer(run: Run, figures: dict[str, Any]) -> None:
    swept, t = figures["offers"], _turns(run, "skg")
    assert UTILITY["offer"] > 0
    assert swept["arms"]["skg"][swept["prices"].index(UTILITY["offer"])] == figures["arms"]["skg"]["utility"]
    expected = (t.utility - (0.2 - UTILITY["offer"]) * t.offer.notna()).groupby(t.user).mean().mean()
    assert swept["arms"]["skg"][swept["prices"].index(0.2)]["mean"] == pytest.approx(expected)
    assert "skg" in swept["break_even"]
