"""Sections of a run in which skills are advice: what users did about it, and where regret comes from."""

from skg_bench.analysis.counts.wording import number
from skg_bench.analysis.report.sentences import Sentence, code, share_of
from skg_bench.analysis.summary.content import Summary

LINK_WORDS = {
    "curation": ("Not in the book", "The best that can be said, and the best in the user's book."),
    "choice": ("Not chosen", "The best in the user's book, and what was done."),
    "wear": ("Worn off", "What was done, to a user whom nothing was done to before, and to this one."),
    "luck": ("Luck", "What was done, on average, and as it came out."),
    "paid": ("Money and waiting", "What asking models and waiting for them costs."),
}
"""A label of each link of `summary/regret.py`, and the two levels between which it lies."""
ALONE = "the generic question alone"  # what an arm without a skillbook says


def advice_sentences(summary: Summary, arm: str) -> list[Sentence]:
    """Reactions of users to an arm's advice, and where its regret comes from."""
    reference, figures = summary.reference, summary.arms[arm]
    often = number(figures["interventions_per_week"].mean, "per week")
    text = (
        f"{code(arm)} spoke up {often} times a week; users listened to {share_of(figures['listened'])} of that, and "
        f"overrode {share_of(figures['overridden'])}; {share_of(figures['blocked_wanted'])} of purchases were held "
        "back and really wanted"
    )
    if reference is not None and reference != arm:
        text += f", against {number(summary.arms[reference]['blocked_wanted'].mean, 'share')} under {code(reference)}"
    return [Sentence(f"{text}.", "plain"), *_regret(summary, arm)]


def _regret(summary: Summary, arm: str) -> list[Sentence]:
    if arm not in summary.waterfall:
        return []
    lost = summary.waterfall[arm].losses
    regret, curation, choice = (
        number(figure.mean, "utility") for figure in (summary.arms[arm]["regret"], lost["curation"], lost["choice"])
    )
    return [
        Sentence(
            f"The regret of {code(arm)} is {regret} per purchase: {curation} because the best that can be said is not "
            f"in the book, {choice} because another one was chosen than the best in the book.",
            "plain",
        )
    ]
