"""Is a generic question overridden at once, everywhere, and ever more often?"""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from experiments.guardian import chart
from experiments.guardian.draws import Drawn, Folder, Number, Overrides, PriorFile, Profile, drawn
from experiments.guardian.lives import Draw, Life, Lives, by_user, over_users
from experiments.guardian.study import PRIOR
from experiments.guardian.verdicts import (
    Statement,
    above,
    claims,
    figures,
    finding,
    sensitivity,
    signs,
    spread,
    within,
)
from skg_bench.analysis.comparison.claims import Finding
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment
from skg_bench.core.advice import OVERRIDDEN
from skg_bench.core.grid import F64, Bool
from skg_bench.core.strategies import strategies

NAME = "generic"
TITLE = "Is a generic question overridden at once, everywhere, and ever more often?"
MOODS = {"own": "question_own", "fresh": "question_fresh"}
TENTH = 10
STATEMENTS = (
    Statement("P04", "more than half of users override it the first time", "first_own",
              lambda t: within(t, "first_own", 0.5)),
    Statement("P04", "more than 70 % override it the first time, as the article's 30 % of the beginner say", "first_own",
              lambda t: within(t, "first_own", 0.7)),
    Statement("P04", "nine of ten override it the first time: at once", "first_own",
              lambda t: within(t, "first_own", 0.9)),
    Statement("P04", "it is overridden more often than a strategy taken by chance", "beyond_strategies",
              lambda t: above(t, "beyond_strategies")),
    Statement("P04", "the tenth time it is overridden more often than the first", "wear_own",
              lambda t: above(t, "wear_own")),
)  # fmt: skip
DIFFERENCES = {
    "beyond_strategies": "generic question - a strategy taken by chance, both without a mood",
    "wear_own": "tenth - first time, users remember",
    "wear_fresh": "tenth - first time, users remember nothing",
}
HOW = (
    "Each draw: parameters from the [prior](../experiments/guardian/prior.yaml), 200 users with up to 60 triggers each. "
    "The assistant asks the same generic question at every trigger that is not approved. Users remember it and wear "
    "out (own mood), or remember nothing (fresh mood: the control, in which the tenth time is like the first). Share of "
    "users who override; how they take it is a parameter of the prior (`generic`, from 50 to 88 %), so that only "
    "differences between contexts and times are found here, and no level."
)


def measure(_draw: Draw, lives: Lives) -> Mapping[str, float]:
    """Of all arms of `experiment=generic`."""
    known: dict[str, float] = {}
    for mood, arm in MOODS.items():
        life = lives[arm]
        override = life.outcome == OVERRIDDEN
        first, tenth = (by_user(life, override, _nth(life, n)) for n in (1, TENTH))
        known |= {f"first_{mood}": _mean(first), f"tenth_{mood}": _mean(tenth)}
        known |= figures(f"wear_{mood}", over_users(tenth - first))
        for part, mask in _parts(life).items():
            for words, n in (("first", 1), ("tenth", TENTH)):
                at = _nth(life, n) & mask
                known[f"{words}_{mood}:{part}"] = float(override[at].mean()) if at.any() else np.nan
    fresh, some = lives["question_fresh"], lives["strategies"]
    more = _overridden(fresh, fresh.spoken) - _overridden(some, some.spoken & (some.kind >= 0))
    return known | figures("beyond_strategies", over_users(more))


def _nth(life: Life, n: int) -> Bool:
    """The turn at which a user is asked for the n-th time. `[U, T]`"""
    mask: Bool = life.spoken & (np.cumsum(life.spoken, axis=1) == n)
    return mask


def _overridden(life: Life, among: Bool) -> F64:
    return by_user(life, life.outcome == OVERRIDDEN, among)


def _mean(values: F64) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")


@lru_cache
def names() -> tuple[str, ...]:
    """Categories and times of day, of which contexts are made."""
    table = strategies(None)
    return (*table.categories, *table.times)


def _parts(life: Life) -> dict[str, Bool]:
    """Turns in each category, and at each time of day."""
    table = strategies(None)
    category, time = np.divmod(life.context, len(table.times))
    masks = [category == i for i in range(len(table.categories))] + [time == i for i in range(len(table.times))]
    return dict(zip(names(), masks, strict=True))


def contexts(draws: Drawn) -> Table:
    """The first and the tenth time, by context."""
    rows = [
        (part, *(spread(draws.table, f"{words}_{mood}:{part}", "share") for mood in MOODS for words in ("first", "tenth")))
        for part in names()
    ]  # fmt: skip
    head = ("context", "first time", "tenth, users remember", "first, fresh", "tenth, fresh")
    return Table("Overridden, by context: median draw (90 % of draws)", head, rows)


def findings(draws: Drawn) -> list[Finding]:
    """For `skg-bench claims`."""
    assumed = "How often it is overridden is a parameter that is drawn: the level follows from the prior."
    later = f"Of users who remember nothing, the tenth differs from the first by {spread(draws.table, 'wear_fresh', 'share')}."
    more = {"first_own": assumed, "wear_own": later}
    return [finding(draws, each, more.get(each.figure, "")) for each in STATEMENTS]


def picture(draws: Drawn) -> str:
    """Who overrides, the first and the tenth time."""
    words = {"first_own": "first time", "tenth_own": "tenth time, users remember",
             "tenth_fresh": "tenth time, users remember nothing", "wear_own": "tenth - first, users remember",
             "wear_fresh": "tenth - first, users remember nothing",
             "beyond_strategies": "generic - a strategy by chance"}  # fmt: skip
    rows: dict[str, chart.Spread] = {}
    for name, text in words.items():
        low, middle, high = draws.table[name].quantile([0.05, 0.5, 0.95]).tolist()
        rows[text] = (low, middle, high)
    how = [f"{len(draws.table)} draws from the prior: the median, and nine draws of ten.",
           "Share of users who override the generic question, and differences of such shares."]  # fmt: skip
    return chart.strips("Do you really need this?", how, rows, percent=True)


def report(draws: Drawn) -> Report:
    """Tables, page, picture and findings."""
    parts = [
        claims("How often it is overridden", draws, STATEMENTS),
        signs("Differences of shares that are overridden", draws, DIFFERENCES, "share"),
        contexts(draws),
    ]
    moves = sensitivity(draws, {"first_own": "the first time", "wear_own": "the tenth less the first"})
    image = f"![Who overrides the generic question, the first and the tenth time]({NAME}.svg)"
    text = page(TITLE, draws.command, HOW, image, *parts, moves)
    return Report([*parts, moves], text, figures={f"{NAME}.svg": picture(draws)}, findings=lambda: findings(draws))


def analyse(
    overrides: Overrides = None,
    profile: Profile = "demo",
    draws: Number = None,
    out: Folder = None,
    prior: PriorFile = PRIOR,
) -> Report:
    """Draws worlds from the prior and simulates them; no figure is expected: the verdicts are what is asked for."""
    return report(drawn(NAME, measure, overrides, profile, draws, out, prior))


EXPERIMENT = Experiment(analyse, one_thread=True)
