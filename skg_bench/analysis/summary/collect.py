"""Results of a run's arms, one arm at a time: only an arm, its live twin, the reference and `never` are held."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from skg_bench.analysis.counts.break_even import Answers, BreakEven, break_even
from skg_bench.analysis.counts.kinds import INTENT_KINDS, kinds
from skg_bench.analysis.counts.measure import contrast, denominator, identical, measure, weekly
from skg_bench.analysis.counts.metrics import Metric, Utility
from skg_bench.analysis.counts.roles import Roles
from skg_bench.analysis.counts.tally import CEILINGS, LoggedEvents, Tally, tallies
from skg_bench.analysis.statistics.curves import Band, bands, signs
from skg_bench.analysis.statistics.intervals import Estimate, estimates, sums
from skg_bench.analysis.summary.document import Waterfall
from skg_bench.analysis.summary.figures import NO_BOUNDS, Figure
from skg_bench.analysis.summary.losses import Losses, losses, waterfall
from skg_bench.analysis.summary.regret import Regret, regret, regret_waterfall
from skg_bench.core.grid import F64, I8, I32, I64, Bool
from skg_bench.runfolder.run import RunTables

ALL_ARMS = "*"  # stands for the arm in curves of what belongs to the events

Curve = tuple[str, str, Band]  # arm, metric


@dataclass(frozen=True)
class _Held:
    """Results of an arm, kept while others are compared with it."""

    tally: dict[int, Tally]  # by the turn from which on it counts
    lost: Losses | Regret | None  # None: it is not known what was right, or why not
    answers: Answers | None  # None: it is not known of all whether they were right, or there are none
    hits: I64  # rows of the events that the skillbook answered


@dataclass(frozen=True)
class Found:
    """Figures by arm; estimates that are corrected for their number are not tested yet: (estimate, rows under it)."""

    arms: dict[str, dict[str, Figure]] = field(default_factory=dict)  # by metric
    against: dict[str, dict[str, tuple[Estimate, int]]] = field(default_factory=dict)  # arm - reference
    effects: dict[str, dict[str, tuple[Estimate, int]]] = field(default_factory=dict)  # live - frozen, since the freeze
    same: dict[str, bool] = field(default_factory=dict)  # did the arm do the same as the reference on every turn?
    same_as_live: dict[str, bool] = field(default_factory=dict)  # frozen arms: as the live one, since the freeze
    break_even: dict[str, BreakEven] = field(default_factory=dict)
    kinds: dict[str, dict[str, Figure]] = field(default_factory=dict)  # arm - reference, utility
    swept: dict[str, list[Figure]] = field(default_factory=dict)  # utility at each of some prices
    swept_against: dict[str, list[Estimate]] = field(default_factory=dict)
    waterfall: dict[str, Waterfall] = field(default_factory=dict)
    totals: dict[str, dict[str, float]] = field(default_factory=dict)
    ceiling: dict[str, Figure] = field(default_factory=dict)
    curves: list[Curve] = field(default_factory=list)


def collect(
    run: RunTables,
    requests: LoggedEvents,
    role: Roles,
    shown: Mapping[str, Metric],
    beyond: Mapping[str, Metric],
    prices: Sequence[Metric],
    utility: Utility,
) -> Found:
    """All arms of a run. `beyond`: metrics that compare with `never`; `prices`: utility at other prices."""
    results, multipliers = Found(), signs(requests.seed, requests.users)
    answered = requests.judged and requests.answers
    kind = kinds(run, requests) if answered else None
    for arm, held in _in_turn(run, requests, role, utility):
        tally, lost = held[arm].tally[0], held[arm].lost
        base = None if role.reference in (None, arm) else held[role.reference]
        reference = None if base is None else base.tally[0]
        of_arm = measure(shown.values(), tally, requests)
        results.arms[arm] = {
            name: Figure.of(of_arm[name], denominator(m, tally), m.bounds) for name, m in shown.items()
        }
        if role.never is not None:
            excess = contrast(beyond.values(), tally, held[role.never].tally[0], requests)
            results.arms[arm] |= {name: Figure.of(excess[name], len(requests)) for name in beyond}
        results.swept[arm] = [Figure.of(e, len(requests)) for e in measure(prices, tally, requests).values()]
        if reference is not None:
            difference = contrast(shown.values(), tally, reference, requests)
            results.against[arm] = {name: (difference[name], denominator(m, tally)) for name, m in shown.items()}
            results.swept_against[arm] = list(contrast(prices, tally, reference, requests).values())
            results.same[arm] = identical(tally, reference)
        if lost is not None:
            results.waterfall[arm] = _waterfall(lost, None if base is None else base.lost, requests)
        if (llm := held[role.never].answers if role.never is not None else None) and (answers := held[arm].answers):
            hit = held[arm].hits
            results.break_even[arm] = break_even(requests, hit, answers.at(hit), llm.at(hit), utility.wrong)
            results.arms[arm] |= _reuse(results.break_even[arm], len(hit))
        if kind is not None and base is not None and base.answers and (answers := held[arm].answers):
            results.kinds[arm] = _by_kind(kind, answers, base.answers, requests)
        live = None
        if arm in role.frozen:
            twin, since = role.frozen[arm]
            live = held[twin].tally[0]
            results.effects[arm] = _effect(held[twin].tally[since], held[arm].tally[since], shown, requests)
            results.same_as_live[arm] = identical(held[twin].tally[since], held[arm].tally[since])
        total = {name: float(tally.by_week[name].sum()) for name in tally.by_week if name != "latency"}
        results.totals[arm] = {**total, "pending": tally.pending}
        results.curves.extend(_curves(arm, tally, reference, live, shown, multipliers))
    if answered:
        compositions = (run.manifest.get("compositions") or {}).values()
        _ceilings(results, requests, multipliers, procedures=any(c.get("serving") == "procedure" for c in compositions))
    return results


def _in_turn(
    run: RunTables, requests: LoggedEvents, role: Roles, utility: Utility
) -> Iterator[tuple[str, dict[str, _Held]]]:
    """Each arm with what it is compared with; frozen arms come right after their live arm."""

    def read(arm: str) -> _Held:
        tally = tallies(run, arm, requests, role.since(arm))
        if not requests.answers:
            return _Held(tally, regret(run, arm, requests, utility), None, np.zeros(0, np.int64))
        if not tally[0].judged:
            return _Held(tally, None, None, np.zeros(0, np.int64))
        hits = np.flatnonzero(~run.turns(arm, ["fallback_to_llm"])["fallback_to_llm"].to_numpy())
        return _Held(tally, losses(run, arm, requests, utility), Answers.read(run, arm, utility), hits)

    compared = [arm for arm in (role.reference, role.never) if arm is not None]
    held = {arm: read(arm) for arm in dict.fromkeys(compared)}
    for live in (arm for arm in run.arms if arm not in role.frozen):
        twins = [arm for arm in run.arms if role.frozen.get(arm, ("", 0))[0] == live]
        for arm in (live, *twins):
            if arm not in held:
                held[arm] = read(arm)
            yield arm, held
            held = {name: counts for name, counts in held.items() if name in (*compared, live)}


def _waterfall(lost: Losses | Regret, base: Losses | Regret | None, requests: LoggedEvents) -> Waterfall:
    if isinstance(lost, Regret):
        return regret_waterfall(lost, base if isinstance(base, Regret) else None, requests)
    return waterfall(lost, base if isinstance(base, Losses) else None, requests)


def _effect(
    live: Tally, frozen: Tally, shown: Mapping[str, Metric], requests: LoggedEvents
) -> dict[str, tuple[Estimate, int]]:
    ratios = {name: m for name, m in shown.items() if m.over not in ("week", "book")}
    difference = contrast(ratios.values(), live, frozen, requests)
    return {name: (difference[name], denominator(m, frozen)) for name, m in ratios.items()}


def _reuse(of_hits: BreakEven, hits: int) -> dict[str, Figure]:
    return {
        "right_per_hit": Figure.of(of_hits.precision, hits, (0.0, 1.0)),
        "pays_from": Figure.of(of_hits.pays_from, hits),
        "pays_by": Figure.of(of_hits.margin, hits, (-of_hits.pays_from.mean, 1.0 - of_hits.pays_from.mean)),
    }


def _by_kind(kind: I32, arm: Answers, reference: Answers, requests: LoggedEvents) -> dict[str, Figure]:
    """The difference in utility per request, by what the requests are; kinds that do not occur are left out."""
    n, gained = len(requests.cells.user), arm.worth - reference.worth
    rows = {name: np.flatnonzero(kind == code) for code, name in enumerate(INTENT_KINDS)}
    some = {name: at for name, at in rows.items() if len(at)}
    counts = ([sums(requests.cell[at], n, gained[at])] for at in some.values())
    parts = estimates(requests.cells, [sums(requests.cell, n)], counts)
    return {name: Figure.of(e, len(at)) for (name, at), e in zip(some.items(), parts, strict=True)}


def _curves(
    arm: str,
    tally: Tally,
    reference: Tally | None,
    live: Tally | None,
    shown: Mapping[str, Metric],
    multipliers: I8,
) -> Iterator[Curve]:
    utility = shown["utility"]
    values: dict[str, Callable[[], F64]] = {m.name: partial(weekly, m, tally) for m in shown.values()}
    if reference is not None:
        values["utility_difference"] = lambda: weekly(utility, tally) - weekly(utility, reference)
    if live is not None:
        values["learning_effect"] = lambda: weekly(utility, live) - weekly(utility, tally)
    bounds = [shown[name].bounds if name in shown else NO_BOUNDS for name in values]
    drawn = bands((make() for make in values.values()), multipliers, bounds)
    return ((arm, name, band) for name, band in zip(values, drawn, strict=True))


def _ceilings(results: Found, requests: LoggedEvents, multipliers: I8, *, procedures: bool) -> None:
    """The share of requests that the skillbook could answer, whatever an arm did."""
    turn = sums(requests.cell, len(requests.cells.user))
    weekly_turns = sums(requests.slot, len(requests.users) * requests.weeks).reshape(-1, requests.weeks)
    could = {str(k): requests.answerable >= k for k in CEILINGS}
    if procedures:
        could["procedure"] = _familiar(requests)
    values = []
    for name, possible in could.items():
        (share,) = estimates(requests.cells, [turn], [[sums(requests.cell[possible], len(turn))]])
        results.ceiling[name] = Figure.of(share, len(requests), (0.0, 1.0))
        count = sums(requests.slot[possible], weekly_turns.size).reshape(weekly_turns.shape)
        values.append(np.where(weekly_turns > 0, count / np.maximum(weekly_turns, 1.0), np.nan))
    drawn = bands(values, multipliers, [(0.0, 1.0)] * len(could))
    results.curves.extend((ALL_ARMS, f"ceiling_{name}", band) for name, band in zip(could, drawn, strict=True))


def _familiar(requests: LoggedEvents) -> Bool:
    """Has the user asked for the same intent before, `[N]`? A procedure could serve it."""
    first = np.unique(requests.cell, return_index=True)[1]
    before = np.ones(len(requests), np.bool_)
    before[first] = False
    return before
