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
        (finding(0.02, "reproduced"), finding(-0.01, "not testable here"), "depends on the corpus"),
        (
            finding(0.02, "reproduced"),
            finding(-0.001, "not testable here"),
            "reproduced",
        ),  # by noise, as far as is known
        (finding(0.02, "reproduced"), finding(0.001, "not testable here"), "reproduced"),
        (finding(-0.02, "not reproduced"), finding(0.01, "not testable here"), "depends on the corpus"),
        (finding(0.001, "not reproduced"), finding(-0.001, "not testable here"), "not reproduced"),  # no sign was shown
        (finding(0.001, "not testable here"), finding(-0.02, "not reproduced"), "not testable here"),
    ],
)
def test_a_verdict_needs_no_other_one_and_no_other_sign_elsewhere(
    ours: Finding, theirs: Finding, verdict: ClaimVerdict
) -> None:
    theirs = replace(theirs, evidence=finding(0, "reproduced", corpus=THEIRS).evidence)
    [result] = over_corpora({OURS: [ours], THEIRS: [theirs, replace(theirs, claimed="something else")]})
    assert result.verdict == verdict
    assert result.words.endswith(f" On Clinc150 {theirs.measured}, {theirs.verdict}.")
    assert result.words.startswith("On the built-in corpus" if verdict == "depends on the corpus" else "It is so.")
    assert [source.data["simulator"] for source in result.evidence.sources] == [OURS, THEIRS]
    assert result.measured == ours.measured


def test_a_corpus_on_which_nothing_could_be_shown_turns_no_verdict() -> None:
    untold = replace(finding(-0.02, "not testable here"), assay=Assay(BEHIND, AHEAD))
    [result] = over_corpora({OURS: [finding(0.02, "reproduced")], THEIRS: [untold]})
    assert result.verdict == "reproduced"


def test_a_claim_that_was_tested_on_one_corpus_alone_stays_as_it_is() -> None:
    ours = finding(0.02, "reproduced")
    assert over_corpora({OURS: [ours]}) == over_corpora({OURS: [ours], THEIRS: []}) == [ours]
