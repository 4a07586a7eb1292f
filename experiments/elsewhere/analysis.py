"""Systems of others on our users: hits, wrong ones, utility beyond the model alone, and which are one rule."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from skg_bench.analysis.counts.measure import contrast, measure
from skg_bench.analysis.counts.metrics import Utility, metrics
from skg_bench.analysis.counts.tally import events, tallies
from skg_bench.analysis.counts.wording import interval, number
from skg_bench.analysis.statistics.intervals import Estimate
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment, Runs, needed
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.measured_run import measured_run
from skg_bench.runfolder.run import Run

COMMAND = "skg-bench experiment elsewhere RUN... --write reports"
REFERENCE = "never"
SYSTEMS = {
    "pass_on": "a gateway that only passes on",
    "exact": "exact cache of ours: `[router=exact,curator=everything,policy=always]`",
    "dict": "a Python dict",
    "litellm": "LiteLLM 1.108.7, in-memory cache, shared by all users",
    "litellm_semantic": "LiteLLM 1.108.7, semantic cache, threshold 0.8",
    "litellm_rule_80": "its rule in 12 lines of numpy",
    "gptcache_90": "GPTCache 0.1.44, threshold 0.9",
    "gptcache_rule_90": "its rule in 12 lines of numpy",
    "gptcache_80": "GPTCache 0.1.44, its own default 0.8",
    "gptcache_rule_80": "its rule in 12 lines of numpy",
    "scrambled": "placebo of the cache from a cosine of 0.8: another answer at each hit",
    "hour": "exact cache that forgets after an hour of the users' time",
    "mem0": "mem0 2.2.1, nearest memory in the prompt, score from 0 on",
}
PROMPTS = {
    "mem0_rule": "mem0's rule: the nearest memory, from a cosine of 0 on",
    "mem0_rule_80": "the same from a cosine of 0.8 on",
    "prompted": "ours: `serving=prompted`, threshold 0.8",
}
MISLED = {"_misled_0": 0.0, "": None, "_misled_60": 0.6, "_misled_100": 1.0}  # endings of arms
ONE_RULE = (
    ("pass_on", "never"), ("dict", "exact"), ("gptcache_rule_90", "litellm_rule_80"),
    ("gptcache_90", "litellm_rule_80"), ("litellm_semantic", "litellm_rule_80"), ("gptcache_80", "gptcache_rule_80"),
    ("mem0", "mem0_rule"),
)  # fmt: skip
_COLUMNS = ("user", "turn", "serving", "source_turn", "answer_correct")


@dataclass(frozen=True)
class Beyond:
    """An arm beside the model alone."""

    hits: float  # share of requests
    wrong: float  # share of hits
    utility: Estimate  # arm - never


def beyond(run: Run, arms: Sequence[str]) -> dict[str, Beyond]:
    """Figures of arms, by arm."""
    run = measured_run(run)  # by instances, where users share a memory
    requests, shown = events(run), metrics(Utility.of(run.config))
    base = tallies(run, REFERENCE, requests)[0]
    figures = {}
    for arm in arms:
        tally = tallies(run, arm, requests)[0]
        means = measure([shown["hit_rate"], shown["err_per_hit"]], tally, requests)
        gain = contrast([shown["utility"]], tally, base, requests)["utility"]
        figures[arm] = Beyond(means["hit_rate"].mean, means["err_per_hit"].mean, gain)
    return figures


def systems(run: Run) -> Table:
    """Table of what each system of a run does."""
    rows = [
        (arm, SYSTEMS[arm], number(each.hits, "share"), number(each.wrong, "share"),
         number(each.utility.mean, "utility", signed=True), _interval(each.utility))
        for arm, each in beyond(run, [arm for arm in SYSTEMS if arm in run.arms]).items()
    ]  # fmt: skip
    head = ("arm", "system", "hit rate", "wrong per hit", "utility - never", "new requests")
    return Table(f"Systems, {_size(run)}", head, rows)


def prompts(run: Run) -> Table:
    """Table of what a memory in the prompt is worth, by how often a wrong one misleads."""
    default = float(run.config["llm"]["misled"])
    chosen = {
        f"{kind}{ending}": (kind, default if misled is None else misled)
        for kind in PROMPTS
        for ending, misled in MISLED.items()
        if f"{kind}{ending}" in run.arms
    }
    rows = [
        (chosen[arm][0], PROMPTS[chosen[arm][0]], f"{chosen[arm][1]:g}", number(each.hits, "share"),
         number(each.wrong, "share"), number(each.utility.mean, "utility", signed=True), _interval(each.utility))
        for arm, each in beyond(run, list(chosen)).items()
    ]  # fmt: skip
    head = ("arm", "memory in the prompt", "misled", "prompted", "wrong of these", "utility - never", "new requests")
    return Table(f"A memory in the prompt, {_size(run)}", head, rows)


def same_rows(runs: Sequence[Run]) -> Table:
    """Pairs of arms that are one rule: requests for which they differ."""
    rows = []
    for run in runs:
        for arm, other in ONE_RULE:
            if arm in run.arms and other in run.arms:
                differing = _differing(run, arm, other)
                rows.append((arm, other, _size(run), str(differing), "yes" if differing == 0 else "no"))
    head = ("arm", "other arm", "run", "requests that differ", "one rule")
    return Table("Identities", head, rows)


def threshold_words(run: Run) -> str:
    """Sentence on what the difference of the two memories in the prompt comes from."""
    table = beyond(run, [f"{kind}{ending}" for kind in PROMPTS for ending in MISLED])

    def worth(arm: str) -> str:
        return number(table[arm].utility.mean, "utility", signed=True)

    return (
        f"**The difference is the threshold** ({_size(run)}). Without one, the nearest memory stands in the prompt of "
        f"{number(table['mem0_rule'].hits, 'share')} of requests and changes utility by {worth('mem0_rule')}. From a "
        f"cosine of 0.8 on, the same memory stands in {number(table['mem0_rule_80'].hits, 'share')} and changes it by "
        f"{worth('mem0_rule_80')}; our own prompts with that threshold by {worth('prompted')}. How bad it is without "
        "a threshold follows from `llm.misled`, how often a wrong prompt turns a right answer wrong: at 0, 0.2, 0.6 "
        f"and 1 it is {', '.join(worth(f'mem0_rule{ending}') for ending in MISLED)}. With the threshold it is "
        f"{', '.join(worth(f'mem0_rule_80{ending}') for ending in MISLED)}: what is that near is seldom about another "
        "request."
    )


def analyse(runs: Runs) -> Report:
    """Analyses runs of `elsewhere`, with or without systems that `make peers-assistants` installs.

    As expected: identities hold in all runs.
    """
    for run in runs:
        needed(run, [REFERENCE], "elsewhere")
        if not any(arm in SYSTEMS for arm in run.arms):
            raise UsageError(
                f"{run.path} has none of the arms of elsewhere; make one: skg-bench run experiment=elsewhere"
            )
    identities = same_rows(runs)
    full = [run for run in runs if all(f"{kind}{ending}" in run.arms for kind in PROMPTS for ending in MISLED)]
    parts: list[Table | str] = [systems(run) for run in runs]
    parts.append(identities)
    for run in full:
        parts += [prompts(run), threshold_words(run)]
    how = (
        "Same users, requests, luck and MiniLM vectors for all systems of a run; 95 % intervals for new users and "
        "requests. Systems that share one memory are one instance: no interval. Two arms are one rule if each request "
        "has the same source and an answer that is as good."
    )
    return Report(
        parts,
        page("Assistants of others", COMMAND, how, *parts),
        holds=all(row[-1] == "yes" for row in identities.rows),
    )


def _interval(estimate: Estimate) -> str:
    low, high = estimate.interval(new=True)
    return interval(low, high, "utility", signed=True) if isfinite(low) else "one instance: none"


def _size(run: Run) -> str:
    return f"{run.manifest['users']} users, {run.manifest['weeks']} weeks"


def _differing(run: Run, arm: str, other: str) -> int:
    """Requests that two arms answer by another way, from another turn, or not equally well."""
    mine, theirs = (run.turns(name, list(_COLUMNS)).to_pandas() for name in (arm, other))
    return int((mine.astype(str) != theirs.astype(str)).any(axis=1).sum())


EXPERIMENT = Experiment(analyse)
