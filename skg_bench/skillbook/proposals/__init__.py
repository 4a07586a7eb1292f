"""Proposals of a model for a user's skillbook, and which of them are admitted.

A model's batch may obey an order that stood in a message or in a shop's name. So it is a proposal.
`admitted_operations` gives its operations that the limits allow, and each thing that it refuses with a reason.
"""

from skg_bench.skillbook.proposals.parsing import Batches
from skg_bench.skillbook.proposals.policy import admitted_operations
from skg_bench.skillbook.proposals.verdicts import Admitted, Code, Limits, Proposed, Refused, listed, refusals_of

__all__ = (
    "Admitted", "Batches", "Code", "Limits", "Proposed", "Refused", "admitted_operations", "listed", "refusals_of",
)  # fmt: skip
