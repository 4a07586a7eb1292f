"""Differences in judged words as people read them, on a terminal and on a page."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan

from skg_bench.analysis.counts.wording import bare, interval, number
from skg_bench.analysis.labels.asked_again import count_share
from skg_bench.analysis.labels.label_shares import LabelShare
from skg_bench.analysis.labels.labelled_run import kept_labels, kept_seed
from skg_bench.analysis.labels.rater_labels import agreements
from skg_bench.analysis.labels.word_differences import WordsDifference, judged_words, kept_judges
from skg_bench.analysis.labels.word_pairs import has_tasks
from skg_bench.core.spoken import UNCHECKED
from skg_bench.runfolder.run import Run

WORD_HEADINGS = (
    "arm", "verdict", "corrected by people", "by the judge alone", "turns judged by people",
    "sensitivity", "specificity",
)  # fmt: skip
WORD_INTERVALS = (
    "intervals: 95 %, for other users with such tasks, with the error of the judge; verdicts: corrected for the number "
    "of arms; near counts as not right, unknown and disputed labels count both ways; sensitivity: of answers that "
    "people call right, those that the judge calls right; specificity: of all others, those that it does not call right"
)


_MANY = 20  # labels on which a judge that errs now and then hardly agrees with all


@dataclass(frozen=True, slots=True)
class JudgeTable:
    """Rows of the arms by one judge."""

    judge: str  # empty: labels of people alone
    rows: Sequence[Sequence[str]]
    caution: str  # empty: there is none


@dataclass(frozen=True, slots=True)
class WordTables:
    """Arms of a run on tasks against the reference, as people and judges grade their words."""

    title: str
    agreements: Sequence[str]  # of raters
    judges: Sequence[JudgeTable]
    command: str  # that draws answers to be judged; empty: people have judged some


def word_tables(
    run: Run, sheets: Mapping[str, Mapping[int, int]] | None = None, seed: int | None = None
) -> WordTables | None:
    """Tables of all labels that lie beside a run, and those of `sheets`, by name of the judge. `seed`: of the order in
    which turns are labelled; None: as it was. None: there is nothing to judge, or the run's own check judges alone.
    """
    if not has_tasks(run):
        return None
    by_rater, judges = kept_labels(run), {**kept_judges(run), **(sheets or {})}
    if not by_rater and not judges and run.config["simulator"]["check"] != UNCHECKED:
        return None
    rows = judged_words(run, by_rater, judges, kept_seed(run) if seed is None else seed)
    if not rows:
        return None
    command = shlex.join(["skg-bench", "data", "label", str(run.path), "--out", "label.csv", "--page", "label.html"])
    return WordTables(
        f"right answers to {rows[0].turns:,} tasks, minus those of {run.config['reference']}",
        [each.words for each in agreements(by_rater)],
        [
            _table(judge, [row for row in rows if row.judge == judge])
            for judge in dict.fromkeys(row.judge for row in rows)
        ],
        "" if by_rater else command,
    )


def _table(judge: str, rows: Sequence[WordsDifference]) -> JudgeTable:
    counts = [each for row in rows for each in (row.found, row.refused)]
    many = max(row.found[1] + row.refused[1] for row in rows) >= _MANY
    same = many and all(agrees == every for agrees, every in counts)
    caution = (
        "agrees with every label: if it was made from them, its figures are worth nothing" if judge and same else ""
    )
    return JudgeTable(judge, [_cells(row) for row in rows], caution)


def _cells(row: WordsDifference) -> Sequence[str]:
    shares = [_share(share) for share in (row.corrected, row.alone)]
    agrees = [count_share(*each) for each in (row.found, row.refused)]
    return [row.arm, row.verdict, *shares, f"{row.labelled:,} of {row.differ:,}", *agrees]


def _share(share: LabelShare) -> str:
    if isnan(share.mean):
        return "-"
    ends = bare(interval(share.low, share.high, "share", signed=True))
    return f"{number(share.mean, 'share', signed=True)} ({ends})"
