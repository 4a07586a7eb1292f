"""Names that a domain may not take, held before a run begins."""

from skg_bench.analysis.counts.metrics import Utility, against_never, logged, metrics
from skg_bench.analysis.summary.describe import REUSE
from skg_bench.core.domain import Domain
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.schema import turns


def check_domain(domain: Domain) -> None:
    """Raises UsageError for a metric or a field that would stand in for one that every world has."""
    every = {**metrics(Utility(0.0, 0.0, 0.0, 0.0)), **logged(), **against_never(), **REUSE}
    columns = set(turns(1).names)
    for what, names, taken in (
        ("metric", [each.name for each in domain.metrics], every),
        ("field of the outcome", [each.name for each in domain.outcome], columns),
    ):
        for name in names:
            if name in taken:
                raise UsageError(
                    f"domain {domain.name!r}: {what} {name!r} has the name of one that every world has; choose another"
                )
