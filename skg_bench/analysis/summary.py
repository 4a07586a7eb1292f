"""`summary.json` and `curves.csv` of a run: what the page, the comparison and the gate read.

`summary.json` (SCHEMA 1); numbers have 9 significant digits, null: there is no such number.

    schema, question, seed, users, weeks, turns (of one arm), reference, never, learner (arms by role, or null)
    incomplete: true while the run is unfinished
    utility: {wrong, usd, second}
    metrics: metric -> {label, unit, better, says}       in the order in which they are shown
    arms: arm -> metric -> FIGURE
    differences: arm -> metric -> DIFFERENCE             arm - reference, paired per user; Holm over the arms
    effects: frozen arm -> {live, since, metrics: metric -> DIFFERENCE}
             what learning after turn `since` is worth: live - frozen over turns >= since; Holm over the frozen arms
    sensitivity: {wrong: [lambda ...], arms: arm -> [FIGURE ...], differences: arm -> [FIGURE ...],
                  break_even: arm -> lambda at which utility equals the reference's, null: at none >= 0}
    ceiling: k -> FIGURE                                share of requests with k or more earlier answers that still hold
    saturation: {verbatim, verbatim_last_week, types_used_up, one_offs_again, limit, testable, reasons: [words ...]}
    totals: arm -> {turn, hit, wrong, wrong_hit, call, tokens, cost, offer, add, rated, ok, pending}
             sums over all users; pending: ratings given, but known only after the end of the run and used in nothing
    pending_feedback: sum of these over the arms

    FIGURE      {mean, low, high, low_new, high_new, n_users, n_turns, excluded}
    DIFFERENCE  FIGURE + {p, p_new, p_holm, mde, mde_new, significant, verdict}

`low, high`: the 95 % interval over other users with these requests; `low_new, high_new`: over other users with new
requests (other intents), the one that claims and verdicts use; see `intervals`. `n_turns`: rows under the mean: turns,
hits or ratings. `excluded`: users without any. `p*`: paired t; `p_holm`: p_new corrected for the table. `mde*`: the
smallest difference found in 80 % of such runs. `significant`: p_holm < 0.05. `verdict`: better, worse, higher, lower
(where neither is good): significant and not below mde_new; otherwise inconclusive; not measured.

`curves.csv`: arm, period (1-based week), metric, n (users), mean, low, high; low and high are simultaneous bands
(`curves`). Besides the metrics: `utility_difference` (arm - reference), `learning_effect` (frozen arms: live - frozen,
utility), and `ceiling_1, 2, 3`, which belong to the events, under arm `*`.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from skg_bench.analysis.curves import Band, bands, signs
from skg_bench.analysis.figures import NO_BOUNDS, Figures, difference, digits, figure, rounded
from skg_bench.analysis.intervals import Estimate, estimates, sums
from skg_bench.analysis.measure import contrast, denominator, differences, measure, weekly
from skg_bench.analysis.metrics import Metric, Utility, against_never, metrics
from skg_bench.analysis.roles import Roles, roles
from skg_bench.analysis.saturation import LIMIT, saturation
from skg_bench.analysis.tally import CEILINGS, Events, Tally, events, tallies
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64
from skg_bench.core.run import Run

SCHEMA = 1
LAMBDAS = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)  # of the sensitivity curve, beside the configured one
ALL_ARMS = "*"

Curve = tuple[str, str, Band]  # arm, metric


def write(run: Run) -> Figures:
    """Compute and write both files; returns what is in `summary.json`.

    Raises UsageError when arms do not share their events or rows are missing.
    """
    figures, curves = describe(run)
    replace_text(run.path / "summary.json", json.dumps(figures, indent=1, allow_nan=False) + "\n")
    replace_text(run.path / "curves.csv", csv(curves))
    return figures


def read(run: Run) -> Figures:
    """What `summary.json` holds.

    Raises UsageError when there is none, or of another schema.
    """
    path = run.path / "summary.json"
    if not path.is_file():
        raise UsageError(f"{run.path} has no summary.json yet; finish the run with `skg-bench run`")
    figures: Figures = json.loads(path.read_text("utf-8"))
    if figures.get("schema") != SCHEMA:
        raise UsageError(f"{path} has schema {figures.get('schema')!r}, this version reads {SCHEMA}; write it again")
    return figures


@dataclass(frozen=True)
class _Table:
    """What is found arm by arm; estimates that are corrected together are tested at the end."""

    arms: dict[str, dict[str, Figures]]
    against: dict[str, dict[str, tuple[Estimate, int]]]  # arm -> metric -> arm - reference
    effects: dict[str, dict[str, tuple[Estimate, int]]]  # frozen arm -> metric -> live - frozen
    swept: dict[str, list[Figures]]  # arm -> utility at each lambda
    swept_against: dict[str, list[Figures]]
    totals: dict[str, dict[str, float]]
    curves: list[Curve]


def describe(run: Run) -> tuple[Figures, list[Curve]]:
    """The content of `summary.json`, and all curves. Reads one arm at a time; only twins are held together."""
    on, role = events(run), roles(run)
    utility = Utility.of(run.config)
    shown, beyond = metrics(utility), against_never()
    lambdas = sorted({*LAMBDAS, utility.wrong})
    table = _Table({}, {}, {}, {}, {}, {}, [])
    multipliers = signs(on.seed, on.users)
    compared = [arm for arm in (role.reference, role.never) if arm is not None]
    held = {arm: tallies(run, arm, on, role.since(arm)) for arm in dict.fromkeys(compared)}
    for arm in _order(run.arms, role):
        if arm not in held:
            held[arm] = tallies(run, arm, on, role.since(arm))
        _add(table, arm, held, role, on, shown, beyond)
        _sweep(table, arm, held, role, on, utility, lambdas)
        _add_curves(table, arm, held, role, shown, multipliers)
        twin = role.frozen[arm][0] if arm in role.frozen else arm  # still needed by the frozen arms that follow
        held = {name: of for name, of in held.items() if name in (*compared, twin)}
    ceiling = _ceilings(table, on, multipliers)
    worn = saturation(on)
    figures: Figures = {
        "schema": SCHEMA, "question": run.manifest.get("question", ""), "seed": on.seed, "users": len(on.users),
        "weeks": on.weeks, "turns": len(on), "reference": role.reference, "never": role.never, "learner": role.learner,
        "incomplete": bool(run.manifest.get("incomplete", False)), "utility": asdict(utility),
        "metrics": {
            m.name: {"label": m.label, "unit": m.unit, "better": m.better, "says": m.says}
            for m in [*shown.values(), *(beyond.values() if role.never else ())]
        },
        "arms": {arm: table.arms[arm] for arm in run.arms},
        "differences": _tested(table.against, [a for a in run.arms if a in table.against], shown),
        "effects": {
            arm: {"live": role.frozen[arm][0], "since": role.frozen[arm][1], "metrics": found}
            for arm, found in _tested(table.effects, [a for a in run.arms if a in table.effects], shown).items()
        },
        "sensitivity": {
            "wrong": lambdas,
            "arms": {arm: table.swept[arm] for arm in run.arms},
            "differences": {arm: table.swept_against[arm] for arm in run.arms if arm in table.swept_against},
            "break_even": {
                arm: _break_even(table.swept_against[arm], lambdas) for arm in run.arms if arm in table.swept_against
            },
        },
        "ceiling": ceiling,
        "saturation": {**asdict(worn), "limit": LIMIT, "testable": not worn.reasons, "reasons": worn.reasons},
        "totals": {arm: table.totals[arm] for arm in run.arms},
        "pending_feedback": int(sum(total["pending"] for total in table.totals.values())),
    }  # fmt: skip
    position = {arm: i for i, arm in enumerate([*run.arms, ALL_ARMS])}
    rounded_figures: Figures = rounded(figures)
    return rounded_figures, sorted(table.curves, key=lambda curve: position[curve[0]])


def _order(arms: Sequence[str], role: Roles) -> list[str]:
    """Frozen arms right after their live arm."""
    order: list[str] = []
    for arm in arms:
        if arm not in role.frozen:
            order += [arm, *(frozen for frozen in arms if role.frozen.get(frozen, ("", 0))[0] == arm)]
    return order


def _add(
    table: _Table,
    arm: str,
    held: Mapping[str, Mapping[int, Tally]],
    role: Roles,
    on: Events,
    shown: Mapping[str, Metric],
    beyond: Mapping[str, Metric],
) -> None:
    own = held[arm][0]
    found = measure(shown.values(), own, on)
    table.arms[arm] = {name: figure(found[name], denominator(m, own), m.bounds) for name, m in shown.items()}
    if role.never is not None:
        excess = contrast(beyond.values(), own, held[role.never][0], on)
        table.arms[arm] |= {name: figure(excess[name], len(on)) for name in beyond}
    if role.reference not in (None, arm):
        found = contrast(shown.values(), own, held[role.reference][0], on)
        table.against[arm] = {name: (found[name], denominator(m, own)) for name, m in shown.items()}
    if arm in role.frozen:
        live, since = role.frozen[arm]
        ratios = {name: m for name, m in shown.items() if m.over not in ("week", "book")}
        found = contrast(ratios.values(), held[live][since], held[arm][since], on)
        table.effects[arm] = {name: (found[name], denominator(m, held[arm][since])) for name, m in ratios.items()}
    total = {name: float(own.by_week[name].sum()) for name in own.by_week if name != "latency"}
    table.totals[arm] = {**total, "pending": own.pending}


def _sweep(
    table: _Table,
    arm: str,
    held: Mapping[str, Mapping[int, Tally]],
    role: Roles,
    on: Events,
    utility: Utility,
    lambdas: Sequence[float],
) -> None:
    """Utility at other prices of a wrong answer."""
    prices = (replace(metrics(replace(utility, wrong=price))["utility"], name=repr(price)) for price in lambdas)
    at, own = list(prices), held[arm][0]
    table.swept[arm] = [figure(e, len(on)) for e in measure(at, own, on).values()]
    if role.reference not in (None, arm):
        found = contrast(at, own, held[role.reference][0], on)
        table.swept_against[arm] = [figure(e, len(on)) for e in found.values()]


def _break_even(against: Sequence[Figures], lambdas: Sequence[float]) -> float | None:
    """The lambda at which the mean difference is 0; it is linear in lambda."""
    first, last = against[0]["mean"], against[-1]["mean"]
    slope = (last - first) / (lambdas[-1] - lambdas[0])
    price = lambdas[0] - first / slope if slope != 0 else float("nan")
    return price if price >= 0 else None


def _add_curves(
    table: _Table,
    arm: str,
    held: Mapping[str, Mapping[int, Tally]],
    role: Roles,
    shown: Mapping[str, Metric],
    multipliers: F64,
) -> None:
    own = held[arm][0]
    values = {m.name: weekly(m, own) for m in shown.values()}
    if role.reference not in (None, arm):
        values["utility_difference"] = values["utility"] - weekly(shown["utility"], held[role.reference][0])
    if arm in role.frozen:
        values["learning_effect"] = weekly(shown["utility"], held[role.frozen[arm][0]][0]) - values["utility"]
    bounds = [shown[name].bounds if name in shown else NO_BOUNDS for name in values]
    found = bands(list(values.values()), multipliers, bounds)
    table.curves.extend((arm, name, band) for name, band in zip(values, found, strict=True))


def _ceilings(table: _Table, on: Events, multipliers: F64) -> Figures:
    turn = sums(on.cell, len(on.cells.user))
    there = sums(on.slot, len(on.users) * on.weeks).reshape(-1, on.weeks)
    figures, values = {}, []
    for k in CEILINGS:
        possible = on.answerable >= k
        (found,) = estimates(on.cells, [turn], [[sums(on.cell[possible], len(turn))]])
        figures[str(k)] = figure(found, len(on), (0.0, 1.0))
        count = sums(on.slot[possible], there.size).reshape(there.shape)
        values.append(np.where(there > 0, count / np.maximum(there, 1.0), np.nan))
    drawn = bands(values, multipliers, [(0.0, 1.0)] * len(CEILINGS))
    table.curves.extend((ALL_ARMS, f"ceiling_{k}", band) for k, band in zip(CEILINGS, drawn, strict=True))
    return figures


def _tested(
    found: Mapping[str, Mapping[str, tuple[Estimate, int]]], arms: Sequence[str], shown: Mapping[str, Metric]
) -> dict[str, Figures]:
    """Estimates of one table with their tests, Holm over the arms for each metric."""
    table: dict[str, Figures] = {arm: {} for arm in arms}
    for metric in shown.values():
        if all(metric.name in found[arm] for arm in arms):
            tests = differences(metric, [found[arm][metric.name][0] for arm in arms])
            for arm, test in zip(arms, tests, strict=True):
                table[arm][metric.name] = difference(test, found[arm][metric.name][1])
    return table


def csv(curves: Sequence[Curve]) -> str:
    """The content of `curves.csv`."""
    lines = ["arm,period,metric,n,mean,low,high"]
    for arm, metric, band in curves:
        for week in range(len(band.n)):
            numbers = (digits(float(x[week])) for x in (band.mean, band.low, band.high))
            text = ",".join("" if x is None else repr(x) for x in numbers)
            lines.append(f"{arm},{week + 1},{metric},{band.n[week]},{text}")
    return "\n".join(lines) + "\n"


def replace_text(path: Path, text: str) -> None:
    """Written under another name, then renamed: never half a file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, "utf-8")
    temporary.replace(path)
