"""Effect of two assumptions: how often people repeat their own words, and how often a wrong prompt misleads a model."""

from collections.abc import Sequence

from skg_bench.analysis.counts.measure import contrast, measure
from skg_bench.analysis.counts.metrics import Utility, metrics
from skg_bench.analysis.counts.tally import Tally, events, tallies
from skg_bench.analysis.counts.wording import interval, number
from skg_bench.analysis.summary.saturation import saturation
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment, Runs, needed
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run

COMMAND = "skg-bench experiment assumptions RUN RUN RUN --write reports"
REFERENCE = "never"
DEFAULT = 0.5  # the habit at which the second table is told
PUBLISHED = (
    "Beside these, as published: 40 % of web queries find something again; of queries that lead to the same page again "
    "25 in 30 are the same words (Teevan et al., SIGIR 2007); 31 % of what 20 users asked a chat assistant repeats the "
    "meaning of something earlier (MeanCache, arXiv 2403.02694)."
)
ARMS = ("skg", "strict", "exact_match", "everything", "strict_everything", "oracle_router", "oracle")
MISLED = {  # by arm, the probability that a wrong prompt misleads
    kind: {f"{kind}_misled_0": 0.0, kind: None, f"{kind}_misled_60": 0.6, f"{kind}_misled_100": 1.0}
    for kind in ("skg_prompted", "rag")
}
SHOWN = ("utility", "hit_rate", "err_per_hit")


def habit(run: Run) -> float:
    """The probability that people say the same in their usual words."""
    return float(run.config["simulator"]["habit"])


def repeats(run: Run) -> tuple[str, ...]:
    """How often people repeat themselves, and what is testable then."""
    requests = events(run)
    shares = saturation(requests)
    answered = number(float((requests.answerable > 0).mean()), "share")
    return (
        f"{habit(run):g}", number(shares.verbatim, "share"), answered, number(shares.types_used_up, "share"),
        "; ".join(shares.reasons) or "yes",
    )  # fmt: skip


def beyond(run: Run, arms: Sequence[str]) -> dict[str, tuple[str, str, str, str]]:
    """Figures by arm: hits, how many of them are right, utility beyond `never`, and its interval for new requests."""
    requests, shown = events(run), metrics(Utility.of(run.config))
    base: Tally = tallies(run, REFERENCE, requests)[0]
    rows = {}
    for arm in arms:
        tally = tallies(run, arm, requests)[0]
        figures = measure([shown[name] for name in SHOWN], tally, requests)
        gain = contrast([shown["utility"]], tally, base, requests)["utility"]
        rows[arm] = (
            number(figures["hit_rate"].mean, "share"), number(1.0 - figures["err_per_hit"].mean, "share"),
            number(gain.mean, "utility", signed=True), interval(*gain.interval(new=True), "utility", signed=True),
        )  # fmt: skip
    return rows


def analyse(runs: Runs) -> Report:
    """Analyses runs of `assumptions` that differ in `simulator.habit`; nothing expected is checked."""
    ordered = sorted(runs, key=habit)
    for run in ordered:
        needed(run, [REFERENCE, *ARMS, *(arm for arms in MISLED.values() for arm in arms)], "assumptions")
    if len({habit(run) for run in ordered}) < len(ordered):
        raise UsageError("two of the runs have the same simulator.habit; name runs that differ in it, one of each")
    repeated = Table(
        "How often people repeat themselves",
        (
            "habit",
            "requests word for word as before",
            "requests with an answer that holds",
            "types used up",
            "testable",
        ),
        [repeats(run) for run in ordered],
    )
    by_arm = [(run, beyond(run, ARMS)) for run in ordered]
    by_habit = Table(
        "Utility beyond never, by habit",
        ("arm", "habit", "hits", "right hits", "utility", "new requests"),
        [(arm, f"{habit(run):g}", *rows[arm]) for arm in ARMS for run, rows in by_arm],
    )
    middle = min(ordered, key=lambda run: abs(habit(run) - DEFAULT))
    default = float(middle.config["llm"]["misled"])
    prompts = Table(
        "Utility beyond never, by how often a wrong prompt misleads",
        ("arm", "misled", "prompts", "right answers to them", "utility", "new requests"),
        [
            (kind, f"{default if misled is None else misled:g}", *beyond(middle, [arm])[arm])
            for kind, arms in MISLED.items()
            for arm, misled in arms.items()
        ],
    )
    m = middle.manifest
    scope = f"{m['users']} users, {m['weeks']} weeks, seed {m['seed']}; 95 % intervals for new users and requests."
    title = "What hangs on two assumptions"
    return Report([repeated, by_habit, prompts], page(title, COMMAND, scope, repeated, PUBLISHED, by_habit, prompts))


EXPERIMENT = Experiment(analyse)
