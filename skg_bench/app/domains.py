"""Names that a domain may not take, and names in its words that there must be; held before a run begins."""

from collections.abc import Collection, Iterator

from skg_bench.analysis.counts.metrics import Utility, against_never, logged, metrics
from skg_bench.analysis.counts.outcomes import outcome_metrics, told_metrics
from skg_bench.analysis.counts.tally import COUNTS
from skg_bench.analysis.summary.describe import REUSE
from skg_bench.core.domain import Domain
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.schema import turns
from skg_bench.runfolder.telling import Telling, telling_of

_FREE = Utility(0.0, 0.0, 0.0, 0.0)
_OVER = ("week", "book")


def check_domain(domain: Domain) -> None:
    """Raises UsageError for a metric or a field that would stand in for one that every world has, and for words about
    metrics, columns or feedback that there are not.
    """
    every = {**metrics(_FREE), **logged(), **against_never(), **REUSE}
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
    telling = telling_of({"domain": domain.plain()})
    for what, used, valid in _named(domain, telling):
        if unknown := [name for name in used if name not in valid]:
            raise UsageError(
                f"domain {domain.name!r}: its words name the {what} {unknown[0]!r}, valid are {', '.join(valid)}"
            )


def _named(domain: Domain, telling: Telling) -> Iterator[tuple[str, Collection[str], Collection[str]]]:
    """Names that the words of a domain use, by kind, each with the names that are valid."""
    shared = metrics(_FREE)
    counted = telling.counted
    answers = COUNTS if domain.answers else [name for name in COUNTS if name not in ("rated", "ok")]
    counts = [*answers, *counted]
    columns, feedback = turns(1, domain.outcome).names, domain.feedback()
    yield "metric of every world", telling.general, shared
    yield "column", telling.columns, columns
    yield "count", [*(each.count for each in telling.metrics), *(each.count for each in telling.prices)], counts
    yield "count", [each.over for each in telling.metrics], [*counts, *_OVER]
    yield "count", [n for each in telling.interactions for n in (each.spoken, each.taken, each.refused)], counted
    yield "kind of feedback", [each.kind for each in telling.heard], feedback
    for each in telling.heard:
        yield f"level of {each.kind}", each.levels, feedback[each.kind]
    known = told_metrics(telling, _FREE) | outcome_metrics(domain)
    yield "metric", [*telling.terminal, *telling.tiles, *telling.table, *telling.picture], known
    yield "metric", [each.metric for each in telling.weekly], [*known, "utility_difference"]
    for trace in telling.trace:
        yield "column", [*trace.output, *trace.metadata], columns
    for panel in telling.turn:
        yield "column", [panel.who, panel.did, panel.wanted, panel.kind], [each.name for each in domain.outcome]
        yield "column", [each.column for each in panel.worths], columns
        yield "kind of feedback", [panel.later], feedback
    if telling.metrics or telling.general:
        yield "metric", ["utility"], known
