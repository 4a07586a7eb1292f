"""`summary.json` and `curves.csv` of a run: what the page, the comparison and the gate read.

`summary.json` (SCHEMA 3); numbers have 9 significant digits, null: there is no such number.

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
    waterfall: arm -> {ceiling, losses: cause -> FIGURE, differences: cause -> FIGURE (not for the reference)}
             utility lost per request by `cause` of the turn log, and policy = score + threshold; all but policy sum to
             ceiling - utility; differences: arm - reference, paired; n_turns: turns of the arm booked to the cause
    ceiling: k -> FIGURE                                share of requests with k or more earlier answers that still hold
    log: what a run that replays a log says of it (`core/record.py`); null: the users are simulated. With a log all that
             needs to know whether answers were right is null, and waterfall, ceiling are empty
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
from dataclasses import asdict
from pathlib import Path
from typing import Any

from skg_bench.analysis.counts.measure import differences
from skg_bench.analysis.counts.metrics import Metric, Utility, against_never, logged, metrics
from skg_bench.analysis.counts.roles import Roles, roles
from skg_bench.analysis.counts.tally import events
from skg_bench.analysis.statistics.intervals import Estimate
from skg_bench.analysis.summary.collect import ALL_ARMS, Curve, Found, collect
from skg_bench.analysis.summary.figures import Figures, difference, digits, rounded
from skg_bench.analysis.summary.saturation import LIMIT, saturation
from skg_bench.core.errors import UsageError
from skg_bench.core.run import Run

SCHEMA = 3
LAMBDAS = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)  # of the sensitivity curve, beside the configured one


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
        raise UsageError(
            f"{path} has schema {figures.get('schema')!r}, this version reads {SCHEMA}; delete it, and "
            "`skg-bench report` writes it again"
        )
    return figures


def describe(run: Run) -> tuple[Figures, list[Curve]]:
    """The content of `summary.json`, and all curves."""
    requests, role = events(run), roles(run)
    utility = Utility.of(run.config)
    shown, beyond = metrics(utility), against_never() if role.never else {}
    if not requests.judged:
        shown |= logged()
    lambdas = sorted({*LAMBDAS, utility.wrong})
    tables = collect(run, requests, role, shown, beyond, [utility.at(price) for price in lambdas], utility)
    log = run.manifest.get("log")
    worn = saturation(requests)
    reasons = worn.reasons if log is None else _log_reasons(log)
    figures: Figures = {
        "schema": SCHEMA, "question": run.manifest.get("question", ""), "seed": requests.seed,
        "users": len(requests.users), "weeks": requests.weeks, "turns": len(requests), "reference": role.reference,
        "never": role.never, "learner": role.learner,
        "incomplete": bool(run.manifest.get("incomplete", False)), "utility": asdict(utility),
        "metrics": {
            m.name: {"label": m.label, "unit": m.unit, "better": m.better, "says": m.says}
            for m in [*shown.values(), *beyond.values()]
        },
        "arms": {arm: tables.arms[arm] for arm in run.arms},
        "differences": _tested(tables.against, run.arms, shown),
        "effects": _effects(tables, run.arms, role, shown),
        "sensitivity": {
            "wrong": lambdas,
            "arms": {arm: tables.swept[arm] for arm in run.arms},
            "differences": {arm: tables.swept_against[arm] for arm in run.arms if arm in tables.swept_against},
            "break_even": {
                arm: _break_even(tables.swept_against[arm], lambdas) for arm in run.arms if arm in tables.swept_against
            },
        },
        "waterfall": {arm: tables.waterfall[arm] for arm in run.arms if arm in tables.waterfall},
        "log": log,
        "ceiling": tables.ceiling,
        "saturation": {**asdict(worn), "limit": LIMIT, "testable": not reasons, "reasons": reasons},
        "totals": {arm: tables.totals[arm] for arm in run.arms},
        "pending_feedback": int(sum(total["pending"] for total in tables.totals.values())),
    }  # fmt: skip
    position = {arm: i for i, arm in enumerate([*run.arms, ALL_ARMS])}
    exact: Figures = rounded(figures)
    return exact, sorted(tables.curves, key=lambda curve: position[curve[0]])


def _log_reasons(log: Mapping[str, Any]) -> list[str]:
    """Why curves of a replayed log say nothing of a person; people who repeat themselves are no reason."""
    return ["users are pseudo-users, no persons"] if log["pseudo_users"] else []


def _effects(results: Found, arms: Sequence[str], role: Roles, shown: Mapping[str, Metric]) -> Figures:
    tested = _tested(results.effects, arms, shown)
    return {
        arm: {"live": role.frozen[arm][0], "since": role.frozen[arm][1], "metrics": arm_tests}
        for arm, arm_tests in tested.items()
    }


def _break_even(against: Sequence[Figures], lambdas: Sequence[float]) -> float | None:
    """The lambda at which the mean difference is 0; it is linear in lambda."""
    first, last = against[0]["mean"], against[-1]["mean"]
    slope = (last - first) / (lambdas[-1] - lambdas[0])
    price = lambdas[0] - first / slope if slope != 0 else float("nan")
    return price if price >= 0 else None


def _tested(
    estimates: Mapping[str, Mapping[str, tuple[Estimate, int]]], order: Sequence[str], shown: Mapping[str, Metric]
) -> dict[str, Figures]:
    """Estimates of one table with their tests, Holm over the arms for each metric."""
    arms = [arm for arm in order if arm in estimates]
    table: dict[str, Figures] = {arm: {} for arm in arms}
    for metric in shown.values():
        if all(metric.name in estimates[arm] for arm in arms):
            tests = differences(metric, [estimates[arm][metric.name][0] for arm in arms])
            for arm, test in zip(arms, tests, strict=True):
                table[arm][metric.name] = difference(test, estimates[arm][metric.name][1])
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
