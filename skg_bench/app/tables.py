"""Tables for the terminal: a plan, the arms of a run, a comparison."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from skg_bench.analysis.compare import HEADINGS, Comparison, cells
from skg_bench.analysis.wording import interval, number
from skg_bench.app.launch import Job

SHOWN = ("utility", "hit_rate", "err_per_hit", "err_per_request", "skills", "offers_per_week")


def arms(summary: Mapping[str, Any]) -> Table:
    """One row an arm: its figures, and its utility against the reference with the interval for new requests."""
    reference, metrics = summary["reference"], summary["metrics"]
    table = Table(box=None, pad_edge=False)
    table.add_column("arm", no_wrap=True)
    for name in SHOWN:
        table.add_column(str(metrics[name]["label"]), justify="right")
    if reference is not None:
        table.add_column(f"utility - {reference}, new requests", justify="right", no_wrap=True)
        table.add_column("verdict", no_wrap=True)
    for arm, figures in summary["arms"].items():
        row = [number(figures[name]["mean"], metrics[name]["unit"]) for name in SHOWN]
        against = summary["differences"].get(arm, {}).get("utility")
        if against is not None:
            unit = metrics["utility"]["unit"]
            span = interval(against["low_new"], against["high_new"], unit, signed=True)
            row += [f"{number(against['mean'], unit, signed=True)} ({span})", against["verdict"]]
        elif reference is not None:
            row += ["reference", ""]
        table.add_row(arm, *row)
    return table


def differences(compared: Comparison) -> Table:
    """One row a metric, under a row for each arm: the paired difference and its two intervals."""
    table = Table(box=None, pad_edge=False)
    arm_and_metric, *headings = " / ".join(HEADINGS[:2]), *HEADINGS[2:]
    table.add_column(arm_and_metric, no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "verdict" else "right")
    before = ""
    for arm, metric, *row in cells(compared):
        if arm != before:
            table.add_row(Text(arm, style="bold"))
            before = arm
        table.add_row(f"  {metric}", *row)
    return table


def plan(job: Job) -> Table:
    """One row an arm: the component at each seam, and its overrides."""
    table = Table(box=None, pad_edge=False)
    seams = [seam for seam, node in next(iter(job.composed.arms.values())).items() if isinstance(node, Mapping)]
    for heading in ("arm", *seams, "overrides"):
        table.add_column(heading, overflow="fold")
    for name, arm in job.composed.arms.items():
        made = [str(arm[seam]["_target_"]).rsplit(".", 1)[-1] for seam in seams]
        table.add_row(name, *made, " ".join(job.composed.root["arms"][name]))
    return table
