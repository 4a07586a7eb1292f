"""Does acceptance rise from 30 to 70 % as users go on, and are users better off then?"""

import pandas as pd

from experiments.guardian_arc.measure import BOOKS, LIVED, STEPS, measure
from skg_bench.analysis.comparison.findings import Finding
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.core.grid import Bool
from skg_bench.study import spreads
from skg_bench.study.guardian.drawing import Drawn, draws_experiment
from skg_bench.study.guardian.mass_verdicts import (
    Statement,
    above,
    below,
    better,
    claims_table,
    finding,
    percent,
    sensitivity_words,
    signs_table,
    spread,
    within,
    worse,
)
from skg_bench.study.masses import Share

NAME = "guardian_arc"
TITLE = "Does acceptance rise as the Guardian's article has it, and are users better off then?"
_NEAR = 0.1  # how far a draw's acceptance may be from the article's


def near(table: pd.DataFrame, figure: str, claimed: float) -> Bool:
    """Mask of draws in which a figure is within 10 points of the article's."""
    return within(table, figure, claimed - _NEAR, claimed + _NEAR)


def arc(table: pd.DataFrame, arm: str = "live") -> Bool:
    """30 and 50 % within 10 points, and 60 % or more at the end."""
    first, after = near(table, f"{arm}_first", 0.3), near(table, f"{arm}_next", 0.5)
    return first & after & within(table, f"{arm}_last", 0.7 - _NEAR)


STATEMENTS = (
    Statement("P05", "the book grows beyond its four seed strategies", "live_size_last",
              lambda t: within(t, "live_size_last", 5), "skills"),
    Statement("P05", "what has grown is knowledge: on the same triggers it is worth more than what grows at random",
              "grown_sham", lambda t: above(t, "grown_sham"), "utility"),
    Statement("P46", "30 % are accepted in the first five interactions (20 to 40)", "live_first",
              lambda t: near(t, "live_first", 0.3)),
    Statement("P47", "6 or 7 skills after five interactions", "live_size_5",
              lambda t: within(t, "live_size_5", 5.5, 7.5), "skills"),
    Statement("P47", "50 % are accepted in the next five interactions (40 to 60)", "live_next",
              lambda t: near(t, "live_next", 0.5)),
    Statement("P48", "8 to 10 skills at the end", "live_size_last",
              lambda t: within(t, "live_size_last", 7.5, 10.5), "skills"),
    Statement("P48", "70 % or more are accepted in the last 20 interactions (60 or more)", "live_last",
              lambda t: within(t, "live_last", 0.7 - _NEAR)),
    Statement("P48", "the arc: 30, 50 and 70 %, each within 10 points", "live_rise", arc, "points"),
    Statement("P48", "the same where nothing wears off and nobody is annoyed", "unworn_rise",
              lambda t: arc(t, "unworn"), "points"),
)  # fmt: skip
DIFFERENCES = {
    "live_frozen": "utility, live - frozen",
    "live_sham": "utility, live - sham",
    "live_gain": "utility, last 20 - first 5 interactions of live",
    "frozen_gain": "the same of frozen, which learns nothing",
    "sham_gain": "the same of sham, which learns at random",
    "grown": "utility on the panel, book of interaction 40 - seed book",
    "grown_sham": "utility on the panel, book of interaction 40 - of random learning",
    "sham_seed": "utility on the panel, of random learning - seed book",
    "unworn_sham_utility": "utility where nothing wears off, live - sham",
}
ACCEPTED = {
    "live_frozen_accepted": "acceptance, live - frozen",
    "live_rise": "acceptance, last 20 - first 5 interactions of live",
    "frozen_rise": "the same of frozen",
    "sham_rise": "the same of sham",
    "unworn_rise": "the same of live where nothing wears off",
    "grown_accepted": "acceptance on the panel, book of interaction 40 - seed book",
}
HOW = (
    "Each draw: parameters from the [prior](../skg_bench/study/guardian/prior.yaml), 200 users with up to 60 triggers "
    "each, the same ones under every arm. An interaction is a trigger; approved ones, at which nothing is said, count "
    "among the five, and not in acceptance: the share of interventions that are listened to (accepted, wait, "
    "abandoned). The last 20 are those of users who have more than 40 triggers. The panel is all triggers, those that "
    "the book has learned from included, which favours it. Better and worse: share of draws, with its 95 % interval "
    "(Wilson), in which the interval of the difference, paired by user, lies above or below 0. Verdicts: robust from "
    "90 % of the prior, attainable from 5 %, strained below; not testable here where the interval of the share "
    "contains one of these limits."
)


def against(table: pd.DataFrame) -> Table:
    """Acceptance as a measure: what it says beside utility."""
    accepts, gains, rises = (above(table, name) for name in ("live_frozen_accepted", "live_sham", "live_rise"))
    rows = {
        "acceptance is above frozen, and utility too": accepts & above(table, "live_frozen"),
        "acceptance is above frozen, and utility below": accepts & below(table, "live_frozen"),
        "acceptance falls over a life, and what is learned is worth something": below(table, "live_rise") & gains,
        "acceptance rises over a life, and learning is not shown to be worth anything": rises & ~gains,
    }
    cells = [(words, percent(Share(int(mask.sum()), len(table)))) for words, mask in rows.items()]
    return Table("What acceptance says of utility", ("in the same draw", "share of draws"), cells)


def looked_like_proof(table: pd.DataFrame) -> Table:
    """The article's first proof, a rising acceptance, under arms that learn, that learn nothing, and at random."""
    names = {"live": "live", "frozen": "frozen: learns nothing", "sham": "sham: learns at random",
             "unworn": "live, nothing wears off", "unworn_sham": "sham, nothing wears off"}  # fmt: skip
    rows = []
    for arm in LIVED:
        by_40 = int((table[f"{arm}_rise"] >= 0.4).sum())
        rows.append(
            (names[arm], spread(table, f"{arm}_first", "share"), spread(table, f"{arm}_last", "share"),
             percent(better(table, f"{arm}_rise")), percent(worse(table, f"{arm}_rise")),
             f"{100 * by_40 / len(table):.0f} %", f"{100 * float(arc(table, arm).mean()):.0f} %")
        )  # fmt: skip
    head = ("arm", "first 5 (90 % of draws)", "last 20 (90 % of draws)", "rises in", "falls in", "by 40 points in",
            "30 / 50 / 70 % in")  # fmt: skip
    return Table("What would have looked like proof: a rising acceptance", head, rows)


def picture(table: pd.DataFrame) -> str:
    """Acceptance, utility and size of the book, as lived and on the panel."""

    def curve(*columns: str) -> list[spreads.Spread]:
        low, middle, high = (table[list(columns)].quantile(q).tolist() for q in (0.05, 0.5, 0.95))
        return list(zip(low, middle, high, strict=True))

    x, taken = ([str(step) for step in steps] for steps in (STEPS, BOOKS))
    lived = ("live", "frozen", "sham")

    def by_step(what: str) -> dict[str, list[spreads.Spread]]:
        return {arm: curve(*(f"{arm}_{what}_{step}" for step in STEPS)) for arm in lived}

    panel = {
        what: {"the user's book": curve(*(f"panel_{what}_{step}" for step in BOOKS))}
        for what in ("accepted", "utility")
    }
    each = [
        spreads.CurvesPanel("Accepted, as lived, in 5 interactions from k on", x, by_step("accepted"), percent=True),
        spreads.CurvesPanel("Utility a trigger, as lived", x, by_step("utility")),
        spreads.CurvesPanel("Accepted, book of interaction k on all triggers", taken, panel["accepted"], percent=True),
        spreads.CurvesPanel("Utility a trigger, book of interaction k", taken, panel["utility"]),
    ]
    how = [f"{len(table)} draws from the prior: medians, and bands of nine draws of ten. Across: interactions k.",
           "Below: users without a mood, so that only the book differs from one k to the next."]  # fmt: skip
    return spreads.curve_panels("What users accept, and what it is worth to them", how, each)


def findings(draws: Drawn) -> list[Finding]:
    """Findings for `skg-bench claims`."""
    deviation = spread(draws.table, "user_error", "share")
    error = f"Single users differ in theirs by a standard deviation of {deviation}, most of it luck."
    more = {"P46": error, "P47": error}
    return [finding(draws, each, more.get(each.id, "") if each.unit == "share" else "") for each in STATEMENTS]


def report(draws: Drawn) -> Report:
    """Tables, page, picture and findings."""
    table = draws.table
    parts: list[Table | str] = [
        claims_table("The article's figures", draws, STATEMENTS),
        signs_table("What learning is worth", draws, DIFFERENCES),
        signs_table("What is accepted", draws, ACCEPTED, "points"),
        against(table),
        looked_like_proof(table),
    ]
    user = (
        "The acceptance of single users in their first five interactions has a standard deviation of "
        f"{spread(table, 'user_error', 'share')}, most of it luck."
    )
    moves = sensitivity_words(
        draws, {"live_frozen": "live - frozen", "live_sham": "live - sham", "live_rise": "the rise"}
    )
    image = f"![Acceptance and utility by interaction]({NAME}.svg)"
    text = page(TITLE, draws.command, HOW, image, *parts, user, moves)
    figures = {f"{NAME}.svg": picture(table)}
    return Report([*parts, user, moves], text, figures=figures, findings=lambda: findings(draws))


EXPERIMENT = draws_experiment(NAME, measure, report)
