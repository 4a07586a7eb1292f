"""Counterfactuals and placebos of a run of `counterfactuals`: what made a difference, and what makes none."""

from skg_bench.analysis.comparison.contrasts import MARGINS, ContrastResult, findings
from skg_bench.analysis.counts.wording import interval, number
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment, OneRun
from skg_bench.core.errors import UsageError

RUN = "experiment=counterfactuals profile=demo"
COMMAND = f"skg-bench run {RUN}; skg-bench experiment counterfactuals RUN --write reports"
HEADINGS = (
    "kind", "contrast", "asks about", "difference", "these requests", "new requests", "p (TOST)", "verdict",
)  # fmt: skip


def cells(finding: ContrastResult) -> tuple[str, ...]:
    """A row of the table."""
    e, contrast, unit = finding.estimate, finding.contrast, finding.metric.unit
    return (
        contrast.kind, f"{contrast.arm} - {contrast.reference}", contrast.asks, number(e.mean, unit, signed=True),
        interval(*e.interval(new=False), unit, signed=True),
        interval(*e.interval(new=True), unit, signed=True), f"{finding.p:.4f}", finding.verdict,
    )  # fmt: skip


def analyse(run: OneRun) -> Report:
    """As expected if each placebo that is nothing by construction is shown to be equivalent to nothing."""
    results = findings(run)
    if not results:
        raise UsageError(f"{run.path} names no contrasts; make a run that does: skg-bench run {RUN}")
    tables = [
        Table(f"{metric}, within {margin:g}", HEADINGS, [cells(f) for f in results if f.metric.name == metric])
        for metric, margin in MARGINS.items()
    ]
    nothing = [finding.verdict for finding in results if finding.contrast.kind == "nothing by construction"]
    return Report(
        tables, page("What made the difference?", COMMAND, *tables), holds=all(v == "equivalent" for v in nothing)
    )


EXPERIMENT = Experiment(analyse)
