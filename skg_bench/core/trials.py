"""What several weightings of the signals would choose, and how that went, for policies that learn which is best."""

from dataclasses import dataclass

from skg_bench.core.grid import F64, I32, I64, Bool


@dataclass(frozen=True, slots=True)
class Trials:
    """M weightings of the signals, now and so far."""

    place: I32  # [B, M] the place of the shortlist that each would take now, -1: fallback to the LLM
    gained: F64  # [B, M] over rated choices that it would have made: sum of rating (ok 1, partial 0.5) / propensity
    tried: F64  # [B, M] over the same: sum of 1 / propensity

    def rows(self, which: I64 | Bool) -> "Trials":
        """Those of these users only."""
        return Trials(self.place[which], self.gained[which], self.tried[which])
