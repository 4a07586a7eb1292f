"""Verdicts on several corpora: the figures are those of `compare`, and a verdict that turns is told as such."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import skg_bench
from experiments.other_corpora.analysis import KINDS, ArmByCorpus, analyse, by_corpus, gathered
from skg_bench.analysis.comparison.over_corpora import differ_in_corpus_alone
from skg_bench.analysis.counts.measure import Verdict
from skg_bench.app.readmes import tables
from skg_bench.runfolder.run import Run
from tests.imports import ROOT

ARMS = "arms={never: [policy=never, curator=none], cache: [curator=everything, reranker=identity], \
same: [policy=never, curator=none]}"
WORLD = ("experiment=controls", "reference=never", "weeks=1", "workers=1", "simulator.messages_per_day=5",
         "simulator.volume_spread=0.2")  # fmt: skip
CORPORA = {"ours": [], "builtin_120": ["simulator.corpus=builtin_120"]}


@pytest.fixture(scope="module")
def runs(once: Callable[..., Path]) -> list[Run]:
    """Two seeds on two corpora."""

    def play(folder: Path) -> None:
        for name, overrides in CORPORA.items():
            for seed in "01":
                skg_bench.run([*WORLD, ARMS, "users=6", *overrides, f"seed={seed}", f"out={folder / name / seed}"])

    folder = once("other_corpora", play)
    return [Run(folder / name / seed) for name in CORPORA for seed in "01"]


def utility(run: Run, arm: str) -> float:
    """Mean over users, as the run's summary has it."""
    (figure,) = (each for each in run.to_pandas().itertuples() if (each.arm, each.metric) == (arm, "utility"))
    return float(figure.mean)


@pytest.mark.req("K01")
def test_a_difference_is_that_of_the_summaries_of_its_seeds_on_one_corpus(runs: list[Run]) -> None:
    ((name, known),) = gathered(runs).items()
    result = by_corpus(name, known)
    assert name == "controls"
    assert [each.arm for each in result.arms] == ["cache", "same"]
    assert list(result.table.headings[1:-1]) == ["the built-in corpus", "builtin_120"]
    sizes = []
    for whose, some in (("the built-in corpus", runs[:2]), ("builtin_120", runs[2:])):
        gains = [utility(run, "cache") - utility(run, "never") for run in some]
        assert result.arms[0].by_corpus[whose].estimate.mean == pytest.approx(sum(gains) / len(gains))
        assert result.arms[1].by_corpus[whose].verdict == "identical"
        sizes += gains
    assert len({*sizes}) == len(runs)


@pytest.mark.parametrize(
    ("verdicts", "kind", "words"),
    [
        (("better", "better"), KINDS[0], "better"),
        (("worse", "inconclusive"), KINDS[1], "worse, not shown on second"),
        (("not testable here", "better"), KINDS[1], "better, not shown on first"),
        (("better", "worse"), KINDS[2], "depends on the corpus"),
        (("inconclusive", "identical"), KINDS[3], "open"),
    ],
)
def test_a_verdict_over_corpora(runs: list[Run], verdicts: tuple[Verdict, Verdict], kind: str, words: str) -> None:
    some = by_corpus("controls", gathered(runs)["controls"]).arms[0].by_corpus["builtin_120"]
    by_name = {name: replace(some, verdict=word) for name, word in zip(("first", "second"), verdicts, strict=True)}
    arm = ArmByCorpus("cache", by_name)
    assert (arm.kind, arm.verdict) == (kind, words)


def test_the_report_counts_every_arm_once_and_says_what_was_run(runs: list[Run]) -> None:
    report = analyse(runs)
    assert "controls: 6 users and 1 weeks, 2 seeds on the built-in corpus, 2 seeds on builtin_120" in report.page
    line = next(line for line in report.page.splitlines() if line.startswith("| controls |"))
    total, *kinds = (int(cell) for cell in line.strip("| ").split(" | ")[1:])
    assert total == sum(kinds) == 2


@pytest.mark.usefixtures("bare")
def test_runs_that_tell_nothing_about_corpora_are_refused(runs: list[Run], tmp_path: Path) -> None:
    def other(name: str, *overrides: str) -> Run:
        return skg_bench.run([*WORLD, ARMS, "users=2", *overrides, f"out={tmp_path / name}"])

    for some, why in (
        (runs[:2], "all runs of controls are on the built-in corpus; make others too, such as with simulator=clinc150"),
        ([runs[0], runs[0]], "both of controls on the built-in corpus, and no two seeds of one configuration"),
        ([runs[2], other("few")], "on builtin_120 and the built-in corpus differ in users: 6 and 2"),
        ([other("dear", "utility.wrong=2"), runs[2]], r"differ in users: 2 and 6"),
        ([other("habit", "simulator.habit=0.9"), other("usual", "simulator.corpus=builtin_120")],
         r"differ in simulator\.habit: 0\.9 and 0\.5; what they show would not be the corpus alone"),
        ([other("strict", "policy.threshold=0.7"), other("loose", "simulator.corpus=builtin_120")],
         r"differ in arms\.cache\.policy\.threshold: 0\.7 and 0\.5"),
        ([runs[0], other("named", "users=6", "simulator.corpus=builtin")], "no two seeds of one configuration"),
    ):  # fmt: skip
        with pytest.raises(skg_bench.UsageError, match=why):
            gathered(some)
    mine = tmp_path / "mine"
    shutil.copytree(ROOT / "data" / "corpus", mine, ignore=shutil.ignore_patterns("minilm*"))
    named = [f"simulator.corpus={mine}", "embedder=hashing"]
    before = other("before", *named)
    (mine / "one_offs.txt").write_text("what is this\nand that\n", "utf-8")
    with pytest.raises(skg_bench.UsageError, match=r"have other messages, and both corpora are called .*mine; give"):
        gathered([before, other("after", *named)])
    bare = skg_bench.run(
        ["experiment=controls", "arms={skg: []}", "users=2", "weeks=1", "workers=1", f"out={tmp_path / 'bare'}"]
    )
    with pytest.raises(skg_bench.UsageError, match="has no arm 'never'"):
        gathered([bare])


def test_arms_that_read_other_files_are_not_held_against_one_another(runs: list[Run]) -> None:
    """Such as a prompt that was edited between the runs: its digest in the manifest is all that tells."""
    ours, theirs = gathered(runs)["controls"].values()
    edited = replace(theirs, runs=tuple(map(Edited, (run.path for run in theirs.runs))))
    with pytest.raises(skg_bench.UsageError, match=r"differ in data\.prompts\.chooser: None and another"):
        differ_in_corpus_alone(ours, edited)


class Edited(Run):
    """A run whose model read another prompt."""

    @property
    def manifest(self) -> dict[str, Any]:
        content = Run(self.path).manifest
        return {**content, "data": {**content["data"], "prompts.chooser": "another"}}


def test_the_readme_is_right_about_stored_texts() -> None:
    """Its sentence on all arms that answer with stored texts has no single cell."""
    page = (ROOT / "reports" / "other_corpora.md").read_text("utf-8")
    rows = [row for table in tables(page) for row in table.rows if row[0].startswith("stored_")]
    learned = [row for row in rows if "_oracle_" not in row[0]]
    assert len(learned) == 7
    assert {row[-1] for row in learned} == {"worse"}
    assert {row[-1] for row in rows} > {"worse"}
