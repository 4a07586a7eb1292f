"""A beginner's and an expert's book on the same triggers: is what lies between them learning?"""

from experiments.seeds.measure import BOOKS, measure
from skg_bench.analysis.comparison.assay import Measured
from skg_bench.analysis.comparison.findings import Finding
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.study import spreads
from skg_bench.study.guardian.drawing import Drawn, draws_experiment
from skg_bench.study.guardian.mass_verdicts import (
    Statement,
    above,
    better,
    claims_table,
    percent,
    sensitivity_words,
    signs_table,
    spread,
    within,
)
from skg_bench.study.masses import Share

NAME = "seeds"
TITLE = "A beginner's and an expert's book: is what lies between them learning?"
STATEMENTS = (
    Statement("P44", "more is accepted with the expert's book than with the beginner's, and neither learns",
              "pro_rookie_accepted", lambda t: above(t, "pro_rookie_accepted"), "points"),
    Statement("P44", "and users are better off with it", "pro_rookie", lambda t: above(t, "pro_rookie"), "utility"),
    Statement("P44", "40 points more are accepted with it, from 30 to 70 %", "pro_rookie_accepted",
              lambda t: within(t, "pro_rookie_accepted", 0.4), "points"),
    Statement("P49", "what is learned in 40 interactions makes users better off than the beginner's book",
              "learned_rookie", lambda t: above(t, "learned_rookie"), "utility"),
)  # fmt: skip
UTILITY = {
    "pro_rookie": "expert's - beginner's book",
    "permuted_rookie": "expert's with exchanged counters - beginner's book",
    "pro_counters": "expert's book - the same with exchanged counters",
    "learned_rookie": "learned in 40 interactions - beginner's book",
    "pro_learned": "expert's book - learned in 40 interactions",
}
ACCEPTED = {
    "pro_rookie_accepted": "expert's - beginner's book",
    "permuted_rookie_accepted": "expert's with exchanged counters - beginner's book",
    "learned_rookie_accepted": "learned in 40 interactions - beginner's book",
}
HOW = (
    "Each draw: parameters from the [prior](../skg_bench/study/guardian/prior.yaml), 200 users with up to 60 triggers "
    "each. All arms meet the same triggers, of the same users without a mood, with books that stay as they are. So "
    "nothing is learned in any of them but `live`, whose book of interaction 40 is `learned`. The expert's book is a "
    "file that somebody wrote; in its control the same skills have one another's counters. `skg-bench claims` calls "
    "both claims contradictory, whatever the shares below: they need something to be learned between the two books, "
    "and nothing is. The panel holds the very triggers that the learned book has learned from, which favours it."
)


def levels(draws: Drawn) -> Table:
    """Acceptance with each book, what it is worth, and how often it changed."""
    rows = [
        (words, spread(draws.table, f"{name}_accepted", "share"), spread(draws.table, f"{name}_utility", "utility"),
         f"{draws.table[f'{name}_changed'].sum():.0f}")
        for name, words in BOOKS.items()
    ]  # fmt: skip
    head = ("book", "accepted (90 % of draws)", "utility a trigger (90 % of draws)", "changes of its size in all draws")
    return Table("The books on the same triggers", head, rows)


def findings(draws: Drawn) -> list[Finding]:
    """Findings for `skg-bench claims`: both statements need something to be learned, and nothing is."""
    seen, gained = (better(draws.table, name) for name in ("pro_rookie_accepted", "learned_rookie"))
    table = draws.table
    shown = (
        f"More is accepted with the expert's book in {percent(seen)} of draws, and users are better off in "
        f"{percent(better(table, 'pro_rookie'))}, but neither book changed once: two files are compared, and whatever "
        "they differ by was written by hand. With the expert's counters exchanged among its skills, more is accepted "
        f"than with the beginner's in {percent(better(table, 'permuted_rookie_accepted'))}. It is fast because nothing "
        "happens in it."
    )
    written = (
        "The expert's book is a script. What a simulated reflector learns from the beginner's book in 40 interactions "
        f"is better than that book in {percent(gained)} of draws; the article's contrast comes out without it. "
        "This does not say how well a real model reflects."
    )
    accepted, learned = (_measured(part) for part in (seen, gained))
    return [
        Finding("P44", "seed scripts prove that the assistant learns", accepted, "contradictory", shown,
                draws.evidence),
        Finding("P49", "growth comes from reflection and from no script", learned, "contradictory", written,
                draws.evidence),
    ]  # fmt: skip


def _measured(part: Share) -> Measured:
    least, most = part.limits
    return Measured(100 * part.share, 100 * least, 100 * most, "% of the prior")


def picture(draws: Drawn) -> str:
    """Figure of what the contrasts are worth, over draws."""
    rows = {words: _spread(draws, name) for name, words in UTILITY.items()}
    how = [f"{len(draws.table)} draws from the prior: the median, and nine draws of ten. Same users, same triggers.",
           "Utility a trigger. Nobody learns in the first three: what they differ by was written by hand."]  # fmt: skip
    return spreads.strips("How much more one book is worth than another", how, rows)


def _spread(draws: Drawn, name: str) -> spreads.Spread:
    low, middle, high = draws.table[name].quantile([0.05, 0.5, 0.95]).tolist()
    return low, middle, high


def report(draws: Drawn) -> Report:
    """Tables, page, picture and findings."""
    parts = [
        levels(draws),
        claims_table("What the contrast shows", draws, STATEMENTS),
        signs_table("Utility a trigger", draws, UTILITY),
        signs_table("Acceptance", draws, ACCEPTED, "points"),
    ]
    moves = sensitivity_words(draws, {"pro_rookie": "expert's - beginner's", "learned_rookie": "learned - beginner's"})
    image = f"![How much more one book is worth than another]({NAME}.svg)"
    text = page(TITLE, draws.command, HOW, image, *parts, moves)
    return Report([*parts, moves], text, figures={f"{NAME}.svg": picture(draws)}, findings=lambda: findings(draws))


EXPERIMENT = draws_experiment(NAME, measure, report)
