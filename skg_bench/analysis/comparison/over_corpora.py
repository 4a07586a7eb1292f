"""Findings on several corpora as one: a verdict that holds on one corpus and not on another depends on the corpus."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from skg_bench.analysis.comparison.assay import OPEN, ClaimVerdict
from skg_bench.analysis.comparison.findings import Finding

DEPENDS: ClaimVerdict = "depends on the corpus"


def over_corpora(by_corpus: Mapping[str, Sequence[Finding]]) -> list[Finding]:
    """Findings of the first corpus, each with what the others say of the same claim.

    `by_corpus`: findings by the corpus' name. A verdict reads "depends on the corpus" where another corpus has another
    verdict, or where the intervals of the two lie on either side of 0. What is open on the first corpus stays open.
    """
    (first, results), *others = by_corpus.items()
    elsewhere = {name: {(each.id, each.claimed): each for each in findings} for name, findings in others}
    return [
        _beside(result, first, {name: some[key] for name, some in elsewhere.items() if key in some})
        for result in results
        for key in [(result.id, result.claimed)]
    ]


def _beside(result: Finding, first: str, others: Mapping[str, Finding]) -> Finding:
    if not others:
        return result
    words = " ".join([result.words, *(f"On {name} {each.measured}, {each.verdict}." for name, each in others.items())])
    sources = (*result.evidence.sources, *(source for other in others.values() for source in other.evidence.sources))
    evidence = replace(result.evidence, sources=sources)
    if result.verdict == OPEN or not any(_differs(result, other) for other in others.values()):
        return replace(result, words=words, evidence=evidence)
    return replace(result, verdict=DEPENDS, words=f"On {first} {result.verdict}: {words}", evidence=evidence)


def _differs(result: Finding, other: Finding) -> bool:
    """Does the other finding say something else than this one, which has a verdict?"""
    if other.verdict != OPEN:
        return other.verdict != result.verdict
    mine, theirs = result.measured, other.measured
    if isinstance(mine, str) or isinstance(theirs, str) or (other.assay is not None and other.assay.gap):
        return False
    return mine.low > 0 > theirs.high or theirs.low > 0 > mine.high
