"""What the LLM said against stored answers that it spared, for policies that learn from it."""

from dataclasses import dataclass

from skg_bench.core.grid import F64, I64, Bool


@dataclass(frozen=True, slots=True)
class Compared:
    """Earlier comparisons of the stored answer of the nearest candidate (place 0) with answers of the LLM."""

    similarity: F64  # [B] of the candidate to the message now; 0 if there is none
    earlier: F64  # [B, t] its similarity at each of the user's earlier turns
    same: Bool  # [B, t] both answers said the same
    made: Bool  # [B, t] was it compared at that turn? If not, the others say nothing

    def rows(self, which: I64 | Bool) -> "Compared":
        """Those of these users only."""
        return Compared(self.similarity[which], self.earlier[which], self.same[which], self.made[which])
