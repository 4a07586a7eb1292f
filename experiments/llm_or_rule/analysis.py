"""Holds a reader of the prompt against rules and controls that choose from the same books."""

import pandas as pd

from experiments.llm_or_rule import figure
from experiments.llm_or_rule.measure import AGAINST, CHOOSERS, FORK, measure
from experiments.llm_or_rule.reading import bins, break_even
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.study.guardian.drawing import Drawn, draws_experiment
from skg_bench.study.guardian.mass_verdicts import (
    Statement,
    above,
    claims_table,
    finding,
    sensitivity_words,
    signs_table,
    spread,
)

TITLE = "Does a reader of the prompt choose strategies better than a rule?"


def better_than(claimed: str, name: str) -> Statement:
    """Mass of draws in which the reader is significantly better than another chooser."""
    return Statement("P45", claimed, f"reader - {name}", lambda t: above(t, f"reader - {name}"), "utility")


STATEMENTS = (
    better_than("a reader of the prompt chooses better than a rule", "rule"),
    better_than("it chooses better than a reader from whom ratings are hidden", "hidden"),
    better_than("it chooses better than by the order of the prompt alone", "position"),
    better_than("it chooses better than by chance from the same book", "random"),
    better_than("what it reads is better than the same prompt with an empty book", "empty"),
)


def acceptances(table: pd.DataFrame) -> Table:
    """Utility with acceptance beside it."""
    rows = [
        (name, spread(table, f"utility {name}", "utility"), spread(table, f"acceptance {name}", "share"))
        for name in ("rule", *CHOOSERS)
    ]
    return Table(
        f"From turn {FORK} on: utility a trigger, and acceptance beside it",
        ("arm", "utility (90 %)", "acceptance"),
        rows,
    )


def readings(table: pd.DataFrame) -> Table:
    """Readers by how well they tell places apart."""
    rows = [
        (reader.name, str(len(reader.less)), f"{reader.mean:+.4f}", f"{100 * reader.share(1):.0f} %",
         f"{100 * reader.share(-1):.0f} %")
        if len(reader.less) else (reader.name, "0", "-", "-", "-")
        for reader in bins(table)
    ]  # fmt: skip
    headings = ("prefers what was learned here", "readers", "mean, less the rule", "better in", "worse in")
    return Table("How well must a reader tell places apart?", headings, rows)


def parts_of(draws: Drawn) -> list[Table | str]:
    """Parts that are printed."""
    table, arms = draws.table, [arm.name for arm in draws.study.arms if arm.name not in ("live", "rule")]
    return [
        claims_table("Claims, by prior mass", draws, STATEMENTS),
        signs_table("Less the rule", draws, {f"{name} - rule": CHOOSERS.get(name, name) for name in arms}),
        signs_table("The reader, less controls", draws, {f"reader - {name}": words for name, words in AGAINST.items()}),
        readings(table),
        f"The least skilled readers who are ahead of the rule on average: {break_even(bins(table))}.",
        acceptances(table),
        sensitivity_words(draws, {statement.figure: statement.claimed for statement in STATEMENTS}),
    ]


def markdown(draws: Drawn, parts: list[Table | str]) -> str:
    """The report."""
    how = (
        f"{len(draws.table)} draws from [the prior](../skg_bench/study/guardian/prior.yaml), {draws.study.users} users "
        f"with up to {draws.study.triggers} triggers each. All learn the same way for {FORK} triggers; from then on "
        "nothing is learned, and choosers differ. Differences are means over users of paired differences in utility a "
        "trigger from there on; *better* and *worse*: the whole 95 % interval lies there."
    )
    return page(TITLE, draws.command, how, *(f"![{words}]({name})" for name, words in figure.FILES.items()), *parts)


def report(draws: Drawn) -> Report:
    """Tables, page, pictures and findings."""
    parts = parts_of(draws)
    return Report(
        parts,
        markdown(draws, parts),
        figures=figure.files(draws.table),
        findings=lambda: [finding(draws, statement) for statement in STATEMENTS],
    )


EXPERIMENT = draws_experiment("llm_or_rule", measure, report)
