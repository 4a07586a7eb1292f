"""Sentences on the outcome of learning jobs."""

from skg_bench.analysis.report.sentences import Sentence, code
from skg_bench.analysis.summary.document import Summary
from skg_bench.core.text import plural


def learning_sentences(summary: Summary, arm: str) -> list[Sentence]:
    """The fate of an arm's learning jobs; none where an arm has none."""
    sentences = []
    if (jobs := summary.learning.get(arm)) is not None:
        ended = ", ".join(f"{n:,} {result.replace('_', ' ')}" for result, n in jobs.results.items())
        refused = f"; {_refusals(jobs.refused)} refused" if jobs.refused else ""
        lost = sum(jobs.results.get(result, 0) for result in ("timed_out", "invalid", "error"))
        n = sum(jobs.results.values())
        each, usd = "it" if n == 1 else "they", _dollars(jobs.cost_usd or 0.0)
        cost = f"; by the prices of its configuration {each} cost {usd} USD"
        if jobs.tokens and not jobs.cost_usd:
            cost = f"; its prices are 0 or not known, so that utility pays nothing for {jobs.tokens:,} tokens"
        failed = f"; {lost / n:.0%} came to nothing, so that this arm says little about the model" if lost else ""
        start = f"{code(arm)} had {plural(n, 'learning job')} ({ended})"
        sentences.append(Sentence(f"{start}{failed}{refused}{cost}.", "caution" if failed else "plain"))
    return sentences


def _dollars(usd: float) -> str:
    """A sum of money: small ones with two digits that say something, as they are not nothing."""
    return f"{usd:,.2f}" if usd == 0 or usd >= 0.1 else f"{usd:.2g}"


def _refusals(n: int) -> str:
    return f"{plural(n, 'proposed operation')} {'was' if n == 1 else 'were'}"
