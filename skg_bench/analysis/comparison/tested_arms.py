"""Every arm of the runs that are compared, held against the reference: what is read of their logs, each once."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from skg_bench.analysis.comparison.align import align
from skg_bench.analysis.comparison.flips import Done, Flip, Flips, done, examples, flips, joined_flips
from skg_bench.analysis.comparison.matched import Fallbacks, Hits, Matched, ServedHits, hits, ladder_of, matched
from skg_bench.analysis.counts.break_even import HIT_SUMS, Answers, BreakEven, break_even_of, hit_sums
from skg_bench.analysis.counts.joined import (
    BlockTally,
    JoinedEvents,
    Packed,
    joined_events,
    joined_tally,
    unpacked,
)
from skg_bench.analysis.counts.measure import identical, paired_sums, same_counts
from skg_bench.analysis.counts.metrics import Metric, Utility
from skg_bench.analysis.counts.tally import LoggedEvents, Tally, tallies
from skg_bench.analysis.counts.turn_logs import RunBlock, read_all
from skg_bench.analysis.statistics.intervals import Estimate
from skg_bench.analysis.summary.saturation import Used, reasons_of, used_up
from skg_bench.core.grid import F64
from skg_bench.runfolder.run import RunTables
from skg_bench.runfolder.telling import telling_of

Key = tuple[int, str]  # place of its run among those that are compared, and arm
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
    means: Mapping[str, float]
    base: Mapping[str, float]
    against: Mapping[str, Estimate]
    each: Mapping[str, F64]  # [n] difference of every user, NaN: there is none
    same: bool  # the arm did the same as the reference on every turn


@dataclass(frozen=True)
class Tested:
    """All arms, over all users."""

    requests: JoinedEvents
    used_up: list[str]  # reasons of the corpus against a verdict on utility
    arms: list[TestedArm]
    matched: tuple[Matched, ...]
    unmatched: tuple[str, ...]
    flips: tuple[Flipped, ...]
    break_even: dict[str, BreakEven]


@dataclass(frozen=True, slots=True)
class _Block:
    """Sums over the users of a block, by arm."""

    on: JoinedEvents
    weeks: list[int]  # of every run
    used: Used
    tallies: dict[Key, BlockTally]
    same: dict[Key, bool]  # did the arm the same as the reference on every turn?
    served: dict[Key, ServedHits]
    pays: dict[Key, list[Packed]]
    flips: dict[Key, tuple[Flips, Flips]]  # worse and better than the reference


def tested_arms(
    blocks: Sequence[Sequence[RunBlock]],
    arms: Mapping[Key, str],
    reference: Key,
    moved: Sequence[bool],
    shown: Mapping[str, Metric],
    price: Utility,
    n_flips: int,
) -> Tested:
    """Every arm against the reference. The turns of a block are held while it is read; what is kept of them are sums,
    and hits.
    """
    read = partial(_read, arms=arms, reference=reference, moved=moved, price=price)
    parts = read_all(read, blocks)
    requests = joined_events([part.on for part in parts])
    reasons = reasons_of([part.used for part in parts])
    tested = _tested(parts, arms, reference, requests, shown)
    if not requests.answers:
        return Tested(requests, reasons, tested, (), (), (), {})
    if not requests.judged:
        why = "a log does not say which answers were right: there are no error rates to match"
        return Tested(requests, reasons, tested, (), (why,), (), {})
    flipped = tuple(_flipped(arms[key], [part.flips[key] for part in parts], n_flips) for key in parts[0].flips)
    if telling_of(blocks[0][reference[0]].manifest).imported:  # what came from memory is not known
        return Tested(requests, reasons, tested, (), (), flipped, {})
    judged = [key for key in parts[0].served if all(key in part.served for part in parts)]
    pays = {
        arms[key]: break_even_of(
            requests.cells, *(unpacked([part.pays[key][i] for part in parts]) for i in range(HIT_SUMS))
        )
        for key in arms
        if key in judged
        and all(part.served[key].known.all() for part in parts)
        and any(part.served[key].row.size for part in parts)
    }
    served = {key: ServedHits.joined([part.served.pop(key) for part in parts]) for key in judged}
    return Tested(requests, reasons, tested, *_matches(arms, reference, served), flipped, pays)


def _read(
    pools: Sequence[RunBlock],
    weeks: Sequence[int],
    *,
    arms: Mapping[Key, str],
    reference: Key,
    moved: Sequence[bool],
    price: Utility,
) -> _Block | None:
    """A block; None: the runs share none of its users."""
    shared = align(pools, weeks)
    if shared is None:
        return None
    answered = shared.on.judged and shared.on.answers
    fallbacks: dict[str, Fallbacks] = {}
    hit, turns = dict[Key, tuple[Hits, Fallbacks]](), dict[Key, Done]()
    packed, same, base = dict[Key, BlockTally](), dict[Key, bool](), None

    def digested(key: Key) -> Tally:
        return tallies(pools[key[0]], key[1], shared.each[key[0]], keep=shared.keep)[0]

    for key in (reference, *(key for key in arms if key != reference)):
        at, arm = key
        requests = shared.each[at]
        tally = tallies(pools[at], arm, requests, keep=shared.keep, digests=False, weeks=False)[0]
        if tally.judged and requests.answers:
            llm = fallbacks.setdefault(_llm(pools[at], arm, moved, at), Fallbacks.of(requests))
            hit[key] = hits(pools[at], arm, requests, price, llm, shared.keep), llm
        if answered and (at == reference[0] or not (moved[at] or moved[reference[0]])):
            turns[key] = done(pools[at], arm, shared.keep)
        packed[key], base = BlockTally.of(tally), base or tally
        if key != reference:  # digests take longer than sums, and differ where these do
            same[key] = same_counts(tally, base) and identical(digested(key), digested(reference))
    for pool in pools:
        pool.let_go()
    return _Block(
        on=JoinedEvents.of(shared.on),
        weeks=[requests.weeks for requests in shared.each],
        used=used_up(shared.on),
        tallies=packed,
        same=same,
        served={key: ServedHits.of(*of_arm, shared.each[key[0]]) for key, of_arm in hit.items()},
        pays={key: _pays(*of_arm, shared.each[key[0]], price) for key, of_arm in hit.items()},
        flips={
            key: (flips(answers, turns[reference]).alone(), flips(turns[reference], answers).alone())
            for key, answers in turns.items()
            if key != reference
        },
    )


def _pays(arm_hits: Hits, llm: Fallbacks, requests: LoggedEvents, price: Utility) -> list[Packed]:
    at = arm_hits.at
    answers = Answers(arm_hits.right, arm_hits.worth), Answers(llm.right[at], llm.worth[at])
    return [Packed.of(values) for values in hit_sums(requests, at, *answers, price.wrong)]


def _tested(
    parts: Sequence[_Block],
    arms: Mapping[Key, str],
    reference: Key,
    requests: JoinedEvents,
    shown: Mapping[str, Metric],
) -> list[TestedArm]:
    def joined(key: Key) -> Tally:
        return joined_tally([part.tallies.pop(key) for part in parts])

    base, tested = joined(reference), list[TestedArm]()
    for key in (key for key in arms if key != reference):
        both = paired_sums(shown.values(), joined(key), base, requests)
        tested.append(
            TestedArm(
                arms[key],
                {name: pair.arm.mean for name, pair in both.items()},
                {name: pair.reference.mean for name, pair in both.items()},
                {name: pair.estimate for name, pair in both.items()},
                {name: pair.arm.ratio - pair.reference.ratio for name, pair in both.items()},
                all(part.same[key] for part in parts),
            )
        )
    return tested


def _flipped(label: str, blocks: Sequence[tuple[Flips, Flips]], n_flips: int) -> Flipped:
    worse, better = (joined_flips([block[i] for block in blocks]) for i in range(2))
    return Flipped(label, worse.counts(), better.counts(), tuple(examples(worse, n_flips)))


def _llm(run: RunTables, arm: str, moved: Sequence[bool], at: int) -> str:
    """Key of all that decides the LLM's answer to an event: its parameters, and which row of the log the event is."""
    order = at if moved[at] else 0
    parameters = (run.manifest.get("compositions") or {}).get(arm, {}).get("llm")
    return json.dumps([order, parameters], sort_keys=True)


def _matches(
    arms: Mapping[Key, str], reference: Key, served: Mapping[Key, ServedHits]
) -> tuple[tuple[Matched, ...], tuple[str, ...]]:
    unscored = [arms[k] for k in arms if k not in served or np.isnan(served[k].score).any()]
    if arms[reference] in unscored:
        why = f"{arms[reference]} has no scores, or answers that nobody can judge; to match error rates, name another"
        return (), (f"{why} reference",)
    idle = [arms[key] for key, arm_hits in served.items() if not arm_hits.row.size]
    if arms[reference] in idle:
        why = f"{arms[reference]} has no answer from memory; to match error rates, name another reference"
        return (), (why,)
    base = ladder_of(served[reference])
    matches = [
        matched(label, ladder_of(served[key]), base, BOOTSTRAP_SEED)
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
