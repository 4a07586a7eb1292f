"""The head of the page: what a run shows, in sentences with numbers, whoever wins."""

from dataclasses import replace

from skg_bench.analysis.counts.kinds import WORDS
from skg_bench.analysis.counts.wording import interval, number, of_purchases
from skg_bench.analysis.report import logged
from skg_bench.analysis.report.advised import ALONE, advice_sentences
from skg_bench.analysis.report.learning import learning_sentences
from skg_bench.analysis.report.sentences import Sentence, code, share_of
from skg_bench.analysis.statistics.intervals import ALPHA, LEAST_INTENTS
from skg_bench.analysis.summary.content import Summary
from skg_bench.analysis.summary.figures import DifferenceFigure

GIVEN = {  # what a skill is, where it decides what is found
    "stored": ", if a skill is a stored text",
    "prompted": ", if a skill is a prompt",
    "procedure": ", if a skill is a procedure",
}


def words(summary: Summary) -> list[Sentence]:
    """Sentences on `summary.json`'s content, the answer to the run's question first."""
    if summary.log is not None:
        return logged.words(summary)
    sentences = [_against_reference(summary), *_effects(summary)]
    if summary.advised:
        sentences += [*advice_sentences(summary), _order(summary)]
    else:
        sentences += [_answers(summary), _kinds(summary), _pays(summary), _order(summary)]
    sentences += [_price(summary), *learning_sentences(summary)]
    known = [sentence for sentence in [*sentences, *_cautions(summary)] if sentence is not None]
    return [replace(s, marked=of_purchases(s.marked)) for s in known] if summary.advised else known


def _against_reference(summary: Summary) -> Sentence | None:
    arm, reference = summary.learner, summary.reference
    gap = summary.differences.get(arm, {}).get("utility")
    if reference is None or gap is None or gap.mean is None:
        return None
    alone = ALONE if summary.advised else "the LLM alone"
    other = f"{alone} ({code(reference)})" if reference == summary.never else code(reference)
    size = number(abs(gap.mean), "utility")
    if gap.verdict == "identical":
        return Sentence(f"{code(arm)} and {code(reference)} are identical: they did the same on every turn.", "plain")
    given = "" if summary.advised else GIVEN.get(summary.serving or "", "")
    numbers = f"{size} {{}} utility per request ({_new(gap)}){_shrunken(gap)}"
    if gap.verdict == "better":
        return Sentence(f"{code(arm)} serves its users better than {other}{given}: {numbers.format('more')}.", "good")
    if gap.verdict == "worse":
        return Sentence(f"{code(arm)} serves its users worse than {other}{given}: {numbers.format('less')}.", "bad")
    return Sentence(
        f"Whether {code(arm)} serves its users better than {other} stays open: a difference of "
        f"{number(gap.mean, 'utility', signed=True)} utility per request ({_new(gap)}){_why_open(gap)}.",
        "open",
    )


def _effects(summary: Summary) -> list[Sentence]:
    sentences = []
    for arm, effect in summary.effects.items():
        gap = effect.metrics["utility"]
        if gap.mean is None:
            continue
        live = code(effect.live)
        what = f"what {live} learned after turn {effect.since} (against {code(arm)})"
        size = f"{number(abs(gap.mean), 'utility')} utility per request ({_new(gap)}){_shrunken(gap)}"
        if gap.verdict == "identical":
            sentences.append(Sentence(f"{live} and {code(arm)} are identical after turn {effect.since}.", "plain"))
        elif gap.verdict == "better":
            sentences.append(Sentence(f"Learning helped: {what} was worth {size}.", "good"))
        elif gap.verdict == "worse":
            sentences.append(Sentence(f"Learning hurt: {what} cost {size}.", "bad"))
        else:
            signed = number(gap.mean, "utility", signed=True)
            sentences.append(
                Sentence(
                    f"No effect shown of {what}: {signed} utility per request ({_new(gap)}){_why_open(gap)}.",
                    "open",
                )
            )
    return sentences


def _answers(summary: Summary) -> Sentence:
    arm, reference = summary.learner, summary.reference
    arm_figures = summary.arms[arm]
    text = f"{code(arm)} answered {share_of(arm_figures['hit_rate'])} of requests from memory"
    if arm_figures["err_per_hit"].mean is not None:
        text += f", {share_of(arm_figures['err_per_hit'])} of these wrongly"
    if arm_figures["err_per_request"].mean is None:
        return Sentence(f"{text}; nobody can judge some of its answers.", "plain")
    text += f"; of all its answers {share_of(arm_figures['err_per_request'])} were wrong"
    if reference is not None and reference != arm and summary.arms[reference]["err_per_request"].mean is not None:
        text += f", against {number(summary.arms[reference]['err_per_request'].mean, 'share')} of {code(reference)}'s"
    return Sentence(f"{text}.", "plain")


def _kinds(summary: Summary) -> Sentence | None:
    """Where the difference to the reference comes from."""
    parts = summary.kinds.get(summary.learner, {})
    listed = [
        f"{number(parts[kind].mean, 'utility', signed=True)} on {word}" for kind, word in WORDS.items() if kind in parts
    ]
    if summary.reference is None or len(listed) < 2:
        return None
    return Sentence(f"Utility beyond {code(summary.reference)} by kind of request: {', '.join(listed)}.", "plain")


def _pays(summary: Summary) -> Sentence | None:
    """Whether an answer from memory is worth more than the LLM's."""
    arm = summary.learner
    figures = summary.arms[arm]
    if "pays_by" not in figures or figures["pays_by"].mean is None:
        return None
    right, needed, margin = (figures[name] for name in ("right_per_hit", "pays_from", "pays_by"))
    free = summary.sensitivity.pays_from[arm][list(summary.sensitivity.wrong).index(0.0)]
    low, high = (x if x is not None else 0.0 for x in (margin.low_new, margin.high_new))
    so = "they pay" if low > 0 else "they do not pay" if high < 0 else "whether they pay stays open"
    so = so if summary.saturation.testable else "whether they pay is not testable here"
    return Sentence(
        f"An answer from memory is worth more than the LLM's if it is right in {number(needed.mean, 'share')} "
        f"of cases ({number(free, 'share')} if wrong answers cost nothing extra); those of {code(arm)} are right in "
        f"{share_of(right)}: {so}.",
        "plain",
    )


def _order(summary: Summary) -> Sentence | None:
    means = {
        arm: arm_figures["utility"].mean
        for arm, arm_figures in summary.arms.items()
        if arm_figures["utility"].mean is not None
    }
    if len(means) < 2:
        return None
    order = sorted(means, key=lambda arm: -means[arm])
    listed = ", ".join(f"{code(arm)} {number(means[arm], 'utility')}" for arm in order)
    return Sentence(f"By mean utility: {listed}.", "plain")


def _price(summary: Summary) -> Sentence | None:
    arm, reference = summary.learner, summary.reference
    price = summary.sensitivity.break_even.get(arm)
    if price is None or reference is None:
        return None
    level = f"{code(arm)} and {code(reference)} would be level if"
    now = summary.utility.wrong
    if summary.advised:
        return Sentence(f"{level} a wanted purchase held back cost {price:.2g}, in place of {now:g}.", "plain")
    return Sentence(
        f"{level} a wrong answer cost {price:.2g} right ones (here {now:g}).",
        "plain",
    )


def _cautions(summary: Summary) -> list[Sentence]:
    sentences = []
    if summary.incomplete:
        sentences.append(Sentence("The run is unfinished: these are the figures of what is there.", "caution"))
    if not summary.saturation.testable:
        reasons = "; ".join(summary.saturation.reasons)
        sentences.append(Sentence(f"Claims about curves and utility are not testable here: {reasons}.", "caution"))
    return sentences


def _why_open(gap: DifferenceFigure) -> str:
    """Why a difference is no verdict."""
    if gap.verdict == "not testable here":
        return "; it is not testable here: the corpus was used up"
    if gap.verdict == "withheld":
        return f"; it rests on {gap.intents:.1f} effective intents, and an interval takes {LEAST_INTENTS:g}"
    if gap.p_holm is None or gap.mean is None or gap.mde_new is None:
        return "; one user says nothing about others"
    if gap.mean == 0 and gap.mde_new == 0:
        return "; equal for every user"
    if gap.p_new is not None and gap.p_new < ALPHA:
        return "; it does not hold once corrected for the number of arms"
    return f"; inconclusive: {_detectable(gap)}"


def _detectable(gap: DifferenceFigure) -> str:
    return f"such a run finds {number(gap.mde_new, 'utility')} in 80 % of cases"


def _shrunken(gap: DifferenceFigure) -> str:
    """What a verdict on a difference below the detectable size has to add."""
    if gap.shrunken is None:
        return ""
    return f"; {_detectable(gap)}, so this exaggerates: shrunken, {number(gap.shrunken, 'utility', signed=True)}"


def _new(gap: DifferenceFigure) -> str:
    if gap.low_new is None:
        return "no interval: too few users or intents"
    return f"95 % for new users and requests: {interval(gap.low_new, gap.high_new, 'utility', signed=True)}"
