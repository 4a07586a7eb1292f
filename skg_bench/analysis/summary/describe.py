"""Computes `summary.json` and `curves.csv` of a run, which the page, the table of arms and the trackers read.

`document.py` and `figures.py` say what `summary.json` holds. Of a replayed log, all that needs to know whether answers
were right is null, and waterfall and ceiling are empty. Where skills keep no answers, so is the
ceiling, and sensitivity is that to the price of the mistake that the domain names.

`curves.csv`: arm, period (1-based week), metric, n (users), mean, low, high; low and high are simultaneous bands
(`curves`). Besides the metrics: `utility_difference` (arm - reference), `learning_effect` (frozen arms: live - frozen,
utility), and `ceiling_1, 2, 3`, which belong to the events, under arm `*`.
"""

from collections.abc import Mapping, Sequence
from csv import writer
from dataclasses import replace
from functools import lru_cache
from io import StringIO
from math import isclose
from pathlib import Path
from typing import Any

from skg_bench.analysis.counts.log_counts import LOGGED_COLUMNS
from skg_bench.analysis.counts.measure import differences
from skg_bench.analysis.counts.metrics import Metric, Utility, against_never, logged
from skg_bench.analysis.counts.outcomes import PAID_COLUMNS, at_price, metrics_of, outcome_columns
from skg_bench.analysis.counts.roles import Roles, roles
from skg_bench.analysis.counts.tally import TALLY_COLUMNS, Requests
from skg_bench.analysis.statistics.intervals import Estimate
from skg_bench.analysis.summary.collect import ALL_ARMS, Curve, Found, collect
from skg_bench.analysis.summary.document import (
    SUMMARY_VERSION,
    CorpusUse,
    FreezeEffect,
    MetricWords,
    OfferPrices,
    Sensitivity,
    Summary,
)
from skg_bench.analysis.summary.figures import DifferenceFigure, Figure, digits
from skg_bench.analysis.summary.job_outcomes import learning_jobs
from skg_bench.analysis.summary.losses import CAUSE_COLUMNS
from skg_bench.analysis.summary.saturation import LIMIT, Saturation, withheld
from skg_bench.analysis.summary.visible_figures import curves_without_hits, without_hits
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import text_of
from skg_bench.core.temporary import PRIVATE_MODE, replace_whole
from skg_bench.runfolder import manifest
from skg_bench.runfolder.hidden_hits import arms_without_hits
from skg_bench.runfolder.run import Run

REUSE = {
    "right_per_hit": MetricWords(
        "right per hit", "share", "higher", "Share of the answers from memory that were right."
    ),
    "pays_from": MetricWords(
        "pays from", "share", "neither",
        "Share of right hits from which on answers from memory are worth more than the LLM's to these requests.",
    ),
    "pays_by": MetricWords(
        "right beyond that", "difference", "higher",
        "Right answers from memory beyond the share from which on they are worth more than the LLM's.",
    ),
}  # fmt: skip
ROUNDING = 1e-9  # a difference that changes less from the lowest price to the highest changes by rounding only
LAMBDAS = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)  # of the sensitivity curve, beside the configured one
OFFER_PRICES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5)  # prices of an offer, beside the configured one


def write_summary(run: Run) -> Summary:
    """Compute and write both files; returns what is in `summary.json`.

    Raises UsageError when arms do not share their events, rows are missing, or the run went on meanwhile.
    """
    content, curves = describe(run)
    with manifest.accepting(run.path, run.manifest, "summary.json", "curves.csv"):
        replace_text(run.path / "summary.json", content.to_json())
        replace_text(run.path / "curves.csv", csv(curves))
    return content


def read_summary(run: Run) -> Summary:
    """Content of `summary.json`.

    Raises UsageError when there is none, and for one of another version or of other content.
    """
    path = run.table("summary.json")
    try:
        return _parsed(text_of(path))
    except ValueError as error:
        raise UsageError(f"{path}: {error}; `skg-bench report {run.path}` makes it again from the logs") from error


@lru_cache(maxsize=2)
def _parsed(text: str) -> Summary:
    """A run is read for its page, its table and its sentences, and checking each field takes 20 ms."""
    return Summary.from_json(text)


def describe(run: Run) -> tuple[Summary, list[Curve]]:
    """The content of `summary.json`, and all curves."""
    log, role = run.manifest.get("log"), roles(run)
    more = LOGGED_COLUMNS if log else ()
    columns = [*TALLY_COLUMNS, *CAUSE_COLUMNS, *PAID_COLUMNS, *outcome_columns(run), *more]
    utility = _prices(run)
    knows = log["knows"] if log else None
    shown = metrics_of(run, utility)
    beyond = against_never(knows) if role.never and run.domain.answers else {}
    lambdas, swept = _swept(run, utility)
    offers, at_offers = _offers(run, utility)

    def metrics_at(requests: Requests) -> tuple[Mapping[str, Metric], Mapping[str, Metric], Sequence[Metric]]:
        shown_there = shown if requests.judged else shown | logged(knows or ())
        return shown_there, beyond, [*swept, *at_offers]

    tables = collect(run, columns, role, utility, metrics_at)
    requests = tables.requests
    shown = dict(metrics_at(requests)[0])
    use = _corpus_use(tables.saturation, log)
    content = Summary(
        version=SUMMARY_VERSION, question=run.manifest.get("question", ""), seed=requests.seed,
        users=len(requests.users), weeks=requests.weeks, turns=len(requests), reference=role.reference,
        never=role.never, learner=role.learner, changed=role.changed, serving=_serving(run),
        incomplete=bool(run.manifest.get("incomplete", False)), utility=utility,
        metrics={m.name: MetricWords(m.label, m.unit, m.better, m.says) for m in [*shown.values(), *beyond.values()]}
        | (REUSE if tables.break_even else {}),
        arms={arm: tables.arms[arm] for arm in run.arms},
        differences=_tested(tables.against, run.arms, shown, tables.same, use), kinds=tables.kinds,
        effects=_effects(tables, run.arms, role, shown, use),
        sensitivity=_sensitivity(tables, run.arms, lambdas, requests),
        offers=_offered(tables, run.arms, offers, requests),
        waterfall={arm: tables.waterfall[arm] for arm in run.arms if arm in tables.waterfall}, log=log,
        ceiling=tables.ceiling, saturation=use,
        totals={arm: {name: digits(total) for name, total in tables.totals[arm].items()} for arm in run.arms},
        domain=run.domain.name, own=[metric.name for metric in run.domain.metrics], answers=run.domain.answers,
        telling=run.telling,
        learning={arm: jobs for arm in run.arms if (jobs := learning_jobs(run, arm)) is not None},
        pending_feedback=int(sum(total["pending"] for total in tables.totals.values())),
    )  # fmt: skip
    position, hidden = {arm: i for i, arm in enumerate([*run.arms, ALL_ARMS])}, [] if log else arms_without_hits(run)
    curves = sorted(curves_without_hits(tables.curves, hidden), key=lambda curve: position[curve[0]])
    return without_hits(content, hidden), curves


def _serving(run: Run) -> dict[str, str]:
    """Serving by arm, of those that have skills."""
    compositions = run.manifest.get("compositions") or {}
    return {arm: parts["serving"] for arm, parts in compositions.items() if parts.get("serving") is not None}


def _prices(run: Run) -> Utility:
    """The price list; where the domain names a mistake and the world prices it, with that as the price of what is
    wrong.
    """
    prices, price = Utility.of(run.config), _priced(run)
    return prices if price is None else replace(prices, wrong=price)


def _priced(run: Run) -> float | None:
    """Price in the world of the mistake that the domain names; None: none."""
    given = [run.config["simulator"].get(each.parameter) for each in run.telling.prices]
    return float(given[0]) if given and given[0] is not None else None


def _swept(run: Run, utility: Utility) -> tuple[list[float], list[Metric]]:
    """Prices of what is wrong, and utility at each; none where skills keep no answers and the world does not price a
    mistake.
    """
    lambdas = sorted({*LAMBDAS, utility.wrong})
    if run.domain.answers:
        return lambdas, [utility.at(price) for price in lambdas]
    if _priced(run) is None:
        return [], []
    return lambdas, [at_price(run, utility, price) for price in lambdas]


def _offers(run: Run, utility: Utility) -> tuple[list[float], list[Metric]]:
    """Prices of an offer, and utility at each; none where skills keep no answers or truth is not known."""
    if not run.domain.answers or run.manifest.get("log"):
        return [], []
    prices = sorted({*OFFER_PRICES, utility.offer})
    return prices, [utility.at_offer(price) for price in prices]


def _corpus_use(shares: Saturation, log: Mapping[str, Any] | None) -> CorpusUse:
    """Use of the corpus. In a replayed log only pseudo-users are a reason not to test curves, not repetitions."""
    pseudo = ["users are pseudo-users, no persons"] if log is not None and log["pseudo_users"] else []
    reasons = shares.reasons if log is None else pseudo
    return CorpusUse(
        digits(shares.verbatim), digits(shares.verbatim_last_week), digits(shares.types_used_up),
        digits(shares.one_offs_again), LIMIT, not reasons, reasons,
    )  # fmt: skip


def _effects(
    results: Found, arms: Sequence[str], role: Roles, shown: Mapping[str, Metric], use: CorpusUse
) -> dict[str, FreezeEffect]:
    tested = _tested(results.effects, arms, shown, results.same_as_live, use)
    return {arm: FreezeEffect(*role.frozen[arm], arm_tests) for arm, arm_tests in tested.items()}


def _sensitivity(results: Found, arms: Sequence[str], lambdas: Sequence[float], requests: Requests) -> Sensitivity:
    n = len(lambdas)
    against = {arm: results.swept_against[arm][:n] for arm in arms if arm in results.swept_against}
    return Sensitivity(
        lambdas,
        {arm: results.swept[arm][:n] for arm in arms},
        {arm: [Figure.of(e, len(requests)) for e in estimates] for arm, estimates in against.items()},
        {arm: _break_even(estimates, lambdas) for arm, estimates in against.items()},
        {
            arm: [digits(results.break_even[arm].at(price)) for price in lambdas]
            for arm in arms
            if arm in results.break_even
        },
    )


def _offered(results: Found, arms: Sequence[str], prices: Sequence[float], requests: Requests) -> OfferPrices:
    n = len(prices)
    against = {arm: results.swept_against[arm][-n:] for arm in arms if n and arm in results.swept_against}
    return OfferPrices(
        prices,
        {arm: results.swept[arm][-n:] for arm in arms if n},
        {arm: [Figure.of(e, len(requests)) for e in estimates] for arm, estimates in against.items()},
        {arm: _break_even(estimates, prices) for arm, estimates in against.items()},
    )


def _break_even(against: Sequence[Estimate], lambdas: Sequence[float]) -> float | None:
    """The price at which the mean difference is 0; it is linear in the price."""
    if not against:
        return None
    first, last = against[0].mean, against[-1].mean
    if isclose(first, last, rel_tol=ROUNDING, abs_tol=ROUNDING):
        return None
    slope = (last - first) / (lambdas[-1] - lambdas[0])
    price = lambdas[0] - first / slope
    return digits(price) if price >= 0 else None


def _tested(
    estimates: Mapping[str, Mapping[str, tuple[Estimate, int]]],
    order: Sequence[str],
    shown: Mapping[str, Metric],
    same: Mapping[str, bool],
    use: CorpusUse,
) -> dict[str, dict[str, DifferenceFigure]]:
    """Estimates of one table with their tests, Holm over the arms for each metric."""
    arms = [arm for arm in order if arm in estimates]
    table: dict[str, dict[str, DifferenceFigure]] = {arm: {} for arm in arms}
    for metric in shown.values():
        if all(metric.name in estimates[arm] for arm in arms):
            twins = [same[arm] for arm in arms]
            tests = differences(metric, [estimates[arm][metric.name][0] for arm in arms], same=twins)
            for arm, test in zip(arms, tests, strict=True):
                shown_test = withheld(test, use.reasons)
                table[arm][metric.name] = DifferenceFigure.tested(shown_test, estimates[arm][metric.name][1])
    return table


def csv(curves: Sequence[Curve]) -> str:
    """The content of `curves.csv`."""
    lines = StringIO()
    table = writer(lines, lineterminator="\n")
    table.writerow(["arm", "period", "metric", "n", "mean", "low", "high"])
    for arm, metric, band in curves:
        for week in range(len(band.n)):
            numbers = [digits(float(x[week])) for x in (band.mean, band.low, band.high)]
            table.writerow([arm, week + 1, metric, band.n[week], *numbers])
    return lines.getvalue()


def replace_text(path: Path, text: str, *, mode: int = PRIVATE_MODE) -> None:
    """Written under another name, then renamed: never half a file. `mode`: PUBLIC for a text that holds no messages
    and that others are to read.
    """
    replace_whole(path, text.encode(), mode=mode)
