"""The head of the page: what a run shows of each arm, in sentences with numbers, whoever wins."""

from collections.abc import Sequence
from dataclasses import replace

from skg_bench.analysis.counts.kinds import INTENT_KIND_WORDS
from skg_bench.analysis.counts.wording import interval, least, named, number, rise_or_fall
from skg_bench.analysis.report import logged
from skg_bench.analysis.report.domain_sentences import domain_sentences
from skg_bench.analysis.report.job_sentences import learning_sentences
from skg_bench.analysis.report.sentences import Sentence, code, share_of
from skg_bench.analysis.statistics.intervals import ALPHA, LEAST_INTENTS
from skg_bench.analysis.summary.document import Summary
from skg_bench.analysis.summary.figures import DifferenceFigure
from skg_bench.core.text import plural
from skg_bench.runfolder.cautions import few_users
from skg_bench.runfolder.telling import Telling

GIVEN = {  # what a skill is, where it decides what is found
    "stored": ", if a skill is a stored text",
    "prompted": ", if a skill is a prompt",
    "procedure": ", if a skill is a procedure",
}
PROFILES = {"demo": 100, "paper": 1000}  # users of the profiles that a reader may go on to; both have WEEKS
WEEKS = 26
_RANK = {"good": 0, "bad": 0, "open": 1}  # of a sentence's tone: what is proven comes first


def words(summary: Summary) -> list[Sentence]:
    """Sentences for a terminal: on the learner and on arms that the command changed, why, and what to beware of.

    The table has a row for each arm, and the page all else.
    """
    if summary.log is not None:
        about = [logged.logged_headline(summary, summary.learner)]
        arms = [sentence for _, sentence in arm_sentences(summary)]
        return [*arms, *about, *finding_sentences(summary, summary.learner), *cautions(summary)]
    focus = (summary.learner, *summary.changed)
    ahead = _never_ahead(summary)
    arms = [
        sentence for arm, sentence in arm_sentences(summary) if arm in focus and not (ahead and arm == summary.never)
    ]
    warnings = [sentence for sentence in cautions(summary) if sentence.tone == "caution"]
    jobs = [sentence for sentence in learning_sentences(summary, summary.learner) if sentence.tone != "caution"]
    return [*arms, *_worded(summary, [*ahead, *_reasons(summary, summary.learner), *jobs]), *warnings]


def _never_ahead(summary: Summary) -> list[Sentence]:
    """Sentence where the model alone is better than the reference: a better arm may then only answer less."""
    never, reference = summary.never, summary.reference
    gap = summary.differences.get(str(never), {}).get("utility")
    if never in (None, reference) or reference is None or gap is None or gap.verdict != "better" or not summary.answers:
        return []
    return [
        Sentence(
            f"{code(str(never))}, which answers nothing from memory, is better than {code(reference)}: "
            f"{_size(gap)}. If both ask the same model, an arm may be ahead of {code(reference)} only because it "
            "answers less from memory: see 'at matched error rate' in `skg-bench compare`.",
            "bad",
        )
    ]


def arm_sentences(summary: Summary) -> list[tuple[str, Sentence]]:
    """A sentence for each arm that is compared: proven ones first; within these the learner, then what was changed."""
    if summary.log is not None:
        by_arm = {arm: logged.logged_answers(summary, arm) for arm in summary.arms if arm != summary.never}
    else:
        by_arm = {arm: sentence for arm in summary.arms if (sentence := _against(summary, arm)) is not None}
    order = list(summary.arms)

    def place(arm: str) -> tuple[int, bool, bool, int]:
        return _RANK.get(by_arm[arm].tone, 2), arm != summary.learner, arm not in summary.changed, order.index(arm)

    return [(arm, _worded(summary, [by_arm[arm]])[0]) for arm in sorted(by_arm, key=place)]


def headline(summary: Summary, arm: str) -> Sentence | None:
    """The answer to the run's question for one arm; None: there is nothing to compare it with."""
    if summary.log is not None:
        return logged.logged_headline(summary, arm)
    sentence = _against(summary, arm, whole=True)
    return None if sentence is None else _worded(summary, [sentence])[0]


def finding_sentences(summary: Summary, arm: str) -> list[Sentence]:
    """Further sentences on one arm."""
    if summary.log is not None:
        return logged.logged_findings(summary, arm)
    sentences = _reasons(summary, arm)
    if summary.answers:
        sentences += [sentence for sentence in (_kinds(summary, arm), _pays(summary, arm)) if sentence]
    sentences += [sentence for sentence in (_price(summary, arm), *_own(summary, arm)) if sentence]
    sentences += [sentence for sentence in learning_sentences(summary, arm) if sentence.tone != "caution"]
    return _worded(summary, sentences)


def _reasons(summary: Summary, arm: str) -> list[Sentence]:
    """Worth of learning on, and how often an arm answered from memory, and wrongly; or sentences of its domain."""
    answers = [_answers(summary, arm)] if summary.answers else []
    return [*_effects(summary, arm), *domain_sentences(summary, arm), *answers]


def _own(summary: Summary, arm: str) -> list[Sentence]:
    """A sentence for each metric that the domain brings itself."""
    return [Sentence(_told(summary, arm, name), "plain") for name in summary.own if name in summary.arms[arm]]


def _told(summary: Summary, arm: str, name: str) -> str:
    about, figure = summary.metrics[name], summary.arms[arm][name]
    says = f"{about.label[:1].upper()}{about.label[1:]} under {code(arm)}: {number(figure.mean, about.unit)}"
    gap = summary.differences.get(arm, {}).get(name)
    if gap is None or gap.mean is None:
        return f"{says}."
    span = _span(gap.low_new, gap.high_new, about.unit)
    difference = f"{number(gap.mean, about.unit, signed=True)} ({span})"
    return f"{says}; {difference} against {code(str(summary.reference))}: {gap.verdict}."


def cautions(summary: Summary) -> list[Sentence]:
    """Warnings about the whole run."""
    sentences = []
    if summary.incomplete:
        sentences.append(Sentence("The run is unfinished: these are the figures of what is there.", "caution"))
    if few := few_users(summary.users):
        sentences.append(Sentence(f"{few}.", "caution"))
    if summary.log is not None:
        return [*sentences, *logged.logged_cautions(summary)]
    gaps = [by_metric["utility"] for by_metric in summary.differences.values() if "utility" in by_metric]
    if seen := [gap for gap in gaps if gap.least_users is not None and gap.verdict != "identical"]:
        sentences += _worded(summary, [Sentence(least(seen[0].least_users, seen[0].least_intents), "plain")])
    if not summary.saturation.testable:
        reasons = "; ".join(summary.saturation.reasons)
        sentences.append(Sentence(f"Claims about curves and utility are not testable here: {reasons}.", "caution"))
    jobs = [
        sentence for arm in summary.arms for sentence in learning_sentences(summary, arm) if sentence.tone == "caution"
    ]
    return [*sentences, *_worded(summary, jobs)]


def _worded(summary: Summary, sentences: Sequence[Sentence]) -> list[Sentence]:
    return [replace(s, marked=named(s.marked, summary.telling.noun)) for s in sentences]


def _against(summary: Summary, arm: str, *, whole: bool = False) -> Sentence | None:
    """One arm against the reference. `whole`: with what the reference does and what a skill is, for a title."""
    reference = summary.reference
    gap = summary.differences.get(arm, {}).get("utility")
    if reference is None or gap is None or gap.mean is None:
        return None
    other = code(reference)
    if whole and reference == summary.never:
        other = f"{summary.telling.alone} ({other})"
    given = GIVEN.get(summary.serving.get(arm, ""), "") if whole and summary.answers else ""
    if gap.verdict == "identical":
        return Sentence(f"{code(arm)} and {code(reference)} are identical: they did the same on every turn.", "plain")
    if gap.verdict == "equal for every user":
        return Sentence(f"{code(arm)} and {code(reference)} are equal for every user.", "plain")
    if gap.verdict in ("better", "worse"):
        says = f"{code(arm)} serves its users {gap.verdict} than {other}{given}: {_size(gap)}.{_shrunken(gap)}"
        return Sentence(says, "good" if gap.verdict == "better" else "bad")
    claim = f"helps or harms{given}" if reference == summary.never else f"is better or worse than {other}{given}"
    return Sentence(f"Not shown that {code(arm)} {claim}: {_size(gap)}.{_why_open(summary, gap)}", "open")


def _effects(summary: Summary, arm: str) -> list[Sentence]:
    """Worth of learning on, by the twins of an arm that stopped."""
    sentences = []
    for frozen, effect in summary.effects.items():
        gap = effect.metrics["utility"]
        if gap.mean is None or arm not in (effect.live, frozen):
            continue
        live = code(effect.live)
        few, part = few_users(gap.n_users), ""
        if gap.n_users < summary.users:  # others had no turn so late
            have = "has" if gap.n_users == 1 else "have"
            part = f"; {gap.n_users:,} of {plural(summary.users, 'user')} {have} later turns"
        what = f"what {live} learned after turn {effect.since} (against {code(frozen)}{part})"
        if gap.verdict in ("identical", "equal for every user"):
            sentence = Sentence(f"{live} and {code(frozen)} are {gap.verdict} after turn {effect.since}.", "plain")
        elif few:
            sentence = Sentence(f"Not shown that {what} helps or harms: {_size(gap)}. {few}.", "open")
        elif gap.verdict == "better":
            sentence = Sentence(f"Learning helped: {what} was worth {_size(gap)}.{_shrunken(gap)}", "good")
        elif gap.verdict == "worse":
            sentence = Sentence(f"Learning hurt: {what} was worth {_size(gap)}.{_shrunken(gap)}", "bad")
        else:
            sentence = Sentence(f"Not shown that {what} helps or harms: {_size(gap)}.{_why_open(summary, gap)}", "open")
        sentences.append(sentence)
    return sentences


def _answers(summary: Summary, arm: str) -> Sentence:
    arm_figures = summary.arms[arm]
    if summary.telling.imported:
        wrong = f"Of the answers of {code(arm)} {share_of(arm_figures['err_per_request'])} were wrong"
        return Sentence(f"{wrong}{_beside(summary, arm)}.", "plain")
    if arm_figures["hit_rate"].mean is None:
        text = _model_asked(summary, arm)
    elif arm_figures["hit_rate"].mean == 0:
        text = f"{code(arm)} never answered from memory"
    else:
        text = f"{code(arm)} answered {share_of(arm_figures['hit_rate'])} of requests from memory"
    if arm_figures["err_per_hit"].mean is not None:
        text += f", {share_of(arm_figures['err_per_hit'])} of these wrongly"
    if arm_figures["err_per_request"].mean is None:
        return Sentence(f"{text}. How many of all its answers were wrong is not known.", "plain")
    text += f". Of all its answers {share_of(arm_figures['err_per_request'])} were wrong"
    return Sentence(f"{text}{_beside(summary, arm)}.", "plain")


def _model_asked(summary: Summary, arm: str) -> str:
    """Start of a sentence on an arm whose words carry no references (`hidden_memory.py`)."""
    calls, turns = (int(summary.totals[arm][count] or 0) for count in ("call", "turn"))
    hidden = "prompts" if calls == turns else "prompts and answers" if calls else "answers"
    text = f"{code(arm)} asked its model at {f'{calls:,}' if calls else 'none'} of {turns:,} turns"
    return f"{text}; how much of its {hidden} came from memory cannot be seen here"


def _beside(summary: Summary, arm: str) -> str:
    """Share of the reference's answers that were wrong, as the end of a sentence on those of an arm."""
    reference = summary.reference
    if reference in (None, arm) or summary.arms[str(reference)]["err_per_request"].mean is None:
        return ""
    share = number(summary.arms[str(reference)]["err_per_request"].mean, "share")
    return f", against {share} of {code(str(reference))}'s"


def _kinds(summary: Summary, arm: str) -> Sentence | None:
    """Sentence on where the difference to the reference comes from."""
    parts = summary.kinds.get(arm, {})
    telling = summary.telling
    words: list[tuple[str, str]] = [*(INTENT_KIND_WORDS if telling == Telling() else telling.kinds).items()]
    listed = [f"{number(parts[kind].mean, 'utility', signed=True)} on {word}" for kind, word in words if kind in parts]
    if summary.reference is None or len(listed) < 2:
        return None
    gap = summary.differences.get(arm, {}).get("utility")
    if gap is None or gap.mean is None:
        return None
    whole = f"The {number(gap.mean, 'utility', signed=True)} of {code(arm)} against {code(summary.reference)}"
    return Sentence(f"{whole} by kind of request, as a sum: {', '.join(listed)}.", "plain")


def _pays(summary: Summary, arm: str) -> Sentence | None:
    """Is an answer from memory worth more than the LLM's?"""
    figures = summary.arms[arm]
    if "pays_by" not in figures or figures["pays_by"].mean is None:
        return None
    right, needed, margin = (figures[name] for name in ("right_per_hit", "pays_from", "pays_by"))
    free = summary.sensitivity.pays_from[arm][list(summary.sensitivity.wrong).index(0.0)]
    low, high = (x if x is not None else 0.0 for x in (margin.low_new, margin.high_new))
    so = ": they pay" if low > 0 else ": they do not pay" if high < 0 else "; not shown that they pay or not"
    so = so if summary.saturation.testable else "; whether they pay is not testable here"
    span = _span(margin.low_new, margin.high_new, "share")
    return Sentence(
        f"Answers of {code(arm)} from memory pay off if at least {number(needed.mean, 'share')} are right "
        f"({number(free, 'share')} if errors cost nothing extra). {number(right.mean, 'share')} are, which is "
        f"{number(margin.mean, 'share', signed=True)} ({span}) beyond that{so}.",
        "plain",
    )


def _price(summary: Summary, arm: str) -> Sentence | None:
    reference, price = summary.reference, summary.sensitivity.break_even.get(arm)
    if price is None or reference is None:
        return None
    level = f"{code(arm)} and {code(reference)} would be level if"
    now = summary.utility.wrong
    for priced in summary.telling.prices:
        return Sentence(f"{level} {priced.noun} cost {price:.2g}, in place of {now:g}.", "plain")
    return Sentence(f"{level} a wrong answer cost {price:.2g} right ones (here {now:g}).", "plain")


def _span(low: float | None, high: float | None, unit: str) -> str:
    """The interval of a difference, or that there is none."""
    return "no interval" if low is None or high is None else interval(low, high, unit, signed=True)


def _size(gap: DifferenceFigure) -> str:
    """The difference with its interval for new users and new requests."""
    size = f"{number(gap.mean, 'utility', signed=True)} utility a request"
    if gap.low_new is None:
        return f"{size} (no interval: too few users or intents)"
    others = (f"; {name} {interval(low, high, 'utility', signed=True)}" for name, (low, high) in gap.others.items())
    span = interval(gap.low_new, gap.high_new, "utility", signed=True)
    return f"{size} (95 % interval {span}{''.join(others)})"


def _why_open(summary: Summary, gap: DifferenceFigure) -> str:
    """Reason why a difference is no verdict, as a sentence."""
    if gap.verdict == "not testable here":
        return " It is not testable here: the corpus was used up."
    if gap.verdict == "withheld":
        return f" The requests have too few effective intents: an interval takes {LEAST_INTENTS:g}."
    if gap.verdict == "depends on the interval":
        return " Its intervals disagree."
    if gap.p_holm is None or gap.mde_new is None:
        return " A single user shows nothing about other users."
    if gap.p_new is not None and gap.p_new < ALPHA:
        return " It does not hold once corrected for the number of arms."
    return f" A run of this size detects {_detectable(gap)}; {_larger(summary)} detects smaller differences."


def _larger(summary: Summary) -> str:
    """A run that would show smaller differences."""
    larger = [name for name, users in PROFILES.items() if summary.users < users and summary.weeks <= WEEKS]
    larger = [] if summary.telling.imported else larger
    return code(f"profile={larger[0]}") if larger else "one with more users"


def _shrunken(gap: DifferenceFigure) -> str:
    """Addition to a verdict on a difference below the detectable size."""
    if gap.shrunken is None:
        return ""
    shrunken = number(gap.shrunken, "utility", signed=True)
    exaggerated = f"Its direction is safe, its size is exaggerated: a run of this size detects {_detectable(gap)}."
    return f" {exaggerated} A better guess is {shrunken}."


def _detectable(gap: DifferenceFigure) -> str:
    return rise_or_fall(gap.mde_rise, gap.mde_fall, "utility").replace(" / ", " or ")
