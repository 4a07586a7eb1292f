"""Holds a run of `assistant_growth` against what its README expects, and says what it shows of the paper's claims."""

import csv
import json
from dataclasses import dataclass
from io import StringIO
from math import nan
from typing import Any

from skg_bench.analysis.counts.kinds import INTENT_KIND_WORDS
from skg_bench.analysis.counts.wording import interval, number
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment, OneRun, needed

COMMAND = "make demo; skg-bench experiment assistant_growth RUN --write reports"
ARMS = (
    "never", "skg", "skg_prompted", "skg_procedure", "skg_80", "recipe_prompted", "skg_band", "exact_match",
    "oracle_router", "oracle", "frozen_100", "frozen_400",
)  # fmt: skip
Summary = dict[str, Any]


@dataclass(frozen=True)
class Finding:
    """An expectation, whether it holds in a run, and the figures that say so."""

    expectation: str
    holds: bool
    figures: str


def weekly(curves: str, arm: str, metric: str) -> list[float]:
    """Means by week from the text of `curves.csv`."""
    rows = csv.DictReader(StringIO(curves))
    return [float(r["mean"]) for r in rows if r["arm"] == arm and r["metric"] == metric and r["mean"]]


def findings(summary: Summary, curves: str) -> list[Finding]:
    """The expectations of the README, in its order."""
    arms, against = summary["arms"], summary["differences"]

    def mean(arm: str, metric: str) -> float:
        value = arms[arm][metric]["mean"]
        return nan if value is None else float(value)

    def unasked(arm: str) -> float:
        offers = summary["offers"]
        return float(offers["differences"][arm][offers["prices"].index(0.0)]["mean"])

    hits = weekly(curves, "skg", "hit_rate")
    ceiling = weekly(curves, "*", "ceiling_1")
    early, late, last = quarters(curves)
    effects = {arm: summary["effects"][arm]["metrics"]["utility"] for arm in ("frozen_100", "frozen_400")}
    verdicts = [against[arm]["utility"]["verdict"] for arm in ("skg", "oracle")]
    return [
        Finding(
            "never hits nothing, skg_band learns nothing",
            mean("never", "hit_rate") == 0 and mean("skg_band", "skills") == 0,
            f"hit rate {mean('never', 'hit_rate'):.3f}, skills {mean('skg_band', 'skills'):.1f}",
        ),
        Finding(
            "the hit rate of skg grows and stays below the ceiling",
            early < late and all(h < c for h, c in zip(hits, ceiling, strict=True)),
            f"{early:.1%} in the first quarter, {late:.1%} in the last, ceiling {last:.1%}",
        ),
        Finding(
            "skg serves worse than never, and learning made it worse",
            verdicts[0] == "worse" and all(e["verdict"] == "worse" for e in effects.values()),
            f"skg - never {against['skg']['utility']['mean']:+.3f}; live - frozen "
            + ", ".join(number(e["mean"], "utility", signed=True) for e in effects.values()),
        ),
        Finding(
            "exact_match hits less, and is wrong less often where it hits",
            mean("exact_match", "hit_rate") < mean("skg", "hit_rate")
            and mean("exact_match", "err_per_hit") < mean("skg", "err_per_hit"),
            f"hits {mean('exact_match', 'hit_rate'):.2%}, wrong {mean('exact_match', 'err_per_hit'):.0%} of them "
            f"(skg {mean('skg', 'err_per_hit'):.0%})",
        ),
        Finding(
            "oracle serves better than never",
            verdicts[1] == "better",
            f"oracle - never {against['oracle']['utility']['mean']:+.3f}",
        ),
        Finding(
            "offers aside, a threshold of 0.8 keeps less than a tenth of the loss of skg",
            abs(unasked("skg_80")) < 0.1 * abs(unasked("skg")),
            f"offers free: skg {unasked('skg'):+.3f}, skg_80 {unasked('skg_80'):+.4f}",
        ),
        Finding(
            "recipe_prompted serves better than never",
            against["recipe_prompted"]["utility"]["verdict"] == "better",
            f"recipe_prompted - never {against['recipe_prompted']['utility']['mean']:+.3f}",
        ),
        Finding(
            "prompts and procedures harm less than stored answers",
            min(mean(arm, "utility") for arm in ("skg_prompted", "skg_procedure")) > mean("skg", "utility"),
            ", ".join(
                f"{arm} - never {against[arm]['utility']['mean']:+.3f}" for arm in ("skg_prompted", "skg_procedure")
            ),
        ),
    ]


def arms(summary: Summary) -> Table:
    """Figures of all arms, and what they are worth beyond `never`."""
    rows = []
    for arm, figures in summary["arms"].items():
        against = summary["differences"].get(arm, {}).get("utility")
        free = summary["sensitivity"]["pays_from"][arm][0]
        shares = ("hit_rate", "err_per_request", "err_per_hit", "right_per_hit", "pays_from")
        rows.append((
            arm, number(figures["utility"]["mean"], "utility"), number(figures["skills"]["mean"], "skills"),
            *(number(figures[name]["mean"], "share") for name in shares), number(free, "share"),
            *(("", "", "reference") if against is None else (*_signed(against), against["verdict"])),
            number(figures["offers_per_week"]["mean"], "per week"), *_unasked(summary, arm),
        ))  # fmt: skip
    headings = (
        "arm", "utility", "skills", "hit rate", "wrong", "wrong per hit", "right per hit", "pays from",
        "pays from, wrong answers free", "utility - never", "new requests", "verdict", "offers a week",
        "if offers were free", "new requests, offers free",
    )  # fmt: skip
    return Table("Arms", headings, rows)


def parts(summary: Summary, curves: str) -> list[Table]:
    """Sums of `skg`: utility beyond `never` by kind of request, what learning on was worth, and hits over the weeks."""
    parts_of = summary["kinds"]["skg"]
    whole = sum(figure["mean"] for figure in parts_of.values())
    kinds = [
        (INTENT_KIND_WORDS[kind], *_signed(figure), number(figure["mean"] / whole if whole else nan, "share"))
        for kind, figure in parts_of.items()
    ]
    learned = [
        (arm, str(effect["since"]), *_signed(effect["metrics"]["utility"]), effect["metrics"]["utility"]["verdict"])
        for arm, effect in summary["effects"].items()
    ]
    early, late, ceiling = quarters(curves)
    weeks = [(name, f"{share:.1%}".replace("%", " %")) for name, share in
             (("first quarter", early), ("last quarter", late), ("ceiling, last week", ceiling))]  # fmt: skip
    return [
        Table(
            "Utility of skg beyond never by kind of request",
            ("kind of request", "utility", "new requests", "share of the difference"),
            kinds,
        ),
        Table("Live minus frozen", ("arm", "from turn", "utility", "new requests", "verdict"), learned),
        Table("Hits of skg over the weeks", ("weeks", "hit rate"), weeks),
    ]


def _unasked(summary: Summary, arm: str) -> tuple[str, str]:
    """Utility beyond `never` if users answered offers for nothing, and its interval; empty for the reference."""
    at_prices = summary["offers"]["differences"].get(arm)
    return ("", "") if at_prices is None else _signed(at_prices[summary["offers"]["prices"].index(0.0)])


def _signed(figure: dict[str, Any]) -> tuple[str, str]:
    span = interval(figure["low_new"], figure["high_new"], "utility", signed=True)
    return number(figure["mean"], "utility", signed=True), span


def quarters(curves: str) -> tuple[float, float, float]:
    """Hit rate of `skg` in the first and the last quarter of the weeks, and its ceiling in the last week."""
    hits = weekly(curves, "skg", "hit_rate")
    quarter = max(1, len(hits) // 4)
    return sum(hits[:quarter]) / quarter, sum(hits[-quarter:]) / quarter, weekly(curves, "*", "ceiling_1")[-1]


def analyse(run: OneRun) -> Report:
    """Analyses a run of `assistant_growth`; as expected if all of the README's expectations hold."""
    needed(run, ARMS, "assistant_growth")
    summary: Summary = json.loads((run.path / "summary.json").read_text("utf-8"))
    curves = (run.path / "curves.csv").read_text("utf-8")
    results = findings(summary, curves)
    rows = [(result.expectation, "yes" if result.holds else "no", result.figures) for result in results]
    table = Table("Expected", ("expected", "holds", "figures"), rows)
    tables = [table, arms(summary), *parts(summary, curves)]
    scope = (
        f"{summary['users']} users, {summary['weeks']} weeks, seed {summary['seed']}; 95 % for new users and requests."
    )
    return Report(
        tables,
        page("Does an assistant that learns serve its user better?", COMMAND, scope, *tables),
        holds=all(result.holds for result in results),
    )


EXPERIMENT = Experiment(analyse)
