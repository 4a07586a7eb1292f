"""Controls of a run of `controls`: what each is worth beside skg, and the best arm at the error rate of others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from skg_bench.analysis.comparison.matched import Fallbacks, Hits, Ladder, Matched, hits, ladder, matched
from skg_bench.analysis.counts.measure import Difference, contrast, differences, identical, measure
from skg_bench.analysis.counts.metrics import Utility, metrics
from skg_bench.analysis.counts.tally import LoggedEvents, Tally, events, tallies
from skg_bench.analysis.counts.wording import interval, number
from skg_bench.analysis.statistics.intervals import Estimate, estimates, sums
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment, OneRun
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I64
from skg_bench.runfolder.run import Run

REFERENCE = "skg"
SHOWN = ("utility", "hit_rate", "err_per_request_hits", "new_skills_per_week", "skills")
ORACLES = ("oracle_router", "oracle_capture", "oracle")
RIVALS = ("exact_match", "frequency", "centroid")
CAPTURED = "captured"  # of an arm's name: it goes on from the captures of skg
SEED = 0  # of resamples
COMMAND = "skg-bench experiment controls RUN --write reports"


@dataclass(frozen=True)
class Row:
    """An arm as it was run, and against `skg`."""

    arm: str
    means: Mapping[str, Estimate]  # of SHOWN
    against: Difference | None  # in utility; None: it is skg itself
    beyond: Estimate | None  # utility beyond `never`; None: it is that one, or the run has none


@dataclass(frozen=True)
class Pair:
    """Two arms at one error rate, in utility per request, from the turn `since` on."""

    arm: str
    rival: str
    since: int
    found: Matched  # with the interval for these requests
    new: Estimate  # of the same difference, the thresholds held as they were found


def rows(run: Run) -> list[Row]:
    """All arms, in the order of the run; p-values of utility are corrected for their number."""
    requests, shown = events(run), metrics(Utility.of(run.config))
    tally: dict[str, Tally] = {arm: tallies(run, arm, requests)[0] for arm in run.arms}
    others = [arm for arm in run.arms if arm != REFERENCE]
    utility = [shown["utility"]]
    effects = [contrast(utility, tally[arm], tally[REFERENCE], requests)["utility"] for arm in others]
    same = [identical(tally[arm], tally[REFERENCE]) for arm in others]
    against = dict(zip(others, differences(utility[0], effects, same=same), strict=True))
    never = tally.get("never")
    beyond = {
        arm: contrast(utility, tally[arm], never, requests)["utility"] for arm in run.arms if never and arm != "never"
    }
    return [
        Row(arm, measure([shown[m] for m in SHOWN], tally[arm], requests), against.get(arm), beyond.get(arm))
        for arm in run.arms
    ]


def best(arm_rows: Sequence[Row]) -> str:
    """The arm with the largest mean utility among those that learn and know no truth; chosen in hindsight."""
    open_to_all = [row for row in arm_rows if row.arm not in (*ORACLES, *RIVALS, "never")]
    learns = [row for row in open_to_all if not row.arm.startswith(CAPTURED) and row.means["hit_rate"].mean > 0]
    if not learns:
        raise UsageError("no arm of this run answers anything from its skillbook; run it for more weeks")
    return max(learns, key=lambda row: row.means["utility"].mean).arm


def thresholds(run: Run, arm_rows: Sequence[Row]) -> list[tuple[float, Row]]:
    """Arms that are skg with another threshold, and skg itself, from the most to the least useful."""
    threshold_by_arm = {arm: made["policy"].get("threshold") for arm, made in run.manifest["compositions"].items()}
    arms = [
        (float(threshold_by_arm[row.arm]), row)
        for row in arm_rows
        if row.arm == REFERENCE or row.arm.startswith("threshold_")
    ]
    return sorted(arms, key=lambda pair: -pair[1].means["utility"].mean)


def pairs(run: Run, champion: str) -> tuple[list[Pair], list[str]]:
    """The best arm and `skg` against rivals, each with captures of its own; and on the same captures, from the fork on.

    With it, why there are not more of them.
    """
    forks = {arm: made["fork"] for arm, made in run.manifest["compositions"].items() if made["fork"]}
    wanted = [(arm, rival, 0) for arm in dict.fromkeys((champion, REFERENCE)) for rival in RIVALS]
    wanted += [(CAPTURED, a, int(forks[a].partition("@")[2])) for a in forks if a != CAPTURED]
    requests, price = events(run), Utility.of(run.config)
    fallbacks = Fallbacks.of(requests)
    hits(run, "never", requests, price, fallbacks)  # it knows what the LLM answers everywhere
    served = {arm: hits(run, arm, requests, price, fallbacks) for entry in wanted for arm in entry[:2]}
    results = [_pair(arm, rival, since, served, fallbacks, requests) for arm, rival, since in wanted]
    return [result for result in results if isinstance(result, Pair)], [
        result for result in results if isinstance(result, str)
    ]


def _pair(
    arm: str, rival: str, since: int, served: Mapping[str, Hits], fallbacks: Fallbacks, requests: LoggedEvents
) -> Pair | str:
    """Both at the lower of their error rates; or why that cannot be."""
    later, kept = _since(requests, since)
    known = Fallbacks(fallbacks.known[kept], fallbacks.right[kept], fallbacks.worth[kept])
    arm_hits, base = (_later(served[a], kept, later, known) for a in (arm, rival))
    if not arm_hits.at.size or not base.at.size:
        idle = rival if arm_hits.at.size else arm
        return f"{arm}, {rival}: {idle} has no hit from turn {since} on, nothing to match"
    ladders = ladder(arm_hits, known, later), ladder(base, known, later)
    match = matched(arm, *ladders, SEED)
    gained, gained_by_rival = (
        sums(later.cell[h.at], len(requests.cells.user), _kept(h, steps, match.wrong) * (h.worth - known.worth[h.at]))
        for h, steps in zip((arm_hits, base), ladders, strict=True)
    )
    turns = sums(later.cell, len(requests.cells.user))
    return Pair(arm, rival, since, match, estimates(requests.cells, [turns], [[gained - gained_by_rival]])[0])


def _since(requests: LoggedEvents, turn: int) -> tuple[LoggedEvents, I64]:
    """The events from the users' turn `turn` on, and where they stood; users without any are left out."""
    kept = np.flatnonzero(requests.turn >= turn)
    users, row = np.unique(requests.row[kept], return_inverse=True)
    if not len(users):
        raise UsageError(f"no user has more than {turn} turns; run it for more weeks")
    return replace(
        requests, users=requests.users[users], row=row, turn=requests.turn[kept], cell=requests.cell[kept]
    ), kept


def _later(arm_hits: Hits, kept: I64, later: LoggedEvents, known: Fallbacks) -> Hits:
    """The hits among the events `kept`, and what users got there altogether."""
    index = np.searchsorted(kept, arm_hits.at)
    mask = (index < len(kept)) & (kept[np.minimum(index, len(kept) - 1)] == arm_hits.at)
    at, right, worth = index[mask], arm_hits.right[mask], arm_hits.worth[mask]
    all_right, all_worth = known.right.astype(np.float64), known.worth.copy()
    all_right[at], all_worth[at] = right, worth
    n = len(later.users)
    return Hits(at, arm_hits.score[mask], right, worth, sums(later.row, n, all_right), sums(later.row, n, all_worth))


def _kept(arm_hits: Hits, steps: Ladder, wrong: float) -> F64:
    """Share of each hit that is left at `wrong` wrong hits per request, as `matched` takes them in proportion."""
    means = steps.wrong.mean(axis=0)
    level = int(np.argmax(means <= wrong))
    if not level:
        return np.ones(len(arm_hits.at))
    share = (means[level - 1] - wrong) / (means[level - 1] - means[level])  # of the last step that falls back
    last = (arm_hits.score >= steps.threshold[level - 1]) & (arm_hits.score < steps.threshold[level])
    return np.where(arm_hits.score >= steps.threshold[level], 1.0, np.where(last, 1.0 - share, 0.0))


def analyse(run: OneRun) -> Report:
    """Analyses a run of `controls`; nothing expected is checked."""
    arm_rows = rows(run)
    as_run, champion = _as_run(run, arm_rows), best(arm_rows)
    (first, top), *rest = thresholds(run, arm_rows)
    behind = ", ".join(f"{t:g}: {number(row.means['utility'].mean, 'utility')}" for t, row in rest)
    hindsight = f"Best threshold in hindsight {first:g}: {number(top.means['utility'].mean, 'utility')} ({behind})"
    matches, unmatched = pairs(run, champion)
    matched_table = _at_equal_errors(matches)
    chosen = f"{champion} has the largest utility as run."
    m = run.manifest
    text = page(
        "Controls", COMMAND, f"{m['users']} users, {m['weeks']} weeks, seed {m['seed']}.", as_run, hindsight,
        f"## {matched_table.title}\n\n{chosen}", matched_table.markdown(), *unmatched,
    )  # fmt: skip
    return Report([as_run, hindsight, chosen, matched_table, *unmatched], text)


def _as_run(run: Run, arm_rows: Sequence[Row]) -> Table:
    shown = metrics(Utility.of(run.config))
    lines = []
    for row in arm_rows:
        cells = ("", "", "")
        if row.against is not None:
            e = row.against.estimate
            span = interval(*e.interval(new=True), "utility", signed=True)
            cells = number(e.mean, "utility", signed=True), span, row.against.verdict
        lines.append((
            row.arm, *(number(row.means[m].mean, shown[m].unit) for m in SHOWN), *cells, _beyond(row.beyond)
        ))  # fmt: skip
    labels = (shown[m].label for m in SHOWN)
    headings = ("arm", *labels, "utility - skg", "new requests", "verdict", "utility - never")
    return Table("As run", headings, lines)


def _beyond(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    span = interval(*estimate.interval(new=True), "utility", signed=True)
    return f"{number(estimate.mean, 'utility', signed=True)} ({span})"


def _at_equal_errors(matches: Sequence[Pair]) -> Table:
    lines = []
    for pair in matches:
        u, h, raised = pair.found.figures["utility"], pair.found.figures["hit_rate"], pair.found
        held = " / ".join("as run" if t is None else f"{t:.3f}" for t in (raised.threshold, raised.reference_threshold))
        lines.append((
            pair.arm, pair.rival, str(pair.since), f"{raised.wrong:.4f}", held, f"{h.arm:.4f} / {h.reference:.4f}",
            number(u.difference, "utility", signed=True), interval(u.low, u.high, "utility", signed=True),
            interval(*pair.new.interval(new=True), "utility", signed=True),
        ))  # fmt: skip
    headings = (
        "arm", "against", "from turn", "wrong hits per request", "thresholds", "hit rates", "utility", "these requests",
        "new requests",
    )  # fmt: skip
    return Table("At the same error rate", headings, lines)


EXPERIMENT = Experiment(analyse)
