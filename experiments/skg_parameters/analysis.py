"""Numbers and parts of the paper that matter: verdicts on a run of `skg_parameters`."""

from collections.abc import Mapping, Sequence
from math import isfinite

import numpy as np

from experiments.skg_parameters.spared import spared
from experiments.skg_parameters.verdicts import REFERENCE, Line, lines
from skg_bench.analysis.comparison.assay import Measured
from skg_bench.analysis.comparison.findings import Evidence, Finding
from skg_bench.analysis.comparison.matched import Pair
from skg_bench.analysis.comparison.over_corpora import differ_in_corpus_alone, over_corpora
from skg_bench.analysis.comparison.seeds import SeedRuns, by_configuration
from skg_bench.analysis.counts.measure import measure
from skg_bench.analysis.counts.metrics import Utility, metrics
from skg_bench.analysis.counts.tally import events, tallies
from skg_bench.analysis.counts.wording import interval, number
from skg_bench.analysis.summary.saturation import OUR_CORPUS, corpus
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment, Runs
from skg_bench.core.errors import UsageError

COMMAND = "skg-bench claims --make skg_parameters"
COLUMNS = (
    "claim", "asks about", "at hits", "arm - reference", "utility", "new requests", "by seed", "reference - never",
    "at most", "p (Holm)", "hit rate", "at equal errors", "verdict",
)  # fmt: skip
POINTS = (("As the paper has it", False), ("At the sensitive point", True))
SWEPT = ("threshold", "candidates that reach it", "hits", "right hits", "utility")
VERBATIM = 0.9999  # cosine of a text with itself, on the grid of vectors
READ = (
    "*At hits*: the operating point, the hit rate of the reference. *Reference - never*: a verdict needs a reference "
    "that is shown to be ahead of `never` and behind an oracle of the run. *By seed*: the mean difference of each; "
    "one interval is made of the users of all, and a seed with another sign vetoes. *At most*: what an oracle in the "
    "place of the part brings over the reference, the largest effect that could have been found here. A part is called "
    "worth less than the margin only where an oracle is shown to be worth more than it. A dash: no oracle, or one that "
    "does harm. *p*: corrected over the contrasts of its table."
)


def cells(line: Line) -> tuple[str, ...]:
    """A row of the table."""
    e, contrast, largest = line.utility.estimate, line.utility.contrast, line.utility.largest
    return (
        line.id, line.asks, number(line.hits, "share"), f"{contrast.arm} - {contrast.reference}",
        number(e.mean, "utility", signed=True), interval(*e.interval(new=True), "utility", signed=True),
        ", ".join(number(mean, "utility", signed=True) for mean in line.by_seed), _ahead(line),
        "-" if largest is None or largest.mean < 0 else number(largest.mean, "utility", signed=True), f"{line.p:.3f}",
        number(line.hit_rate.estimate.mean, "difference", signed=True), _hits(line.matched),
        f"{line.verdict}: {line.words}",
    )  # fmt: skip


def _ahead(line: Line) -> str:
    ahead = line.assay.ahead
    if ahead is None:
        return "-"
    return f"{number(ahead.value, 'utility', signed=True)} ({interval(ahead.low, ahead.high, 'utility', signed=True)})"


def _hits(pair: Pair | None) -> str:
    if pair is None:
        return "-"
    between = interval(pair.low, pair.high, "difference", signed=True)
    return f"{number(pair.difference, 'difference', signed=True)} ({between})"


Point = tuple[SeedRuns, Sequence[Line]]
"""Runs at an operating point, and what they say."""


def findings(points: Sequence[Point]) -> list[Finding]:
    """One for each question, for `skg-bench claims`: on the built-in corpus where it was asked there, held against
    others at the same operating point: the sensitive one where there is an answer, else the paper's own.
    """
    gathered, sensitive = by_corpus(points), dict[tuple[str, str], bool]()
    for some in gathered.values():
        questions = [(line.id, line.asks, line.sensitive) for _, claim_lines in some for line in claim_lines]
        here = {(id_, asks): (id_, asks, True) in questions for id_, asks, _ in questions}
        sensitive = {**here, **sensitive}
    return over_corpora({name: corpus_findings(some, sensitive) for name, some in gathered.items()})


def by_corpus(points: Sequence[Point]) -> dict[str, list[Point]]:
    """Points by the name of their corpus, the built-in one first."""
    gathered: dict[str, list[Point]] = {}
    for point in points:
        gathered.setdefault(corpus(point[0].config), []).append(point)
    return dict(sorted(gathered.items(), key=lambda item: item[0] != OUR_CORPUS))


def corpus_findings(points: Sequence[Point], sensitive: Mapping[tuple[str, str], bool]) -> list[Finding]:
    """Findings on one corpus, each question at the operating point that `sensitive` names. At the sensitive one the
    figure at the paper's own point stands beside it.
    """
    results, answers_of = list[Finding](), dict[tuple[str, str], list[tuple[Line, Evidence]]]()
    for run, claim_lines in points:
        evidence = Evidence.of(run.runs, COMMAND)
        results += [
            finding for finding in spared(run, evidence) if finding.claimed not in {each.claimed for each in results}
        ]
        for line in claim_lines:
            if isfinite(line.utility.estimate.mean):  # else nobody was there long enough
                answers_of.setdefault((line.id, line.asks), []).append((line, evidence))
    for question, answers in answers_of.items():
        here = [answer for answer in answers if answer[0].sensitive == sensitive[question]]
        papers = next((other for other, _ in answers if not other.sensitive and sensitive[question]), None)
        results += [_finding(line, papers, evidence) for line, evidence in here]
    return results


def _finding(line: Line, papers: Line | None, evidence: Evidence) -> Finding:
    hits = number(line.hits, "share")
    point = "" if line.sensitive else ", at the paper's own operating point"
    words = f"{line.asks[:1].upper()}{line.asks[1:]}, at {hits} hits{point}: {line.words}."
    if papers is not None:
        e = papers.utility.estimate
        figure = f"{number(e.mean, 'utility', signed=True)} ({interval(*e.interval(new=True), 'utility', signed=True)})"
        words += f" As the paper has it, at {number(papers.hits, 'share')} hits, it is {figure}: {papers.words}."
    measured = Measured.of(line.utility.estimate)
    return Finding(
        line.id, line.asks, measured, line.verdict, words, evidence, line.assay, line.by_seed,
        None if papers is None else Measured.of(papers.utility.estimate),
    )  # fmt: skip


def thresholds(run: SeedRuns) -> list[tuple[str, ...]]:
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


def verbatim(run: SeedRuns) -> str:
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


def analyse(runs: Runs) -> Report:
    """Analyses runs of `skg_sensitive`, `skg_sensitive_parts` and `skg_parameters`, or some of them, each of several
    seeds; nothing expected is checked.
    """
    groups = sorted(by_configuration(runs), key=lambda run: (-len(run.runs), str(run.config["experiment"])))
    points, tables = [(run, lines(run)) for run in groups], list[Table]()
    _alike(groups)
    sweeps, scales = list[Table](), list[str]()
    for nth, (name, some) in enumerate(by_corpus(points).items()):
        _ask_once(some)
        where = f", on {name}" if nth else ""
        every = [line for _, claim_lines in some for line in claim_lines]
        tables += [
            Table(title + where, COLUMNS, [cells(line) for line in every if line.sensitive == sensitive])
            for title, sensitive in POINTS
        ]
        for run in [run for run, _ in some if REFERENCE in run.arms][:1] if not sweeps else ():
            sweeps.append(Table(f"What thresholds mean on the scale of scores{where}", SWEPT, thresholds(run)))
            scales.append(verbatim(run))
    text = page(
        "Numbers and parts of the SKG paper", COMMAND, " ".join(map(_scope, groups)), READ,
        *(table for table in tables if table.rows), *sweeps, *scales,
    )  # fmt: skip
    return Report([*(table for table in tables if table.rows), *sweeps], text, findings=lambda: findings(points))


def _alike(groups: Sequence[SeedRuns]) -> None:
    """Runs of an experiment may differ in corpus, users and weeks; UsageError for others."""
    for run in groups:
        same = [other for other in groups if other.config["experiment"] == run.config["experiment"]]
        differ_in_corpus_alone(same[0], run, but=("users", "weeks"))


def _ask_once(points: Sequence[Point]) -> None:
    """UsageError for two runs on one corpus that ask the same."""
    runs_by_question = dict[tuple[str, str, bool], SeedRuns]()
    for run, claim_lines in points:
        for line in claim_lines:
            if (earlier := runs_by_question.setdefault((line.id, line.asks, line.sensitive), run)) is not run:
                raise UsageError(
                    f"{earlier.path} and {run.path} ask the same on {corpus(run.config)}, and are no two seeds of one "
                    "configuration; give each run once"
                )


def _scope(run: SeedRuns) -> str:
    m, seeds = run.manifest, ", ".join(str(each.manifest["seed"]) for each in run.runs)
    return (
        f"{m['config']['experiment']}: {m['users']} users, {m['weeks']} weeks, each of the seeds {seeds}, on "
        f"{corpus(run.config)}; 95 % for new users and requests."
    )


EXPERIMENT = Experiment(analyse)
