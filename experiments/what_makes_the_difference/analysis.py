"""Effects of what a skill is, how it is found and what is captured, and the share of each of the way to the best."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

from experiments.what_makes_the_difference.composites import worth
from skg_bench.analysis.counts.measure import contrast, measure
from skg_bench.analysis.counts.metrics import Metric, Utility, metrics
from skg_bench.analysis.counts.tally import LoggedEvents, Tally, events, tallies
from skg_bench.analysis.counts.wording import interval, number
from skg_bench.analysis.statistics.intervals import ALPHA, Estimate, holm
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment, OneRun, needed

FACTORS: Mapping[str, Sequence[str]] = {  # the plain option first, the best one last
    "representation": ("stored", "prompted", "procedure"),
    "routing": ("maxsim", "recipe", "oracle"),
    "curation": ("skg", "everything", "oracle"),
}
CELLS = tuple(product(*FACTORS.values()))
NEVER = "never"
SHOWN = ("utility", "hit_rate", "err_per_hit")
COMMAND = "skg-bench experiment what_makes_the_difference RUN --write reports"
Cell = tuple[str, ...]


def weighted(group: Mapping[Cell, float], tally: Mapping[Cell, Tally]) -> Tally:
    """An arm whose counts are those of several, each times its weight."""
    first = tally[next(iter(group))]
    by_cell = {
        name: sum((weight * tally[cell].by_cell[name] for cell, weight in group.items()), 0.0 * first.by_cell[name])
        for name in first.by_cell
    }
    return replace(first, arm="weighted", by_cell=by_cell, digest=b"")


def level(factor: int, option: str) -> dict[Cell, float]:
    """Equal weights on all cells with this option."""
    cells = [cell for cell in CELLS if cell[factor] == option]
    return dict.fromkeys(cells, 1.0 / len(cells))


def shapley(factor: int) -> tuple[dict[Cell, float], dict[Cell, float]]:
    """Weights of the corners with the best option of a factor, and of the same without it: each set of choices made
    before it counts as often as it comes in an order of the three (Shapley 1953).
    """
    ends = [(options[0], options[-1]) for options in FACTORS.values()]
    best, plain = dict[Cell, float](), dict[Cell, float]()
    for made in product((0, 1), repeat=len(ends)):
        if made[factor]:
            continue
        weight = (1 / 3, 1 / 6, 1 / 3)[sum(made)]
        for chosen, weights in ((1, best), (0, plain)):
            corner = (*made[:factor], chosen, *made[factor + 1 :])
            weights[tuple(end[at] for end, at in zip(ends, corner, strict=True))] = weight
    return best, plain


def rows(arms: Mapping[str, Tally], never: Tally, requests: LoggedEvents, shown: Mapping[str, Metric]) -> Table:
    """Every arm as it was run, and what it is worth beyond the LLM alone."""
    cells = []
    for arm, tally in arms.items():
        means = measure([shown[name] for name in SHOWN], tally, requests)
        gain = contrast([shown["utility"]], tally, never, requests)["utility"]
        cells.append((arm, number(means["hit_rate"].mean, "share"), number(1 - means["err_per_hit"].mean, "share"),
                      *_told(gain)))  # fmt: skip
    return Table("Arms", ("arm", "hits", "right hits", "utility - never", "new requests"), cells)


def effects(tally: Mapping[Cell, Tally], requests: LoggedEvents, utility: Metric) -> Table:
    """Estimates of each option against the plain one, over all combinations of the others."""
    estimates = []
    for at, (factor, options) in enumerate(FACTORS.items()):
        plain = weighted(level(at, options[0]), tally)
        for option in options[1:]:
            made = contrast([utility], weighted(level(at, option), tally), plain, requests)["utility"]
            estimates.append((factor, option, made))
    tested = [(*row, p) for row, p in zip(estimates, holm([e.p(new=True) for *_, e in estimates]), strict=True)]
    cells = [
        (factor, option, FACTORS[factor][0], *_told(e), f"{p:.3f}", _verdict(e, p)) for factor, option, e, p in tested
    ]
    headings = ("factor", "option", "against", "utility", "new requests", "p (Holm)", "verdict")
    return Table("What each choice is worth", headings, cells)


def shares(tally: Mapping[Cell, Tally], never: Tally, requests: LoggedEvents, utility: Metric) -> Table:
    """The way from `never` to the best of everything: the paper's loop, and what each choice adds to it."""
    ends = [tuple(options[place] for options in FACTORS.values()) for place in (0, -1)]
    steps = [("the loop as the paper has it", contrast([utility], tally[ends[0]], never, requests)["utility"])]
    for at, (factor, options) in enumerate(FACTORS.items()):
        best, plain = (weighted(weights, tally) for weights in shapley(at))
        steps.append((f"{factor}: {options[-1]}", contrast([utility], best, plain, requests)["utility"]))
    steps.append(("all together", contrast([utility], tally[ends[1]], never, requests)["utility"]))
    return Table(
        "The way from never to the best", ("step", "utility", "new requests"), [(n, *_told(e)) for n, e in steps]
    )


def _told(e: Estimate) -> tuple[str, str]:
    return number(e.mean, "utility", signed=True), interval(*e.interval(new=True), "utility", signed=True)


def _verdict(e: Estimate, p: float) -> str:
    if e.disputed:
        return "depends on the interval"
    return ("better" if e.mean > 0 else "worse") if p < ALPHA else "inconclusive"


def composite(ceiling: Mapping[str, Estimate]) -> Table:
    """Requests that could be anticipated from the user's own history."""
    words = (
        ("fires", "the rule names a next request", "share"), ("right", "and it is that one", "share"),
        ("at most", "worth at most, utility", "utility"),
    )  # fmt: skip
    rows = []
    for name, says, unit in words:
        e = ceiling[name]
        rows.append((says, number(e.mean, unit), interval(*e.interval(new=True), unit)))
    return Table("Composite skills: what could be anticipated", ("of all requests", "measured", "new requests"), rows)


def analyse(run: OneRun) -> Report:
    """Analyses a run of `what_makes_the_difference`; nothing expected is checked."""
    names = {cell: "_".join(cell) for cell in CELLS}
    needed(run, [NEVER, *names.values()], "what_makes_the_difference")
    requests, shown = events(run), metrics(Utility.of(run.config))
    arms = {arm: tallies(run, arm, requests)[0] for arm in run.arms}
    tally, never, utility = {cell: arms[name] for cell, name in names.items()}, arms[NEVER], shown["utility"]
    options = effects(tally, requests, utility)
    ceiling = worth(run, requests, NEVER)
    tables = [
        options, shares(tally, never, requests, utility), composite(ceiling), rows(arms, never, requests, shown),
    ]  # fmt: skip
    m = run.manifest
    scope = f"{m['users']} users, {m['weeks']} weeks, seed {m['seed']}; 95 % intervals for new users and requests."
    return Report(tables, page("What makes the difference?", COMMAND, scope, *tables))


EXPERIMENT = Experiment(analyse)
