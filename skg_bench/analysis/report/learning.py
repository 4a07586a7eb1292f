"""What became of learning jobs, in sentences."""

from skg_bench.analysis.report.sentences import Sentence, code
from skg_bench.analysis.summary.content import Summary


def learning_sentences(summary: Summary) -> list[Sentence]:
    """What became of each arm's learning jobs."""
    sentences = []
    for arm, jobs in summary.learning.items():
        ended = ", ".join(f"{n:,} {result.replace('_', ' ')}" for result, n in jobs.results.items())
        refused = f"; {jobs.refused:,} proposed operations were refused" if jobs.refused else ""
        lost = sum(jobs.results.get(result, 0) for result in ("timed_out", "invalid", "error"))
        cost = "" if jobs.cost_usd is None else f"; that cost {jobs.cost_usd:,.2f} USD in all"
        start = f"{code(arm)} asked a model {sum(jobs.results.values()):,} times what to learn ({ended})"
        sentences.append(Sentence(f"{start}{refused}{cost}.", "caution" if lost else "plain"))
    return sentences
