"""A page of what a log says of policies: the figure, and all that the terminal prints."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from skg_bench.analysis.policy_value.estimates import PolicyEstimates
from skg_bench.analysis.report.assets import page_asset, page_template
from skg_bench.analysis.report.estimates_figure import estimates_svg


@dataclass(frozen=True, slots=True)
class EstimateTable:
    """A table of estimates; the first column has names."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


EstimateParts = Sequence[EstimateTable | str]
"""Tables and sentences, in order."""


def estimates_page(log: Path, estimates: PolicyEstimates, parts: EstimateParts) -> str:
    """The page as text. It asks nothing of a network."""
    figure = Markup(estimates_svg(estimates))  # noqa: S704  our own, with names escaped
    return page_template("estimates_page.html.j2").render(
        title=f"Ask a log: {log.name}", css=page_asset("page.css"), figure=figure, parts=parts
    )
