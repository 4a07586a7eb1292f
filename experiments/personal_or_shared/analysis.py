"""Is a book that each user teaches at every interaction worth more than one that all users share?"""

import numpy as np
import pandas as pd

from experiments.personal_or_shared.measure import measure, replayed
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
    worse,
)
from skg_bench.study.masses import Share

NAME = "personal_or_shared"
TITLE = "Is a book of one's own worth more than one that all users share?"
ALIKE = (
    "simulator.liking=0", "simulator.liking_here=0", "simulator.taste_spread=0", "simulator.wanted_spread=0",
    "simulator.volume_spread=0",
)  # fmt: skip
CONTROLS = 5  # one draw in so many is made again with users who are all alike
STATEMENTS = (
    Statement("P01", "learning per user and interaction is worth more than one book for all, remade four times",
              "life_less_batch", lambda t: above(t, "life_less_batch"), "utility"),
    Statement("P01", "and more than a test between two cohorts, whose winner all users get",
              "life_less_cohorts", lambda t: above(t, "life_less_cohorts"), "utility"),
    Statement("P02", "users who teach their own books are better off than with a book that stays, and than with random "
              "lessons", "utility_less_frozen",
              lambda t: above(t, "utility_less_frozen") & above(t, "utility_less_sham"), "utility"),
    Statement("P02", "what is learned is the user's own: another user's book is worth less", "own_less_donor",
              lambda t: above(t, "own_less_donor"), "utility"),
    Statement("P03", "a choice that looks at the context is worth more than one that does not", "life_less_blind",
              lambda t: above(t, "life_less_blind"), "utility"),
)  # fmt: skip
BOOKS = {
    "own_less_frozen": "one's own book - the seed book",
    "own_less_donor": "one's own book - another user's",
    "own_less_batch": "one's own book - the shared book after 30 triggers",
    "own_less_cohorts": "one's own book - the winner of two hand-written books",
    "own_less_population": "one's own book - one sound strategy of each kind",
}
LIVES = {
    "life_less_frozen": "live - a book that stays",
    "life_less_sham": "live - random lessons",
    "life_less_batch": "live - one book for all, remade four times",
    "life_less_cohorts": "live - two cohorts, the winner for all",
    "life_less_population": "live - one sound strategy of each kind",
    "life_less_blind": "live - live without a look at the context",
}
LIVED = {
    "utility_less_frozen": "live - a book that stays",
    "utility_less_sham": "live - random lessons",
    "utility_less_population": "live - one sound strategy of each kind",
    "utility_less_blind": "live - live without a look at the context",
}
ACCEPTED = {name.replace("utility", "accepted"): words for name, words in LIVED.items()}
HOW = (
    "Each draw: parameters from the [prior](../skg_bench/study/guardian/prior.yaml), 200 users with up to 60 triggers "
    "each, the same ones under every arm. Worth is that of what is said, on average over luck, for a user without a "
    "mood. Books are compared after 30 triggers, on later ones; lives over all triggers. The batch makes the book for "
    "all users over again after their first 1, 3, 10 and 30 triggers, and not every night. Better and worse: share of "
    "draws, with its 95 % interval (Wilson), in which the interval of the difference, paired by user, lies above or "
    "below 0. Verdicts: robust from 90 % of the prior, attainable from 5 %, strained below; not testable here where "
    "the interval of the share contains one of these limits."
)


def personal(table: pd.DataFrame) -> Table:
    """Shares of what a book of one's own is worth beyond the seed book: what others' books lack."""
    rows = []
    for name, words in (("donor", "another user's book"), ("batch", "the shared book")):
        known = table[f"personal_{name}"].dropna()
        quartiles = "-" if known.empty else " to ".join(f"{100 * q:.0f} %" for q in known.quantile([0.25, 0.75]))
        more = Share(int((known < 0).sum()), len(known))
        rows.append((words, f"{len(known)} of {len(table)}", spread(table, f"personal_{name}", "share"), quartiles,
                     percent(more) if len(known) else "-"))  # fmt: skip
    head = ("book", "draws in which one's own is shown to gain", "lacks of that gain: median draw (90 % of draws)",
            "quartiles", "is worth more than one's own in")  # fmt: skip
    return Table("What is personal", head, rows)


def alike(table: pd.DataFrame) -> Table:
    """The control: users who do not differ have nothing of their own to learn."""
    rows = [
        (words, spread(table, name, "utility"), percent(better(table, name)), percent(worse(table, name)))
        for name, words in BOOKS.items()
    ]
    head = ("difference", f"median of {len(table)} draws (90 % of them)", "better in", "worse in")
    return Table("Users who are all alike", head, rows)


def against_acceptance(table: pd.DataFrame) -> Table:
    """Table of how acceptance goes with utility, per user and interaction, against a book that stays."""
    more = above(table, "accepted_less_frozen")
    rows = {
        "acceptance above a book that stays, and utility too": more & above(table, "utility_less_frozen"),
        "acceptance above a book that stays, and utility below": more & below(table, "utility_less_frozen"),
        "acceptance above one sound strategy of each kind, and utility below": above(table, "accepted_less_population")
        & below(table, "utility_less_population"),
    }
    return Table(
        "Acceptance and utility", ("in the same draw", "share of draws"), [(w, _count(m)) for w, m in rows.items()]
    )


def _count(mask: Bool) -> str:
    return percent(Share(int(mask.sum()), len(mask)))


def nothing_found(table: pd.DataFrame) -> bool:
    """Is what is personal found about as often as by chance, in one draw of 40, where nothing is? By chance alone this
    fails in 1 % of cases with 7 draws, and in 6 % with 60.
    """
    part = better(table, "own_less_donor")
    return part.limits[0] <= 1 / 40 or part.held <= 1


def picture(table: pd.DataFrame) -> str:
    """Lives and books."""

    def line(column: str) -> spreads.Spread:
        low, middle, high = np.quantile(table[column].dropna(), [0.05, 0.5, 0.95]).tolist()
        return low, middle, high

    rows = {words: line(name) for name, words in (BOOKS | LIVES).items()}
    how = (
        "Utility a trigger, on average over luck, without a mood. A line for nine draws of ten, a dot at the median.",
        "Above: books after 30 triggers, on later ones. Below: whole lives. Right of the rule one's own is ahead.",
    )
    return spreads.strips("One's own book against books that are shared", how, rows)


def findings(draws: Drawn) -> list[Finding]:
    """Findings for `skg-bench claims`."""
    table = draws.table
    lacks = f"Another user's book lacks {spread(table, 'personal_donor', 'share')} of what one's own gains."
    return [finding(draws, each, lacks if each.figure == "own_less_donor" else "") for each in STATEMENTS]


def report(draws: Drawn, control: Drawn) -> Report:
    """Tables, page, picture and findings; as expected if nothing personal is found where nothing is."""
    table = draws.table
    parts = [
        claims_table("What the article says", draws, STATEMENTS),
        signs_table("Books after 30 triggers, on later ones", draws, BOOKS),
        personal(table),
        signs_table("Whole lives", draws, LIVES),
        signs_table("As lived, in the user's own mood, less money and waiting", draws, LIVED),
        signs_table("As lived: acceptance", draws, ACCEPTED, "points"),
        against_acceptance(table),
        alike(control.table),
    ]
    names = {
        "life_less_batch": "against the batch",
        "life_less_cohorts": "against cohorts",
        "own_less_donor": "what is personal",
    }
    moves = sensitivity_words(draws, {**names, "life_less_blind": "the context"})
    text = page(TITLE, draws.command, HOW, f"![One's own book against shared ones]({NAME}.svg)", *parts, moves)
    return Report(
        [*parts, moves], text, holds=nothing_found(control.table), figures={f"{NAME}.svg": picture(table)},
        findings=lambda: findings(draws),
    )  # fmt: skip


def against_alike(draws: Drawn) -> Report:
    """The report beside its control: some of the draws, with users who are all alike."""
    return report(draws, draws.again(ALIKE, max(len(draws.table) // CONTROLS, 1), "alike"))


EXPERIMENT = draws_experiment(NAME, measure, against_alike, replayed)
