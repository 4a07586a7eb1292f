"""Arms whose answers from memory nobody can tell apart: classes and endpoints in a world that judges words.

Their words carry no references there. A turn without the model may be memory, a rule or silence, and a prompt may hold
whatever was said before. So figures of their hits are taken out of what readers see, and charts draw no lines of them.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

import pyarrow.compute as pc

from skg_bench.analysis.comparison.compare import Comparison
from skg_bench.analysis.report.outside_arms import arms_of_own_words
from skg_bench.analysis.report.sentences import Sentence, code
from skg_bench.analysis.summary import Summary, read_summary
from skg_bench.analysis.summary.figures import NO_FIGURE, DifferenceFigure
from skg_bench.runfolder.run import Run

HIT_METRICS = frozenset({"hit_rate", "err_per_hit", "err_per_request_hits", "right_per_hit", "pays_from", "pays_by"})


def arms_without_hits(run: Run) -> list[str]:
    """Arms of which it cannot be seen what they answer from memory; none where words carry references."""
    return arms_of_own_words(run) if run.domain.in_words else []


def readable_summary(run: Run) -> Summary:
    """The figures of a run without those of hits of `arms_without_hits`.

    Raises UsageError for a run without figures.
    """
    summary, hidden = read_summary(run), arms_without_hits(run)
    if not hidden or summary.log is not None:
        return summary
    unknown = dict.fromkeys(HIT_METRICS, NO_FIGURE)
    arms = {
        arm: {name: unknown.get(name, figure) if arm in hidden else figure for name, figure in figures.items()}
        for arm, figures in summary.arms.items()
    }
    differences = {
        arm: _without_hits(gaps) if {arm, summary.reference} & {*hidden} else gaps
        for arm, gaps in summary.differences.items()
    }
    effects = {
        arm: replace(effect, metrics=_without_hits(effect.metrics)) if {arm, effect.live} & {*hidden} else effect
        for arm, effect in summary.effects.items()
    }
    return replace(summary, arms=arms, differences=differences, effects=effects)


def hides_hits(summary: Summary, arm: str, metric: str) -> bool:
    """Has `readable_summary` taken this figure of an arm out?"""
    return metric in HIT_METRICS and summary.arms.get(arm, {}).get(metric) == NO_FIGURE


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
    """A comparison without rows on hits of `unknown_gaps`, for a figure."""
    arms = unknown_gaps(compared, hidden)
    rows = tuple(row for row in compared.rows if row.arm not in arms or row.metric.name not in HIT_METRICS)
    return replace(compared, rows=rows)


def silence_sentences(run: Run) -> list[Sentence]:
    """A caution for each of `arms_without_hits` that said nothing at some turns."""
    return [sentence for arm in arms_without_hits(run) for sentence in _silence(run, arm)]


def _silence(run: Run, arm: str) -> Collection[Sentence]:
    words = run.turns(arm, ["said"])["said"]
    count = pc.sum(pc.is_null(words)).as_py() or 0
    text = f"{code(arm)} said nothing at {count:,} of {len(words):,} turns: its words were empty."
    return [Sentence(text, "caution")] if count else []


def _without_hits(gaps: Mapping[str, DifferenceFigure]) -> Mapping[str, DifferenceFigure]:
    return {name: gap for name, gap in gaps.items() if name not in HIT_METRICS}
