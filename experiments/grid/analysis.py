"""Which router and which reranker make a difference, on each corpus and on all? From runs of `grid`, in words."""

import re
from collections.abc import Sequence

from experiments.grid.effects import FACTORS, Effect, grids
from experiments.grid.page import markdown
from skg_bench.analysis.report import forest
from skg_bench.app.experiment_report import Report
from skg_bench.app.experiments import Experiment, Runs


def words(effects: Sequence[Effect]) -> list[str]:
    """Sentences on what holds on every corpus, what on some, and what is not shown; one an option and metric."""
    corpora = list(dict.fromkeys(effect.corpus for effect in effects))
    by_kind: dict[str, list[str]] = {"all": [], "some": [], "mixed": []}
    silent = []
    for (factor, option, metric), group in _grouped(effects).items():
        shown = [effect for effect in group if effect.holds]
        signs = {effect.estimate.mean > 0 for effect in shown}
        if not shown:
            silent.append(f"{option} ({metric})")
            continue
        against = FACTORS[factor]
        sizes = "; ".join(f"{effect.size} on {effect.corpus}" for effect in shown)
        if len(signs) > 1:
            by_kind["mixed"].append(f"{option} against {against}, {metric}: {sizes}.")
        else:
            than = f"{'higher' if signs == {True} else 'lower'} than that of {against}"
            open_on = [effect for effect in group if not effect.holds]
            rest = "".join(f"; not shown on {effect.corpus}, {effect.size}" for effect in open_on)
            by_kind["some" if open_on else "all"].append(f"{metric.capitalize()} of {option} is {than}: {sizes}{rest}.")
    every = corpora[0] if len(corpora) == 1 else "both corpora" if len(corpora) == 2 else f"all {len(corpora)} corpora"
    headed = [(f"Holds on {every}", by_kind["all"])]
    if len(corpora) > 1:
        headed += [("Holds on one corpus, and is not shown on another", by_kind["some"]),
                   ("Turns round between corpora", by_kind["mixed"])]  # fmt: skip
    lines = [f"{sum(effect.holds for effect in effects)} of {len(effects)} differences hold."]
    for heading, sentences in headed:
        lines += [
            f"**{heading}:** {'' if sentences else 'nothing.'}".rstrip(),
            *(f"* {sentence}" for sentence in sentences),
        ]
    if silent:
        lines.append(f"**Nothing is shown of:** {', '.join(silent)}.")
    return lines


def _grouped(effects: Sequence[Effect]) -> dict[tuple[str, str, str], list[Effect]]:
    groups: dict[tuple[str, str, str], list[Effect]] = {}
    for effect in effects:
        groups.setdefault((effect.factor, effect.option, effect.metric.label), []).append(effect)
    return groups


def analyse(runs: Runs) -> Report:
    """Analyses all runs of the grid, of every seed and corpus; nothing expected is checked."""
    corpus_grids, effects = grids(runs)
    sentences = words(effects)
    figures = {
        grid.corpus: f"grid_{'_'.join(re.findall('[a-z0-9]+', grid.corpus.lower()))}.svg" for grid in corpus_grids
    }
    return Report(
        [line.replace("**", "") for line in sentences],
        markdown(corpus_grids, effects, sentences, figures),
        figures={figures[grid.corpus]: forest.forest_svg(grid.table) for grid in corpus_grids},
    )


EXPERIMENT = Experiment(analyse)
