"""Counterfactuals and placebos of a run of `counterfactuals`: what made a difference, and what makes none."""

import sys

from rich.console import Console
from rich.table import Table

from skg_bench.analysis.comparison.contrasts import MARGINS, ContrastResult, findings
from skg_bench.analysis.counts.wording import interval, number
from skg_bench.core.run import Run


def cells(finding: ContrastResult) -> tuple[str, ...]:
    """A row of the table."""
    e, contrast, unit = finding.estimate, finding.contrast, finding.metric.unit
    return (
        contrast.kind, f"{contrast.arm} - {contrast.reference}", contrast.asks, number(e.mean, unit, signed=True),
        interval(*e.interval(new=False), unit, signed=True),
        interval(*e.interval(new=True), unit, signed=True), f"{finding.p:.4f}", finding.verdict,
    )  # fmt: skip


def main(path: str) -> int:
    """Print the table of a run; 1 if a placebo that is nothing by construction is not shown to be equivalent."""
    results, screen = findings(Run(path)), Console(width=160)
    for metric, margin in MARGINS.items():
        table = Table(
            "kind", "contrast", "asks about", "difference", "these requests", "new requests", "p (TOST)", "verdict",
            title=f"{metric}, within {margin:g}",
        )  # fmt: skip
        for finding in results:
            if finding.metric.name == metric:
                table.add_row(*cells(finding))
        screen.print(table)
    nothing = [finding.verdict for finding in results if finding.contrast.kind == "nothing by construction"]
    return int(any(v != "equivalent" for v in nothing))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
