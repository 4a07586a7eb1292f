"""Verdicts on the contrasts of `skg_parameters`, by one rule of assay sensitivity and over all seeds."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skg_bench.analysis.comparison import contrasts
from skg_bench.analysis.comparison.assay import NEVER, ORACLE, Assay, ClaimVerdict, Measured, agree, claim_verdict
from skg_bench.analysis.comparison.compare import compare
from skg_bench.analysis.comparison.matched import Pair
from skg_bench.analysis.comparison.seeds import STRIDE, SeedRuns
from skg_bench.analysis.counts.measure import by_user, contrast, measure
from skg_bench.analysis.counts.metrics import Metric, Utility, metrics
from skg_bench.analysis.counts.tally import LoggedEvents, Tally, events, tallies
from skg_bench.analysis.statistics.intervals import ALPHA, holm
from skg_bench.analysis.summary.saturation import saturation
from skg_bench.core.errors import UsageError

REFERENCE = "skg"
NUMBERS = ("K11", "K16", "K19")  # the paper chooses one, and the arm has another; all else are parts
SENSITIVE = ("prompts", "known")  # how the names of arms begin that lie between `never` and an oracle
LOOPS = ("skg", "prompts")  # the loop as it stands, at the paper's own point and at the sensitive one
_ASKS = re.compile(r"(K\d\d): (.+)")


@dataclass(frozen=True)
class Line:
    """One contrast, in words."""

    id: str
    asks: str
    hits: float  # of the reference: the operating point
    utility: contrasts.ContrastResult
    hit_rate: contrasts.ContrastResult
    matched: Pair | None  # hit rate of both at the lower of their error rates, over the whole run
    p: float  # two-sided, of utility, new requests, corrected over all contrasts
    assay: Assay
    by_seed: tuple[float, ...]  # utility
    verdict: ClaimVerdict
    words: str

    @property
    def sensitive(self) -> bool:
        """Is it at the point that was chosen for being sensitive, not at the paper's own?"""
        return is_sensitive(self.utility.contrast)


def lines(run: SeedRuns) -> list[Line]:
    """One for each contrast that names a claim.

    Raises UsageError for a run of another experiment.
    """
    results = contrasts.findings(run)
    utility, hits = (
        [finding for finding in results if finding.metric.name == name] for name in ("utility", "hit_rate")
    )
    named = [_ASKS.fullmatch(finding.contrast.asks) for finding in utility]
    if not named or not all(named):
        raise UsageError(
            f"{run.path} is no run of skg_parameters or skg_sensitive; make one: skg-bench run experiment=skg_sensitive"
        )
    matched = compare(run.runs, REFERENCE).matched if REFERENCE in run.arms else ()
    equal = {match.arm: match.figures["hit_rate"] for match in matched}
    ps, family = corrected(utility), Counter(is_sensitive(finding.contrast) for finding in utility)
    operating = _hit_rates(run, [finding.contrast.reference for finding in utility])
    used_up = saturation(events(run)).reasons
    where = assays(run, [finding.contrast for finding in utility])
    made = []
    for name, finding, hit, p, (assay, by_seed) in zip(named, utility, hits, ps, where, strict=True):
        if name:
            number, tests = name[1] in NUMBERS, family[is_sensitive(finding.contrast)]
            says = judged(finding, p, assay, by_seed, number=number, tests=tests, used_up=used_up)
            at = operating[finding.contrast.reference]
            made.append(Line(name[1], name[2], at, finding, hit, _matched(finding, equal), p, assay, by_seed, *says))
    return made


def corrected(results: Sequence[contrasts.ContrastResult]) -> list[float]:
    """p-values of all contrasts, by Holm over those of one operating point: no verdict rests on both."""
    ps = [float("nan")] * len(results)
    for sensitive in (False, True):
        at = [i for i, result in enumerate(results) if is_sensitive(result.contrast) == sensitive]
        for i, p in zip(at, holm([results[i].estimate.p(new=True) for i in at]), strict=True):
            ps[i] = float(p)
    return ps


def is_sensitive(contrast: contrasts.Contrast) -> bool:
    """Is it at the point that was chosen for being sensitive, not at the paper's own?"""
    return contrast.reference.startswith(SENSITIVE)


def _hit_rates(run: SeedRuns, arms: Sequence[str]) -> dict[str, float]:
    requests, hit_rate = events(run), metrics(Utility.of(run.config))["hit_rate"]
    return {
        arm: measure([hit_rate], tallies(run, arm, requests)[0], requests)["hit_rate"].mean
        for arm in dict.fromkeys(arms)
    }


def assays(run: SeedRuns, pairs: Sequence[contrasts.Contrast]) -> list[tuple[Assay, tuple[float, ...]]]:
    """Place of the loop as it stands for each contrast, from the turn on at which it counts, and its mean by seed."""
    requests, utility = events(run), metrics(Utility.of(run.config))["utility"]
    since = [contrasts.parting(run, pair) for pair in pairs]
    named = [arm for pair in pairs for arm in (pair.arm, pair.reference, pair.bound) if arm is not None]
    tally = {
        arm: tallies(run, arm, requests, since=sorted(set(since))) for arm in dict.fromkeys([NEVER, ORACLE, *named])
    }
    results = []
    for pair, turn in zip(pairs, since, strict=True):
        reference, loop = tally[pair.reference][turn], whole(pair)

        def beyond(arm: str, other: Tally, turn: int = turn) -> Measured:
            return Measured.of(contrast([utility], tally[arm][turn], other, requests)["utility"])

        ahead = None if loop == NEVER else beyond(loop, tally[NEVER][turn])
        rooms = [beyond(arm, tally[loop][turn]) for arm in dict.fromkeys((ORACLE, pair.bound)) if arm is not None]
        assay = Assay(ahead, max(rooms, key=lambda room: room.value))
        results.append((assay, seed_means(utility, tally[pair.arm][turn], reference, requests)))
    return results


def whole(pair: contrasts.Contrast) -> str:
    """The reference arm of an operating point: its loop as it stands, of which a contrast takes or changes one part."""
    return pair.arm if pair.arm in LOOPS else pair.reference


def seed_means(metric: Metric, arm: Tally, reference: Tally, requests: LoggedEvents) -> tuple[float, ...]:
    """Mean difference of a metric over the users of each seed."""
    mine, theirs = (by_user([metric], each, requests)[metric.name] for each in (arm, reference))
    known = ~np.isnan(mine - theirs)
    seed, differences = (requests.users // STRIDE)[known], (mine - theirs)[known]
    return tuple(float(differences[seed == each].mean()) for each in sorted(set(seed.tolist())))


def _matched(finding: contrasts.ContrastResult, equal: Mapping[str, Pair]) -> Pair | None:
    """Pair at matched error rates: an arm against skg, or skg against it; None: neither is skg."""
    arm, reference = finding.contrast.arm, finding.contrast.reference
    if reference == REFERENCE:
        return equal.get(arm)
    turned = equal.get(reference) if arm == REFERENCE else None
    return turned and Pair(turned.reference, turned.arm, -turned.difference, -turned.high, -turned.low)


def judged(
    finding: contrasts.ContrastResult,
    p: float,
    assay: Assay,
    by_seed: Sequence[float],
    *,
    number: bool,
    tests: int,
    used_up: Sequence[str] = (),
) -> tuple[ClaimVerdict, str]:
    """The paper's number is held against another one; a part against its absence, `arm` being the one with it.

    `p` is corrected for so many `tests`.
    """
    e, margin, largest = finding.estimate, finding.margin, finding.largest
    could = largest is None or largest.interval(new=True)[0] > margin  # an oracle is worth more than the margin
    shown = p < ALPHA and not e.disputed
    better, worse = shown and e.mean > 0, shown and e.mean <= 0
    little = not shown and not e.disputed and e.limit(1 - ALPHA) < margin  # one-sided
    small = little and could
    limits = {"above": 0.0} if better else {"below": 0.0} if worse else {"below": margin}
    if (better or worse or small) and not agree(by_seed, **limits):
        better = worse = small = False
        words = f"not shown either way: the seeds disagree ({', '.join(f'{mean:+.4f}' for mean in by_seed)})"
    elif better:
        words = "this serves users better" if number else "it serves users better"
    elif worse:
        words = "this serves users worse" if number else "users are served worse with it"
    elif small:
        words = f"this is no more than {margin:g} better" if number else f"it is worth less than {margin:g}"
    elif e.withheld:
        words = f"not shown either way: {e.design:.1f} effective intents are too few for an interval"
    elif e.disputed:
        words = "not shown either way: it depends on the interval"
    elif little:
        words = f"not shown either way: nothing in its place is shown to be worth {margin:g} here, an oracle neither"
    else:
        words = f"not shown either way; such a run finds {e.detectable(new=True, level=ALPHA / tests):.4f}"
    holds, fails = (worse or small, better) if number else (better, worse or small)
    says, reason = claim_verdict(holds=holds, fails=fails, assay=assay, used_up=used_up, neither=words)
    return says, words if reason in ("", words) else f"{words}, but {reason}"
