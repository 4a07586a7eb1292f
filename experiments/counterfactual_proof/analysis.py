"""Does the same trigger end better with the strategy of the book after learning than with that of the book before?"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from experiments.counterfactual_proof.measure import BOOKS, PLAYED, SHAMS, measure, replayed
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
)
from skg_bench.study.masses import Share

NAME = "counterfactual_proof"
TITLE = "Does the same trigger end better after learning than before?"
ORDERS = 4  # one draw in so many is made again with the order of triggers permuted
HALF = 0.5  # of users: who find a pair as often as not need no learning for it
WORDS = {
    "live": "live", "sham_content": "sham: any text", "sham_ratings": "sham: ratings by a coin",
    "sham": "sham: both", "variety": "variety only: learns nothing", "frozen": "frozen: learns nothing",
    "donor": "another user's book",
}  # fmt: skip


def beyond_shams(table: pd.DataFrame) -> Bool:
    """Mask of draws in which what is learned is significantly better than the seed book, and than each sham's book."""
    mask = above(table, "proof_live")
    for name in SHAMS:
        mask = mask & above(table, f"proof_live_less_{name}")
    return mask


def deceives(table: pd.DataFrame, arm: str = "live") -> Bool:
    """Mask of draws in which an arm's acceptance rises significantly, and its book is not shown to be worth more."""
    proven = np.zeros(len(table), np.bool_) if f"proof_{arm}" not in table else above(table, f"proof_{arm}")
    return above(table, f"rise_{arm}") & ~proven


def deceived(table: pd.DataFrame) -> Bool:
    """Mask of draws in which that is so of any arm."""
    mask: Bool = np.any([deceives(table, name) for name in PLAYED], axis=0)
    return mask


def told_apart(table: pd.DataFrame) -> Bool:
    """Mask of draws in which the pair is significantly more frequent under learning than under every control."""
    mask: Bool = np.all([above(table, f"pairs_live_less_{name}") for name in PLAYED if name != "live"], axis=0)
    return mask


STATEMENTS = (
    Statement("P31", "acceptance rises under an arm whose book is not shown to be worth more", "rise_live",
              deceived, "points"),
    Statement("P31", "the counterfactual shows learning: the book after is worth more than the book before",
              "proof_live", lambda t: above(t, "proof_live"), "utility"),
    Statement("P31", "and more than the books of all three shams", "proof_live_less_sham", beyond_shams, "utility"),
    Statement("P32", "generic advice about electronics late at night is overridden more often than not",
              "first_evening", lambda t: (t["first_evening"] > HALF).to_numpy(np.bool_)),
    Statement("P33", "the pair of evenings tells learning: more frequent than under all controls",
              "pairs_live_less_frozen", told_apart, "points"),
    Statement("P33", "half of the users have the pair though they learn nothing", "pair_frozen",
              lambda t: (t["pair_frozen"] >= HALF).to_numpy(np.bool_)),
)  # fmt: skip
PROOFS = {
    "proof_live": "live: book of trigger 30 - seed book, later triggers",
    "life": "live: book of the end - seed book, all triggers (the sum of all steps)",
    "step": "live: the step at trigger 15, on that trigger",
    **{f"proof_{name}": f"{WORDS[name]}: book of trigger 30 - seed book" for name in (*SHAMS, "donor")},
    **{f"proof_live_less_{name}": f"live less {WORDS[name]}" for name in (*SHAMS, "donor")},
}
LIVED = {f"utility_{name}": f"{WORDS[name]} - frozen" for name in PLAYED if name != "frozen"}
ACCEPTED = {f"acceptance_{name}": f"{WORDS[name]} - frozen" for name in PLAYED if name != "frozen"}
HOW = (
    "Each draw: parameters from the [prior](../skg_bench/study/guardian/prior.yaml), 200 users with up to 60 triggers "
    "each, the same ones under every arm. The counterfactual: the same triggers with the book of trigger 30 and with "
    "the seed book; worth of what is said on average over luck, for a user without a mood, on triggers after the "
    "30th, of which the book has learned nothing. Better and worse: share of draws, with its 95 % interval (Wilson), "
    "in which the interval of the difference, paired by user, lies above or below 0. Verdicts: robust from 90 % of "
    "the prior, attainable from 5 %, strained below; not testable here where the interval of the share contains one of "
    "these limits. Arms whose book stays as it was (frozen, variety only) have a counterfactual of exactly 0."
)


@dataclass(frozen=True)
class Orders:
    """Some draws as they are, and with the order of each user's triggers permuted."""

    ordered: pd.DataFrame
    permuted: pd.DataFrame

    def table(self) -> Table:
        """Figures in time, permuted, and what the former have more."""
        rows = []
        for name, words, unit in (
            ("proof_live", "the counterfactual", "utility"), ("life", "its total over a life", "utility"),
            ("rise_live", "rise of acceptance, live", "points"), ("rise_frozen", "the same, frozen", "points"),
            ("pair_live", "users with the pair, live", "share"), ("pair_frozen", "the same, frozen", "share"),
        ):  # fmt: skip
            moved = self.ordered[[name]].reset_index(drop=True) - self.permuted[[name]].reset_index(drop=True)
            levels = (spread(part, name, unit) for part in (self.ordered, self.permuted))
            rows.append((words, *levels, spread(moved, name, "points" if unit == "share" else unit)))
        n = len(self.permuted)
        head = (f"median of {n} draws (90 % of them)", "in time", "permuted", "in time - permuted, draw by draw")
        return Table("Order: the triggers of each user permuted", head, rows)


def looked_like_proof(table: pd.DataFrame) -> Table:
    """The article's proofs for all arms, those that learn nothing included."""
    rows = []
    for name in PLAYED:
        proof, book = f"proof_{name}", ("0 by construction", "0 %")
        if name in BOOKS:
            book = (spread(table, proof, "utility"), percent(better(table, proof)))
        rows.append(
            (WORDS[name], percent(better(table, f"rise_{name}")), _count(deceives(table, name)),
             spread(table, f"pair_{name}", "share"), spread(table, f"reversed_{name}", "share"), *book)
        )  # fmt: skip
    head = (
        "arm", "acceptance rises in", "rises, and no gain is shown, in", "users with the pair",
        "with the pair in reverse", "the counterfactual, utility a trigger", "above 0 in",
    )  # fmt: skip
    return Table("What would have looked like proof", head, rows)


def _count(mask: Bool) -> str:
    return percent(Share(int(mask.sum()), len(mask)))


def against_acceptance(table: pd.DataFrame) -> Table:
    """Table of how the sign of acceptance goes with that of utility, under learning."""
    more = above(table, "acceptance_live")
    rows = {
        "acceptance above frozen": more,
        "acceptance above frozen, and utility too": more & above(table, "utility_live"),
        "acceptance above frozen, and utility below": more & below(table, "utility_live"),
        "utility above frozen, and no more than under a sham of both": above(table, "utility_live")
        & (table["utility_live"] <= table["utility_sham"]).to_numpy(np.bool_),
        "utility above frozen, and variety alone gains half of it or more": above(table, "utility_live")
        & (table["utility_variety"] >= HALF * table["utility_live"]).to_numpy(np.bool_),
    }
    return Table("Live minus frozen", ("in the same draw", "share of draws"), [(w, _count(m)) for w, m in rows.items()])


def picture(table: pd.DataFrame) -> str:
    """Figure of what books are worth, and below it what was lived."""

    def line(column: str) -> spreads.Spread:
        low, middle, high = table[column].quantile([0.05, 0.5, 0.95]).tolist()
        return low, middle, high

    rows = {WORDS[name]: line(f"proof_{name}") for name in (*BOOKS, "donor")}
    rows |= {WORDS[name]: (0.0, 0.0, 0.0) for name in ("variety", "frozen")}
    rows |= {f"lived: {WORDS[name]}": line(f"utility_{name}") for name in ("live", "sham", "variety")}
    how = (
        "Utility a trigger: book of trigger 30 less the seed book, same later triggers, no luck, no mood.",
        "A line for nine draws of ten, a dot at the median. Below: as lived, less frozen (variety alone gains there).",
    )
    return spreads.strips("How much more a book is worth after learning", how, rows)


def findings(draws: Drawn) -> list[Finding]:
    """Findings for `skg-bench claims`."""
    pairs = ", ".join(f"{WORDS[name]} {spread(draws.table, f'pair_{name}', 'share')}" for name in PLAYED)
    return [finding(draws, each, f"Users with the pair: {pairs}." if each.id == "P33" else "") for each in STATEMENTS]


def report(draws: Drawn, orders: Orders) -> Report:
    """Tables, page, picture and findings."""
    table = draws.table
    parts = [
        claims_table("The article's proofs", draws, STATEMENTS),
        signs_table("The counterfactual: worth of a book on the same triggers", draws, PROOFS),
        looked_like_proof(table),
        orders.table(),
        signs_table("As lived: utility beyond frozen", draws, LIVED),
        signs_table("As lived: acceptance beyond frozen", draws, ACCEPTED, "points"),
        against_acceptance(table),
    ]
    names = {
        "proof_live": "the counterfactual",
        "proof_live_less_sham": "the same less a sham's",
        "pair_frozen": "the pair",
    }
    moves = sensitivity_words(draws, {**names, "rise_live": "the rise of acceptance"})
    text = page(
        TITLE, draws.command, HOW, f"![How much more a book is worth after learning]({NAME}.svg)", *parts, moves
    )
    files = {f"{NAME}.svg": picture(table)}
    return Report([*parts, moves], text, figures=files, findings=lambda: findings(draws))


def against_orders(draws: Drawn) -> Report:
    """The report beside its control: some of the draws, with each user's triggers permuted."""
    some = max(len(draws.table) // ORDERS, 1)
    turned = draws.again(["simulator.order=permuted"], some, "permuted")
    return report(draws, Orders(draws.table[:some], turned.table))


EXPERIMENT = draws_experiment(NAME, measure, against_orders, replayed)
