"""Tables for the terminal: a plan, the arms of a run, a comparison."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rich.table import Table
from rich.text import Text

from skg_bench.analysis.comparison.compare import PAYS_HEADINGS, Comparison, cells, headings
from skg_bench.analysis.comparison.compare import pays as paying
from skg_bench.analysis.comparison.flips import lines
from skg_bench.analysis.comparison.matched import Matched
from skg_bench.analysis.comparison.seeds import STRIDE
from skg_bench.analysis.counts.wording import bare, interval, number
from skg_bench.analysis.summary import Summary
from skg_bench.app.launch import PreparedRun

SHOWN: tuple[str, ...] = ("utility", "hit_rate", "err_per_hit", "err_per_request", "skills", "offers_per_week")
OF_A_LOG = ("hit_rate", "other_intent", "rated_share", "rated_ok", "skills", "offers_per_week")


def arms(summary: Summary) -> Table:
    """One row an arm: its figures, and its utility against the reference with the interval for new requests."""
    reference, metrics = summary.reference, summary.metrics
    names = SHOWN
    if summary.log is not None:
        names = tuple(
            m for m in OF_A_LOG if any(arm_figures[m].mean is not None for arm_figures in summary.arms.values())
        )
    table = Table(box=None, pad_edge=False)
    table.add_column("arm", no_wrap=True)
    for name in names:
        table.add_column(metrics[name].label, justify="right")
    compared = reference is not None and "utility" in names
    if compared:
        table.add_column(f"utility - {reference}, new requests", justify="right", no_wrap=True)
        table.add_column("verdict", no_wrap=True)
    for arm, figures in summary.arms.items():
        row = [number(figures[name].mean, metrics[name].unit) for name in names]
        against = summary.differences.get(arm, {}).get("utility")
        if compared and against is not None:
            unit = metrics["utility"].unit
            span = interval(against.low_new, against.high_new, unit, signed=True)
            row += [f"{number(against.mean, unit, signed=True)} ({span})", against.verdict]
        elif compared:
            row += ["reference", ""]
        table.add_row(arm, *row)
    return table


def differences(compared: Comparison) -> Table:
    """One row a metric, under a row for each arm: the paired difference and its intervals."""
    table = Table(box=None, pad_edge=False)
    arm, metric, *others = headings(compared)
    table.add_column(f"{arm} / {metric}", no_wrap=True)
    for heading in others:
        table.add_column(heading, justify="left" if heading == "verdict" else "right")
    before = ""
    for name, label, *row in cells(compared):
        if name != before:
            table.add_row(Text(name, style="bold"))
            before = name
        table.add_row(f"  {label}", *row)
    return table


def matched(matches: Sequence[Matched], reference: str) -> Table:
    """One row an arm: it and the reference at the lower of their error rates."""
    table = Table(box=None, pad_edge=False)
    table.add_column("at matched error rate", no_wrap=True)
    for heading in (
        "wrong hits",
        "raised",
        "hit rate",
        "reference",
        "hit rate +/-",
        "right answers +/-",
        "utility +/-",
    ):
        table.add_column(heading, justify="right")
    for match in matches:
        raised = [
            f"{who} to {threshold:.3f}"
            for who, threshold in ((match.arm, match.threshold), (reference, match.reference_threshold))
            if threshold is not None
        ]
        hits = match.figures["hit_rate"]
        row = [f"{100 * match.wrong:.2f} %", raised[0] if raised else "-", f"{100 * hits.arm:.1f} %"]
        row.append(f"{100 * hits.reference:.1f} %")
        for name, unit in (("hit_rate", "share"), ("correct", "share"), ("utility", "utility")):
            pair = match.figures.get(name)
            span = "-" if pair is None else bare(interval(pair.low, pair.high, unit, signed=True))
            row.append("-" if pair is None else f"{number(pair.difference, unit, signed=True)} ({span})")
        table.add_row(match.arm, *row)
    return table


def pays(compared: Comparison) -> Table:
    """One row an arm: how many of its hits are right, and from how many on hits are worth more than the LLM."""
    table = Table(box=None, pad_edge=False)
    for heading in PAYS_HEADINGS:
        table.add_column(heading, justify="left" if heading == "arm" else "right", no_wrap=True)
    for row in paying(compared):
        table.add_row(*row)
    return table


def flips(compared: Comparison) -> Iterator[str]:
    """Turns that arms and the reference answered differently, counted by reason, and those that are told."""
    if compared.flips:
        yield f"turns answered worse and better than by {compared.reference}, by what failed in the arm that was wrong"
    for flipped in compared.flips:
        worse, better = (
            f"{sum(counts.values()):,}"
            + (f" ({', '.join(f'{why} {n:,}' for why, n in counts.items())})" if counts else "")
            for counts in (flipped.worse, flipped.better)
        )
        yield f"  {flipped.arm}: worse {worse}; better {better}"
        for flip in flipped.examples:
            seed_index, user = divmod(flip.user, STRIDE)
            seed = f"seed {compared.seeds[seed_index]}, " if len(compared.seeds) > 1 else ""
            first, *others = lines(replace(flip, user=user), flipped.arm, compared.reference)
            yield from (f"    {line}" for line in (seed + first, *others))


def plan(job: PreparedRun) -> Table:
    """One row an arm: the component at each seam, and its overrides."""
    table = Table(box=None, pad_edge=False)
    seams = [seam for seam, node in next(iter(job.composed.arms.values())).items() if isinstance(node, Mapping)]
    for heading in ("arm", *seams, "overrides"):
        table.add_column(heading, overflow="fold")
    for name, arm in job.composed.arms.items():
        made = [str(arm[seam]["_target_"]).rsplit(".", 1)[-1] for seam in seams]
        table.add_row(name, *made, " ".join(job.composed.root["arms"][name]))
    return table
