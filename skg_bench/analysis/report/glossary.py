"""Meanings of the words on the page."""

from skg_bench.analysis.counts.wording import named
from skg_bench.analysis.report.typeset import typeset
from skg_bench.analysis.summary.document import Summary
from skg_bench.analysis.summary.figures import NO_FIGURE

WORDS = {
    "Request, turn": "Something a user brings; with the answer given, a turn.",
    "Skill, skillbook": "An entry learned from one user's requests; all skills of that user.",
    "Hit, fallback": "A turn answered from memory: an earlier answer was given, or stood in the prompt of the LLM; a "
    "turn that the LLM answered alone.",
    "Arm": "One complete choice of components. All arms meet the same users, requests and random draws.",
    "Reference": "The arm that the others are compared with, user by user.",
    "Frozen arm": "Learns as its live twin until a given turn, and nothing after it.",
    "Truth": "What the simulator knows and no arm ever sees: what a request was about, whether an answer was right.",
    "Ceiling k": "Share of requests for which a user has k or more earlier answers that still hold; of procedures: "
    "for requests of an intent that the user asked for before.",
    "Learning effect": "Utility of the live arm minus that of its frozen twin, over the turns since the freezing.",
    "Loss": "Utility below a right answer that costs nothing and comes at once, booked to the first link that failed.",
    "These requests": "95 % interval over other users who bring the same kinds of requests: clustered by user.",
    "New requests": "95 % interval over other users who bring other kinds of requests too: two-way, by user and "
    "intent. Verdicts use this one.",
    "Band": "Holds the whole curve at once, in 95 % of runs with other users.",
    "Detectable": "Minimum detectable effect: the smallest true difference for which such a run gives a verdict in "
    "about 80 % of cases, all arms tested: a rise / a fall. A smaller one is missed more often, and exaggerated where "
    "it is found.",
    "Shrunken": "What is left of an estimate below the detectable size once it is taken into account that only "
    "significant ones are reported (conditional maximum likelihood).",
    "Effective intents": "How many intents, if all carried the same, would be as uneven as those that carry a "
    "difference.",
    "Withheld": "Where the requests have fewer than four effective intents, whatever these showed, there is no "
    "interval for new requests and no verdict.",
    "Depends on the interval": "Student's interval and the bootstrap of users and intents lie far from the one used "
    "here, and the three do not agree on whether there is a difference. No formula is right for every tail.",
    "p": "Of the paired difference, for new requests, corrected by Holm for the number of arms.",
    "Similarity, preference, reranker": "The three signals: largest cosine to any example of the skill; share of its "
    "uses that were rated well; score of a model fitted on the user's own ratings. Their weighted mean is the combined "
    "score.",
    "Propensity": "Probability with which the policy makes the choice it made.",
}
REPLAY_WORDS = {
    "Truth": "Whether an answer was right, which no log says; no arm sees the intents that it may name.",
    "Not known": "The log does not say it, and nothing is guessed in its place.",
    "Pseudo-user": "Dialogues dealt to one name by key, where a log has no persons.",
}


def entries(summary: Summary) -> list[tuple[str, str]]:
    """Words, then metrics, as (term, meaning)."""
    metrics = [
        (about.label[:1].upper() + about.label[1:], about.says)
        for name, about in summary.metrics.items()
        if summary.log is None or any(arm.get(name, NO_FIGURE).mean is not None for arm in summary.arms.values())
    ]
    words = WORDS if summary.log is None else WORDS | REPLAY_WORDS
    telling = summary.telling
    words = words | {word.term: word.says for word in telling.glossary}
    words = {
        named(term, telling.noun): named(meaning, telling.noun)
        for term, meaning in words.items()
        if term not in telling.unused
    }
    return [(term, typeset(meaning)) for term, meaning in (*words.items(), *metrics)]
