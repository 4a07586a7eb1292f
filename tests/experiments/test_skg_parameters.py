"""The paper's numbers are held against others, its parts against their absence."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from experiments.skg_parameters.analysis import analyse, findings, thresholds, verbatim
from experiments.skg_parameters.verdicts import SENSITIVE, judged, lines
from skg_bench.analysis import summary
from skg_bench.analysis.comparison import contrasts
from skg_bench.analysis.comparison.assay import Assay, Measured
from skg_bench.analysis.comparison.compare import compare
from skg_bench.analysis.comparison.over_corpora import DEPENDS
from skg_bench.analysis.comparison.seeds import SeedRuns
from skg_bench.analysis.counts.metrics import Utility, metrics
from skg_bench.analysis.statistics.intervals import Estimate
from skg_bench.analysis.summary.saturation import OUR_CORPUS
from skg_bench.app.api import run as simulate
from skg_bench.app.compose import compose
from skg_bench.app.experiment_report import Table
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from tests.analysis.report.conftest import ARMS as SYNTHETIC
from tests.analysis.synthetic import make_run
from tests.imports import ROOT

AHEAD, BEHIND = Measured(0.02, 0.01, 0.03, "utility per request"), Measured(-0.03, -0.05, -0.01, "utility per request")
BETWEEN = Assay(AHEAD, AHEAD)


def one(run: Run) -> SeedRuns:
    return SeedRuns((run,), (0,))


def found(mean: float, se: float, largest: Estimate | None = None) -> contrasts.ContrastResult:
    estimate = Estimate(mean, se, 99, se, 99, 100, 0)
    contrast = contrasts.Contrast("effect", "a", "b", "K11: something")
    return contrasts.ContrastResult(
        contrast, metrics(Utility(1, 10, 0.02, 0.05))["utility"], 0.005, estimate, 0.5, "inconclusive", largest
    )


@pytest.mark.parametrize(
    ("mean", "se", "number", "part"),
    [
        (0.02, 0.002, "not reproduced", "reproduced"),
        (-0.02, 0.002, "reproduced", "not reproduced"),
        (0.001, 0.001, "reproduced", "not reproduced"),  # no more than 0.005
        (0.004, 0.004, "not testable here", "not testable here"),
        (-0.004, 0.02, "not testable here", "not testable here"),
    ],
)
def test_a_verdict_is_of_what_is_shown(mean: float, se: float, number: str, part: str) -> None:
    finding = found(mean, se)
    p = finding.estimate.p(new=True)
    assert judged(finding, p, BETWEEN, [mean], number=True, tests=1)[0] == number
    assert judged(finding, p, BETWEEN, [mean], number=False, tests=1)[0] == part


def test_where_intervals_disagree_nothing_is_shown_and_a_measured_one_reaches_as_far_as_all() -> None:
    finding = found(-0.02, 0.002)
    disputed = replace(finding, estimate=replace(finding.estimate, bootstrap=(-0.05, 0.001)))
    says, words = judged(disputed, 0.001, BETWEEN, [-0.02], number=False, tests=1)
    assert (says, words) == ("not testable here", "not shown either way: it depends on the interval")
    measured = Measured.of(disputed.estimate)
    assert (measured.low, measured.high) == (-0.05, 0.001)
    assert Measured.of(replace(finding.estimate, bootstrap=(-0.05, -0.001))).high < -0.01


@pytest.mark.parametrize(("largest", "says"), [(0.02, "not reproduced"), (0.006, "not testable here")])
def test_what_no_part_could_have_moved_by_more_is_no_verdict_on_the_part(largest: float, says: str) -> None:
    """An oracle in its place is worth 0.02, or is not shown to be worth more than the margin of 0.005."""
    finding = found(0.001, 0.001, Estimate(largest, 0.002, 99, 0.002, 99, 100, 0))
    verdict, words = judged(finding, finding.estimate.p(new=True), BETWEEN, [0.001], number=False, tests=1)
    assert verdict == says
    assert ("an oracle neither" in words) == (says == "not testable here")


def test_beside_a_verdict_stand_its_operating_point_and_what_an_oracle_would_have_brought(run: Run) -> None:
    arms = summary.read_summary(run).arms
    number, part = lines(one(run))
    assert number.hits == pytest.approx(arms["skg"]["hit_rate"].mean)
    assert part.hits == pytest.approx(arms["no_reranker"]["hit_rate"].mean)
    assert number.utility.largest is None
    assert part.utility.largest is not None
    gain = (arms["oracle"]["utility"].mean or 0.0) - (arms["no_reranker"]["utility"].mean or 0.0)
    assert part.utility.largest.mean == pytest.approx(gain, abs=1e-9)


def test_thresholds_are_told_by_how_many_candidates_reach_them(run: Run) -> None:
    rows = thresholds(one(run))
    assert [row[0] for row in rows] == ["0.4", "0.7"]
    reached = [float(row[1].removesuffix(" %")) for row in rows]
    score = run.turns("skg", ["skill_score"])["skill_score"].to_numpy()
    assert reached == pytest.approx([100 * (score[score > 0] >= t).mean() for t in (0.4, 0.7)], abs=0.06)
    assert "quartiles" in verbatim(one(run))


def test_a_run_whose_corpus_was_used_up_shows_nothing_and_that_is_the_reason() -> None:
    says, words = judged(
        found(0.02, 0.002), 0.0, BETWEEN, [0.02], number=False, tests=1, used_up=["7.0% were drawn before (limit 5%)"]
    )
    assert says == "not testable here"
    assert words == "it serves users better, but the corpus was used up: 7.0% were drawn before (limit 5%)"


@pytest.mark.parametrize("mean", [0.02, -0.02, 0.001])
@pytest.mark.parametrize("number", [False, True])
@pytest.mark.parametrize("where", [Assay(BEHIND, AHEAD), Assay(AHEAD, BEHIND)])
def test_below_never_or_above_the_oracle_nothing_is_said_whichever_way_it_came_out(
    mean: float, number: bool, where: Assay
) -> None:
    finding = found(mean, 0.001)
    says, words = judged(finding, finding.estimate.p(new=True), where, [mean], number=number, tests=1)
    assert says == "not testable here"
    assert ("not shown to be ahead of one that reuses nothing" in words) == (where.ahead == BEHIND)
    assert ("no oracle of the run" in words) == (where.ahead == AHEAD)


@pytest.mark.parametrize(("mean", "other"), [(0.02, -0.001), (-0.02, 0.001), (0.001, 0.006)])
def test_a_seed_that_says_otherwise_vetoes_the_interval_of_all(mean: float, other: float) -> None:
    finding = found(mean, 0.001)
    says, words = judged(finding, finding.estimate.p(new=True), BETWEEN, [mean, other], number=False, tests=1)
    assert says == "not testable here"
    assert "the seeds disagree" in words


def test_the_reference_is_what_has_to_lie_between_never_and_the_oracle(run: Run) -> None:
    means = {arm: row["utility"].mean or 0.0 for arm, row in summary.read_summary(run).arms.items()}
    for line, arm in zip(lines(one(run)), ("skg", "skg"), strict=True):
        assert line.assay.ahead is not None
        assert line.assay.ahead.value == pytest.approx(means[arm] - means["never"], abs=1e-9)
        assert line.assay.room.value == pytest.approx(means["oracle"] - means[arm], abs=1e-9)
        assert line.by_seed == pytest.approx([line.utility.estimate.mean])


def test_hits_at_equal_errors_are_those_of_compare_turned_where_skg_is_the_arm(run: Run) -> None:
    equal = {match.arm: match.figures["hit_rate"] for match in compare([run], "skg").matched}
    number, part = (line.matched for line in lines(one(run)))
    assert number == equal["threshold_70"]
    turned = equal["no_reranker"]
    assert part is not None
    assert (part.arm, part.reference) == (turned.reference, turned.arm)
    assert (part.difference, part.low, part.high) == (-turned.difference, -turned.high, -turned.low)


@pytest.mark.parametrize("name", ["skg_parameters", "skg_sensitive", "skg_sensitive_parts"])
def test_every_arm_of_the_experiment_is_in_a_contrast_that_names_a_claim(name: str) -> None:
    root = compose([f"experiment={name}"]).root
    named = {contrast[side] for contrast in root["contrasts"] for side in ("arm", "reference", "bound")}
    assert set(root["arms"]) - named <= {"never", "oracle"}
    assert {"never", "oracle"} <= set(root["arms"])
    assert all("bound" in contrast for contrast in root["contrasts"])
    sensitive = {contrast["reference"].startswith(SENSITIVE) for contrast in root["contrasts"]}
    assert sensitive == {name != "skg_parameters"}


def test_the_sensitive_point_answers_and_the_papers_own_stands_beside_it(run: Run) -> None:
    number, part = lines(one(run))
    sure = replace(part, verdict="reproduced", words="it serves users better")
    other = replace(sure.utility.contrast, reference="prompts_no_reranker")
    sure = replace(sure, utility=replace(sure.utility, contrast=other))
    results = {finding.id: finding for finding in findings([(one(run), [number, part]), (one(run), [sure])])}
    assert set(results) == {"K01", "K11", "K10"}
    assert results["K10"].verdict == "reproduced"
    assert results["K10"].own == Measured.of(part.utility.estimate)
    assert "As the paper has it" in results["K10"].words
    assert results["K11"].own is None
    assert "at the paper's own operating point" in results["K11"].words


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two contrasts of the experiment, small."""
    return small(tmp_path_factory.mktemp("parameters") / "run", "users=8", "weeks=2")


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The same on the corpus of 120 intents."""
    out = tmp_path_factory.mktemp("parameters") / "few"
    return small(out, "users=8", "weeks=2", "simulator.corpus=builtin_120")


def small(out: Path, *overrides: str) -> Run:
    """A run of two contrasts."""
    arms: dict[str, Any] = {"skg": [], "never": ["policy=never"], "threshold_70": ["policy.threshold=0.7"],
                            "no_reranker": ["reranker=identity"], "oracle": ["router=oracle"]}  # fmt: skip
    entries = (
        "{kind: effect, arm: threshold_70, reference: skg, asks: 'K11: a threshold of 0.7'},"
        "{kind: effect, arm: skg, reference: no_reranker, bound: oracle, asks: 'K10: the reranker'}"
    )
    return simulate([f"arms={json.dumps(arms)}", f"contrasts=[{entries}]", "reference=skg", "workers=1",
                     "simulator.rated_share=0.6", "simulator.volume_spread=0.2", "policy.threshold=0.4", f"out={out}",
                     *overrides])  # fmt: skip


@pytest.mark.req("K11", "K10")
def test_findings_carry_the_contrasts_own_figures(run: Run, tmp_path: Path) -> None:
    table = lines(one(run))
    assert [line.id for line in table] == ["K11", "K10"]
    results = findings([(one(run), table)])
    assert results[3].measured.value == table[0].utility.estimate.mean  # type: ignore[union-attr]
    assert results[3].evidence.users == 8
    analyse([run]).write(tmp_path, "skg_parameters")
    assert (tmp_path / "skg_parameters.md").read_text("utf-8").count("\n| K") == 2
    assert len(json.loads((tmp_path / "claims" / "skg_parameters.json").read_text("utf-8"))["findings"]) == 5


def test_each_corpus_has_its_tables_and_a_finding_has_the_figures_of_all(run: Run, few: Run) -> None:
    report = analyse([run, few])
    titles = [part.title for part in report.parts if isinstance(part, Table)]
    assert titles[0] == "As the paper has it"
    assert "As the paper has it, on builtin_120" in titles
    assert "8 users, 2 weeks, each of the seeds 0, on the built-in corpus; 95 %" in report.page
    results = report.findings() if report.findings else []
    assert all(" On builtin_120 " in result.words for result in results)
    assert {source.data["simulator"] for source in results[0].evidence.sources} == {
        each.manifest["data"]["simulator"] for each in (run, few)
    }


def test_the_order_of_runs_changes_no_table_and_no_finding(run: Run, few: Run) -> None:
    one_way, other_way = analyse([run, few]), analyse([few, run])
    assert one_way.findings
    assert other_way.findings
    assert one_way.findings() == other_way.findings()
    assert [part.markdown() for part in one_way.parts] == [part.markdown() for part in other_way.parts]  # type: ignore[union-attr]


def test_runs_that_differ_in_more_than_their_corpus_are_refused(run: Run, tmp_path: Path) -> None:
    dear = small(tmp_path / "dear", "users=4", "weeks=1", "simulator.corpus=builtin_120", "utility.wrong=3")
    with pytest.raises(
        UsageError, match=r"on the built-in corpus and builtin_120 differ in utility\.wrong: 1\.0 and 3"
    ):
        analyse([run, dear])
    with pytest.raises(UsageError, match="ask the same on the built-in corpus, and are no two seeds of one config"):
        analyse([run, run])


def test_points_of_two_corpora_are_held_against_one_another_only_if_they_are_the_same(run: Run) -> None:
    number, part = lines(one(run))
    other = replace(part.utility.contrast, reference="prompts_no_reranker")
    sensitive = replace(part, utility=replace(part.utility, contrast=other), verdict="reproduced")
    elsewhere = one(run)
    with patch("experiments.skg_parameters.analysis.corpus", lambda config: config["name"]):
        ours, theirs = (
            SimpleNamespace(runs=elsewhere.runs, config={**elsewhere.config, "name": name}, arms=[])
            for name in (OUR_CORPUS, "theirs")
        )
        results = findings([(ours, [sensitive]), (theirs, [number, part])])  # type: ignore[list-item]
    assert {result.id: " On theirs " in result.words for result in results} == {"K10": False, "K11": False}
    assert next(result for result in results if result.id == "K11").words.startswith("On theirs alone: ")


def test_a_run_of_another_experiment_is_refused(tmp_path: Path) -> None:
    other = make_run(tmp_path / "run", users=4, weeks=2, per_week=10.0, arms=SYNTHETIC)
    with pytest.raises(UsageError, match="is no run of skg_parameters or skg_sensitive"):
        analyse([other])


def test_the_readme_is_right_about_what_depends_on_the_corpus_and_which_threshold_is_better() -> None:
    """Sentences on verdicts of several findings have no single cell."""
    known = json.loads((ROOT / "reports" / "claims" / "skg_parameters.json").read_text("utf-8"))["findings"]
    depends = [each["claimed"] for each in known if each["verdict"] == DEPENDS]
    assert depends == ["a skillbook serves users better: a skill's prompt, every answer captured"]
    thresholds = {each["claimed"]: each["verdict"] for each in known if each["id"] == "K11"}
    assert [name for name, verdict in thresholds.items() if verdict == "not reproduced"] == ["a threshold of 0.6"]
    assert len(thresholds) == 4
