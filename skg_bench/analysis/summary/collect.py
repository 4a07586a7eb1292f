"""Results of a run's arms. Turns are held block by block of users, and of all blocks sums by user, week and intent."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from skg_bench.analysis.counts.break_even import HIT_SUMS, Answers, BreakEven, break_even_of, hit_sums
from skg_bench.analysis.counts.columns import seen_before
from skg_bench.analysis.counts.joined import (
    BlockTally,
    JoinedEvents,
    Packed,
    joined_events,
    joined_tally,
    unpacked,
)
from skg_bench.analysis.counts.kinds import INTENT_KINDS, KindFacts, kind_facts, kinds_of
from skg_bench.analysis.counts.measure import contrast, denominator, identical, measure, weekly
from skg_bench.analysis.counts.metrics import Metric, Utility
from skg_bench.analysis.counts.roles import Roles
from skg_bench.analysis.counts.tally import CEILINGS, LoggedEvents, Requests, Tally, events, tallies
from skg_bench.analysis.counts.turn_logs import RunBlock, read_all, user_blocks
from skg_bench.analysis.statistics.curves import Band, PackedSigns, bands, signs
from skg_bench.analysis.statistics.intervals import Estimate, estimates, sums
from skg_bench.analysis.summary.document import Waterfall
from skg_bench.analysis.summary.figures import NO_BOUNDS, Figure
from skg_bench.analysis.summary.losses import Losses, PackedLosses, joined_losses, losses, waterfall
from skg_bench.analysis.summary.regret import PackedRegret, Regret, joined_regret, regret, regret_waterfall
from skg_bench.analysis.summary.saturation import Saturation, Used, saturation_of, used
from skg_bench.core.grid import F64, I64, Bool
from skg_bench.runfolder.run import RunTables

ALL_ARMS = "*"  # stands for the arm in curves of what belongs to the events

Curve = tuple[str, str, Band]  # arm, metric


@dataclass(frozen=True, slots=True)
class _Block:
    """Sums over the users of a block, by arm."""

    on: JoinedEvents
    used: Used
    kinds: KindFacts | None  # None: it is not known what was right
    typed: Packed  # requests by cell that are no one-offs
    could: dict[str, tuple[Packed, F64]]  # requests that the skillbook could answer: by cell, and `[n, W]`
    arms: "dict[str, _ArmBlock]"
    pays: dict[str, list[Packed]]  # sums of hits beside what `never` got there
    gained: dict[str, tuple[Packed, Packed]]  # utility beyond the reference's, of the typed ones and of one-offs

    @property
    def weeks(self) -> Sequence[int]:
        """Calendar weeks of the run."""
        return (self.on.weeks,)


@dataclass(frozen=True)
class _Held:
    """Results of an arm, kept while others are compared with it."""

    tally: dict[int, Tally]  # by the turn from which on it counts
    lost: Losses | Regret | None


@dataclass(frozen=True)
class Found:
    """Figures by arm; estimates that are corrected for their number are not tested yet: (estimate, rows under it)."""

    requests: JoinedEvents
    saturation: Saturation
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
    columns: Sequence[str],
    role: Roles,
    utility: Utility,
    metrics_at: Callable[[Requests], tuple[Mapping[str, Metric], Mapping[str, Metric], Sequence[Metric]]],
) -> Found:
    """All arms of a run, of whose turns `columns` are read. `metrics_at` gives, for these events, the metrics that are
    shown, those that compare with `never`, and utility at other prices.
    """
    parts = read_all(partial(_read, role=role, utility=utility), user_blocks([run], columns))
    requests = joined_events([part.on for part in parts])
    shown, beyond, prices = metrics_at(requests)
    results = Found(requests, saturation_of([part.used for part in parts]))
    multipliers = signs(requests.seed, requests.users)
    answered = requests.judged and requests.answers
    for arm, held in _in_turn(run, parts, role):
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
            base_lost = None if base is None else base.lost
            results.waterfall[arm] = _waterfall(lost, base_lost, requests, tally.by_cell["turn"])
        if all(arm in part.pays for part in parts):
            pays = [[part.pays[arm][i] for part in parts] for i in range(HIT_SUMS)]
            results.break_even[arm] = break_even_of(requests.cells, *map(unpacked, pays))
            results.arms[arm] |= _reuse(results.break_even[arm], int(tally.by_cell["hit"].sum()))
        if all(arm in part.gained for part in parts):
            results.kinds[arm] = _by_kind(parts, arm, requests, tally.by_cell["turn"])
        live = None
        if arm in role.frozen:
            twin, since = role.frozen[arm]
            live = held[twin].tally[0]
            results.effects[arm] = _effect(held[twin].tally[since], held[arm].tally[since], shown, requests)
            results.same_as_live[arm] = identical(held[twin].tally[since], held[arm].tally[since])
        total = {name: float(tally.by_week[name].sum()) for name in tally.by_week if name != "latency"}
        results.totals[arm] = {**total, "pending": tally.pending}
        results.curves.extend(_curves(arm, tally, reference, live, shown, multipliers))
        if answered and not results.ceiling:
            _ceilings(results, parts, tally, multipliers)
    return results


def _read(runs: Sequence[RunBlock], weeks: Sequence[int], *, role: Roles, utility: Utility) -> _Block:
    (run,) = runs
    requests = events(run, None, weeks[0])
    answered = requests.judged and requests.answers
    facts = kind_facts(run, requests) if answered else None
    typed = np.zeros(len(requests), np.bool_) if facts is None else facts.typed
    cells, by_arm = len(requests.cells.user), dict[str, _ArmBlock]()
    for arm in (arm for arm in (role.reference, role.never) if arm is not None and arm not in by_arm):
        by_arm[arm] = _ArmBlock.read(run, arm, requests, role, utility)
    compared = dict(by_arm)
    pays, gained = dict[str, list[Packed]](), dict[str, tuple[Packed, Packed]]()
    for arm in run.arms:
        of_arm = compared[arm] if arm in compared else _ArmBlock.read(run, arm, requests, role, utility)
        answers = of_arm.answers
        base, llm = (compared[other].answers if other is not None else None for other in (role.reference, role.never))
        if answers is not None and llm is not None:
            each = hit_sums(
                requests, answers.hits, answers.all.at(answers.hits), llm.all.at(answers.hits), utility.wrong
            )
            pays[arm] = [Packed.of(values) for values in each]
        if answers is not None and base is not None and arm != role.reference and answered:
            worth = answers.all.worth - base.all.worth
            kept, once = (Packed.of(sums(requests.cell[some], cells, worth[some])) for some in (typed, ~typed))
            gained[arm] = kept, once
        by_arm[arm] = replace(of_arm, answers=None)
    could = _could(run, requests) if answered else {}
    run.let_go()
    return _Block(
        JoinedEvents.of(requests), used(requests), facts, Packed.of(sums(requests.cell[typed], cells)),
        could, by_arm, pays, gained,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _BlockAnswers:
    """Answers of an arm in a block, row by row."""

    all: Answers
    hits: I64  # rows of the events that the skillbook answered


@dataclass(frozen=True, slots=True)
class _ArmBlock:
    """An arm in a block."""

    tallies: dict[int, BlockTally]  # by the turn from which on they count
    lost: PackedLosses | PackedRegret | None  # None: it is not known what was right, or why not
    answers: _BlockAnswers | None  # None: it is not known of all whether they were right, or there are none

    @classmethod
    def read(cls, run: RunTables, arm: str, requests: LoggedEvents, role: Roles, utility: Utility) -> "_ArmBlock":
        """All of it."""
        tally = tallies(run, arm, requests, role.since(arm))
        packed = {since: BlockTally.of(part) for since, part in tally.items()}
        if not requests.answers:
            missed = regret(run, arm, requests, utility)
            return cls(packed, None if missed is None else PackedRegret.of(missed), None)
        if not tally[0].judged:
            return cls(packed, None, None)
        hits = np.flatnonzero(~run.turns(arm, ["fallback_to_llm"])["fallback_to_llm"].to_numpy())
        lost = losses(run, arm, requests, utility)
        packed_lost = None if lost is None else PackedLosses.of(lost)
        return cls(packed, packed_lost, _BlockAnswers(Answers.read(run, arm, utility), hits))


def _could(run: RunTables, requests: LoggedEvents) -> dict[str, tuple[Packed, F64]]:
    """Requests that the skillbook could answer, whatever an arm did."""
    compositions = (run.manifest.get("compositions") or {}).values()
    could = {str(k): requests.answerable >= k for k in CEILINGS}
    if any(c.get("serving") == "procedure" for c in compositions):
        could["procedure"] = _familiar(requests)
    cells, slots = len(requests.cells.user), len(requests.users) * requests.weeks
    return {
        name: (
            Packed.of(sums(requests.cell[possible], cells)),
            sums(requests.slot[possible], slots).reshape(-1, requests.weeks),
        )
        for name, possible in could.items()
    }


def _in_turn(run: RunTables, parts: Sequence[_Block], role: Roles) -> Iterator[tuple[str, dict[str, _Held]]]:
    """Each arm with what it is compared with; frozen arms come right after their live arm."""

    def joined(arm: str) -> _Held:
        of_arm = [part.arms.pop(arm) for part in parts]
        tally = {since: joined_tally([each.tallies[since] for each in of_arm]) for since in of_arm[0].tallies}
        return _Held(tally, _joined_losses([each.lost for each in of_arm]))

    compared = [arm for arm in (role.reference, role.never) if arm is not None]
    held = {arm: joined(arm) for arm in dict.fromkeys(compared)}
    for live in (arm for arm in run.arms if arm not in role.frozen):
        twins = [arm for arm in run.arms if role.frozen.get(arm, ("", 0))[0] == live]
        for arm in (live, *twins):
            if arm not in held:
                held[arm] = joined(arm)
            yield arm, held
            held = {name: counts for name, counts in held.items() if name in (*compared, live)}


def _joined_losses(blocks: Sequence[PackedLosses | PackedRegret | None]) -> Losses | Regret | None:
    booked = [block for block in blocks if isinstance(block, PackedLosses)]
    if len(booked) == len(blocks):
        return joined_losses(booked)
    missed = [block for block in blocks if isinstance(block, PackedRegret)]
    return joined_regret(missed) if len(missed) == len(blocks) else None


def _waterfall(lost: Losses | Regret, base: Losses | Regret | None, requests: Requests, turn: F64) -> Waterfall:
    if isinstance(lost, Regret):
        return regret_waterfall(lost, base if isinstance(base, Regret) else None, requests, turn)
    return waterfall(lost, base if isinstance(base, Losses) else None, requests, turn)


def _effect(
    live: Tally, frozen: Tally, shown: Mapping[str, Metric], requests: Requests
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


def _by_kind(parts: Sequence[_Block], arm: str, requests: JoinedEvents, turn: F64) -> dict[str, Figure]:
    """The difference in utility per request, by what the requests are; kinds that do not occur are left out."""
    of_intent = kinds_of([part.kinds for part in parts if part.kinds is not None])
    topics = [of_intent[name] for name in requests.about[: requests.named].tolist()] or [0]
    kind = np.array(topics)[np.minimum(requests.cells.intent, len(topics) - 1)]
    typed = unpacked([part.typed for part in parts])
    gained, once = (unpacked([part.gained[arm][i] for part in parts]) for i in range(2))
    rows = {
        name: int((turn - typed).sum() if name == "one_off" else typed[kind == code].sum())
        for code, name in enumerate(INTENT_KINDS)
    }
    some = {name: n for name, n in rows.items() if n}
    counts = ([once if name == "one_off" else np.where(kind == INTENT_KINDS.index(name), gained, 0.0)] for name in some)
    means = estimates(requests.cells, [turn], counts)
    return {name: Figure.of(e, n) for (name, n), e in zip(some.items(), means, strict=True)}


def _curves(
    arm: str,
    tally: Tally,
    reference: Tally | None,
    live: Tally | None,
    shown: Mapping[str, Metric],
    multipliers: PackedSigns,
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


def _ceilings(results: Found, parts: Sequence[_Block], tally: Tally, multipliers: PackedSigns) -> None:
    """The share of requests that the skillbook could answer, whatever an arm did."""
    requests, turn, weekly_turns = results.requests, tally.by_cell["turn"], tally.by_week["turn"]
    names, values = list(parts[0].could), []
    for name in names:
        possible = unpacked([part.could[name][0] for part in parts])
        (share,) = estimates(requests.cells, [turn], [[possible]])
        results.ceiling[name] = Figure.of(share, len(requests), (0.0, 1.0))
        count = np.concatenate([part.could[name][1] for part in parts])
        values.append(np.where(weekly_turns > 0, count / np.maximum(weekly_turns, 1.0), np.nan))
    drawn = bands(values, multipliers, [(0.0, 1.0)] * len(names))
    results.curves.extend((ALL_ARMS, f"ceiling_{name}", band) for name, band in zip(names, drawn, strict=True))


def _familiar(requests: LoggedEvents) -> Bool:
    """Has the user asked for the same intent before, `[N]`? A procedure could serve it."""
    return seen_before(requests.cell, len(requests.cells.user))
