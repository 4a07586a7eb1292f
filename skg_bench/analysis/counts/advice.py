"""Counts of worlds in which skills are advice (core/advice.py), and the metrics that are made of them.

An *intervention* is a turn in which something was said. Advice that users *listen* to ends as accepted, wait or
abandoned. These outcomes hold a purchase back, but for one: `accepted` of a negotiator means bought, and cheaper. A
turn's utility is its worth less money, waiting and offers. Its regret is what the best that can be said is worth more
than what was done, on average, to a user without a mood; so it is free of luck, and of what earlier turns did to the
user.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skg_bench.analysis.counts.columns import column, says
from skg_bench.analysis.counts.metrics import Metric, Utility, metrics
from skg_bench.analysis.counts.outcomes import outcome_metrics
from skg_bench.analysis.counts.wording import of_purchases
from skg_bench.core.advice import ADVICE
from skg_bench.core.domain import domain_of
from skg_bench.core.grid import F64
from skg_bench.runfolder.run import RunTables

PAID_COLUMNS = ("worth", "cost_usd", "learning_cost_usd", "latency_ms", "offer")
ADVICE_COLUMNS = ("tier", "outcome", "serving", "answer_correct", "wanted", "worth", "worth_expected", "worth_fresh",
                  "worth_book", "worth_best")  # fmt: skip
LISTENED = ("accepted", "wait", "abandoned")
ADVISED = {
    "spoken": "interventions",
    "listened": "interventions that users listened to",
    "overridden": "interventions that users overrode",
    "accepted": "interventions that users accepted",
    "blocked_wanted": "purchases held back that were really wanted",
    "worth": "what happened was worth to the user, before cost and waiting",
    "regret": "what the best that can be said was worth more, expected, without a mood",
    "answered": "answers about satisfaction known by the end of the run, at the turn that they are about",
    "worth_it": "of these, worth it",
}
"""Counts beside `tally.COUNTS`."""


def is_advised(run: RunTables) -> bool:
    """Are skills advice in the run's world? Its manifest says so."""
    return domain_of(run.manifest).name == ADVICE


def advice_counts(table: pa.Table) -> dict[str, npt.NDArray[Any]]:
    """Counts of each turn by the names of ADVISED, `[N]`, from rows with ADVICE_COLUMNS; without those of answers."""
    spoken = ~says(table["serving"], "silent")
    return {
        "spoken": spoken,
        "listened": spoken & says(table["outcome"], *LISTENED),
        "overridden": spoken & says(table["outcome"], "overridden"),
        "accepted": spoken & says(table["outcome"], "accepted"),
        "blocked_wanted": column(table, "wanted").astype(np.bool_) & ~column(table, "answer_correct").astype(np.bool_),
        "worth": column(table, "worth"),
        "regret": column(table, "worth_best") - column(table, "worth_fresh"),
    }


def at_blocked(prices: Utility, configured: float, price: float) -> Metric:
    """Utility where a wanted purchase held back costs `price`, in a run where it cost `configured`."""
    utility = advice_metrics(prices)["utility"]
    count = {**utility.count, "blocked_wanted": configured - price}
    return replace(utility, name=f"utility at {price:g}", count=count)


def worth_of(table: pa.Table, prices: Utility) -> F64:
    """Utility of each of some rows with PAID_COLUMNS."""
    worth: F64 = column(table, "worth") - prices.paid(table)
    return worth


def metrics_of(run: RunTables, prices: Utility) -> dict[str, Metric]:
    """All metrics of the world of a run, in the order in which they are shown."""
    known = advice_metrics(prices) if is_advised(run) else metrics(prices)
    return known | outcome_metrics(domain_of(run.manifest))


def advice_metrics(prices: Utility) -> dict[str, Metric]:
    """Metrics of worlds in which skills are advice."""
    known = metrics(prices)
    table = (
        Metric("utility", "utility", "utility", "higher", "turn", {"worth": 1.0, **prices.price()},
               "Worth of what happened to a purchase, minus the price of money, of waiting and of offers."),
        Metric("listened", "listened", "share", "neither", "spoken", {"listened": 1},
               "Share of interventions after which users accepted, waited or gave up. Neither higher nor lower is "
               "better: who listens may be held back from what is really wanted."),
        Metric("overridden", "overridden", "share", "neither", "spoken", {"overridden": 1},
               "Share of interventions that users overrode; right where the purchase was really wanted."),
        Metric("accepted", "accepted", "share", "neither", "spoken", {"accepted": 1},
               "Share of interventions that users accepted: of a negotiator's that means bought, and cheaper; of a "
               "therapist's, not bought."),
        Metric("regret", "regret", "utility", "lower", "turn", {"regret": 1},
               "What the best that can be said is worth more than what was done, on average and to a user whom "
               "nothing was done to before."),
        Metric("blocked_wanted", "wanted, held back", "share", "lower", "turn", {"blocked_wanted": 1},
               "Share of purchases that were held back, and really wanted."),
        Metric("interventions_per_week", "interventions a week", "per week", "neither", "week", {"spoken": 1},
               "How often a week something was said. Neither more nor fewer are better by themselves: utility has "
               "the price of each."),
        Metric("hit_rate", "strategies of the book", "share", "neither", "turn", {"hit": 1},
               "Share of purchases that were met with a strategy of the skillbook, learned or given, "
               "not with the generic question."),
        Metric("answered_later", "answers later", "share", "neither", "turn", {"answered": 1},
               "Share of purchases of which users said later whether they were worth it, by the end of the run."),
        Metric("worth_it", "worth it", "share", "neither", "answered", {"worth_it": 1},
               "Share of these answers that say worth it: of a purchase held back, that it was right to hold it back; "
               "of one that was made, that it was right to make it."),
        *(
            replace(known[name], says=of_purchases(known[name].says))
            for name in ("skills", "new_skills_per_week", "tokens", "cost_usd", "learning_cost_usd", "latency_ms")
        ),
    )  # fmt: skip
    return {metric.name: metric for metric in table}
