"""Do users listen to advice, what do they do then, and what is that worth to them?

A kind of strategy persuades by a logit: what all have in common, how it suits the context, and the user's own liking
of the kind, here and everywhere; less what it discerns where the purchase is really wanted, less habituation and
annoyance. Listeners accept, wait or abandon, others override. Of a therapist, `accepted` means: not bought; of a
negotiator: bought, cheaper (the article's `accepted` is both).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skg_bench.core.draws import Purpose, normal
from skg_bench.core.grid import F64, I32, Bool, sigmoid, snap
from skg_bench.simulator.advice.levels import (
    ABANDONED,
    ACCEPTED,
    ANALYST,
    AUTO_APPROVED,
    NEGOTIATOR,
    OVERRIDDEN,
    TIERS,
    WAIT,
)
from skg_bench.simulator.advice.people import Purchase, Shoppers
from skg_bench.skillbook.library.strategies import Strategies


@dataclass(frozen=True)
class PriceList:
    """Worth of turns to users; meaning and unit of the parameters stand in `conf/simulator/guardian.yaml`."""

    blocked: float
    interrupt: float
    saving: float

    def of(self, code: I32, tier: I32, wanted: Bool) -> F64:
        """Worth of outcomes; all broadcast."""
        cheaper = (code == ACCEPTED) & (tier == NEGOTIATOR)
        bought = np.where(code == AUTO_APPROVED, 0.0, -self.interrupt)
        kept = np.where(wanted, -self.blocked, 1.0) - self.interrupt
        worth = np.where(holds_back(code, tier), kept, bought) + np.where(cheaper, self.saving, 0.0)
        return snap(worth)


def holds_back(code: I32, tier: I32) -> Bool:
    """Outcomes that end without a purchase."""
    listened = (code == ACCEPTED) | (code == WAIT) | (code == ABANDONED)
    without: Bool = listened & ~((code == ACCEPTED) & (tier == NEGOTIATOR))
    return without


@dataclass(frozen=True, eq=False)
class Listening:
    """How users react; meaning and unit of the parameters stand in `conf/simulator/guardian.yaml`."""

    table: Strategies
    prices: PriceList
    persuades: float
    generic: float
    kinds_apart: float
    fits: float
    liking_here: float
    discerns: float
    unsound: float
    accept_share: float
    wait_share: float

    def logits(self, shoppers: Shoppers, context: I32, wanted: Bool) -> F64:
        """Logits of listening to each kind, if it is well made, and in the last column to the generic question,
        `[B, K + 1]`, without a mood.
        """
        table, kinds = self.table, len(self.table.kinds)
        common = self.persuades + self.kinds_apart * (table.persuades - table.persuades.mean())
        logits = common + self.fits * table.fit[:, context].T + shoppers.liking
        if self.liking_here:
            item = np.arange(kinds, dtype=np.int64)[None] * table.fit.shape[1] + context[:, None]
            logits += self.liking_here * normal(shoppers.key[:, None], item, Purpose.LIKING_HERE)
        logits -= self.discerns * table.discerns * wanted[:, None]
        return snap(np.concatenate([logits, np.full((len(context), 1), self.generic)], axis=1))

    def logit(self, event: Purchase, about: I32, sound: Bool) -> F64:
        """The same of kinds `about` `[B, S]`, -1 being the generic question."""
        logit: F64 = np.take_along_axis(event.logits, about.astype(np.int64) % event.logits.shape[1], axis=1)
        return logit - self.unsound * ~sound

    def expected(self, event: Purchase, logit: F64) -> F64:
        """Worth on average of advice that is listened to by these logits `[B, S]`."""
        heard, overridden = self._worths[:, event.tier, event.wanted.astype(np.int64), None]
        listens = sigmoid(logit)
        return snap(listens * heard + (1.0 - listens) * overridden)

    @cached_property
    def _worths(self) -> F64:
        """Mean worth of advice that is listened to, and worth of advice that is overridden, by tier and wanted."""
        shares = {ACCEPTED: self.accept_share, WAIT: self.wait_share}
        shares[ABANDONED] = 1.0 - self.accept_share - self.wait_share
        tier, wanted = np.indices((len(TIERS), 2))

        def worth(code: int) -> F64:
            return self.prices.of(np.full(tier.shape, code, np.int32), tier.astype(np.int32), wanted == 1)

        heard = sum((share * worth(code) for code, share in shares.items()), start=np.zeros(tier.shape))
        worths = np.stack([heard, worth(OVERRIDDEN)])
        worths[:, ANALYST] = 0.0  # nothing is said
        return worths

    def react(self, tier: I32, logit: F64, listen: F64, react: F64) -> I32:
        """Outcomes `[B]` from two uniforms: a logit that is larger never turns a listener away."""
        accepts, waits = react < self.accept_share, react < self.accept_share + self.wait_share
        heard = np.where(accepts, ACCEPTED, np.where(waits, WAIT, ABANDONED))
        code = np.where(listen < sigmoid(logit), heard, OVERRIDDEN)
        return np.where(tier == ANALYST, AUTO_APPROVED, code).astype(np.int32)
