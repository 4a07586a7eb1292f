"""Decision whether hits pay, by the price of a wrong answer, in the log's own money.

A hit saves s, what the model's answer had cost, and brings e wrong answers beyond those of the log. Where a wrong
answer costs z, a hit gains s - z e; with e between `low` and `high`, hits pay for sure below s / high, and lose for
sure above s / low. Learning costs are taken off s.
"""

from dataclasses import dataclass
from math import inf, isfinite, isnan, nan

from skg_bench.analysis.counts.columns import column
from skg_bench.analysis.labels.label_shares import LabelShare
from skg_bench.runfolder.run import RunTables

_PAID = ("cost_usd", "learning_cost_usd", "stored_answer")


@dataclass(frozen=True, slots=True)
class HitSaving:
    """Money that a hit saved on average."""

    each: float  # NaN: no hit has a price
    unit: str  # "$", or "calls" where the log has no prices: a hit saves one call of the model

    def words(self, amount: float) -> str:
        """An amount in the unit."""
        if amount == inf:
            return "any price"
        digits = f"{amount:,.2f}" if abs(amount) >= 1 else f"{amount:.3g}"
        return f"${digits}" if self.unit == "$" else f"{digits} calls of the model"


@dataclass(frozen=True, slots=True)
class PriceDecision:
    """Saving of a hit, and the wrong answers that it brings beyond those of the log."""

    saving: HitSaving
    excess: LabelShare

    @property
    def pays_below(self) -> float:
        """Price below which hits that save something pay."""
        return self.saving.each / self.excess.high if self.excess.high > 0 else inf

    @property
    def loses_above(self) -> float:
        """Price above which they do not."""
        return self.saving.each / self.excess.low if self.excess.low > 0 else inf

    def verdict(self, price: float) -> str:
        """Verdict where a wrong answer costs `price`: pays, does not pay, or open; as `prices.js` has it."""
        least, most = (self.saving.each - price * end for end in (self.excess.high, self.excess.low))
        if least > 0:
            return "pays"
        return "does not pay" if most < 0 else "open"


def hit_saving(run: RunTables, arm: str, never: str | None) -> HitSaving:
    """Money that a hit of the arm saved, beyond all that the arm's learning cost; only priced turns count."""
    if never is None or "cost_usd" not in run.manifest["log"]["knows"]:
        return HitSaving(1.0, "calls")
    mine, alone = run.turns(arm, _PAID), run.turns(never, _PAID)
    priced = mine["cost_usd"].is_valid().to_numpy() & alone["cost_usd"].is_valid().to_numpy()
    hits = mine["stored_answer"].is_valid().to_numpy() & priced
    if not hits.any():
        return HitSaving(nan, "$")
    spent = [column(table, name)[priced].sum() for table in (alone, mine) for name in _PAID[:2]]
    return HitSaving(float(spent[0] + spent[1] - spent[2] - spent[3]) / int(hits.sum()), "$")


def decision_words(decision: PriceDecision) -> str:
    """The decision as a sentence without a subject."""
    saving, words = decision.saving, decision.saving.words
    if isnan(saving.each):
        return "no price is known of its hits"
    if saving.each <= 0:
        return "its hits save nothing"
    pays = (
        "pays at any price, as these hits bring no wrong answers beyond those of the log"
        if decision.pays_below == inf
        else f"pays if a wrong answer costs less than {words(decision.pays_below)}"
    )
    loses = f", not if it costs more than {words(decision.loses_above)}" if isfinite(decision.loses_above) else ""
    return f"{pays}{loses}; a hit saves {words(saving.each)}"
