"""Metrics: each is a ratio of two sums over a user's turns.

A metric's value for a user is `sum(weight x count) / denominator`; the primary figure is the mean of that over users
(users without a denominator are excluded, and counted). Counts are the names of `tally.COUNTS`; C is "the answer was
right", H "answered from memory", O "the user was asked to name a skill", and utility is
``g = C - wrong (1 - C) - usd cost - second latency - offer O``.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64

LOSS_COLUMNS = ("answer_correct", "cost_usd", "learning_cost_usd", "latency_ms", "offer")
PRICES = ("wrong", "usd", "second", "offer")  # keys of `utility` in a configuration
Better = Literal["higher", "lower", "neither"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A measured quantity: what it is called, in which unit, and how it comes from counts."""

    name: str
    label: str  # as a heading in a table
    unit: str  # share | difference (of shares) | utility | usd | tokens | ms | skills | per week | calls
    better: Better
    over: (
        str  # a count; or week: calendar weeks of the run; book: none, the state of the skillbook; late_turn: of a gate
    )
    count: Mapping[str, float]  # weight of each count in the numerator
    says: str  # one sentence for the reader

    @property
    def bounds(self) -> tuple[float, float]:
        """Values that are possible; intervals of an arm's own figure are cut there."""
        if self.unit == "share":
            return 0.0, 1.0
        return (float("-inf") if self.unit == "utility" else 0.0), float("inf")


@dataclass(frozen=True, slots=True)
class Utility:
    """The price list of `g`: points lost by a wrong answer (lambda), a dollar, a second of waiting and an offer."""

    wrong: float
    usd: float
    second: float
    offer: float

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "Utility":
        """Prices from `utility{wrong,usd,second,offer}` of a resolved configuration."""
        given = config.get("utility")
        if not isinstance(given, Mapping) or not set(PRICES) <= set(given):
            raise UsageError(f"utility={given!r} in the run's configuration; it needs the keys {', '.join(PRICES)}")
        return cls(*(float(given[key]) for key in PRICES))

    def at(self, wrong: float) -> Metric:
        """Utility with another price of a wrong answer, under a name of its own."""
        return replace(metrics(replace(self, wrong=wrong))["utility"], name=f"utility at {wrong:g}")

    def at_offer(self, offer: float) -> Metric:
        """Utility with another price of an offer, under a name of its own."""
        return replace(metrics(replace(self, offer=offer))["utility"], name=f"utility at {offer:g} an offer")

    def paid(self, table: pa.Table) -> F64:
        """Money, waiting and offers, in utility, of each of some rows of a turn log."""
        cost, learning, latency = (table[name].to_numpy() for name in LOSS_COLUMNS[1:4])
        offered = table["offer"].is_valid().to_numpy()
        price: F64 = self.usd * (cost + learning) + self.second / 1000.0 * latency + self.offer * offered
        return price

    def loss(self, table: pa.Table) -> F64:
        """Utility that some rows of a turn log, which have LOSS_COLUMNS, fall short of 1, each."""
        lost: F64 = (1.0 + self.wrong) * ~table["answer_correct"].to_numpy() + self.paid(table)
        return lost

    def count(self) -> dict[str, float]:
        """Weights of the counts whose sum is a user's total utility."""
        return {"turn": 1.0, "wrong": -1.0 - self.wrong, **self.price()}

    def price(self) -> dict[str, float]:
        """Weights of the counts that cost money, waiting or the user's attention."""
        money = {"cost": -self.usd, "learning": -self.usd}
        return {**money, "latency": -self.second / 1000.0, "offer": -self.offer}


def metrics(utility: Utility) -> dict[str, Metric]:
    """All metrics by name, in the order in which they are shown."""
    table = (
        Metric("utility", "utility", "utility", "higher", "turn", utility.count(),
               "Worth of an answer: 1 if right, minus the price of a wrong one, of money, of waiting and of offers."),
        Metric("hit_rate", "hit rate", "share", "higher", "turn", {"hit": 1},
               "Share of requests answered from memory."),
        Metric("correct", "right answers", "share", "higher", "turn", {"turn": 1, "wrong": -1},
               "Share of requests answered rightly: true satisfaction, whether rated or not."),
        Metric("err_per_hit", "wrong per hit", "share", "lower", "hit", {"wrong_hit": 1},
               "Share of the answers from memory that were wrong."),
        Metric("err_per_request", "wrong per request", "share", "lower", "turn", {"wrong": 1},
               "Share of all requests that were answered wrongly."),
        Metric("err_per_request_hits", "of which hits", "share", "lower", "turn", {"wrong_hit": 1},
               "Share of all requests that were answered wrongly from memory."),
        Metric("rated_ok", "rated ok", "share", "higher", "rated", {"ok": 1},
               "Share of the ratings known by the end of the run that said ok."),
        Metric("rated_share", "rated", "share", "neither", "turn", {"rated": 1},
               "Share of requests with a rating known by the end of the run."),
        Metric("skills", "skills", "skills", "neither", "book", {"add": 1},
               "Active skills in the book at the end."),
        Metric("new_skills_per_week", "new skills a week", "per week", "neither", "week", {"add": 1},
               "Skills added per calendar week."),
        Metric("offers_per_week", "offers a week", "per week", "lower", "week", {"offer": 1},
               "Times a week that the user was asked to name a new skill."),
        Metric("llm_calls", "LLM calls", "calls", "lower", "turn", {"call": 1},
               "Calls to the LLM per request."),
        Metric("calls_saved", "calls saved", "share", "higher", "turn", {"turn": 1, "call": -1},
               "Share of requests that needed no LLM."),
        Metric("tokens", "tokens", "tokens", "lower", "turn", {"tokens": 1},
               "Tokens in and out per request."),
        Metric("cost_usd", "cost", "usd", "lower", "turn", {"cost": 1},
               "Metered cost of answers per request, in US dollars."),
        Metric("learning_cost_usd", "cost of learning", "usd", "lower", "turn", {"learning": 1},
               "Metered cost of curators that ask a model, per request, in US dollars."),
        Metric("latency_ms", "wait", "ms", "lower", "turn", {"latency": 1},
               "Simulated time to the answer, in milliseconds."),
    )  # fmt: skip
    return {metric.name: metric for metric in table}


def logged(knows: Collection[str] = ("intent", "answer")) -> dict[str, Metric]:
    """Metrics of runs that replay a log which knows so much, in place of those of `metrics` or beside them: to answer
    more often is no good by itself where nobody knows whether rightly.
    """
    all_ = metrics(Utility(0.0, 0.0, 0.0, 0.0))
    table = (
        *(replace(all_[name], better="neither") for name in ("hit_rate", "calls_saved")),
        replace(all_["rated_ok"], better="neither",
                says="Share of the ratings of answers that the arm shares with the log that said ok. Arms share other "
                "answers with it, so none is better by this."),
        Metric("same_answer", "same text per hit", "share", "neither", "hit", {"same": 1},
               "Share of the answers from memory that are, word for word, what the log answered to that request."),
        Metric("other_answer", "other text, same intent per hit", "share", "neither", "hit", {"reworded": 1},
               "Share of the answers from memory that had been given to the same intent, and are another text than "
               "the log answered: right or wrong, the log does not say."),
        Metric("other_intent", "for another intent per hit", "share", "neither", "hit", {"other": 1},
               "Share of the answers from memory that had been given to another intent than was asked: wrong, "
               "if no answer does for two intents. Whether the others are right, the log does not say."),
        Metric("wrong_lower", "wrong per hit, lower bound", "share", "neither", "hit", {"wrong_least": 1},
               "The share of the answers from memory that are wrong is no smaller, if no answer does for two intents "
               "and what users rated a miss was wrong."),
        Metric("wrong_upper", "wrong per hit, upper bound", "share", "neither", "hit", {"wrong_most": 1},
               "The share of the answers from memory that are wrong is no larger, if what the log answered was right "
               "to its own request unless it was rated partial or miss."),
    )  # fmt: skip
    table = *table, *_metered(knows)
    intents, answers = "intent" in knows, "answer" in knows
    held = {"same_answer": answers, "other_answer": answers and intents, "other_intent": intents,
            "wrong_lower": answers or intents, "wrong_upper": answers}  # fmt: skip
    return {metric.name: metric for metric in table if held.get(metric.name, True)}


def _metered(knows: Collection[str]) -> Iterator[Metric]:
    """Money and waiting time by the log where it has them, and as simulated where it has none."""
    if "cost_usd" in knows:
        yield Metric("cost_usd", "cost", "usd", "lower", "priced", {"cost": 1},
                     "Cost of answers by the log's own prices, per request that has one: of the model where it "
                     "answers, and nothing from memory.")  # fmt: skip
    else:
        yield Metric("cost_usd", "cost, simulated", "usd", "lower", "turn", {"cost": 1},
                     "Simulated cost of answers per request, in US dollars: the log has no prices.")  # fmt: skip
    if "latency_ms" in knows:
        yield Metric("latency_ms", "wait", "ms", "lower", "timed", {"latency": 1},
                     "Time to the answer by the log, per request that has one: of the model where it answers, and "
                     "hit_latency_ms from memory.")  # fmt: skip
    else:
        yield Metric("latency_ms", "wait, simulated", "ms", "lower", "turn", {"latency": 1},
                     "Simulated time to the answer, in milliseconds: the log has no waiting times.")  # fmt: skip


def known(shown: Mapping[str, Metric]) -> dict[str, Metric]:
    """Metrics that need no truth: all that a log can say something about."""
    return {name: metric for name, metric in shown.items() if not {"wrong", "wrong_hit"} & set(metric.count)}


def against_never(knows: Collection[str] | None = None) -> dict[str, Metric]:
    """Metrics that are a paired difference arm - `never`; reported for every arm of a run that has such an arm.
    `knows`: what a log knows that is replayed; None: none is.
    """
    priced = knows is not None and "cost_usd" in knows
    simulated = ", simulated" if knows is not None and not priced else ""
    table = (
        Metric("err_excess", "wrong beyond never", "difference", "lower", "turn", {"wrong": 1},
               "Wrong answers per request beyond those that the LLM alone would have given."),
        Metric("cost_saved_usd", f"cost saved{simulated}", "usd", "higher", "priced" if priced else "turn",
               {"cost": -1, "learning": -1},
               f"{'By the log, ' if priced else ''}US dollars per request saved against the LLM alone, what learning "
               "costs included."),
    )  # fmt: skip
    return {metric.name: metric for metric in table}
