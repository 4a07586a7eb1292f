"""Every arm of the runs that are compared, held against the reference: what is read of their logs, each once."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skg_bench.analysis.comparison.align import Aligned
from skg_bench.analysis.comparison.flips import Done, Flip, done, examples, flips
from skg_bench.analysis.comparison.matched import Fallbacks, Hits, Matched, hits, ladder, matched
from skg_bench.analysis.counts.break_even import Answers, BreakEven, break_even
from skg_bench.analysis.counts.measure import by_user, contrast, identical, measure
from skg_bench.analysis.counts.metrics import Metric, Utility
from skg_bench.analysis.counts.tally import LoggedEvents, Tally, tallies
from skg_bench.analysis.counts.turn_logs import read_ahead
from skg_bench.analysis.statistics.intervals import Estimate
from skg_bench.core.grid import F64
from skg_bench.runfolder.run import RunTables
from skg_bench.runfolder.telling import telling_of

BOOTSTRAP_SEED = 0  # of the bootstrap


@dataclass(frozen=True, slots=True)
class Flipped:
    """Events that an arm and the reference answered differently, by reason, the most frequent first."""

    arm: str
    worse: Mapping[str, int]  # the reference was right, the arm was not
    better: Mapping[str, int]
    examples: tuple[Flip, ...]  # of the worse ones


@dataclass(frozen=True)
class TestedArm:
    """One arm against the reference: figures by metric."""

    label: str
    means: Mapping[str, Estimate]
    base: Mapping[str, Estimate]
    against: Mapping[str, Estimate]
    each: Mapping[str, F64]  # [n] difference of every user, NaN: there is none
    same: bool  # the arm did the same as the reference on every turn


def tested_arms(
    logs: Sequence[RunTables],
    arms: Mapping[tuple[int, str], str],
    reference: tuple[int, str],
    shared: Aligned,
    shown: Mapping[str, Metric],
    price: Utility,
    n_flips: int,
) -> tuple[list[TestedArm], tuple[Matched, ...], tuple[str, ...], tuple[Flipped, ...], dict[str, BreakEven]]:
    """Every arm is read once; what is kept of it are sums, and its hits."""
    requests = shared.on
    fallbacks: dict[str, Fallbacks] = {}
    served: dict[tuple[int, str], tuple[Hits, Fallbacks, LoggedEvents]] = {}

    answered = requests.judged and requests.answers

    def read(key: tuple[int, str]) -> tuple[Tally, Done | None]:
        at, arm = key
        pool_requests = shared.each[at]
        tally = tallies(logs[at], arm, pool_requests, keep=shared.keep)[0]
        if tally.judged and pool_requests.answers:
            llm = fallbacks.setdefault(_llm(logs[at], arm, shared, at), Fallbacks.of(pool_requests))
            served[at, arm] = hits(logs[at], arm, pool_requests, price, llm, shared.keep), llm, pool_requests
        stays = at == reference[0] or not (shared.moved[at] or shared.moved[reference[0]])
        return tally, done(logs[at], arm, shared.keep) if answered and stays else None

    base, base_done = read(reference)
    base_means, base_each = measure(shown.values(), base, requests), by_user(shown.values(), base, requests)
    tested, flipped = [], []
    others = [key for key in arms if key != reference]
    for key, (tally, arm_done) in zip(others, read_ahead(read, others), strict=True):
        each = by_user(shown.values(), tally, requests)
        tested.append(
            TestedArm(
                arms[key],
                measure(shown.values(), tally, requests),
                base_means,
                contrast(shown.values(), tally, base, requests),
                {name: each[name] - base_each[name] for name in shown},
                identical(tally, base),
            )
        )
        if base_done is not None and arm_done is not None:
            flipped.append(_flipped(arms[key], arm_done, base_done, n_flips))
    if not requests.answers:
        return tested, (), (), (), {}
    if not requests.judged:
        return tested, (), ("a log does not say which answers were right: there are no error rates to match",), (), {}
    if telling_of(logs[reference[0]].manifest).imported:  # what came from memory is not known
        return tested, (), (), tuple(flipped), {}
    return tested, *_matches(arms, reference, served), tuple(flipped), _break_even(arms, served, price)


def _break_even(
    arms: Mapping[tuple[int, str], str],
    served: Mapping[tuple[int, str], tuple[Hits, Fallbacks, LoggedEvents]],
    price: Utility,
) -> dict[str, BreakEven]:
    by_arm = {}
    for key, label in arms.items():
        if key not in served:  # it is not known of all its answers whether they were right
            continue
        arm_hits, llm, requests = served[key]
        at = arm_hits.at
        if at.size and llm.known[at].all():
            answers = Answers(arm_hits.right, arm_hits.worth), Answers(llm.right[at], llm.worth[at])
            by_arm[label] = break_even(requests, at, *answers, price.wrong)
    return by_arm


def _flipped(label: str, arm_turns: Done, base: Done, n_flips: int) -> Flipped:
    worse = flips(arm_turns, base)
    return Flipped(label, worse.counts(), flips(base, arm_turns).counts(), tuple(examples(worse, n_flips)))


def _llm(run: RunTables, arm: str, shared: Aligned, at: int) -> str:
    """Key of all that decides the LLM's answer to an event: its parameters, and which row of the log the event is."""
    order = at if shared.moved[at] else 0
    parameters = (run.manifest.get("compositions") or {}).get(arm, {}).get("llm")
    return json.dumps([order, parameters], sort_keys=True)


def _matches(
    arms: Mapping[tuple[int, str], str],
    reference: tuple[int, str],
    served: Mapping[tuple[int, str], tuple[Hits, Fallbacks, LoggedEvents]],
) -> tuple[tuple[Matched, ...], tuple[str, ...]]:
    unscored = [arms[k] for k in arms if k not in served or np.isnan(served[k][0].score).any()]
    if arms[reference] in unscored:
        why = f"{arms[reference]} has no scores, or answers that nobody can judge; to match error rates, name another"
        return (), (f"{why} reference",)
    idle = [arms[key] for key, (arm_hits, _, _) in served.items() if not arm_hits.at.size]
    if arms[reference] in idle:
        why = f"{arms[reference]} has no answer from memory; to match error rates, name another reference"
        return (), (why,)
    base = ladder(*served[reference])
    matches = [
        matched(label, ladder(*served[key]), base, BOOTSTRAP_SEED)
        for key, label in arms.items()
        if key != reference and label not in (*idle, *unscored)
    ]
    notes = [f"{', '.join(idle)}: no answer from memory, nothing to match"] if idle else []
    if unscored:
        notes.append(f"{', '.join(unscored)}: no scores, or answers that nobody can judge; nothing to match")
    if any(set(match.figures) == {"hit_rate"} for match in matches):
        notes.append(
            "what the LLM would have answered instead of some hits is not known: add a run with an arm `never` and the "
            "same LLM to see right answers and utility at matched error rates"
        )
    return tuple(matches), tuple(notes)
