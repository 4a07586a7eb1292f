"""Which of the paper's numbers and parts matter: verdicts on a run of `skg_parameters`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skg_bench.analysis.comparison import contrasts
from skg_bench.analysis.comparison.claims import Evidence, Finding, Measured, Verdict, verdict
from skg_bench.analysis.comparison.compare import compare
from skg_bench.analysis.comparison.matched import Pair
from skg_bench.analysis.counts.measure import contrast
from skg_bench.analysis.counts.metrics import Utility, metrics
from skg_bench.analysis.counts.tally import events, tallies
from skg_bench.analysis.counts.wording import interval, number
from skg_bench.analysis.statistics.intervals import ALPHA, holm
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment, OneRun
from skg_bench.core.errors import UsageError
from skg_bench.core.run import Run

REFERENCE = "skg"
UNSHOWN = "but its own arm is not ahead of one that reuses nothing"
NUMBERS = ("K11", "K16", "K17", "K19")  # the paper chooses one, and the arm has another; all else are parts
COMMAND = "skg-bench run experiment=skg_parameters profile=demo; skg-bench experiment skg_parameters RUN"
COLUMNS = (
    "claim", "asks about", "arm - reference", "utility", "new requests", "p (Holm)", "hit rate", "at equal errors",
    "verdict",
)  # fmt: skip
_ASKS = re.compile(r"(K\d\d): (.+)")


@dataclass(frozen=True)
class Line:
    """One contrast, in words."""

    id: str
    asks: str
    utility: contrasts.ContrastResult
    hit_rate: contrasts.ContrastResult
    matched: Pair | None  # hit rate of both at the lower of their error rates, over the whole run
    p: float  # two-sided, of utility, new requests, corrected over all contrasts
    beyond: Measured  # the arm that the claim speaks for, beyond `never`
    verdict: Verdict
    words: str


def lines(run: Run) -> list[Line]:
    """One for each contrast that names a claim.

    Raises UsageError for a run of another experiment.
    """
    results = contrasts.findings(run)
    utility, hits = (
        [finding for finding in results if finding.metric.name == name] for name in ("utility", "hit_rate")
    )
    named = [_ASKS.fullmatch(finding.contrast.asks) for finding in utility]
    if not named or not all(named):
        raise UsageError(f"{run.path} is no run of skg_parameters; make one: skg-bench run experiment=skg_parameters")
    equal = {match.arm: match.figures["hit_rate"] for match in compare([run], REFERENCE).matched}
    ps = holm([finding.estimate.p(new=True) for finding in utility])
    numbers = [bool(name and name[1] in NUMBERS) for name in named]
    alone = _beyond_never(run, [finding.contrast for finding in utility], numbers)
    return [
        Line(
            name[1],
            name[2],
            finding,
            hit,
            _matched(finding, equal),
            float(p),
            beyond,
            *judged(finding, float(p), beyond, number=name[1] in NUMBERS, tests=len(ps)),
        )
        for name, finding, hit, p, beyond in zip(named, utility, hits, ps, alone, strict=True)
        if name
    ]


def _beyond_never(run: Run, pairs: Sequence[contrasts.Contrast], numbers: Sequence[bool]) -> list[Measured]:
    """Of the arm with the paper's number or part, from the turn on at which a contrast counts."""
    requests, utility = events(run), metrics(Utility.of(run.config))["utility"]
    since = [contrasts.parting(run, pair) for pair in pairs]
    arms = [pair.reference if number else pair.arm for pair, number in zip(pairs, numbers, strict=True)]
    tally = {arm: tallies(run, arm, requests, since=sorted(set(since))) for arm in dict.fromkeys(["never", *arms])}
    return [
        Measured.of(contrast([utility], tally[arm][turn], tally["never"][turn], requests)["utility"])
        for arm, turn in zip(arms, since, strict=True)
    ]


def _matched(finding: contrasts.ContrastResult, equal: Mapping[str, Pair]) -> Pair | None:
    """Of arms against skg, and of skg against them; None: neither is skg."""
    arm, reference = finding.contrast.arm, finding.contrast.reference
    if reference == REFERENCE:
        return equal.get(arm)
    turned = equal.get(reference) if arm == REFERENCE else None
    return turned and Pair(turned.reference, turned.arm, -turned.difference, -turned.high, -turned.low)


def judged(
    finding: contrasts.ContrastResult, p: float, beyond: Measured, *, number: bool, tests: int
) -> tuple[Verdict, str]:
    """The paper's number is held against another one; a part against its absence, `arm` being the one with it.

    `p` is corrected for so many `tests`.
    """
    e = finding.estimate
    at_most = e.limit(1 - ALPHA)  # one-sided
    better, worse = p < ALPHA and e.mean > 0, p < ALPHA and e.mean <= 0
    small = not (better or worse) and at_most < finding.margin
    holds, fails = (worse or small, better) if number else (better, worse or small)
    if better:
        words = "this serves users better" if number else "it serves users better"
    elif worse:
        words = "this serves users worse" if number else "users are served worse with it"
    elif small:
        words = (
            f"this is no more than {finding.margin:g} better" if number else f"it is worth less than {finding.margin:g}"
        )
    elif e.withheld:
        words = f"not shown either way: {e.intents:.1f} effective intents are too few for an interval"
    else:
        words = f"not shown either way; such a run finds {e.detectable(new=True, level=ALPHA / tests):.4f}"
    says = verdict(holds=holds, fails=fails, beyond=beyond)
    return says, f"{words}, {UNSHOWN}" if holds and says != "reproduced" else words


def cells(line: Line) -> tuple[str, ...]:
    """A row of the table."""
    e, contrast = line.utility.estimate, line.utility.contrast
    return (
        line.id, line.asks, f"{contrast.arm} - {contrast.reference}", number(e.mean, "utility", signed=True),
        interval(*e.interval(new=True), "utility", signed=True), f"{line.p:.3f}",
        number(line.hit_rate.estimate.mean, "difference", signed=True), _hits(line.matched),
        f"{line.verdict}: {line.words}",
    )  # fmt: skip


def _hits(pair: Pair | None) -> str:
    if pair is None:
        return "-"
    between = interval(pair.low, pair.high, "difference", signed=True)
    return f"{number(pair.difference, 'difference', signed=True)} ({between})"


def findings(run: Run, claim_lines: Sequence[Line]) -> list[Finding]:
    """One a line, for `skg-bench claims`."""
    evidence = Evidence.of([run], COMMAND)
    return [
        Finding(
            line.id,
            f"varied: {line.asks}",
            Measured.of(line.utility.estimate),
            line.verdict,
            f"{line.asks[:1].upper()}{line.asks[1:]}: {line.words}.",
            evidence,
            line.beyond,
        )
        for line in claim_lines
    ]


def analyse(run: OneRun) -> Report:
    """From a run of `skg_parameters`; nothing expected is checked."""
    claim_lines = lines(run)
    table = Table("", COLUMNS, list(map(cells, claim_lines)))
    m = run.manifest
    scope = f"{m['users']} users, {m['weeks']} weeks, seed {m['seed']}; 95 % intervals for new users and requests."
    text = page("Numbers and parts of the SKG paper", f"{COMMAND} --write reports", scope, table.markdown())
    return Report([table], text, findings=lambda: findings(run, claim_lines))


EXPERIMENT = Experiment(analyse)
