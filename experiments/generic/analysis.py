"""Is a generic question overridden at once, everywhere, and ever more often?"""

from experiments.generic.measure import MOODS, measure, names
from skg_bench.analysis.comparison.findings import Finding
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.study import spreads
from skg_bench.study.guardian.drawing import Drawn, draws_experiment
from skg_bench.study.guardian.mass_verdicts import (
    Statement,
    above,
    claims_table,
    finding,
    sensitivity_words,
    signs_table,
    spread,
    within,
)

NAME = "generic"
TITLE = "Is a generic question overridden at once, everywhere, and ever more often?"
STATEMENTS = (
    Statement("P04", "more than half of users override it the first time", "first_own",
              lambda t: within(t, "first_own", 0.5)),
    Statement("P04", "more than 70 % override it the first time, as the beginner's 30 % say", "first_own",
              lambda t: within(t, "first_own", 0.7)),
    Statement("P04", "nine of ten override it the first time: at once", "first_own",
              lambda t: within(t, "first_own", 0.9)),
    Statement("P04", "it is overridden more often than a strategy taken by chance", "beyond_strategies",
              lambda t: above(t, "beyond_strategies"), "points"),
    Statement("P04", "the tenth time it is overridden more often than the first", "wear_own",
              lambda t: above(t, "wear_own"), "points"),
)  # fmt: skip
DIFFERENCES = {
    "beyond_strategies": "generic question - a strategy taken by chance, both without a mood",
    "wear_own": "tenth - first time, users remember",
    "wear_fresh": "tenth - first time, users remember nothing",
}
HOW = (
    "Each draw: parameters from the [prior](../skg_bench/study/guardian/prior.yaml), 200 users with up to 60 triggers "
    "each. The assistant asks the same generic question at every trigger that is not approved. Users remember it and "
    "wear out (own mood), or remember nothing (fresh mood: the control, in which the tenth time is like the first). "
    "Share of users who override; how they take it is a parameter of the prior (`generic`, from 50 to 88 %), so that "
    "only differences between contexts and times are found here, and no level."
)


def contexts(draws: Drawn) -> Table:
    """The first and the tenth time, by context."""
    columns = [f"{words}_{mood}" for mood in MOODS for words in ("first", "tenth")]
    rows = [(part, *(spread(draws.table, f"{name}:{part}", "share") for name in columns)) for part in names()]
    head = ("context", "first time", "tenth, users remember", "first, fresh", "tenth, fresh")
    return Table("Overridden, by context: median draw (90 % of draws)", head, rows)


def findings(draws: Drawn) -> list[Finding]:
    """Findings for `skg-bench claims`."""
    assumed = "How often it is overridden is a parameter that is drawn: the level follows from the prior."
    fresh = spread(draws.table, "wear_fresh", "points")
    later = f"Of users who remember nothing, the tenth differs from the first by {fresh}."
    more = {"first_own": assumed, "wear_own": later}
    return [finding(draws, each, more.get(each.figure, "")) for each in STATEMENTS]


def picture(draws: Drawn) -> str:
    """Figure of who overrides, the first and the tenth time."""
    words = {"first_own": "first time", "tenth_own": "tenth time, users remember",
             "tenth_fresh": "tenth time, users remember nothing", "wear_own": "tenth - first, users remember",
             "wear_fresh": "tenth - first, users remember nothing",
             "beyond_strategies": "generic - a strategy by chance"}  # fmt: skip
    rows: dict[str, spreads.Spread] = {}
    for name, text in words.items():
        low, middle, high = draws.table[name].quantile([0.05, 0.5, 0.95]).tolist()
        rows[text] = (low, middle, high)
    how = [f"{len(draws.table)} draws from the prior: the median, and nine draws of ten.",
           "Share of users who override the generic question, and differences of such shares."]  # fmt: skip
    return spreads.strips("Do you really need this?", how, rows, percent=True)


def report(draws: Drawn) -> Report:
    """Tables, page, picture and findings."""
    parts = [
        claims_table("How often it is overridden", draws, STATEMENTS),
        signs_table("Differences of shares that are overridden", draws, DIFFERENCES, "points"),
        contexts(draws),
    ]
    moves = sensitivity_words(draws, {"first_own": "the first time", "wear_own": "the tenth less the first"})
    image = f"![Who overrides the generic question, the first and the tenth time]({NAME}.svg)"
    text = page(TITLE, draws.command, HOW, image, *parts, moves)
    return Report([*parts, moves], text, figures={f"{NAME}.svg": picture(draws)}, findings=lambda: findings(draws))


EXPERIMENT = draws_experiment(NAME, measure, report)
