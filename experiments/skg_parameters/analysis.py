"""Which of the paper's numbers and parts matter: verdicts on a run of `skg_parameters`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skg_bench.analysis.comparison import contrasts
from skg_bench.analysis.comparison.claims import Evidence, Finding, Measured, Verdict, verdict
from skg_bench.analysis.comparison.compare import compare
from skg_bench.analysis.comparison.matched import Pair
from skg_bench.analysis.counts.measure import contrast, measure
from skg_bench.analysis.counts.metrics import Utility, metrics
from skg_bench.analysis.counts.tally import events, tallies
from skg_bench.analysis.counts.wording import interval, number
from skg_bench.analysis.statistics.intervals import ALPHA, holm
from skg_bench.analysis.summary.saturation import saturation
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment, OneRun
from skg_bench.core.errors import UsageError
from skg_bench.core.run import Run

REFERENCE = "skg"
UNSHOWN = "but its own arm is not ahead of one that reuses nothing"
NUMBERS = ("K11", "K16", "K17", "K19")  # the paper chooses one, and the arm has another; all else are parts
COMMAND = "skg-bench run experiment=skg_parameters profile=demo; skg-bench experiment skg_parameters RUN"
COLUMNS = (
    "claim", "asks about", "at hits", "arm - reference", "utility", "new requests", "at most", "p (Holm)", "hit rate",
    "at equal errors", "verdict",
)  # fmt: skip
POINTS = (("As the paper has it", False), ("Every answer is captured, and the threshold is 0.6", True))
SWEPT = ("threshold", "candidates that reach it", "hits", "right hits", "utility")
VERBATIM = 0.9999  # cosine of a text with itself, on the grid of vectors
READ = (
    "*At hits*: the operating point, the hit rate of the reference. *At most*: what an oracle in the place of the part "
    "brings over the reference, the largest effect that could have been found here. A part is called worth less than "
    "the margin only where an oracle is shown to be worth more than it. A dash: no oracle, or one that does harm."
)
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
    operating = _hit_rates(run, [finding.contrast.reference for finding in utility])
    used_up = saturation(events(run)).reasons
    alone = _beyond_never(run, [finding.contrast for finding in utility], numbers)
    return [
        Line(
            name[1],
            name[2],
            operating[finding.contrast.reference],
            finding,
            hit,
            _matched(finding, equal),
            float(p),
            beyond,
            *judged(finding, float(p), beyond, number=name[1] in NUMBERS, tests=len(ps), used_up=used_up),
        )
        for name, finding, hit, p, beyond in zip(named, utility, hits, ps, alone, strict=True)
        if name
    ]


def _hit_rates(run: Run, arms: Sequence[str]) -> dict[str, float]:
    requests, hit_rate = events(run), metrics(Utility.of(run.config))["hit_rate"]
    return {
        arm: measure([hit_rate], tallies(run, arm, requests)[0], requests)["hit_rate"].mean
        for arm in dict.fromkeys(arms)
    }


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
    finding: contrasts.ContrastResult,
    p: float,
    beyond: Measured,
    *,
    number: bool,
    tests: int,
    used_up: Sequence[str] = (),
) -> tuple[Verdict, str]:
    """The paper's number is held against another one; a part against its absence, `arm` being the one with it.

    `p` is corrected for so many `tests`.
    """
    e = finding.estimate
    at_most = e.limit(1 - ALPHA)  # one-sided
    better, worse = p < ALPHA and e.mean > 0, p < ALPHA and e.mean <= 0
    largest = finding.largest
    could = largest is None or largest.interval(new=True)[0] > finding.margin  # an oracle is worth more than the margin
    small = not (better or worse) and at_most < finding.margin and could
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
    elif not could and at_most < finding.margin:
        words = f"nothing in its place is shown to be worth {finding.margin:g} here, an oracle neither"
    else:
        words = f"not shown either way; such a run finds {e.detectable(new=True, level=ALPHA / tests):.4f}"
    says = verdict(holds=holds, fails=fails, beyond=beyond, used_up=used_up)
    if used_up:
        return says, f"{words}, but the corpus was used up: {'; '.join(used_up)}"
    return says, f"{words}, {UNSHOWN}" if holds and says != "reproduced" else words


def cells(line: Line) -> tuple[str, ...]:
    """A row of the table."""
    e, contrast, largest = line.utility.estimate, line.utility.contrast, line.utility.largest
    return (
        line.id, line.asks, number(line.hits, "share"), f"{contrast.arm} - {contrast.reference}",
        number(e.mean, "utility", signed=True), interval(*e.interval(new=True), "utility", signed=True),
        "-" if largest is None or largest.mean < 0 else number(largest.mean, "utility", signed=True), f"{line.p:.3f}",
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
            f"varied: {line.asks}, at {number(line.hits, 'share')} hits",
            Measured.of(line.utility.estimate),
            line.verdict,
            f"{line.asks[:1].upper()}{line.asks[1:]}, stored answers, {number(line.hits, 'share')} hits: {line.words}.",
            evidence,
            line.beyond,
        )
        for line in claim_lines
    ]


def _often(line: Line) -> bool:
    return line.utility.contrast.reference.startswith("often")


def thresholds(run: Run) -> list[tuple[str, ...]]:
    """Rows under SWEPT: of the arms that differ from skg in their threshold."""
    requests, shown = events(run), metrics(Utility.of(run.config))
    score = run.turns(REFERENCE, ["skill_score"])["skill_score"].to_numpy()
    some = score > 0  # there is a candidate
    by_threshold = {float(parts["policy"]["threshold"]): arm for arm, parts in run.manifest["compositions"].items()
                    if arm == REFERENCE or arm.startswith("threshold_")}  # fmt: skip
    rows: list[tuple[str, ...]] = []
    for threshold, arm in sorted(by_threshold.items()):
        e = measure(shown.values(), tallies(run, arm, requests)[0], requests)
        right = 1.0 - e["err_per_hit"].mean if e["err_per_hit"].n_users else float("nan")
        rows.append((
            f"{threshold:g}", number(float((score[some] >= threshold).mean()), "share"),
            number(e["hit_rate"].mean, "share"), number(right, "share"), number(e["utility"].mean, "utility"),
        ))  # fmt: skip
    return rows


def verbatim(run: Run) -> str:
    """How far scores lie below 1 where a message is word for word an example."""
    table = run.turns(REFERENCE, ["max_sim", "skill_score"])
    same = table["max_sim"].to_numpy() > VERBATIM
    if not same.any():
        return "No message was word for word an example."
    score = np.quantile(table["skill_score"].to_numpy()[same], (0.25, 0.5, 0.75))
    quartiles = ", ".join(f"{q:.2f}" for q in score)
    return (
        f"A threshold is a place on this project's own scale of scores: where the message is word for word an example "
        f"({number(float(same.mean()), 'share')} of turns), the best score has quartiles {quartiles}. So a sweep of "
        '"0.5" is a sweep of this scale, and what carries over is the share of candidates that reach a threshold, and '
        "the share of hits that are right."
    )


def analyse(run: OneRun) -> Report:
    """From a run of `skg_parameters`; nothing expected is checked."""
    claim_lines = lines(run)
    tables = [
        Table(title, COLUMNS, [cells(line) for line in claim_lines if _often(line) == often]) for title, often in POINTS
    ]
    m = run.manifest
    scope = f"{m['users']} users, {m['weeks']} weeks, seed {m['seed']}; 95 % intervals for new users and requests."
    sweep = Table("What thresholds mean on the scale of scores", SWEPT, thresholds(run))
    text = page(
        "Numbers and parts of the SKG paper", f"{COMMAND} --write reports", scope, READ,
        *(table for table in tables if table.rows), sweep, verbatim(run),
    )  # fmt: skip
    return Report([*tables, sweep], text, findings=lambda: findings(run, claim_lines))


EXPERIMENT = Experiment(analyse)
