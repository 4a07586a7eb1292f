"""A panel held against others of the same users: the baseline, its anchor, and that of the last release."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import numpy as np

from skg_bench.analysis.counts.metrics import Metric
from skg_bench.analysis.gate import tail
from skg_bench.analysis.gate.judge import GateState, Harm, Judged, judge_together, overall_state, upper_limit
from skg_bench.analysis.gate.panel import Panel, changed_logs, paired, ratios
from skg_bench.analysis.gate.panel_world import same_world
from skg_bench.analysis.gate.rules import LEAD, NEVER_ANCHOR, ORACLE_ANCHOR, Rule, blocking
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, Bool

Which = Literal["baseline", "anchor", "release"]


@dataclass(frozen=True)
class Reference:
    """Panel that another is held against, with its rules."""

    which: Which
    panel: Panel
    rules: tuple[Rule, ...]
    name: str  # what it was read from


@dataclass(frozen=True)
class Held:
    """Result of holding a panel against a reference."""

    which: Which
    base: Panel
    new: Panel
    state: GateState
    same: bool  # the same bits: nothing was judged
    changed: tuple[str, ...]  # digests that differ
    harms: tuple[Harm, ...]
    judged: tuple[Judged, ...]  # of each of `harms`
    informs: tuple[tuple[Metric, float, float], ...]  # metrics that do not block: before, after


def hold(new: Panel, references: Sequence[Reference], run: str | None = None) -> list[Held]:
    """The verdict on `new` against each reference. Limits are corrected for the metrics of all of them together, so
    that false alarms are 5 % at most in all. `run`: where `new` was read from.

    Raises UsageError when panels are not of the same users, or of another world.
    """
    for reference in references:
        paired(reference.panel, new, reference.name)
        same_world(reference.panel, new, reference.name, run)
    harms = [[] if same_bits(r.panel, new) else _harms(r, new) for r in references]
    judged = judge_together(harms)
    return [_held(new, *each) for each in zip(references, harms, judged, strict=True)]


def same_bits(base: Panel, new: Panel) -> bool:
    """Was the same logged at every turn?"""
    return not changed_logs(base, new) and all(
        np.array_equal(base.counts[name], new.counts[name]) for name in base.counts
    )


def _held(new: Panel, reference: Reference, harms: Sequence[Harm], judged: Sequence[Judged]) -> Held:
    base = reference.panel
    if not harms:
        return Held(reference.which, base, new, "pass", True, (), (), (), ())
    with _named(reference):
        informs = tuple(_means(base, new, rule.metric) for rule in reference.rules if not rule.blocks)
    differs, state = tuple(changed_logs(base, new)), overall_state(judged)
    return Held(reference.which, base, new, state, False, differs, tuple(harms), tuple(judged), informs)


def _harms(reference: Reference, new: Panel) -> list[Harm]:
    """Harms by all rules that block; there is no lead to keep where the reference has none."""
    with _named(reference):
        rules = [rule for rule in blocking(reference.rules) if rule.role != "lead" or ahead(reference.panel)]
        return [harm(reference.panel, new, rule) for rule in rules]


def lead(panel: Panel) -> tuple[float, float]:
    """Mean lead over `never`, utility a request, and its one-sided lower 95 % limit."""
    _, total, turns = ratios(panel, LEAD)
    each = total / turns
    return float(each.mean()), -upper_limit(0.0 - each)


def ahead(panel: Panel) -> bool:
    """Is the arm proven to be ahead of `never`? Results that were made elsewhere have no such arm."""
    return not panel.imported and lead(panel)[1] > 0


def way(panel: Panel) -> float | None:
    """Share of the way from `never` to the oracle; None: the oracle is not ahead, so that there is no way."""
    turns = panel.counts["turn"]
    never, oracle = (float((panel.counts[name] / turns).mean()) for name in (NEVER_ANCHOR, ORACLE_ANCHOR))
    return lead(panel)[0] / (oracle - never) if oracle > never else None


@contextmanager
def _named(reference: Reference) -> Iterator[None]:
    """Names the reference's file in errors about what it lacks."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{reference.name}: {error}") from error


def harm(base: Panel, new: Panel, rule: Rule) -> Harm:
    """Change of one metric, user by user."""
    if rule.role == "tail":
        return _few(base, new, rule)
    (before, after), kept = _values(base, new, rule.metric)
    over = min(int(ratios(panel, rule.metric)[2].sum()) for panel in (base, new))
    users, gone, share = base.users[kept], int((~kept).sum()), rule.option
    if rule.role == "lead" and share is not None:
        return Harm(rule, users, _missing(before, after, kept, share), gone, over, (1 - share) * float(before.mean()))
    rise = after[kept] - before[kept]
    each = 0.0 - rise if rule.better == "higher" else rise
    floor = None if share is None else _missing(before, after, kept, share)
    return Harm(rule, users, each, gone, over, None, floor)


def _missing(before: F64, after: F64, kept: Bool, share: float) -> F64:
    """Shortfall from a share of what was there before; below 0: none."""
    return np.asarray(share * before[kept] - after[kept], np.float64)


def _few(base: Panel, new: Panel, rule: Rule) -> Harm:
    rise, turns = tail.halves(base, new)
    kept = np.isfinite(rise).all(axis=1)
    rise, turns = rise[kept], turns[kept]
    trials = tail.trials(rise, turns, rule)
    return Harm(rule, base.users[kept], tail.user_contributions(rise, rule), int((~kept).sum()), trials)


def _values(base: Panel, new: Panel, name: str) -> tuple[tuple[F64, F64], Bool]:
    """A metric before and after `[n]`, and who has it both times."""
    (_, before, over_before), (_, after, over_after) = ratios(base, name), ratios(new, name)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (before / over_before, after / over_after), (over_before > 0) & (over_after > 0)


def _means(base: Panel, new: Panel, name: str) -> tuple[Metric, float, float]:
    (before, after), kept = _values(base, new, name)
    means = (float(values[kept].mean()) if kept.any() else np.nan for values in (before, after))
    known: Mapping[str, Metric] = base.metrics
    return known[name], next(means), next(means)
