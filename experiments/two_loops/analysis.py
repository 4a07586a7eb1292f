"""Holds two feedback loops against one, over the prior and in a world that was made for the later loop."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from experiments.two_loops import figure
from experiments.two_loops.counters import CONCORDANCE
from experiments.two_loops.measure import DIFFERENCES, REFERENCE, measure
from experiments.two_loops.tables import acceptances, decisions, grid, made_table, maps, users_needed
from skg_bench.analysis.comparison.findings import Finding
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.study.guardian.drawing import DRAWS_BY_PROFILE, Drawn, draws_experiment
from skg_bench.study.guardian.lives import Draw
from skg_bench.study.guardian.mass_verdicts import (
    Statement,
    above,
    claims_table,
    finding,
    sensitivity_words,
    signs_table,
    within,
)
from skg_bench.study.guardian.study import lives

MADE = Path(__file__).with_name("made.yaml")
SIZES = {**DRAWS_BY_PROFILE, "demo": 20}  # draws: this experiment has twice the arms of the others
MOST = 0.8  # share of a cell in which what the article reads in it has to be true
TITLE = "Do two feedback loops into one skillbook make users better off than one?"
SHOWN = ("immediate", "later", "both", "replace", "separate", "heeded_later", "later_turned", "coin", "frozen")


STATEMENTS = (
    Statement("P43", "both loops in one counter are better than reactions alone",
              "both - immediate", lambda t: above(t, "both - immediate"), "utility"),
    Statement("P43", "both loops in one counter are better than later answers alone",
              "both - later", lambda t: above(t, "both - later"), "utility"),
    Statement("P43", "later answers alone are better than reactions alone",
              "later - immediate", lambda t: above(t, "later - immediate"), "utility"),
    Statement("P43", "later answers in place of the first sign are better than it alone",
              "replace - immediate", lambda t: above(t, "replace - immediate"), "utility"),
    Statement("P43", "later answers tell what a coin does not: alone, they are better than its ratings",
              "later - coin", lambda t: above(t, "later - coin"), "utility"),
    Statement("P43", "the same, where they rate only advice that was followed",
              "heeded_later - coin", lambda t: above(t, "heeded_later - coin"), "utility"),
    Statement("P07", "in one counter it matters what later answers say, not only that they come",
              "both - later_turned", lambda t: above(t, "both - later_turned"), "utility"),
    Statement(
        "P09", "what led to acceptance more often is worth more in over half of pairs (counters of reactions alone)",
        "concordance immediate", lambda t: above(t, "concordance immediate"), "points",
    ),
    Statement(
        "P09", "what has the larger helpful share is worth more in over half of pairs (one counter for both loops)",
        "concordance both", lambda t: above(t, "concordance both"), "points",
    ),
    Statement(
        "P30", f"overridden and regretted: the purchase was not wanted, in {100 * MOST:.0f} % of such turns or more",
        "unwanted overridden, regretted", lambda t: within(t, "unwanted overridden, regretted", MOST),
    ),
    Statement(
        "P30", f"listened and regretted: the advice harmed, in {100 * MOST:.0f} % of such turns or more",
        "harmed listened, regretted", lambda t: within(t, "harmed listened, regretted", MOST),
    ),
)  # fmt: skip


def made_for_it() -> Draw:
    """The world that was made for the later loop; what its file does not name is as in conf/."""
    return Draw(0, yaml.safe_load(MADE.read_text("utf-8")))


def parts_of(draws: Drawn, made: Mapping[str, float]) -> list[Table | str]:
    """Parts that are printed."""
    table, arms = draws.table, [arm.name for arm in draws.study.arms]
    less = {f"{a} - {b}": words for (a, b), words in DIFFERENCES.items()}
    names = {statement.figure: statement.claimed for statement in STATEMENTS}
    counters = {f"concordance {name}": f"counters of {name}" for name in CONCORDANCE}
    users = users_needed(table, "both - immediate", draws.study.users)
    return [
        claims_table("Claims, by prior mass", draws, STATEMENTS),
        grid(table),
        signs_table("Differences and controls", draws, less),
        acceptances(table, SHOWN),
        made_table(made, arms),
        *maps(table),
        signs_table(
            "Calibration: a larger helpful share goes with a larger worth, less one half", draws, counters, "points"
        ),
        decisions(table),
        f"Users for 80 % power at the size of the second loop's effect in the median draw, paired: {users:,.0f}.",
        sensitivity_words(draws, names),
    ]


def findings(draws: Drawn, made: Mapping[str, float]) -> list[Finding]:
    """Findings for `skg-bench claims`."""
    results = []
    for statement in STATEMENTS:
        more = ""
        if statement.figure in made and statement.unit == "utility":
            error = made[f"{statement.figure}_error"]
            more = f"In the world made for it: {made[statement.figure]:+.4f} +- {error:.4f} utility a trigger."
        results.append(finding(draws, statement, more))
    return results


def markdown(draws: Drawn, parts: list[Table | str]) -> str:
    """The report."""
    how = (
        f"{len(draws.table)} draws from [the prior](../skg_bench/study/guardian/prior.yaml), {draws.study.users} users "
        f"with up to {draws.study.triggers} triggers each. `X - Y` is a mean over users of paired differences in "
        f"utility a trigger; *better* and *worse*: the whole 95 % interval lies there. The reference is `{REFERENCE}`: "
        "reactions alone. Each later answer costs one more job of the reflector, which utility pays."
    )
    return page(TITLE, draws.command, how, *(f"![{words}]({name})" for name, words in figure.FILES.items()), *parts)


def report(draws: Drawn) -> Report:
    """Tables, page, pictures and findings, beside the world that was made for the later loop."""
    world = made_for_it()
    made = measure(world, lives(draws.study, world))
    parts = parts_of(draws, made)
    return Report(
        parts,
        markdown(draws, parts),
        figures=figure.files(draws.table, made),
        findings=lambda: findings(draws, made),
    )


EXPERIMENT = draws_experiment("two_loops", measure, report, sizes=SIZES)
