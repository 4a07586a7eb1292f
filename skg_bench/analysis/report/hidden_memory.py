"""Arms whose answers from memory nobody can tell apart: classes and endpoints whose words carry no references.

In a world that judges words they never do (`runfolder/hidden_hits.py`). So `summary.json` has no figures of their
hits, and neither have comparisons that readers see.
"""

from collections.abc import Collection
from dataclasses import replace

import pyarrow.compute as pc

from skg_bench.analysis.comparison.compare import Comparison
from skg_bench.analysis.report.sentences import Sentence, code
from skg_bench.runfolder.hidden_hits import HIT_METRICS, arms_without_hits
from skg_bench.runfolder.run import Run


def names_one_of(arm: str, arms: Collection[str]) -> bool:
    """Is an arm of a comparison, before which its run may be named, one of these arms of runs?"""
    return arm.rpartition(":")[2] in arms


def unknown_gaps(compared: Comparison, hidden: Collection[str]) -> list[str]:
    """Arms of a comparison whose differences in hits are not known: those of `arms_without_hits`, here `hidden`, or all
    if the reference is among them.
    """
    arms = list(dict.fromkeys(row.arm for row in compared.rows))
    return arms if names_one_of(compared.reference, hidden) else [arm for arm in arms if names_one_of(arm, hidden)]


def readable_comparison(compared: Comparison, hidden: Collection[str]) -> Comparison:
    """A comparison without what is said of hits of `unknown_gaps`."""
    arms = unknown_gaps(compared, hidden)
    rows = tuple(row for row in compared.rows if row.arm not in arms or row.metric.name not in HIT_METRICS)
    matched = tuple(match for match in compared.matched if match.arm not in arms)
    pays = {arm: even for arm, even in compared.break_even.items() if not names_one_of(arm, hidden)}
    return replace(compared, rows=rows, matched=matched, break_even=pays)


def silence_sentences(run: Run) -> list[Sentence]:
    """A caution for each arm of a world that judges words which said nothing at some turns."""
    if not run.domain.in_words:
        return []
    hidden = arms_without_hits(run)
    return [
        *(sentence for arm in run.arms if arm not in hidden for sentence in _lost(run, arm)),
        *(sentence for arm in hidden for sentence in _silence(run, arm)),
    ]


def _silence(run: Run, arm: str) -> Collection[Sentence]:
    count, n = _wordless(run, arm)
    text = f"{code(arm)} said nothing at {count:,} of {n:,} turns: its words were empty."
    return [Sentence(text, "caution")] if count else []


def _lost(run: Run, arm: str) -> Collection[Sentence]:
    count, n = _wordless(run, arm)
    text = (
        f"No words came at {count:,} of {n:,} turns of {code(arm)}: its model failed, was too slow, refused, or gave "
        "an empty text. They count as wrong answers, so that a difference between arms may be that of their failures."
    )
    return [Sentence(text, "caution")] if count else []


def _wordless(run: Run, arm: str) -> tuple[int, int]:
    """Turns of an arm without words, and all of its turns."""
    words = run.turns(arm, ["said"])["said"]
    return pc.sum(pc.is_null(words)).as_py() or 0, len(words)
