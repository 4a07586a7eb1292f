"""Turns of two arms on the same events, and how far a log would scatter in which chance decides between the two."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skg_bench.core.grid import F64, I64, Bool


@dataclass(frozen=True)
class PairedTurns:
    """N turns of G users, as each of two arms answered them."""

    user: I64  # [N] 0 to G - 1
    reference: F64  # [N] rewards
    arm: F64  # [N]
    apart: Bool  # [N] the answers differ

    @cached_property
    def turns(self) -> F64:
        """Turns of each user `[G]`."""
        turns: F64 = np.bincount(self.user).astype(np.float64)
        return turns

    def means(self, values: F64) -> F64:
        """Means over the turns of each user `[G]`."""
        means: F64 = np.bincount(self.user, values) / self.turns
        return means

    def log_noise(self, of_reference: F64, of_arm: F64) -> F64:
        """Variance `[G]` of a user's difference between the arms, as inverse propensities estimate it from a log that
        takes the one's answer with probability `of_reference` `[N]` and the other's with `of_arm` `[N]`; infinite where
        one of the two is never taken.

        Rewards count from the mean, as in self-normalised estimates.
        """
        centre = float(self.reference.mean())
        first, second = self.reference - centre, self.arm - centre
        with np.errstate(divide="ignore"):
            both = np.where((of_reference > 0) & (of_arm > 0), first**2 / of_reference + second**2 / of_arm, np.inf)
        seen = np.where(self.apart, both - (first - second) ** 2, 0.0)
        noise: F64 = np.bincount(self.user, seen) / self.turns**2
        return noise

    def expected(self, of_reference: F64, of_arm: F64, otherwise: float) -> float:
        """Mean over users of the mean reward in such a log, if answers of neither arm are worth `otherwise`."""
        second = np.where(self.apart, of_arm, 0.0)
        rest = np.maximum(1.0 - of_reference - second, 0.0)
        return float(self.means(of_reference * self.reference + second * self.arm + rest * otherwise).mean())
