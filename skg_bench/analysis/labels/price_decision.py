"""Decision whether hits pay, by the price of a wrong answer, in the log's own money.

A hit saves s, what the model's answer had cost, and brings e wrong answers beyond those of the log. Where a wrong
answer costs z, a hit gains s - z e; with e between `low` and `high`, hits pay for sure below s / high, and lose for
sure above s / low. Learning costs are taken off s.
"""

from dataclasses import dataclass
from math import inf, isfinite

from skg_bench.analysis.counts.columns import column
from skg_bench.analysis.labels.label_shares import LabelShare
from skg_bench.runfolder.run import RunTables

_PAID = ("cost_usd", "learning_cost_usd", "stored_answer")


@dataclass(frozen=True, slots=True)
class HitSaving:
    """Money that a hit saved on average."""

    each: float
    unit: str  # "$", or "calls" where the log has no prices: a hit saves one call of the model

    def words(self, amount: float) -> str:
        """An amount in the unit."""
        if amount == inf:
            return "any price"
        digits = f"{amount:,.2f}" if abs(amount) >= 1 else f"{amount:.3g}"
        return f"${digits}" if self.unit == "$" else f"{digits} calls of the model"


@dataclass(frozen=True, slots=True)
class PriceDecision:
    """Prices of a wrong answer below which hits pay, and above which they do not."""

    saving: HitSaving
    excess: LabelShare
    pays_below: float
    loses_above: float

    def verdict(self, price: float) -> str:
        """Verdict where a wrong answer costs `price`: pays, does not pay, or open."""
        if price < self.pays_below:
            return "pays"
        return "does not pay" if price > self.loses_above else "open"


def hit_saving(run: RunTables, arm: str, never: str | None) -> HitSaving:
    """Money that a hit of the arm saved, beyond all that the arm's learning cost; only priced turns count."""
    if never is None or "cost_usd" not in run.manifest["log"]["knows"]:
        return HitSaving(1.0, "calls")
    mine, alone = run.turns(arm, _PAID), run.turns(never, _PAID)
    priced = mine["cost_usd"].is_valid().to_numpy() & alone["cost_usd"].is_valid().to_numpy()
    hits = mine["stored_answer"].is_valid().to_numpy() & priced
    if not hits.any():
        return HitSaving(1.0, "calls")
    spent = [column(table, name)[priced].sum() for table in (alone, mine) for name in _PAID[:2]]
    return HitSaving(float(spent[0] + spent[1] - spent[2] - spent[3]) / int(hits.sum()), "$")


def price_decision(saving: HitSaving, excess: LabelShare) -> PriceDecision:
    """Decision by what a hit saves and how many wrong answers it brings."""
    if saving.each <= 0:  # only fewer wrong answers than the log's could pay
        return PriceDecision(saving, excess, 0.0, 0.0 if excess.low >= 0 else inf)
    below = saving.each / excess.high if excess.high > 0 else inf
    above = saving.each / excess.low if excess.low > 0 else inf
    return PriceDecision(saving, excess, below, above)


def decision_words(decision: PriceDecision) -> str:
    """The decision as a sentence without a subject."""
    saving, words = decision.saving, decision.saving.words
    if saving.each <= 0:
        return "its hits save nothing"
    pays = (
        "pays at any price"
        if decision.pays_below == inf
        else f"pays if a wrong answer costs less than {words(decision.pays_below)}"
    )
    loses = f", not if it costs more than {words(decision.loses_above)}" if isfinite(decision.loses_above) else ""
    return f"{pays}{loses}; a hit saves {words(saving.each)}"
