"""A verdict that holds on one corpus and not on another depends on the corpus, and both figures are given."""

from dataclasses import replace

import pytest

from skg_bench.analysis.comparison.assay import Assay, ClaimVerdict, Measured
from skg_bench.analysis.comparison.findings import Evidence, Finding, FindingSource
from skg_bench.analysis.comparison.over_corpora import over_corpora

UNIT = "utility per request"
OURS, THEIRS = ("the built-in corpus", "Clinc150")
AHEAD, BEHIND = Measured(0.02, 0.01, 0.03, UNIT), Measured(-0.03, -0.05, -0.01, UNIT)


def finding(value: float, verdict: ClaimVerdict, half: float = 0.004, corpus: str = OURS) -> Finding:
    source = FindingSource((f"simulator.corpus={corpus}",), "c", {"simulator": corpus}, ())
    evidence = Evidence("run", "abc", 60, 14, (0, 1, 2), (source,))
    measured = Measured(value, value - half, value + half, UNIT)
    return Finding("K10", "the reranker", measured, verdict, "It is so.", evidence, Assay(AHEAD, AHEAD))


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        (finding(0.02, "reproduced"), finding(0.01, "reproduced"), "reproduced"),
        (finding(0.02, "reproduced"), finding(-0.02, "not reproduced"), "depends on the corpus"),
        (finding(0.02, "reproduced"), finding(0.001, "not reproduced"), "depends on the corpus"),  # worth too little
        # what has no verdict there turns none: the corpus is used up, seeds disagree, or the reference harms
        (finding(0.02, "reproduced"), finding(-0.02, "not testable here"), "reproduced"),
        (finding(0.001, "not testable here"), finding(-0.02, "not reproduced"), "not testable here"),
    ],
)
def test_a_verdict_depends_on_the_corpus_where_another_one_has_another_verdict(
    ours: Finding, theirs: Finding, verdict: ClaimVerdict
) -> None:
    theirs = on(THEIRS, theirs)
    [result, other] = over_corpora({OURS: [ours], THEIRS: [theirs, replace(theirs, claimed="something else")]})
    assert result.verdict == verdict
    assert result.words.endswith(f" On Clinc150 {theirs.measured}, {theirs.verdict}.")
    assert result.words.startswith("On the built-in corpus" if verdict == "depends on the corpus" else "It is so.")
    assert [source.data["simulator"] for source in result.evidence.sources] == [OURS, THEIRS]
    assert result.measured == ours.measured
    assert (other.claimed, other.words) == ("something else", "On Clinc150 alone: It is so.")


def test_a_claim_that_was_tested_on_one_corpus_alone_stays_as_it_is() -> None:
    ours = finding(0.02, "reproduced")
    assert over_corpora({OURS: [ours]}) == over_corpora({OURS: [ours], THEIRS: []}) == [ours]


def test_of_three_corpora_two_that_differ_are_enough() -> None:
    by_corpus = {OURS: [finding(0.02, "reproduced")], THEIRS: [on(THEIRS, finding(0.01, "reproduced"))]}
    [result] = over_corpora({**by_corpus, "third": [on("third", finding(-0.02, "not reproduced"))]})
    assert result.verdict == "depends on the corpus"


def on(corpus: str, known: Finding) -> Finding:
    """A finding, as if it was made on another corpus."""
    return replace(known, evidence=finding(0, "reproduced", corpus=corpus).evidence)
