"""Figures of a run without those of hits that nobody can tell."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from skg_bench.analysis.summary.collect import Curve
from skg_bench.analysis.summary.document import Summary
from skg_bench.analysis.summary.figures import NO_FIGURE, DifferenceFigure
from skg_bench.runfolder.hidden_hits import HIT_METRICS


def without_hits(content: Summary, hidden: Collection[str]) -> Summary:
    """The content of `summary.json` without figures of hits of the arms `hidden`: their means are null, and no arm is
    compared with them.
    """
    unknown = dict.fromkeys(HIT_METRICS, NO_FIGURE)
    arms = {
        arm: {name: unknown.get(name, figure) if arm in hidden else figure for name, figure in figures.items()}
        for arm, figures in content.arms.items()
    }
    differences = {
        arm: _without_hits(gaps) if {arm, content.reference} & {*hidden} else gaps
        for arm, gaps in content.differences.items()
    }
    effects = {
        arm: replace(effect, metrics=_without_hits(effect.metrics)) if {arm, effect.live} & {*hidden} else effect
        for arm, effect in content.effects.items()
    }
    return replace(content, arms=arms, differences=differences, effects=effects)


def curves_without_hits(curves: Sequence[Curve], hidden: Collection[str]) -> list[Curve]:
    """Curves without those of hits of the arms `hidden`."""
    return [curve for curve in curves if curve[0] not in hidden or curve[1] not in HIT_METRICS]


def _without_hits(gaps: Mapping[str, DifferenceFigure]) -> Mapping[str, DifferenceFigure]:
    return {name: gap for name, gap in gaps.items() if name not in HIT_METRICS}
