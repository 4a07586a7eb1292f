"""Arms of which it cannot be seen what they answer from memory, and the metrics that would say it.

These are classes and endpoints in a world that judges words, where their words carry no references: a turn without the
model may be memory, a rule or silence, and a prompt may hold whatever was said before.
"""

from skg_bench.runfolder.run import Run
from skg_bench.runfolder.worded_arms import arms_of_own_words

HIT_METRICS = frozenset({"hit_rate", "err_per_hit", "err_per_request_hits", "right_per_hit", "pays_from", "pays_by"})


def arms_without_hits(run: Run) -> list[str]:
    """Arms of which it cannot be seen what they answer from memory; none where words carry references."""
    return arms_of_own_words(run) if run.domain.in_words else []
