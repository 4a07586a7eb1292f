"""Arms of one or several runs against a reference arm, paired on the same users and events."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skg_bench.analysis.measure import Difference, contrast, differences, measure
from skg_bench.analysis.metrics import Metric, Utility, metrics
from skg_bench.analysis.tally import Events, Tally, events, tallies
from skg_bench.analysis.wording import interval, number
from skg_bench.core.errors import UsageError
from skg_bench.core.run import Run

SHOWN = ("utility", "hit_rate", "correct", "err_per_hit", "err_per_request", "rated_ok", "cost_usd", "latency_ms")
HEADINGS = (
    "arm", "metric", "value", "reference", "difference", "these requests", "new requests", "detectable", "p (Holm)",
    "verdict",
)  # fmt: skip

Coverage = list[tuple[int, int]]  # (user, number of first turns), by user


@dataclass(frozen=True, slots=True)
class Row:
    """One arm and one metric against the reference."""

    arm: str  # with the run's folder before it when there are several
    metric: Metric
    mean: float
    reference_mean: float
    difference: Difference


@dataclass(frozen=True, slots=True)
class Comparison:
    """Paired differences on the events that all runs share."""

    reference: str
    seed: int
    users: int
    turns: int
    rows: tuple[Row, ...]  # by arm, then by metric
    gaps: tuple[str, ...]  # what a run lacks of the others' events, one sentence each; never read as a regression


def compare(runs: Sequence[Run], reference: str | None = None) -> Comparison:
    """Every arm of `runs` against `reference`, an arm of the first run that has it (default: the first run's own).

    Where several runs have arms of one name, `folder:arm` says which. Utility is priced as in the reference's run.

    Raises UsageError when runs share no user, when the events that they share differ, or for an unknown reference.
    """
    if not runs:
        raise UsageError("nothing to compare; name at least one run directory")
    wanted = reference if reference is not None else runs[0].config.get("reference")
    labels = {(at, arm): _label(runs, at, arm) for at, run in enumerate(runs) for arm in run.arms}
    place = [key for key, label in labels.items() if wanted in (key[1], label)]
    if not place:
        raise UsageError(f"reference {wanted!r} is no arm of these runs; they have {', '.join(labels.values())}")
    at, arm = place[0]
    on, shared, gaps = _shared(runs)
    shown = metrics(Utility.of(runs[at].config))
    base = tallies(runs[at], arm, on, keep=shared)[0]
    base_means = measure(shown.values(), base, on)
    found = []
    for key, label in labels.items():
        if key != place[0]:
            own: Tally = tallies(runs[key[0]], key[1], on, keep=shared)[0]
            means, against = measure(shown.values(), own, on), contrast(shown.values(), own, base, on)
            found.append((label, means, against))
    rows = {
        (label, metric.name): Row(label, metric, means[metric.name].mean, base_means[metric.name].mean, tested)
        for metric in shown.values()
        for (label, means, _), tested in zip(
            found, differences(metric, [against[metric.name] for _, _, against in found]), strict=True
        )
    }
    ordered = tuple(rows[label, name] for label, _, _ in found for name in shown)
    return Comparison(labels[place[0]], on.seed, len(on.users), len(on), ordered, gaps)


def cells(comparison: Comparison, names: Sequence[str] = SHOWN) -> list[tuple[str, ...]]:
    """The table as text under HEADINGS, for these metrics."""
    table: list[tuple[str, ...]] = []
    for row in comparison.rows:
        if row.metric.name in names:
            unit, d = row.metric.unit, row.difference
            table.append((
                row.arm, row.metric.label, number(row.mean, unit), number(row.reference_mean, unit),
                number(d.estimate.mean, unit, signed=True),
                interval(*d.estimate.interval(new=False), unit, signed=True),
                interval(*d.estimate.interval(new=True), unit, signed=True),
                number(d.mde_new, unit, signed=True).lstrip("+"),
                "-" if d.p_holm != d.p_holm else f"{d.p_holm:.3f}", said(d),
            ))  # fmt: skip
    return table


def said(d: Difference) -> str:
    """The verdict in words; what is not shown is inconclusive, never equal."""
    if d.verdict != "inconclusive":
        return d.verdict
    if d.estimate.mean == 0 and d.mde_new == 0:
        return "equal for every user"
    return "inconclusive: below what is detectable" if d.significant else "no difference shown (inconclusive)"


def _label(runs: Sequence[Run], at: int, arm: str) -> str:
    if len(runs) == 1:
        return arm
    names = [run.path.name for run in runs]
    return f"{names[at] if names.count(names[at]) == 1 else runs[at].path}:{arm}"


def _shared(runs: Sequence[Run]) -> tuple[Events, Coverage | None, tuple[str, ...]]:
    """The events that all runs have, how much of each user that is (None: all of it), and what is missing where."""
    each = [events(run) for run in runs]
    for run, own in zip(runs[1:], each[1:], strict=True):
        if own.seed != each[0].seed:
            raise UsageError(
                f"{run.path} has seed {own.seed}, {runs[0].path} has seed {each[0].seed}: they share no user; compare "
                "runs of one seed"
            )
    turns = [dict(zip(own.users.tolist(), np.bincount(own.row).tolist(), strict=True)) for own in each]
    users = sorted(set.intersection(*(set(of) for of in turns)))
    if not users:
        raise UsageError(f"{' and '.join(str(run.path) for run in runs)} share no user; compare runs of the same users")
    shared = [(user, min(of[user] for of in turns)) for user in users]
    gaps = tuple(_gap(run, of, shared) for run, of in zip(runs, turns, strict=True) if of != dict(shared))
    kept = [events(run, shared) for run in runs] if gaps else each
    for run, own in zip(runs[1:], kept[1:], strict=True):
        _same_events(runs[0], kept[0], run, own)
    return kept[0], shared if gaps else None, gaps


def _gap(run: Run, of: dict[int, int], shared: Coverage) -> str:
    users = len(of) - len(shared)
    turns = sum(of.values()) - sum(n for _, n in shared)
    return f"{run.path}: {turns:,} of {sum(of.values()):,} turns ({users} users wholly) are not in all runs; left out"


def _same_events(first: Run, a: Events, second: Run, b: Events) -> None:
    differs, what = a.time != b.time, "time"
    if not differs.any():
        place = np.minimum(np.searchsorted(a.message, b.message), len(a.message) - 1)
        same_text = np.where(a.message[place] == b.message, place, -1)  # b's vocabulary as a's codes
        differs, what = a.text != same_text[b.text], "message"
    if differs.any():
        at = int(np.flatnonzero(differs)[0])
        raise UsageError(
            f"{first.path} and {second.path} differ in the {what} of {int(differs.sum()):,} of {len(a):,} events "
            f"(first: user {a.users[a.row[at]]}, turn {a.turn[at]}), so that their arms cannot be paired; compare runs "
            "of the same simulator and data"
        )
