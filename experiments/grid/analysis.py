"""Which router and which reranker make a difference, on each corpus and on all? From runs of `grid`, in words."""

import re
from collections.abc import Sequence

from experiments.grid.effects import FACTORS, Effect, Grid, grids
from experiments.grid.page import made_by, markdown
from skg_bench.analysis.comparison.claims import ONLY_LESS, Evidence, Finding, Measured, verdict
from skg_bench.analysis.report import forest
from skg_bench.analysis.statistics.intervals import ALPHA
from skg_bench.app.experiment_report import Report
from skg_bench.app.experiments import Experiment, Runs

CLAIM = "a light model, a weight vector or later a small net, ranks skills by what users rated"


def words(effects: Sequence[Effect]) -> list[str]:
    """What holds on every corpus, what on some, and of what nothing is shown; one sentence an option and metric."""
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


def findings(corpus_grids: Sequence[Grid], effects: Sequence[Effect]) -> list[Finding]:
    """Of K10: what rerankers that learn are worth, in utility."""
    results = []
    for grid in corpus_grids:
        evidence = Evidence.of(grid.combined.runs, made_by(grid))
        for effect in effects:
            if (effect.corpus, effect.factor, effect.metric.name) == (grid.corpus, "reranker", "utility"):
                helps = effect.holds and effect.estimate.mean > 0
                beyond = None if effect.beyond is None else Measured.of(effect.beyond)
                used_up = grid.used_up.reasons
                says = verdict(holds=helps, fails=effect.holds and not helps, beyond=beyond, used_up=used_up)
                what = _against_none(effect, len(effects))
                if used_up:
                    what += f", but the corpus was used up: {'; '.join(used_up)}"
                elif helps and says != "reproduced":
                    what += f": {ONLY_LESS}"
                sentence = f"reranker={effect.option} over all routers, on {effect.corpus}, {what}."
                results.append(Finding("K10", CLAIM, Measured.of(effect.estimate), says, sentence, evidence, beyond))
    return results


def _against_none(effect: Effect, n: int) -> str:
    """In words that do not contradict the interval; `n`: differences that are tested together."""
    e, (low, high) = effect.estimate, effect.estimate.interval(new=True)
    if effect.holds:
        return "serves users better than none" if e.mean > 0 else "serves users worse than none"
    finds = f"such a run finds {e.detectable(new=True, level=ALPHA / n):.4f}"
    if e.withheld:
        return f"is not shown to differ from none; its {e.intents:.1f} effective intents are too few for an interval"
    if low <= 0 <= high:
        return f"is not shown to differ from none; {finds}"
    return f"differs from none by itself, yet this does not hold once corrected for {n} differences; {finds}"


def analyse(runs: Runs) -> Report:
    """From all runs of the grid, of every seed and corpus; nothing expected is checked."""
    corpus_grids, effects = grids(runs)
    sentences = words(effects)
    figures = {
        grid.corpus: f"grid_{'_'.join(re.findall('[a-z0-9]+', grid.corpus.lower()))}.svg" for grid in corpus_grids
    }
    return Report(
        [line.replace("**", "") for line in sentences],
        markdown(corpus_grids, effects, sentences, figures),
        figures={figures[grid.corpus]: forest.svg(grid.table) for grid in corpus_grids},
        findings=lambda: findings(corpus_grids, effects),
    )


EXPERIMENT = Experiment(analyse)
