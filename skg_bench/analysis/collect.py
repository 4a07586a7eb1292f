"""What a run's arms did, one arm at a time: only an arm, its live twin, the reference and `never` are held."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from skg_bench.analysis.curves import Band, bands, signs
from skg_bench.analysis.figures import NO_BOUNDS, Figures, figure
from skg_bench.analysis.intervals import Estimate, estimates, sums
from skg_bench.analysis.measure import contrast, denominator, measure, weekly
from skg_bench.analysis.metrics import Metric, Utility
from skg_bench.analysis.roles import Roles
from skg_bench.analysis.tally import CEILINGS, LoggedEvents, Tally, tallies
from skg_bench.analysis.waterfall import losses, waterfall
from skg_bench.core.grid import F64
from skg_bench.core.run import Run

ALL_ARMS = "*"  # stands for the arm in curves of what belongs to the events

Curve = tuple[str, str, Band]  # arm, metric


@dataclass(frozen=True)
class Found:
    """Figures by arm; estimates that are corrected for their number are not tested yet: (estimate, rows under it)."""

    arms: dict[str, Figures] = field(default_factory=dict)  # metric -> FIGURE of `summary`
    against: dict[str, dict[str, tuple[Estimate, int]]] = field(default_factory=dict)  # arm - reference
    effects: dict[str, dict[str, tuple[Estimate, int]]] = field(default_factory=dict)  # live - frozen, since the freeze
    swept: dict[str, list[Figures]] = field(default_factory=dict)  # utility at each price of a wrong answer
    swept_against: dict[str, list[Figures]] = field(default_factory=dict)
    waterfall: dict[str, Figures] = field(default_factory=dict)
    totals: dict[str, Figures] = field(default_factory=dict)
    ceiling: Figures = field(default_factory=dict)
    curves: list[Curve] = field(default_factory=list)


def collect(
    run: Run,
    on: LoggedEvents,
    role: Roles,
    shown: Mapping[str, Metric],
    beyond: Mapping[str, Metric],
    prices: Sequence[Metric],
    utility: Utility,
) -> Found:
    """All arms of a run. `beyond`: metrics that compare with `never`; `prices`: utility at other prices."""
    found, multipliers = Found(), signs(on.seed, on.users)
    base = losses(run, role.reference, on, utility) if role.reference is not None and on.judged else None
    for arm, own, held in _in_turn(run, on, role):
        reference = None if role.reference in (None, arm) else held[role.reference][0]
        of_arm = measure(shown.values(), own, on)
        found.arms[arm] = {name: figure(of_arm[name], denominator(m, own), m.bounds) for name, m in shown.items()}
        if role.never is not None:
            excess = contrast(beyond.values(), own, held[role.never][0], on)
            found.arms[arm] |= {name: figure(excess[name], len(on)) for name in beyond}
        found.swept[arm] = [figure(e, len(on)) for e in measure(prices, own, on).values()]
        if reference is not None:
            difference = contrast(shown.values(), own, reference, on)
            found.against[arm] = {name: (difference[name], denominator(m, own)) for name, m in shown.items()}
            found.swept_against[arm] = [figure(e, len(on)) for e in contrast(prices, own, reference, on).values()]
        if on.judged:
            found.waterfall[arm] = waterfall(losses(run, arm, on, utility), None if reference is None else base, on)
        live = None
        if arm in role.frozen:
            twin, since = role.frozen[arm]
            live = held[twin][0]
            found.effects[arm] = _effect(held[twin][since], held[arm][since], shown, on)
        total = {name: float(own.by_week[name].sum()) for name in own.by_week if name != "latency"}
        found.totals[arm] = {**total, "pending": own.pending}
        found.curves.extend(_curves(arm, own, reference, live, shown, multipliers))
    if on.judged:
        _ceilings(found, on, multipliers)
    return found


def _in_turn(run: Run, on: LoggedEvents, role: Roles) -> Iterator[tuple[str, Tally, dict[str, dict[int, Tally]]]]:
    """Each arm with what it is compared with; frozen arms come right after their live arm."""
    compared = [arm for arm in (role.reference, role.never) if arm is not None]
    held = {arm: tallies(run, arm, on, role.since(arm)) for arm in dict.fromkeys(compared)}
    for live in (arm for arm in run.arms if arm not in role.frozen):
        twins = [arm for arm in run.arms if role.frozen.get(arm, ("", 0))[0] == live]
        for arm in (live, *twins):
            if arm not in held:
                held[arm] = tallies(run, arm, on, role.since(arm))
            yield arm, held[arm][0], held
            held = {name: of for name, of in held.items() if name in (*compared, live)}


def _effect(
    live: Tally, frozen: Tally, shown: Mapping[str, Metric], on: LoggedEvents
) -> dict[str, tuple[Estimate, int]]:
    ratios = {name: m for name, m in shown.items() if m.over not in ("week", "book")}
    difference = contrast(ratios.values(), live, frozen, on)
    return {name: (difference[name], denominator(m, frozen)) for name, m in ratios.items()}


def _curves(
    arm: str,
    own: Tally,
    reference: Tally | None,
    live: Tally | None,
    shown: Mapping[str, Metric],
    multipliers: F64,
) -> Iterator[Curve]:
    values = {m.name: weekly(m, own) for m in shown.values()}
    if reference is not None:
        values["utility_difference"] = values["utility"] - weekly(shown["utility"], reference)
    if live is not None:
        values["learning_effect"] = weekly(shown["utility"], live) - values["utility"]
    bounds = [shown[name].bounds if name in shown else NO_BOUNDS for name in values]
    drawn = bands(list(values.values()), multipliers, bounds)
    return ((arm, name, band) for name, band in zip(values, drawn, strict=True))


def _ceilings(found: Found, on: LoggedEvents, multipliers: F64) -> None:
    """The share of requests that the skillbook could answer, whatever an arm did."""
    turn = sums(on.cell, len(on.cells.user))
    there = sums(on.slot, len(on.users) * on.weeks).reshape(-1, on.weeks)
    values = []
    for k in CEILINGS:
        possible = on.answerable >= k
        (share,) = estimates(on.cells, [turn], [[sums(on.cell[possible], len(turn))]])
        found.ceiling[str(k)] = figure(share, len(on), (0.0, 1.0))
        count = sums(on.slot[possible], there.size).reshape(there.shape)
        values.append(np.where(there > 0, count / np.maximum(there, 1.0), np.nan))
    drawn = bands(values, multipliers, [(0.0, 1.0)] * len(CEILINGS))
    found.curves.extend((ALL_ARMS, f"ceiling_{k}", band) for k, band in zip(CEILINGS, drawn, strict=True))
