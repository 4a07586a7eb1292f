"""Arms of which it cannot be seen what they answer from memory, and the metrics that would say it.

These are classes and endpoints whose words carry no references: a turn without the model may be memory, a rule or
silence, and a prompt may hold whatever was said before. In a world that judges words they never do; elsewhere an
assistant may drop them.
"""

import pyarrow.compute as pc

from skg_bench.runfolder.run import Run
from skg_bench.runfolder.worded_arms import arms_of_own_words

HIT_METRICS = frozenset({"hit_rate", "err_per_hit", "err_per_request_hits", "right_per_hit", "pays_from", "pays_by"})


def arms_without_hits(run: Run) -> list[str]:
    """Arms of which it cannot be seen what they answer from memory: in a world that judges words all classes and
    endpoints, elsewhere those with `unmarked_turns`. Of a replayed log none: its sentences count these turns.
    """
    arms = arms_of_own_words(run)
    if run.domain.in_words or run.manifest.get("log"):
        return arms if run.domain.in_words else []
    return [arm for arm in arms if unmarked_turns(run, arm)]


def unmarked_turns(run: Run, arm: str) -> int:
    """Number of turns, of those that are there, that an arm of own words answered without a reference; of a replayed
    log, in which no answer is judged, those at which it did not ask its model either.
    """
    if not run.numbers(arm):
        return 0
    table = run.turns(arm, ["tokens_in", "source_turn", "answer_correct"])
    unmarked = pc.is_null(table["answer_correct"])
    if run.manifest.get("log"):
        alone = pc.and_(pc.equal(table["tokens_in"], 0), pc.less(table["source_turn"], 0))
        unmarked = pc.and_(unmarked, alone)
    return pc.sum(unmarked).as_py() or 0
