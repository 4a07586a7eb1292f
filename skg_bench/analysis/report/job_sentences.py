"""Sentences on the outcome of learning jobs."""

from skg_bench.analysis.report.sentences import Sentence, code
from skg_bench.analysis.summary.document import Summary


def learning_sentences(summary: Summary, arm: str) -> list[Sentence]:
    """The fate of an arm's learning jobs; none where an arm has none."""
    sentences = []
    if (jobs := summary.learning.get(arm)) is not None:
        ended = ", ".join(f"{n:,} {result.replace('_', ' ')}" for result, n in jobs.results.items())
        refused = f"; {jobs.refused:,} proposed operations were refused" if jobs.refused else ""
        lost = sum(jobs.results.get(result, 0) for result in ("timed_out", "invalid", "error"))
        n = sum(jobs.results.values())
        cost = f"; by the prices of its configuration they cost {jobs.cost_usd or 0.0:,.2f} USD"
        if jobs.tokens and not jobs.cost_usd:
            cost = f"; its prices are not known, so that utility does not pay for {jobs.tokens:,} tokens"
        failed = f"; {lost / n:.0%} came to nothing, so that this arm says little about the model" if lost else ""
        start = f"{code(arm)} had {n:,} learning jobs ({ended})"
        sentences.append(Sentence(f"{start}{failed}{refused}{cost}.", "caution" if failed else "plain"))
    return sentences
